// The words that cell commands have in common, as text in and plain structs out: columns, bounds,
// timestamps, lifetimes, predicates. Pure functions, so that every rule of the grammar
// (cellar-commands(7), cellar-query(7)) is tested without a store, a session or a socket.
//
//   column      family:qualifier; the first ':' splits; the qualifier may be empty
//   selector    column | family, or COLPREFIX family prefix, or COLRANGE family min max
//   bound       [key  (key  -  +                                  as Redis' ZRANGEBYLEX
//   time bound  10  (10  -inf  +inf                               as Redis' ZRANGEBYSCORE
//   predicate   ROW EXISTS|MISSING  |  FILTER expression  |  column EXISTS|MISSING|MATCH glob
//               |  column EQ|NE|LT|LE|GT|GE value
//
// What is wrong here is wrong whatever the table says: an error of these functions is a syntax
// error (cellar-model(7), "ERROR REPLIES"), found before any table is looked for. Everything that
// needs the schema (does the family exist, does the key fit its order, does the value fit its type)
// goes on as text to the engine. All views borrow from the client's words.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/inline.h"
#include "cellar/status.h"
#include "commands/arguments/arguments.h"
#include "engine/request/row_write.h"
#include "engine/schema/column_set.h"

namespace cellar {

inline constexpr std::string_view kColumnForm{"a column (family:qualifier)"};
[[gnu::cold]] Status NotColumn(std::string_view word);
// SplitColumn of an argument that can be nothing else: ERR naming the word if it is no column.
CELLAR_INLINE Status ParseColumn(std::string_view word, std::string_view* family,
                                 std::string_view* qualifier) {
  if (SplitColumn(word, family, qualifier)) [[likely]]
    return Status::Ok();
  return NotColumn(word);
}
CELLAR_INLINE Status CheckColumn(std::string_view word) {
  return IsColumn(word) ? Status::Ok() : NotColumn(word);
}
// A column, or without ':' a whole family.
ColumnSelector ParseSelector(std::string_view word);

// ERR unless `word` is a bound.
Status CheckBound(std::string_view word);
// A number that is a count of something: ERR if it is no integer, or below `least`. `option` is the
// name in the error's text.
Result<uint64_t> ParseCount(std::string_view option, std::string_view word, uint64_t least);
// The count of `option count word ...`, whose syntax behind the option is `words`. It is easily
// forgotten; what stands in its place then is the first of the words, so that is an error of
// syntax.
Result<uint64_t> ParseWordCount(std::string_view option, std::string_view words,
                                std::string_view word, uint64_t least);
// ParseCount, or ALL, which is kUnlimited.
Result<uint64_t> ParseCountOrAll(std::string_view option, std::string_view word);
// A point in time, 0..2^63-1 microseconds: an integer of them, or what people write (time_text.h).
Result<int64_t> ParseTimestamp(std::string_view word);
// Both inclusive; the empty range comes out as min > max.
Result<TimeRange> ParseTimeRange(std::string_view min, std::string_view max);
// TTL of a cell, in microseconds.
Result<uint64_t> ParseTtlMicros(std::string_view word);

// Takes the arguments of COLPREFIX or COLRANGE, whose word has been taken.
Result<ColumnSelector> TakeColumnPrefix(ArgumentCursor* at);
Result<ColumnSelector> TakeColumnRange(ArgumentCursor* at);
// Takes a predicate, whose IF or WHERE has been taken.
Result<Predicate> TakePredicate(ArgumentCursor* at);

}  // namespace cellar
