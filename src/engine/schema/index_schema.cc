// index  | b name | v id | v flags (1 unique, 2 judged) | v state | v on { column }
//        | v include { column } | b text of the failure, if the state is 3 or 4 |
// state  0 building, 1 ready, 2 failed: NOTUNIQUE without a text, 3 NOTUNIQUE, 4 TOOLARGE
// column | v family id | v flags (1 whole family, 2 descending, 4 type given by AS) | v type
//        | b qualifier
// failures, of one table  { v id | v state 3 or 4 | b text of the failure }
#include "engine/schema/index_schema.h"

#include <algorithm>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/schema/schema.h"

namespace cellar {
namespace {

constexpr uint64_t kUnique{1};
constexpr uint64_t kJudged{2};
constexpr uint64_t kWholeFamily{1};
constexpr uint64_t kDescending{2};
constexpr uint64_t kTypeIsGiven{4};
constexpr uint64_t kStateNotUnique{3};
constexpr uint64_t kStateTooLarge{4};

uint64_t EncodedState(const IndexSchema& index) {
  if (index.state != IndexState::kFailed) return static_cast<uint8_t>(index.state);
  return index.failure.code() == ErrorCode::kTooLarge ? kStateTooLarge : kStateNotUnique;
}

void EncodeColumns(const std::vector<IndexColumn>& columns, std::string* to) {
  PutVarint64(to, columns.size());
  for (const IndexColumn& column : columns) {
    PutVarint64(to, column.family_id);
    PutVarint64(to, (column.whole_family ? kWholeFamily : 0) |
                        (column.descending ? kDescending : 0) |
                        (column.type_is_given ? kTypeIsGiven : 0));
    PutVarint64(to, static_cast<uint8_t>(column.type));
    PutLengthPrefixed(to, column.qualifier);
  }
}

bool DecodeColumns(std::string_view* from, size_t columns_max, std::vector<IndexColumn>* columns) {
  uint64_t count = 0;
  if (!GetVarint64(from, &count) || count > columns_max) return false;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t family_id = 0;
    uint64_t flags = 0;
    uint64_t type = 0;
    std::string_view qualifier;
    if (!GetVarint64(from, &family_id) || !GetVarint64(from, &flags) || !GetVarint64(from, &type) ||
        !GetLengthPrefixed(from, &qualifier) || family_id > UINT32_MAX || type >= kNamedTypeCount) {
      return false;
    }
    columns->push_back({static_cast<uint32_t>(family_id), (flags & kWholeFamily) != 0,
                        std::string(qualifier), static_cast<ValueType>(type),
                        (flags & kTypeIsGiven) != 0, (flags & kDescending) != 0});
  }
  return true;
}

}  // namespace

bool IndexSchema::NamesFamily(uint32_t family_id) const {
  const auto names = [family_id](const IndexColumn& column) {
    return column.family_id == family_id;
  };
  return std::any_of(on.begin(), on.end(), names) ||
         std::any_of(include.begin(), include.end(), names);
}

bool IndexSchema::TakesTypeOf(const IndexColumn& column, uint32_t family_id) {
  return column.family_id == family_id && !column.whole_family && !column.type_is_given;
}

void EncodeIndexSchema(const IndexSchema& index, std::string* to) {
  PutLengthPrefixed(to, index.name);
  PutVarint64(to, index.id);
  PutVarint64(to, (index.unique ? kUnique : 0) | (index.judged ? kJudged : 0));
  PutVarint64(to, EncodedState(index));
  EncodeColumns(index.on, to);
  EncodeColumns(index.include, to);
  if (index.state == IndexState::kFailed) PutLengthPrefixed(to, index.failure.text());
}

bool DecodeIndexSchema(std::string_view* from, IndexSchema* index) {
  *index = IndexSchema();
  std::string_view name;
  uint64_t flags = 0;
  uint64_t state = 0;
  if (!GetLengthPrefixed(from, &name) || !GetVarint64(from, &index->id) ||
      !GetVarint64(from, &flags) || !GetVarint64(from, &state) || state > kStateTooLarge) {
    return false;
  }
  const auto failed = static_cast<uint64_t>(IndexState::kFailed);
  index->name = name;
  index->unique = (flags & kUnique) != 0;
  index->judged = (flags & kJudged) != 0;
  index->state = static_cast<IndexState>(std::min(state, failed));
  if (!DecodeColumns(from, kIndexColumnsMax, &index->on) ||
      !DecodeColumns(from, kIndexIncludeMax, &index->include)) {
    return false;
  }
  std::string_view text{"rows have equal values"};
  if (state > failed && !GetLengthPrefixed(from, &text)) return false;
  const ErrorCode code = state == kStateTooLarge ? ErrorCode::kTooLarge : ErrorCode::kNotUnique;
  if (state >= failed) index->failure = Status::Error(code, std::string(text));
  return true;
}

std::string EncodeIndexFailures(const TableSchema& schema) {
  std::string failures;
  for (const IndexSchema& index : schema.indexes) {
    if (index.state != IndexState::kFailed) continue;
    PutVarint64(&failures, index.id);
    PutVarint64(&failures, EncodedState(index));
    PutLengthPrefixed(&failures, index.failure.text());
  }
  return failures;
}

bool TakeIndexFailures(std::string_view failures, TableSchema* schema, bool* changes) {
  *changes = false;
  while (!failures.empty()) {
    uint64_t id = 0;
    uint64_t state = 0;
    std::string_view text;
    if (!GetVarint64(&failures, &id) || !GetVarint64(&failures, &state) ||
        !GetLengthPrefixed(&failures, &text) ||
        (state != kStateNotUnique && state != kStateTooLarge))
      return false;
    const auto index = std::find_if(schema->indexes.begin(), schema->indexes.end(),
                                    [id](const IndexSchema& each) { return each.id == id; });
    if (index == schema->indexes.end() || index->state == IndexState::kFailed) continue;
    const ErrorCode code = state == kStateTooLarge ? ErrorCode::kTooLarge : ErrorCode::kNotUnique;
    index->state = IndexState::kFailed;
    index->judged = false;
    index->failure = Status::Error(code, std::string(text));
    *changes = true;
  }
  return true;
}

std::string IndexColumnText(const TableSchema& schema, const IndexColumn& column) {
  const FamilySchema* family = schema.FindFamilyById(column.family_id);
  CELLAR_ASSERT(family != nullptr);
  std::string text = column.descending ? "-" : "";
  text += family->name;
  if (column.whole_family) return text;
  text.push_back(':');
  const bool decoded = family->order.Decode(column.qualifier, &text);
  CELLAR_ASSERT(decoded);
  return text;
}

std::string IndexDefinitionText(const TableSchema& schema, const IndexSchema& index) {
  std::string text = index.name + " ON " + FormatUint64(index.on.size());
  for (const IndexColumn& column : index.on) {
    text += " " + QuoteWord(IndexColumnText(schema, column));
    const FamilySchema* family = schema.FindFamilyById(column.family_id);
    const bool differs =
        column.type != TypeOf(*family, column.qualifier).value_or(ValueType::kBytes);
    if (!column.whole_family && (column.type_is_given || differs)) {
      text += " AS " + std::string(ValueTypeName(column.type));
    }
  }
  if (!index.include.empty()) {
    text += " INCLUDE " + FormatUint64(index.include.size());
    for (const IndexColumn& column : index.include) {
      text += " " + QuoteWord(IndexColumnText(schema, column));
    }
  }
  if (index.unique) text += " UNIQUE";
  return text;
}

}  // namespace cellar
