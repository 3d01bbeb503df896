// See read_arguments.h.
// All options of all reads are in one table (kOptions); CommandHas says which of them a command
// has.
#include "commands/words/read_arguments.h"

#include <span>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "base/text/near_word.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "commands/words/aggregate_arguments.h"
#include "commands/words/cell_arguments.h"
#include "commands/words/write_arguments.h"

namespace cellar {
namespace {

enum class Option : uint8_t {
  // cell options
  kColumns,
  kColprefix,
  kColrange,
  kTime,
  kVersions,
  kPerrow,
  kSkip,
  kGroups,
  kColreverse,
  kFilter,
  kWithts,
  kWithtype,
  kWithttl,
  kWithlabels,
  kState,
  // row options
  kPrefix,
  kRange,
  kRows,
  kIndex,
  kEq,
  kBetween,
  kFrom,
  kReverse,
  kEach,
  kWhere,
  kCount,
  kCells,
  kSample,
  kKeysonly,
  kStats,
  kSnapshot,
  kNoindex,
  // of CCOUNT alone
  kBy,
  // of CUPDATE alone
  kAll,
  kLimit,
};
constexpr uint64_t Bit(Option option) { return uint64_t{1} << static_cast<uint32_t>(option); }

enum class Uses : uint8_t { kOnce, kMany };

struct OptionRow {
  std::string_view word;
  Option option;
  uint8_t words_min;  // that must follow
  Uses uses;
  std::string_view words;  // for the error when they do not
};
// In the order of Option, so that the ranges below hold.
constexpr OptionRow kOptions[] = {
    {"COLUMNS", Option::kColumns, 2, Uses::kMany, "count column|family ..."},
    {"COLPREFIX", Option::kColprefix, 2, Uses::kMany, "family prefix"},
    {"COLRANGE", Option::kColrange, 3, Uses::kMany, "family min max"},
    {"TIME", Option::kTime, 2, Uses::kOnce, "min max"},
    {"VERSIONS", Option::kVersions, 1, Uses::kOnce, "count|ALL"},
    {"PERROW", Option::kPerrow, 1, Uses::kOnce, "count"},
    {"SKIP", Option::kSkip, 1, Uses::kOnce, "count"},
    {"GROUPS", Option::kGroups, 1, Uses::kOnce, "count"},
    {"COLREVERSE", Option::kColreverse, 0, Uses::kOnce, ""},
    {"FILTER", Option::kFilter, 1, Uses::kOnce, "expression"},
    {"WITHTS", Option::kWithts, 0, Uses::kOnce, ""},
    {"WITHTYPE", Option::kWithtype, 0, Uses::kOnce, ""},
    {"WITHTTL", Option::kWithttl, 0, Uses::kOnce, ""},
    {"WITHLABELS", Option::kWithlabels, 0, Uses::kOnce, ""},
    {"STATE", Option::kState, 0, Uses::kOnce, ""},
    {"PREFIX", Option::kPrefix, 1, Uses::kMany, "prefix"},
    {"RANGE", Option::kRange, 2, Uses::kMany, "min max"},
    {"ROWS", Option::kRows, 2, Uses::kMany, "count row ..."},
    {"INDEX", Option::kIndex, 1, Uses::kOnce, "index"},
    {"EQ", Option::kEq, 2, Uses::kOnce, "count value ..."},
    {"BETWEEN", Option::kBetween, 2, Uses::kOnce, "min max"},
    {"FROM", Option::kFrom, 2, Uses::kOnce, "count value ..."},
    {"REVERSE", Option::kReverse, 0, Uses::kOnce, ""},
    {"EACH", Option::kEach, 2, Uses::kOnce, "components count"},
    {"WHERE", Option::kWhere, 0, Uses::kMany, ""},
    {"COUNT", Option::kCount, 1, Uses::kOnce, "count"},
    {"CELLS", Option::kCells, 1, Uses::kOnce, "count"},
    {"SAMPLE", Option::kSample, 1, Uses::kOnce, "probability"},
    {"KEYSONLY", Option::kKeysonly, 0, Uses::kOnce, ""},
    {"STATS", Option::kStats, 0, Uses::kOnce, ""},
    {"SNAPSHOT", Option::kSnapshot, 0, Uses::kOnce, ""},
    {"NOINDEX", Option::kNoindex, 0, Uses::kOnce, ""},
    {"BY", Option::kBy, 1, Uses::kOnce, "ROWS|GROUPS|COLUMNS|CELLS"},
    {"ALL", Option::kAll, 0, Uses::kOnce, ""},
    {"LIMIT", Option::kLimit, 1, Uses::kOnce, "count"},
};

constexpr bool TableIsInOrder() {
  for (size_t i = 0; i < std::size(kOptions); ++i) {
    if (static_cast<size_t>(kOptions[i].option) != i) return false;
  }
  return std::size(kOptions) <= 64;
}
static_assert(TableIsInOrder(), "kOptions follows enum Option; `seen` has 64 bits");

// Else it reads rows that are named, and has cell options alone.
bool ReadsScan(ReadCommand command) {
  return command != ReadCommand::kRow && command != ReadCommand::kRows;
}

constexpr uint64_t kSelectors = Bit(Option::kPrefix) | Bit(Option::kRange) | Bit(Option::kRows);

bool CommandHas(ReadCommand command, Option option) {
  constexpr uint64_t kOfUpdate = kSelectors | Bit(Option::kIndex) | Bit(Option::kEq) |
                                 Bit(Option::kBetween) | Bit(Option::kFrom) | Bit(Option::kWhere) |
                                 Bit(Option::kNoindex) | Bit(Option::kAll) | Bit(Option::kLimit);
  if (command == ReadCommand::kUpdate) return (kOfUpdate & Bit(option)) != 0;
  if (option == Option::kAll || option == Option::kLimit) return false;
  if (option == Option::kBy) return command == ReadCommand::kCount;
  return ReadsScan(command) || option < Option::kPrefix;
}

const OptionRow* FindOption(std::string_view word) {
  for (const OptionRow& row : kOptions) {
    if (EqualsIgnoreCase(word, row.word)) return &row;
  }
  return nullptr;
}

// The n of `n word ...` (COLUMNS, ROWS, EQ, FROM): so many words are left.
Result<uint64_t> TakeWordCount(Option option, ArgumentCursor* at) {
  const OptionRow& row = kOptions[static_cast<size_t>(option)];
  ASSIGN_OR_RETURN(const uint64_t count, ParseWordCount(row.word, row.words, at->Take(), 1));
  if (count > at->left()) return TooFewWords(row.word, count, at->left());
  return count;
}

Status TakeWords(Option option, ArgumentCursor* at, std::vector<std::string_view>* words) {
  ASSIGN_OR_RETURN(const uint64_t count, TakeWordCount(option, at));
  for (uint64_t i = 0; i < count; ++i) words->push_back(at->Take());
  return Status::Ok();
}

Status TakeColumns(ArgumentCursor* at, CellOptions* cells) {
  ASSIGN_OR_RETURN(const uint64_t count, TakeWordCount(Option::kColumns, at));
  for (uint64_t i = 0; i < count; ++i) cells->columns.push_back(ParseSelector(at->Take()));
  return Status::Ok();
}

// The cell options but those that have arguments of their own shape.
Status TakeCellOption(Option option, std::string_view name, ArgumentCursor* at,
                      ReadRequest* request) {
  CellOptions& cells = request->cells;
  switch (option) {
    case Option::kColumns:
      return TakeColumns(at, &cells);
    case Option::kColprefix:
    case Option::kColrange: {
      ASSIGN_OR_RETURN(const ColumnSelector selector,
                       option == Option::kColprefix ? TakeColumnPrefix(at) : TakeColumnRange(at));
      cells.columns.push_back(selector);
      return Status::Ok();
    }
    case Option::kTime: {
      const std::string_view min = at->Take();
      ASSIGN_OR_RETURN(cells.time, ParseTimeRange(min, at->Take()));
      return Status::Ok();
    }
    case Option::kVersions: {
      ASSIGN_OR_RETURN(cells.versions_max, ParseCountOrAll(name, at->Take()));
      request->format.versions = true;
      return Status::Ok();
    }
    case Option::kPerrow: {
      ASSIGN_OR_RETURN(cells.columns_max, ParseCount(name, at->Take(), 1));
      return Status::Ok();
    }
    case Option::kSkip: {
      ASSIGN_OR_RETURN(cells.columns_skip, ParseCount(name, at->Take(), 0));
      return Status::Ok();
    }
    case Option::kGroups: {
      ASSIGN_OR_RETURN(cells.super_columns_max, ParseCount(name, at->Take(), 1));
      return Status::Ok();
    }
    case Option::kColreverse:
      cells.columns_reverse = true;
      return Status::Ok();
    case Option::kFilter:
      cells.filter = at->Take();
      return Status::Ok();
    case Option::kWithts:
      request->format.timestamps = true;
      return Status::Ok();
    case Option::kWithtype:
      request->format.types = true;
      return Status::Ok();
    case Option::kWithttl:
      request->format.expiries = true;
      cells.expiries = true;
      return Status::Ok();
    case Option::kState:
      request->format.states = true;
      return Status::Ok();
    default:
      CELLAR_ASSERT(option == Option::kWithlabels);
      request->format.labels = true;
      return Status::Ok();
  }
}

Status TakeRows(ArgumentCursor* at, RowOptions* rows) {
  ASSIGN_OR_RETURN(const uint64_t count, TakeWordCount(Option::kRows, at));
  for (uint64_t i = 0; i < count; ++i) {
    rows->rows.push_back({.kind = RowSelector::Kind::kRow, .first = at->Take(), .second = {}});
  }
  return Status::Ok();
}

Status TakeBounds(ArgumentCursor* at, std::string_view* min, std::string_view* max) {
  *min = at->Take();
  *max = at->Take();
  RETURN_IF_ERROR(CheckBound(*min));
  return CheckBound(*max);
}

// EQ, BETWEEN, FROM may stand before the INDEX that they belong to: ParseReadOptions looks at the
// end whether there was one.
Status TakeIndexOption(Option option, ArgumentCursor* at, RowOptions* rows) {
  if (!rows->index.has_value()) rows->index.emplace();
  IndexOptions& index = *rows->index;
  switch (option) {
    case Option::kIndex:
      index.name = at->Take();
      return Status::Ok();
    case Option::kEq:
      return TakeWords(Option::kEq, at, &index.equal);
    case Option::kBetween:
      index.between.emplace();
      return TakeBounds(at, &index.between->first, &index.between->second);
    default:
      CELLAR_ASSERT(option == Option::kFrom);
      return TakeWords(Option::kFrom, at, &index.from);
  }
}

Result<double> ParseProbability(std::string_view word) {
  double probability = 0;
  if (ParseDouble(word, &probability) != NumberError::kNone) {
    return Status::Error(ErrorCode::kErr, "value is not a valid float: SAMPLE " + Quote(word));
  }
  if (probability < 0 || probability > 1) {
    return Status::Error(ErrorCode::kErr,
                         "SAMPLE " + Quote(word) + " is out of range, must be from 0 to 1");
  }
  return probability;
}

Result<CountBy> ParseCountBy(std::string_view word) {
  if (EqualsIgnoreCase(word, "ROWS")) return CountBy::kRows;
  if (EqualsIgnoreCase(word, "GROUPS")) return CountBy::kGroups;
  if (EqualsIgnoreCase(word, "COLUMNS")) return CountBy::kColumns;
  if (EqualsIgnoreCase(word, "CELLS")) return CountBy::kCells;
  return UnexpectedWord(word, "ROWS, GROUPS, COLUMNS or CELLS");
}

// Options of rows, and of single commands. The caller has seen to it that the option belongs to the
// command and that its words are there.
Status TakeRowOption(Option option, std::string_view name, ArgumentCursor* at,
                     ReadRequest* request) {
  RowOptions& rows = request->rows;
  switch (option) {
    case Option::kPrefix:
      rows.rows.push_back({.kind = RowSelector::Kind::kPrefix, .first = at->Take(), .second = {}});
      return Status::Ok();
    case Option::kRange: {
      RowSelector& range = rows.rows.emplace_back();
      range.kind = RowSelector::Kind::kRange;
      return TakeBounds(at, &range.first, &range.second);
    }
    case Option::kRows:
      return TakeRows(at, &rows);
    case Option::kReverse:
      rows.reverse = true;
      return Status::Ok();
    case Option::kEach: {
      EachOptions each;
      ASSIGN_OR_RETURN(each.components, ParseCount("EACH", at->Take(), 1));
      ASSIGN_OR_RETURN(each.rows, ParseCount("EACH", at->Take(), 1));
      rows.each = each;
      return Status::Ok();
    }
    case Option::kWhere: {
      ASSIGN_OR_RETURN(const Predicate predicate, TakePredicate(at));
      rows.where.push_back(predicate);
      return Status::Ok();
    }
    case Option::kCount: {
      ASSIGN_OR_RETURN(request->rows_max, ParseCount(name, at->Take(), 1));
      return Status::Ok();
    }
    case Option::kCells: {
      ASSIGN_OR_RETURN(request->cells_max, ParseCount(name, at->Take(), 1));
      return Status::Ok();
    }
    case Option::kSample: {
      ASSIGN_OR_RETURN(rows.sample, ParseProbability(at->Take()));
      return Status::Ok();
    }
    case Option::kKeysonly:
      request->keys_only = true;
      return Status::Ok();
    case Option::kStats:
      request->stats = true;
      return Status::Ok();
    case Option::kSnapshot:
      request->snapshot = true;
      return Status::Ok();
    case Option::kBy: {
      ASSIGN_OR_RETURN(request->by, ParseCountBy(at->Take()));
      return Status::Ok();
    }
    case Option::kAll:
      return Status::Ok();
    case Option::kLimit: {
      ASSIGN_OR_RETURN(request->changes_max, ParseCount(name, at->Take(), 1));
      return Status::Ok();
    }
    case Option::kNoindex:
      rows.no_index = true;
      return Status::Ok();
    default:
      return TakeIndexOption(option, at, &rows);
  }
}

// What an option is called elsewhere, in a read of rows and in one of cells alone.
struct ForeignOption {
  std::string_view word;
  std::string_view of_rows;
  std::string_view of_cells;
};
constexpr ForeignOption kForeignOptions[] = {
    {"LIMIT", "COUNT", "PERROW"},
    {"MATCH", "PREFIX", "COLPREFIX"},
    {"DESC", "REVERSE", "COLREVERSE"},
    {"OFFSET", "SKIP", "SKIP"},
};

// ", did you mean REVERSE?", or nothing.
[[gnu::cold]] std::string NearOption(ReadCommand command, std::string_view word) {
  std::string_view meant;
  if (command == ReadCommand::kAggregate && IsReduceFunction(word))
    return ": a function stands behind REDUCE, as in REDUCE " + UpperText(word);
  for (const ForeignOption& foreign : kForeignOptions) {
    if (!EqualsIgnoreCase(word, foreign.word)) continue;
    if (command == ReadCommand::kUpdate) continue;  // LIMIT is its own
    meant = ReadsScan(command) ? foreign.of_rows : foreign.of_cells;
  }
  if (meant.empty()) {
    const std::span<const OptionRow> options(kOptions);
    const auto near = FindNearWord(options, word, [](const OptionRow& row) { return row.word; });
    if (near == options.end() || !CommandHas(command, near->option)) return {};
    meant = near->word;
  }
  return std::string(", did you mean ").append(meant).append("?");
}

[[gnu::cold]] Status UnknownOption(ReadCommand command, std::string_view word) {
  constexpr std::string_view kNames[]{"CROW", "CROWS", "CSCAN", "CCOUNT", "CUPDATE", "CAGG"};
  CELLAR_ASSERT(static_cast<size_t>(command) < std::size(kNames));
  std::string expected = "an option of ";
  expected += kNames[static_cast<size_t>(command)];
  expected += IsColumn(word) ? std::string(", which takes columns after COLUMNS count")
                             : NearOption(command, word);
  return UnexpectedWord(word, expected);
}

// Options that exclude each other, and those that need another one.
Status CheckTogether(uint64_t seen) {
  constexpr uint64_t kBounds = Bit(Option::kEq) | Bit(Option::kBetween);
  constexpr uint64_t kOfIndex = kBounds | Bit(Option::kFrom);
  const bool index = (seen & Bit(Option::kIndex)) != 0;
  if (index && (seen & Bit(Option::kRows)) != 0) {
    return SyntaxErrorBecause("INDEX excludes ROWS");
  }
  if (index && (seen & kSelectors) != 0 && (seen & Bit(Option::kEq)) == 0) {
    return SyntaxErrorBecause("INDEX takes PREFIX and RANGE only with EQ and all its ON columns");
  }
  if (index && (seen & Bit(Option::kNoindex)) != 0) {
    return SyntaxErrorBecause("INDEX excludes NOINDEX");
  }
  if (!index && (seen & kOfIndex) != 0) {
    return SyntaxErrorBecause("EQ, BETWEEN and FROM need INDEX index");
  }
  if ((seen & Bit(Option::kFrom)) != 0 && (seen & kBounds) != 0) {
    return SyntaxErrorBecause("FROM excludes EQ and BETWEEN");
  }
  return Status::Ok();
}

}  // namespace

void ReadRequest::Clear() {
  rows.rows.clear();
  rows.where.clear();
  cells.columns.clear();
  *this = ReadRequest{.rows = {.rows = std::move(rows.rows),
                               .index = std::nullopt,
                               .reverse = false,
                               .each = std::nullopt,
                               .where = std::move(rows.where),
                               .sample = std::nullopt},
                      .cells = {.columns = std::move(cells.columns),
                                .time = {},
                                .versions_max = std::nullopt,
                                .filter = std::nullopt},
                      .format = {}};
}

namespace {

// Takes the next option, whichever `command` has; notes it in *seen.
Status TakeOption(ReadCommand command, ArgumentCursor* at, uint64_t* seen, ReadRequest* request) {
  const std::string_view word = at->Take();
  const OptionRow* row = FindOption(word);
  if (row == nullptr || !CommandHas(command, row->option)) return UnknownOption(command, word);
  if (row->uses == Uses::kOnce && (*seen & Bit(row->option)) != 0) return RepeatedOption(row->word);
  if (at->left() < row->words_min) return IncompleteOption(row->word, row->words);
  *seen |= Bit(row->option);
  return row->option < Option::kPrefix ? TakeCellOption(row->option, row->word, at, request)
                                       : TakeRowOption(row->option, row->word, at, request);
}

}  // namespace

// `aggregate` is null but for CAGG.
static Status ParseOptions(ReadCommand command, ArgumentCursor at, ReadRequest* request,
                           AggregateRequest* aggregate) {
  CELLAR_ASSERT((aggregate != nullptr) == (command == ReadCommand::kAggregate));
  request->Clear();
  AggregateSeen aggregate_seen;
  uint64_t seen = 0;
  while (!at.done()) {
    if (aggregate != nullptr) {
      // A word that is no option of CAGG is left for the options that all reads have.
      ArgumentCursor behind = at;
      ASSIGN_OR_RETURN(const bool taken,
                       TakeAggregateOption(behind.Take(), &behind, &aggregate_seen, aggregate));
      if (taken) {
        at = behind;
        continue;
      }
    }
    RETURN_IF_ERROR(TakeOption(command, &at, &seen, request));
  }
  return CheckTogether(seen);
}

Status ParseUpdateOptions(ArgumentCursor* at, ReadRequest* request) {
  constexpr uint64_t kFronts = kSelectors | Bit(Option::kIndex) | Bit(Option::kAll);
  request->Clear();
  uint64_t seen = 0;
  while (!at->done() && !IsOpWord(at->Peek())) {
    const bool is_first = seen == 0;
    const uint64_t front = seen & kFronts;
    const std::string_view word = at->Peek();
    seen &= ~front;  // so that a second one is told from the first
    RETURN_IF_ERROR(TakeOption(ReadCommand::kUpdate, at, &seen, request));
    const bool selects = (seen & kFronts) != 0;
    if (is_first && !selects) {
      return UnexpectedWord(word, "PREFIX, RANGE, ROWS, INDEX or ALL, which comes first");
    }
    if (front != 0 && selects) {
      return SyntaxErrorBecause("one PREFIX, RANGE, ROWS, INDEX or ALL, not two");
    }
    seen |= front;
  }
  if (seen == 0) return SyntaxErrorBecause("no PREFIX, RANGE, ROWS, INDEX or ALL before the ops");
  return CheckTogether(seen);
}

Status ParseReadOptions(ReadCommand command, ArgumentCursor at, ReadRequest* request) {
  return ParseOptions(command, at, request, nullptr);
}

Status ParseAggregate(ArgumentCursor at, ReadRequest* request, AggregateRequest* aggregate) {
  aggregate->Clear();
  RETURN_IF_ERROR(ParseOptions(ReadCommand::kAggregate, at, request, aggregate));
  request->rows.reordered_max = kUnlimited;  // sums know no order
  return CheckAggregate(*aggregate);
}

}  // namespace cellar
