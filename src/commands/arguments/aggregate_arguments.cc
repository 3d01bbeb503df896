// See aggregate_arguments.h.
#include "commands/arguments/aggregate_arguments.h"

#include <algorithm>
#include <utility>

#include "base/text/duration.h"
#include "base/text/quote.h"
#include "commands/arguments/cell_arguments.h"
#include "engine/aggregate/number_step.h"
#include "engine/aggregate/time_step.h"

namespace cellar {
namespace {

constexpr std::string_view kTermForms{
    "KEY [count], PART number|name [STEP step], BYTES count, FAMILY, COLUMN, QUALIFIER count, TIME "
    "duration [TZ zone] or VALUE column [STEP step]"};
constexpr std::string_view kFunctionNames{
    "ROWS, COUNT, SUM, AVG, MIN, MAX, FIRST, LAST, STDDEV, VARIANCE, DELTA, RATE, DISTINCT, "
    "QUANTILE or HISTOGRAM"};
constexpr std::string_view kHavingForm{"name EQ|NE|LT|LE|GT|GE value"};
constexpr std::string_view kReduceForm{"function target [argument ...] [AS name]"};

struct FunctionRow {
  std::string_view word;
  Reduce::Function function;
};
constexpr FunctionRow kFunctions[] = {
    {"ROWS", Reduce::Function::kRows},
    {"COUNT", Reduce::Function::kCount},
    {"SUM", Reduce::Function::kSum},
    {"AVG", Reduce::Function::kAvg},
    {"MIN", Reduce::Function::kMin},
    {"MAX", Reduce::Function::kMax},
    {"FIRST", Reduce::Function::kFirst},
    {"LAST", Reduce::Function::kLast},
    {"STDDEV", Reduce::Function::kStddev},
    {"VARIANCE", Reduce::Function::kVariance},
    {"DELTA", Reduce::Function::kDelta},
    {"RATE", Reduce::Function::kRate},
    {"DISTINCT", Reduce::Function::kDistinct},
    {"QUANTILE", Reduce::Function::kQuantile},
    {"HISTOGRAM", Reduce::Function::kHistogram},
};

// Null if there is none.
const FunctionRow* FindFunction(std::string_view word) {
  const auto* const row =
      std::find_if(std::begin(kFunctions), std::end(kFunctions),
                   [&](const FunctionRow& each) { return EqualsIgnoreCase(word, each.word); });
  return row == std::end(kFunctions) ? nullptr : row;
}

bool IsNumber(std::string_view word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Status TakeCount(std::string_view option, ArgumentCursor* at, GroupTerm* term) {
  ASSIGN_OR_RETURN(const std::string_view word, at->TakeAny(option, "count"));
  ASSIGN_OR_RETURN(term->count, ParseCount(option, word, 1));
  return Status::Ok();
}

Status TakeStep(ArgumentCursor* at, GroupTerm* term) {
  if (!at->TakeWord("STEP")) return Status::Ok();
  ASSIGN_OR_RETURN(term->step, at->TakeAny("STEP", "step"));
  return NumberStep::Parse(*term->step).status();
}

Status TakePart(ArgumentCursor* at, GroupTerm* term) {
  term->kind = GroupTerm::Kind::kPart;
  ASSIGN_OR_RETURN(const std::string_view word, at->TakeAny("PART", "number|name [STEP step]"));
  if (IsNumber(word)) {
    ASSIGN_OR_RETURN(term->count, ParseCount("PART", word, 1));
  } else {
    term->name = word;
    if (word.empty()) return UnexpectedWord(word, "a component's number or name after PART");
  }
  return TakeStep(at, term);
}

// A length counted from 1970, or a step of the calendar or of a zone.
Status TakeTime(ArgumentCursor* at, GroupTerm* term) {
  term->kind = GroupTerm::Kind::kTime;
  ASSIGN_OR_RETURN(term->duration, at->TakeAny("TIME", "duration [TZ zone]"));
  if (at->TakeWord("TZ")) {
    ASSIGN_OR_RETURN(term->zone, at->TakeAny("TZ", "zone"));
  }
  if (term->zone || TimeStep::IsCalendar(term->duration))
    return TimeStep::Parse(term->duration, term->zone).status();
  ASSIGN_OR_RETURN(const int64_t duration_ms, ParseDurationMs(term->duration));
  term->duration_micros = duration_ms * kMicrosPerMs;
  return Status::Ok();
}

// A term of BY, up to the word that begins the next one. KEY's number may be left out: one that
// follows is taken for it.
Status TakeTerm(ArgumentCursor* at, GroupTerm* term) {
  if (at->TakeWord("KEY")) {
    term->kind = GroupTerm::Kind::kKey;
    return !at->done() && IsNumber(at->Peek()) ? TakeCount("KEY", at, term) : Status::Ok();
  }
  if (at->TakeWord("PART")) return TakePart(at, term);
  if (at->TakeWord("BYTES")) {
    term->kind = GroupTerm::Kind::kBytes;
    return TakeCount("BYTES", at, term);
  }
  if (at->TakeWord("FAMILY")) {
    term->kind = GroupTerm::Kind::kFamily;
    return Status::Ok();
  }
  if (at->TakeWord("COLUMN")) {
    term->kind = GroupTerm::Kind::kColumn;
    return Status::Ok();
  }
  if (at->TakeWord("QUALIFIER")) {
    term->kind = GroupTerm::Kind::kQualifier;
    return TakeCount("QUALIFIER", at, term);
  }
  if (at->TakeWord("TIME")) return TakeTime(at, term);
  if (at->TakeWord("VALUE")) {
    term->kind = GroupTerm::Kind::kValue;
    ASSIGN_OR_RETURN(const std::string_view word, at->TakeAny("VALUE", "column [STEP step]"));
    RETURN_IF_ERROR(ParseColumn(word, &term->family, &term->qualifier));
    return TakeStep(at, term);
  }
  if (at->done()) return IncompleteOption("BY", kTermForms);
  return UnexpectedWord(at->Peek(), kTermForms);
}

Status TakeReduce(ArgumentCursor* at, Reduce* reduce) {
  if (at->left() < 2) return IncompleteOption("REDUCE", kReduceForm);
  const std::string_view word = at->Take();
  const FunctionRow* const row = FindFunction(word);
  if (row == nullptr) return UnexpectedWord(word, kFunctionNames);
  reduce->function = row->function;
  const std::string_view target = at->Take();
  if (SplitColumn(target, &reduce->family, &reduce->qualifier)) {
    reduce->target = Reduce::Target::kColumn;
  } else if (target != "*") {
    reduce->target = Reduce::Target::kFamily;
    reduce->family = target;
  }
  if (row->function >= Reduce::Function::kQuantile) {
    const bool quantile = row->function == Reduce::Function::kQuantile;
    const std::string_view words = quantile ? "count q ..." : "count bound ...";
    if (at->left() < 2)
      return IncompleteOption(row->word,
                              quantile ? "target count q ..." : "target count bound ...");
    ASSIGN_OR_RETURN(const uint64_t count, ParseWordCount(row->word, words, at->Take(), 1));
    if (count > at->left()) return TooFewWords(row->word, count, at->left());
    for (uint64_t i = 0; i < count; ++i) reduce->numbers.push_back(at->Take());
  }
  if (at->TakeWord("AS")) {
    ASSIGN_OR_RETURN(reduce->name, at->TakeAny("AS", "name"));
  }
  return Status::Ok();
}

Status TakeHaving(ArgumentCursor* at, Having* having) {
  if (at->left() < 3) return IncompleteOption("HAVING", kHavingForm);
  having->name = at->Take();
  const std::string_view word = at->Take();
  constexpr std::pair<std::string_view, CompareOp> kOps[] = {
      {"EQ", CompareOp::kEq}, {"NE", CompareOp::kNe}, {"LT", CompareOp::kLt},
      {"LE", CompareOp::kLe}, {"GT", CompareOp::kGt}, {"GE", CompareOp::kGe}};
  const auto* const op = std::find_if(std::begin(kOps), std::end(kOps), [&](const auto& each) {
    return EqualsIgnoreCase(word, each.first);
  });
  if (op == std::end(kOps)) return UnexpectedWord(word, "EQ, NE, LT, LE, GT or GE");
  having->op = op->second;
  having->value = at->Take();
  return Status::Ok();
}

Status TakeFill(ArgumentCursor* at, AggregateRequest* request) {
  if (at->TakeWord("NULL")) {
    request->fill = Fill::kNull;
  } else if (at->TakeWord("PREVIOUS")) {
    request->fill = Fill::kPrevious;
  } else {
    request->fill = Fill::kValue;
    ASSIGN_OR_RETURN(request->fill_value, at->TakeAny("FILL", "NULL|PREVIOUS|value"));
  }
  return Status::Ok();
}

Status TakeSort(ArgumentCursor* at, AggregateRequest* request) {
  ASSIGN_OR_RETURN(request->sort, at->TakeAny("SORT", "name [ASC|DESC]"));
  if (at->TakeWord("DESC"))
    request->sort_descending = true;
  else
    (void)at->TakeWord("ASC");
  return Status::Ok();
}

Status TakeLimit(ArgumentCursor* at, AggregateRequest* request) {
  if (at->left() < 2) return IncompleteOption("LIMIT", "offset count");
  ASSIGN_OR_RETURN(request->skip, ParseCount("LIMIT", at->Take(), 0));
  ASSIGN_OR_RETURN(request->limit, ParseCount("LIMIT", at->Take(), 1));
  return Status::Ok();
}

}  // namespace

Result<bool> TakeAggregateOption(std::string_view word, ArgumentCursor* at, AggregateSeen* seen,
                                 AggregateRequest* request) {
  if (EqualsIgnoreCase(word, "BY")) {
    RETURN_IF_ERROR(TakeTerm(at, &request->terms.emplace_back()));
  } else if (EqualsIgnoreCase(word, "REDUCE")) {
    RETURN_IF_ERROR(TakeReduce(at, &request->reduces.emplace_back()));
  } else if (EqualsIgnoreCase(word, "HAVING")) {
    RETURN_IF_ERROR(TakeHaving(at, &request->having.emplace_back()));
  } else if (EqualsIgnoreCase(word, "FILL")) {
    if (seen->fill) return RepeatedOption("FILL");
    seen->fill = true;
    RETURN_IF_ERROR(TakeFill(at, request));
  } else if (EqualsIgnoreCase(word, "SORT")) {
    if (seen->sort) return RepeatedOption("SORT");
    seen->sort = true;
    RETURN_IF_ERROR(TakeSort(at, request));
  } else if (EqualsIgnoreCase(word, "LIMIT")) {
    if (seen->limit) return RepeatedOption("LIMIT");
    seen->limit = true;
    RETURN_IF_ERROR(TakeLimit(at, request));
  } else {
    return false;
  }
  return true;
}

bool IsReduceFunction(std::string_view word) { return FindFunction(word) != nullptr; }

Status CheckAggregate(const AggregateRequest& request) {
  if (!request.reduces.empty()) return Status::Ok();
  return SyntaxErrorBecause("CAGG needs a REDUCE: " + std::string(kReduceForm));
}

}  // namespace cellar
