// See cell_arguments.h.
#include "commands/arguments/cell_arguments.h"

#include <limits>
#include <string>

#include "base/text/duration.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "base/text/time_text.h"
#include "engine/keys/order.h"
#include "engine/request/read_options.h"

namespace cellar {
namespace {

Status Malformed(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

struct CompareWord {
  std::string_view word;
  CompareOp op;
};
constexpr CompareWord kCompareWords[] = {
    {"EQ", CompareOp::kEq}, {"NE", CompareOp::kNe}, {"LT", CompareOp::kLt},
    {"LE", CompareOp::kLe}, {"GT", CompareOp::kGt}, {"GE", CompareOp::kGe},
};

bool ParseCompareOp(std::string_view word, CompareOp* op) {
  for (const CompareWord& row : kCompareWords) {
    if (EqualsIgnoreCase(word, row.word)) {
      *op = row.op;
      return true;
    }
  }
  return false;
}

// One end of a TIME range as an inclusive timestamp. False if the range is empty because of it.
Result<bool> ParseTimeBound(std::string_view word, BoundSide side, int64_t* micros) {
  const bool exclusive = word.starts_with('(');
  const std::string_view text = exclusive ? word.substr(1) : word;
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (EqualsIgnoreCase(text, "-inf")) {
    *micros = 0;
    return side == BoundSide::kMin;
  }
  if (EqualsIgnoreCase(text, "+inf") || EqualsIgnoreCase(text, "inf")) {
    *micros = kMax;
    return side == BoundSide::kMax;
  }
  int64_t value = 0;
  const NumberError error = ParseInt64(text, &value);
  if (error == NumberError::kMalformed) {
    const Result<int64_t> time = ParseTimeText(text, TimeForm::kRfc3339);
    if (!time.ok())
      return Malformed("min or max of TIME, if not -inf or +inf: " + time.status().text());
    value = *time;
  } else if (error != NumberError::kNone) {
    return Malformed("min or max of TIME is out of range: " + Quote(word));
  }
  if (side == BoundSide::kMin) {
    if (exclusive && value == kMax) return false;
    *micros = exclusive ? value + 1 : value;
    if (*micros < 0) *micros = 0;
    return true;
  }
  if (value < 0 || (exclusive && value == 0)) return false;
  *micros = exclusive ? value - 1 : value;
  return true;
}

[[gnu::cold]] Status IncompletePredicate(ArgumentCursor at) {
  constexpr std::string_view kForms =
      "column EXISTS|MISSING, column EQ|NE|LT|LE|GT|GE value, column MATCH glob, ROW "
      "EXISTS|MISSING or FILTER expression";
  if (at.done()) return IncompleteOption("IF or WHERE", kForms);
  return UnexpectedWord(at.Peek(), "a whole condition: " + std::string(kForms));
}

// A number that is none, after Redis' words for it; `allowed` goes behind it.
[[gnu::cold]] Status NotInteger(std::string_view option, std::string_view word,
                                std::string_view allowed) {
  return Malformed("value is not an integer or out of range: " + std::string(option) + " " +
                   Quote(word).append(allowed));
}

}  // namespace

Status NotColumn(std::string_view word) {
  return Malformed(Quote(word) + " is not a column (family:qualifier)");
}

ColumnSelector ParseSelector(std::string_view word) {
  ColumnSelector selector;
  if (SplitColumn(word, &selector.family, &selector.first)) {
    selector.kind = ColumnSelector::Kind::kColumn;
  } else {
    selector.kind = ColumnSelector::Kind::kFamily;
    selector.family = word;
  }
  return selector;
}

Status CheckBound(std::string_view word) {
  if (word == "-" || word == "+" || word.starts_with('[') || word.starts_with('(')) {
    return Status::Ok();
  }
  return Malformed("min or max is not a bound ([key, (key, - or +): " + Quote(word));
}

Result<uint64_t> ParseCount(std::string_view option, std::string_view word, uint64_t least) {
  int64_t value = 0;
  if (ParseInt64(word, &value) != NumberError::kNone) {
    return NotInteger(option, word, {});
  }
  if (value < 0 || static_cast<uint64_t>(value) < least) {
    return Malformed(std::string(option) + " " + Quote(word) +
                     " is out of range, must be at least " + FormatUint64(least));
  }
  return static_cast<uint64_t>(value);
}

Result<uint64_t> ParseWordCount(std::string_view option, std::string_view words,
                                std::string_view word, uint64_t least) {
  int64_t value = 0;
  if (ParseInt64(word, &value) == NumberError::kMalformed) return NotCount(word, option, words);
  return ParseCount(option, word, least);
}

Result<uint64_t> ParseCountOrAll(std::string_view option, std::string_view word) {
  if (EqualsIgnoreCase(word, "ALL")) return kUnlimited;
  Result<uint64_t> count = ParseCount(option, word, 1);
  if (count.ok()) return count;
  return NotInteger(option, word, " (a count of 1 or more, or ALL)");
}

Result<int64_t> ParseTimestamp(std::string_view word) {
  int64_t micros = 0;
  const NumberError error = ParseInt64(word, &micros);
  if (error == NumberError::kMalformed) {
    ASSIGN_OR_RETURN(micros, ParseTimeText(word, TimeForm::kRfc3339));
  }
  if ((error != NumberError::kNone && error != NumberError::kMalformed) || micros < 0) {
    return Malformed("timestamp is not an integer of 0 or more (microseconds), or out of range: " +
                     Quote(word));
  }
  return micros;
}

Result<TimeRange> ParseTimeRange(std::string_view min, std::string_view max) {
  TimeRange range;
  ASSIGN_OR_RETURN(const bool min_possible,
                   ParseTimeBound(min, BoundSide::kMin, &range.min_micros));
  ASSIGN_OR_RETURN(const bool max_possible,
                   ParseTimeBound(max, BoundSide::kMax, &range.max_micros));
  if (!min_possible || !max_possible || range.min_micros > range.max_micros) {
    // A range without a timestamp: it is no error and matches nothing.
    return TimeRange{.min_micros = 1, .max_micros = 0};
  }
  return range;
}

Result<uint64_t> ParseTtlMicros(std::string_view word) {
  ASSIGN_OR_RETURN(const int64_t duration_ms, ParseDurationMs(word));
  return static_cast<uint64_t>(duration_ms * kMicrosPerMs);
}

Result<ColumnSelector> TakeColumnPrefix(ArgumentCursor* at) {
  if (at->left() < 2) return IncompleteOption("COLPREFIX", "family prefix");
  ColumnSelector selector;
  selector.kind = ColumnSelector::Kind::kPrefix;
  selector.family = at->Take();
  selector.first = at->Take();
  return selector;
}

Result<ColumnSelector> TakeColumnRange(ArgumentCursor* at) {
  if (at->left() < 3) return IncompleteOption("COLRANGE", "family min max");
  ColumnSelector selector;
  selector.kind = ColumnSelector::Kind::kRange;
  selector.family = at->Take();
  selector.first = at->Take();
  selector.second = at->Take();
  RETURN_IF_ERROR(CheckBound(selector.first));
  RETURN_IF_ERROR(CheckBound(selector.second));
  return selector;
}

// Two words are taken before it is clear what they are: a subject with a colon is a column, so a
// column may be called anything. Texts are not looked into here: whether they fit the table, its
// schema says.
Result<Predicate> TakePredicate(ArgumentCursor* at) {
  if (at->left() < 2) return IncompletePredicate(*at);
  Predicate predicate;
  const std::string_view subject = at->Take();
  const std::string_view verb = at->Take();
  const bool exists = EqualsIgnoreCase(verb, "EXISTS");
  const bool missing = EqualsIgnoreCase(verb, "MISSING");
  if (!SplitColumn(subject, &predicate.family, &predicate.qualifier)) {
    if (EqualsIgnoreCase(subject, "FILTER")) {
      predicate.kind = Predicate::Kind::kFilter;
      predicate.literal = verb;
      return predicate;
    }
    if (!EqualsIgnoreCase(subject, "ROW")) {
      return UnexpectedWord(subject, "a column (family:qualifier), ROW or FILTER");
    }
    if (!exists && !missing) return UnexpectedWord(verb, "EXISTS or MISSING after ROW");
    predicate.kind = exists ? Predicate::Kind::kRowExists : Predicate::Kind::kRowMissing;
    return predicate;
  }
  if (exists || missing) {
    predicate.kind = exists ? Predicate::Kind::kColumnExists : Predicate::Kind::kColumnMissing;
    return predicate;
  }
  if (EqualsIgnoreCase(verb, "MATCH")) {
    predicate.kind = Predicate::Kind::kMatch;
  } else if (ParseCompareOp(verb, &predicate.op)) {
    predicate.kind = Predicate::Kind::kCompare;
  } else {
    return UnexpectedWord(verb, "EXISTS, MISSING, EQ, NE, LT, LE, GT, GE or MATCH");
  }
  if (at->done()) return SyntaxErrorBecause(Quote(verb) + " needs a value to compare with");
  predicate.literal = at->Take();
  return predicate;
}

}  // namespace cellar
