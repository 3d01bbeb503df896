// index  | b name | v id | v flags (1 unique) | v state | v on { column } | v include { column }
// column | v family id | v flags (1 whole family, 2 descending) | v type | b qualifier
#include "engine/schema/index_schema.h"

#include <algorithm>

#include "base/assert.h"
#include "base/coding.h"
#include "base/number.h"
#include "engine/schema/schema.h"

namespace cellar {
namespace {

constexpr uint64_t kUnique{1};
constexpr uint64_t kWholeFamily{1};
constexpr uint64_t kDescending{2};

void EncodeColumns(const std::vector<IndexColumn>& columns, std::string* to) {
  PutVarint64(to, columns.size());
  for (const IndexColumn& column : columns) {
    PutVarint64(to, column.family_id);
    PutVarint64(to,
                (column.whole_family ? kWholeFamily : 0) | (column.descending ? kDescending : 0));
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
        !GetLengthPrefixed(from, &qualifier) || family_id > UINT32_MAX || type >= kValueTypeCount) {
      return false;
    }
    columns->push_back({static_cast<uint32_t>(family_id), (flags & kWholeFamily) != 0,
                        std::string(qualifier), static_cast<ValueType>(type),
                        (flags & kDescending) != 0});
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

void EncodeIndexSchema(const IndexSchema& index, std::string* to) {
  PutLengthPrefixed(to, index.name);
  PutVarint64(to, index.id);
  PutVarint64(to, index.unique ? kUnique : 0);
  PutVarint64(to, static_cast<uint8_t>(index.state));
  EncodeColumns(index.on, to);
  EncodeColumns(index.include, to);
}

bool DecodeIndexSchema(std::string_view* from, IndexSchema* index) {
  *index = IndexSchema();
  std::string_view name;
  uint64_t flags = 0;
  uint64_t state = 0;
  if (!GetLengthPrefixed(from, &name) || !GetVarint64(from, &index->id) ||
      !GetVarint64(from, &flags) || !GetVarint64(from, &state) ||
      state > static_cast<uint8_t>(IndexState::kFailed)) {
    return false;
  }
  index->name = name;
  index->unique = (flags & kUnique) != 0;
  index->state = static_cast<IndexState>(state);
  return DecodeColumns(from, kIndexColumnsMax, &index->on) &&
         DecodeColumns(from, kIndexIncludeMax, &index->include);
}

std::string IndexColumnText(const TableSchema& schema, const IndexColumn& column) {
  const FamilySchema* family = schema.FindFamilyById(column.family_id);
  CELLAR_ASSERT(family != nullptr);
  std::string text = column.descending ? "-" : "";
  text += family->name;
  if (column.whole_family) return text;
  text.push_back(':');
  CELLAR_ASSERT(family->order.Decode(column.qualifier, &text));
  return text;
}

std::string IndexDefinitionText(const TableSchema& schema, const IndexSchema& index) {
  std::string text = index.name + " ON " + FormatUint64(index.on.size());
  for (const IndexColumn& column : index.on) {
    text += " " + QuoteWord(IndexColumnText(schema, column));
    if (!column.whole_family) text += " AS " + std::string(ValueTypeName(column.type));
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
