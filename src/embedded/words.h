// The words of the library's callers (cellar/store.h), checked as the server's commands check
// theirs and put into the engine's terms. What is returned borrows from what it was made of.
#pragma once

#include <string>
#include <string_view>

#include "cellar/status.h"
#include "cellar/store.h"
#include "engine/request/read_options.h"
#include "engine/request/row_write.h"
#include "store/requests.h"
#include "store/store.h"

namespace cellar::embedded {

// ERR with this text.
Status Wrong(std::string text);

// "family:qualifier"; ERR without ':'.
Status SplitColumn(std::string_view column, std::string_view* family, std::string_view* qualifier);
// A column, or without ':' a whole family.
ColumnSelector ToSelector(std::string_view column);
Result<NewFamily> ToNewFamily(const Family& family);
// The options of a put that the resolver takes as they are must make sense.
Result<::cellar::PutOptions> ToPutOptions(const PutOptions& options);
Result<Predicate> ToPredicate(const Condition& condition);
// "[a", "(a", "-", "+"; an empty one is the end of all. Adds the rows between to `rows`.
Status AddRange(std::string_view min, std::string_view max, ::cellar::RowOptions* rows);
// The options of a scan.
Status ToRequest(const ScanOptions& options, ::cellar::RowOptions* rows, CellOptions* cells);

void SetColumn(std::string_view family, std::string_view qualifier, std::string* column);
void SetValue(ValueType type, std::string_view stored, Cell* cell);

}  // namespace cellar::embedded
