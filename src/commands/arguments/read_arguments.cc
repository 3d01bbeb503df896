// See read_arguments.h.
// All options of all reads are in one table (kOptions). It, and what a command has of it, come from
// the syntax lines (read_syntax.h).
#include "commands/arguments/read_arguments.h"

#include <array>
#include <span>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "base/text/near_word.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "commands/arguments/aggregate_arguments.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/option_syntax.h"
#include "commands/arguments/read_syntax.h"
#include "commands/arguments/write_arguments.h"

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

// In the order of Option, so that those of cells stand before kPrefix.
constexpr std::string_view kWords[] = {
    "COLUMNS",  "COLPREFIX",  "COLRANGE", "TIME",    "VERSIONS", "PERROW",  "SKIP",
    "GROUPS",   "COLREVERSE", "FILTER",   "WITHTS",  "WITHTYPE", "WITHTTL", "WITHLABELS",
    "STATE",    "PREFIX",     "RANGE",    "ROWS",    "INDEX",    "EQ",      "BETWEEN",
    "FROM",     "REVERSE",    "EACH",     "WHERE",   "COUNT",    "CELLS",   "SAMPLE",
    "KEYSONLY", "STATS",      "SNAPSHOT", "NOINDEX", "BY",       "ALL",     "LIMIT"};
static_assert(std::size(kWords) == static_cast<size_t>(Option::kLimit) + 1);
static_assert(std::size(kWords) <= 64, "`seen` has 64 bits");

struct ReadGrammar {
  std::string_view name;
  std::string_view syntax;  // where the options are that are read here
};
// In the order of ReadCommand.
constexpr ReadGrammar kGrammars[] = {{"CROW", kRowSyntax},        {"CROWS", kRowsSyntax},
                                     {"CSCAN", kScanSyntax},      {"CCOUNT", kCountSyntax},
                                     {"CUPDATE", kUpdatedSyntax}, {"CAGG", kAggregatedSyntax}};
static_assert(std::size(kGrammars) == static_cast<size_t>(ReadCommand::kAggregate) + 1);

struct OptionRow {
  SyntaxOption syntax;
  Option option;

  constexpr std::string_view word() const { return syntax.word; }
  constexpr std::string_view words() const { return syntax.words(); }
};

// From the first syntax that has the option; no two differ in the words that follow it. Whether it
// may be repeated is the scan's to say: CUPDATE has its selectors once, and sees to that itself.
consteval std::array<OptionRow, std::size(kWords)> OptionRows() {
  std::array<OptionRow, std::size(kWords)> rows{};
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].option = static_cast<Option>(i);
    for (const ReadGrammar& grammar : kGrammars) {
      if (rows[i].syntax.word.empty()) rows[i].syntax = FindOptionIn(grammar.syntax, kWords[i]);
    }
  }
  return rows;
}
constexpr std::array<OptionRow, std::size(kWords)> kOptions = OptionRows();

// Which options each command has. Not a constant, so no program, if a syntax names one that is not
// in kWords, or with other words behind it.
consteval std::array<uint64_t, std::size(kGrammars)> OptionsOfCommands() {
  std::array<uint64_t, std::size(kGrammars)> all{};
  for (size_t i = 0; i < all.size(); ++i) {
    size_t at = 0;
    for (SyntaxOption option = NextOption(kGrammars[i].syntax, &at); !option.word.empty();
         option = NextOption(kGrammars[i].syntax, &at)) {
      const OptionRow* row = nullptr;
      for (const OptionRow& each : kOptions) {
        if (each.word() == option.word) row = &each;
      }
      if (row == nullptr || row->words() != option.words()) CELLAR_ASSERT(false);
      all[i] |= Bit(row->option);
    }
  }
  return all;
}
constexpr std::array<uint64_t, std::size(kGrammars)> kCommandOptions = OptionsOfCommands();

consteval bool SyntaxNamesAll() {
  for (const OptionRow& row : kOptions) {
    if (row.word().empty()) return false;
  }
  return true;
}
static_assert(SyntaxNamesAll(), "an option that no command's syntax names");

// Else it reads rows that are named, and has cell options alone.
bool ReadsScan(ReadCommand command) {
  return command != ReadCommand::kRow && command != ReadCommand::kRows;
}

constexpr uint64_t kSelectors = Bit(Option::kPrefix) | Bit(Option::kRange) | Bit(Option::kRows);

bool CommandHas(ReadCommand command, Option option) {
  return (kCommandOptions[static_cast<size_t>(command)] & Bit(option)) != 0;
}

const OptionRow* FindOption(std::string_view word) {
  for (const OptionRow& row : kOptions) {
    if (EqualsIgnoreCase(word, row.word())) return &row;
  }
  return nullptr;
}

