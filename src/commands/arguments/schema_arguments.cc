// See schema_arguments.h.
#include "commands/arguments/schema_arguments.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text/duration.h"
#include "base/text/quote.h"
#include "commands/arguments/cell_arguments.h"
#include "engine/keys/value.h"
#include "engine/request/read_options.h"
#include "engine/schema/retention.h"

namespace cellar {
namespace {

Status Unreadable(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

bool IsNone(std::string_view word) { return EqualsIgnoreCase(word, "NONE"); }

[[gnu::cold]] Status PolicyTwice() {
  return SyntaxErrorBecause("GC excludes VERSIONS and TTL, which can stand inside its policy");
}

Status TakeType(std::string_view word, FamilyOptions* options) {
  if (options->type.has_value()) return RepeatedOption("TYPE");
  std::optional<ValueType> type;
  if (!IsNone(word)) {
    Result<ValueType> parsed = ParseValueType(word);
    if (!parsed.ok()) return Unreadable(parsed.status().text() + ", or NONE");
    type = *parsed;
  }
  options->type.emplace(type);
  return Status::Ok();
}

Status TakeOrder(std::string_view word, FamilyOptions* options) {
  if (options->order.has_value()) return RepeatedOption("ORDER");
  ASSIGN_OR_RETURN(options->order, Order::Parse(word));
  if (options->order->is_recno()) {
    return Status::Error(ErrorCode::kErr, "invalid order 'recno': record numbers are for row keys");
  }
  return Status::Ok();
}

Status TakeVersions(std::string_view word, FamilyOptions* options) {
  if (options->versions_max.has_value()) return RepeatedOption("VERSIONS");
  if (options->gc.has_value()) return PolicyTwice();
  ASSIGN_OR_RETURN(const uint64_t count, ParseCountOrAll("VERSIONS", word));
  options->versions_max = count == kUnlimited ? 0 : count;
  return Status::Ok();
}

Status TakeTtl(std::string_view word, FamilyOptions* options) {
  if (options->ttl_ms.has_value()) return RepeatedOption("TTL");
  if (options->gc.has_value()) return PolicyTwice();
  if (IsNone(word)) {
    options->ttl_ms = 0;
    return Status::Ok();
  }
  const Result<int64_t> duration_ms = ParseDurationMs(word);
  if (!duration_ms.ok()) return Unreadable(duration_ms.status().text() + ", or NONE");
  options->ttl_ms = static_cast<uint64_t>(*duration_ms);
  return Status::Ok();
}

Status TakePolicy(std::string_view word, FamilyOptions* options) {
  if (options->gc.has_value()) return RepeatedOption("GC");
  if (options->versions_max.has_value() || options->ttl_ms.has_value()) return PolicyTwice();
  if (IsNone(word)) {
    options->gc.emplace();
    return Status::Ok();
  }
  ASSIGN_OR_RETURN(options->gc, RetentionPolicy::Parse(word));
  return Status::Ok();
}

Status TakeGroup(std::string_view word, FamilyOptions* options) {
  if (options->group.has_value()) return RepeatedOption("GROUP");
  RETURN_IF_ERROR(CheckName("group", word));
  options->group.emplace(word);
  return Status::Ok();
}

Status TakeAggregate(std::string_view word, FamilyOptions* options) {
  if (options->fold.has_value()) return RepeatedOption("AGGREGATE");
  ASSIGN_OR_RETURN(options->fold, ParseFoldKind(word));
  return Status::Ok();
}

Status TakeBucket(std::string_view word, FamilyOptions* options) {
  if (options->bucket_ms.has_value()) return RepeatedOption("BUCKET");
  ASSIGN_OR_RETURN(options->bucket_ms, ParseDurationMs(word));
  return Status::Ok();
}

Status TakeCompress(std::string_view word, FamilyOptions* options) {
  if (options->compression.has_value()) return RepeatedOption("COMPRESS");
  ASSIGN_OR_RETURN(options->compression, ParseCompression(word));
  return Status::Ok();
}

// COLUMN qualifier type, NOCOLUMN qualifier; which columns they are is known with the order.
Status TakeColumn(ArgumentCursor* at, FamilyOptions* options) {
  ASSIGN_OR_RETURN(const std::string_view qualifier, at->TakeAny("COLUMN", "qualifier type"));
  ASSIGN_OR_RETURN(const std::string_view word, at->TakeAny("COLUMN", "qualifier type"));
  Result<ValueType> type = ParseValueType(word);
  if (!type.ok()) return Unreadable(type.status().text());
  options->columns.push_back({std::string(qualifier), *type});
  return Status::Ok();
}

Status TakeNoColumn(ArgumentCursor* at, FamilyOptions* options) {
  ASSIGN_OR_RETURN(const std::string_view qualifier, at->TakeAny("NOCOLUMN", "qualifier"));
  options->columns.push_back({std::string(qualifier), std::nullopt});
  return Status::Ok();
}

// What stands next of COLUMN, NOCOLUMN, CONVERT [SKIP] and KEEP; *taken is whether anything did.
Status TakeTypeWords(ArgumentCursor* at, FamilyOptions* options, bool* taken) {
  *taken = true;
  if (at->TakeWord("COLUMN")) return TakeColumn(at, options);
  if (at->TakeWord("NOCOLUMN")) return TakeNoColumn(at, options);
  const bool keeps = at->TakeWord("KEEP");
  const bool converts = !keeps && at->TakeWord("CONVERT");
  *taken = keeps || converts;
  if (!*taken) return Status::Ok();
  if (options->other_cells) {
    const bool kept = *options->other_cells == OtherCells::kKeep;
    if (kept != keeps) return SyntaxErrorBecause("KEEP excludes CONVERT");
    return RepeatedOption(keeps ? "KEEP" : "CONVERT");
  }
  options->other_cells = keeps                  ? OtherCells::kKeep
                         : at->TakeWord("SKIP") ? OtherCells::kSkip
                                                : OtherCells::kConvert;
  return Status::Ok();
}

// In a family that is new there is nothing to take off, and no cell.
Status CheckNewFamily(const FamilyOptions& options) {
  if (options.other_cells)
    return SyntaxErrorBecause("KEEP and CONVERT are for FAMILY ALTER, which may find cells");
  for (const ColumnTypeOption& column : options.columns) {
    if (!column.type) return SyntaxErrorBecause("NOCOLUMN is for FAMILY ALTER");
  }
  return Status::Ok();
}

struct FamilyOptionRow {
  std::string_view word;
  std::string_view takes;  // for the error when it is missing
  Status (*take)(std::string_view word, FamilyOptions* options);
};
constexpr FamilyOptionRow kFamilyOptions[] = {
    {"TYPE", "type|NONE", TakeType},
    {"ORDER", "order", TakeOrder},
    {"VERSIONS", "count|ALL", TakeVersions},
    {"TTL", "duration|NONE", TakeTtl},
    {"GC", "policy|NONE", TakePolicy},
    {"GROUP", "group", TakeGroup},
    {"AGGREGATE", "sum|min|max|hll", TakeAggregate},
    {"BUCKET", "duration", TakeBucket},
    {"COMPRESS", "lz4|zstd|none", TakeCompress},
};

const FamilyOptionRow* FindFamilyOption(std::string_view word) {
  for (const FamilyOptionRow& row : kFamilyOptions) {
    if (EqualsIgnoreCase(word, row.word)) return &row;
  }
  return nullptr;
}

}  // namespace

TableName SplitTableName(std::string_view session_keyspace, std::string_view word) {
  const size_t slash = word.find('/');
  if (slash == std::string_view::npos) return {session_keyspace, word};
  return {word.substr(0, slash), word.substr(slash + 1)};
}

Status CheckName(std::string_view kind, std::string_view word) {
  if (IsName(word)) return Status::Ok();
  return Unreadable(
      std::string(kind) + " name " + Quote(word) +
      " is invalid: 1 to 64 characters of A-Z a-z 0-9 _ . -, the first one neither . nor -");
}

Status CheckTableName(std::string_view word) {
  const TableName name = SplitTableName("0", word);
  RETURN_IF_ERROR(CheckName("keyspace", name.keyspace));
  return CheckName("table", name.table);
}

Status TakeFamilyOptions(ArgumentCursor* at, FamilyOptions* options) {
  while (!at->done()) {
    bool taken = false;
    RETURN_IF_ERROR(TakeTypeWords(at, options, &taken));
    if (taken) continue;
    const FamilyOptionRow* row = FindFamilyOption(at->Peek());
    if (row == nullptr) return Status::Ok();
    at->Take();
    ASSIGN_OR_RETURN(const std::string_view word, at->TakeAny(row->word, row->takes));
    RETURN_IF_ERROR(row->take(word, options));
  }
  return Status::Ok();
}

namespace {

Result<uint32_t> TakeColocate(ArgumentCursor* at) {
  ASSIGN_OR_RETURN(const std::string_view word, at->TakeAny("COLOCATE", "count"));
  ASSIGN_OR_RETURN(const uint64_t count, ParseCount("COLOCATE", word, 1));
  return static_cast<uint32_t>(std::min<uint64_t>(count, kOrderComponentsMax + 1));
}

// n row ...
Status TakeSplitRows(ArgumentCursor* at, std::vector<std::string_view>* rows) {
  if (!at->TakeWord("AT")) return SyntaxErrorBecause("SPLIT AT count row ...");
  ASSIGN_OR_RETURN(const std::string_view word, at->TakeAny("SPLIT AT", "count row ..."));
  ASSIGN_OR_RETURN(const uint64_t count, ParseCount("SPLIT AT", word, 1));
  for (uint64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const std::string_view row, at->TakeAny("SPLIT AT", "count row ..."));
    rows->push_back(row);
  }
  return Status::Ok();
}

// COLOCATE, WHOLE or SPLIT AT, if one of them stands next; *taken says so.
Status TakePlacement(ArgumentCursor* at, TableRequest* request, bool* taken) {
  *taken = true;
  if (at->TakeWord("COLOCATE")) {
    if (request->placement.colocate != 0) return RepeatedOption("COLOCATE");
    ASSIGN_OR_RETURN(request->placement.colocate, TakeColocate(at));
  } else if (at->TakeWord("WHOLE")) {
    if (std::exchange(request->placement.whole, true)) return RepeatedOption("WHOLE");
  } else if (at->TakeWord("SPLIT")) {
    if (!request->split_at.empty()) return RepeatedOption("SPLIT AT");
    RETURN_IF_ERROR(TakeSplitRows(at, &request->split_at));
  } else {
    *taken = false;
  }
  return Status::Ok();
}

}  // namespace

Result<Placement> ParseTableAlter(ArgumentCursor at, Placement placement) {
  constexpr std::string_view kWords{"COLOCATE, WHOLE or SPREAD"};
  if (at.TakeWord("COLOCATE")) {
    ASSIGN_OR_RETURN(placement.colocate, TakeColocate(&at));
  } else if (at.TakeWord("WHOLE")) {
    placement.whole = true;
  } else if (at.TakeWord("SPREAD")) {
    placement = Placement();
  } else {
    return UnexpectedWord(at.Peek(), kWords);
  }
  if (!at.done()) return UnexpectedWord(at.Peek(), "the end");
  return placement;
}

Result<TableRequest> ParseTableCreate(ArgumentCursor at) {
  TableRequest request;
  bool key_said = false;
  while (!at.done()) {
    if (at.TakeWord("KEY")) {
      if (key_said) return RepeatedOption("KEY");
      key_said = true;
      ASSIGN_OR_RETURN(const std::string_view spec, at.TakeAny("KEY", "order"));
      ASSIGN_OR_RETURN(request.key, Order::ParseKey(spec));
    } else if (at.TakeWord("FAMILY")) {
      FamilyRequest& family = request.families.emplace_back();
      ASSIGN_OR_RETURN(family.name, at.TakeAny("FAMILY", "family [option ...]"));
      RETURN_IF_ERROR(CheckName("family", family.name));
      RETURN_IF_ERROR(TakeFamilyOptions(&at, &family.options));
      RETURN_IF_ERROR(CheckNewFamily(family.options));
    } else if (request.families.empty()) {
      bool taken = false;
      RETURN_IF_ERROR(TakePlacement(&at, &request, &taken));
      if (!taken) return UnexpectedWord(at.Peek(), "KEY, COLOCATE, WHOLE, SPLIT AT or FAMILY");
    } else {
      return UnexpectedWord(at.Peek(),
                            "TYPE, COLUMN, ORDER, VERSIONS, TTL, GC, GROUP, AGGREGATE, BUCKET, "
                            "COMPRESS, KEY or FAMILY");
    }
  }
  return request;
}

Result<FamilyRequest> ParseFamily(FamilyVerb verb, ArgumentCursor at) {
  FamilyRequest family;
  ASSIGN_OR_RETURN(family.name, at.TakeAny("FAMILY", "family [option ...]"));
  RETURN_IF_ERROR(TakeFamilyOptions(&at, &family.options));
  if (!at.done()) {
    constexpr std::string_view kOfNew{
        "TYPE, COLUMN, ORDER, VERSIONS, TTL, GC, GROUP, AGGREGATE, BUCKET or COMPRESS"};
    constexpr std::string_view kOfOld{
        "TYPE, COLUMN, NOCOLUMN, CONVERT, KEEP, VERSIONS, TTL, GC or COMPRESS"};
    return UnexpectedWord(at.Peek(), verb == FamilyVerb::kAdd ? kOfNew : kOfOld);
  }
  if (verb == FamilyVerb::kAdd) {
    RETURN_IF_ERROR(CheckName("family", family.name));
    RETURN_IF_ERROR(CheckNewFamily(family.options));
    return family;
  }
  const FamilyOptions& options = family.options;
  if (options.empty()) {
    return SyntaxErrorBecause(
        "nothing to alter: no TYPE, COLUMN, NOCOLUMN, VERSIONS, TTL, GC or "
        "COMPRESS");
  }
  if (options.other_cells && !options.type && options.columns.empty())
    return SyntaxErrorBecause("CONVERT and KEEP need TYPE, COLUMN or NOCOLUMN");
  return family;
}

}  // namespace cellar