// The n of `n word ...` (COLUMNS, ROWS, EQ, FROM): so many words are left.
Result<uint64_t> TakeWordCount(Option option, ArgumentCursor* at) {
  const OptionRow& row = kOptions[static_cast<size_t>(option)];
  ASSIGN_OR_RETURN(const uint64_t count, ParseWordCount(row.word(), row.words(), at->Take(), 1));
  if (count > at->left()) return TooFewWords(row.word(), count, at->left());
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
    if (command == ReadCommand::kUpdate) continue;                               // LIMIT is its own
    if (command == ReadCommand::kCount && foreign.of_rows == "COUNT") continue;  // it has neither
    meant = ReadsScan(command) ? foreign.of_rows : foreign.of_cells;
  }
  if (meant.empty()) {
    const std::span<const OptionRow> options(kOptions);
    const auto near = FindNearWord(options, word, [](const OptionRow& row) { return row.word(); });
    if (near == options.end() || !CommandHas(command, near->option)) return {};
    meant = near->word();
  }
  return std::string(", did you mean ").append(meant).append("?");
}

[[gnu::cold]] Status UnknownOption(ReadCommand command, std::string_view word) {
  std::string expected = "an option of ";
  expected += kGrammars[static_cast<size_t>(command)].name;
  expected += IsColumn(word) ? std::string(", which takes columns after COLUMNS count")
                             : NearOption(command, word);
  return UnexpectedWord(word, expected);
}

// An option of CSCAN that would change no count and no sum.
bool IsWithoutEffect(ReadCommand command, Option option) {
  return (command == ReadCommand::kCount || command == ReadCommand::kAggregate) &&
         CommandHas(ReadCommand::kScan, option) && !CommandHas(command, option);
}

// What of `command` does what the option may have been meant to do, or nothing.
std::string_view InsteadOf(ReadCommand command, Option option) {
  if (command == ReadCommand::kAggregate && option == Option::kCount)
    return "; LIMIT offset count bounds the groups";
  if (command == ReadCommand::kCount && option == Option::kStats)
    return "; CEXPLAIN with ANALYZE tells what a count examines";
  return {};
}

// "'withts' has no effect in CCOUNT: it is an option of CROW, CROWS and CSCAN".
[[gnu::cold]] Status WithoutEffect(ReadCommand command, Option option, std::string_view word) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < std::size(kGrammars); ++i) {
    if (CommandHas(static_cast<ReadCommand>(i), option)) names.push_back(kGrammars[i].name);
  }
  std::string text = Quote(word);
  text += " has no effect in ";
  text += kGrammars[static_cast<size_t>(command)].name;
  text += ": it is an option of ";
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return SyntaxErrorBecause(text.append(InsteadOf(command, option)));
}

// Options that exclude each other, and those that need another one.
Status CheckTogether(ReadCommand command, uint64_t seen) {
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
  if (command == ReadCommand::kCount && (seen & Bit(Option::kReverse)) != 0 &&
      (seen & (Bit(Option::kEach) | Bit(Option::kFrom))) == 0) {
    return SyntaxErrorBecause("REVERSE has no effect in CCOUNT without EACH or FROM");
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
  if (row == nullptr || !CommandHas(command, row->option)) {
    return row != nullptr && IsWithoutEffect(command, row->option)
               ? WithoutEffect(command, row->option, word)
               : UnknownOption(command, word);
  }
  if (!row->syntax.many && (*seen & Bit(row->option)) != 0) return RepeatedOption(row->word());
  if (at->left() < row->syntax.words_min) return IncompleteOption(row->word(), row->words());
  *seen |= Bit(row->option);
  return row->option < Option::kPrefix ? TakeCellOption(row->option, row->word(), at, request)
                                       : TakeRowOption(row->option, row->word(), at, request);
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
  return CheckTogether(command, seen);
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
  return CheckTogether(ReadCommand::kUpdate, seen);
}

Result<GetOptions> ParseGetOptions(ArgumentCursor at) {
  GetOptions options;
  bool at_said = false;
  while (!at.done()) {
    if (at.TakeWord("AT")) {
      if (at_said) return RepeatedOption("AT");
      ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("AT", "time"));
      at_said = true;
      ASSIGN_OR_RETURN(options.at_micros, ParseTimestamp(word));
    } else if (at.TakeWord("WITHTS")) {
      if (options.timestamp) return RepeatedOption("WITHTS");
      options.timestamp = true;
    } else if (at.TakeWord("STATE")) {
      if (options.state) return RepeatedOption("STATE");
      options.state = true;
    } else {
      return UnexpectedWord(at.Peek(), "AT, WITHTS or STATE");
    }
  }
  return options;
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

bool DrawsRows(const ReadRequest& request) {
  return request.rows.sample.has_value() ||
         (request.cells.filter.has_value() &&
          request.cells.filter->find("sample") != std::string_view::npos);
}

Status CheckRowsNamed(uint64_t count) {
  if (count <= kRowsNamedMax) [[likely]]
    return Status::Ok();
  return Status::Error(
      ErrorCode::kTooLarge,
      "CROWS of " + FormatUint64(count) + " rows, the limit is " + FormatUint64(kRowsNamedMax));
}

}  // namespace cellar
