// Names, lookup, text and bytes of a table's schema.
#include "engine/schema/schema.h"

#include <algorithm>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/duration.h"
#include "base/text/number.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr uint8_t kNoType{0xff};
// Above the type's number stand AGGREGATE, whether there is a BUCKET, COMPRESS, whether there is a
// COLUMN, and a next policy: 0 in a plain family. A server that does not know them finds no such
// type, or option, and refuses the schema.
constexpr int kFoldShift{8};
constexpr int kFoldBits{3};
constexpr uint64_t kHasBucket{uint64_t{1} << (kFoldShift + kFoldBits)};
static_assert(kFoldKindCount <= 1 << kFoldBits);
constexpr int kCompressionShift{kFoldShift + kFoldBits + 1};
constexpr int kCompressionBits{2};
static_assert(kCompressionCount == 1 << kCompressionBits);
constexpr uint64_t kHasColumns{uint64_t{1} << (kCompressionShift + kCompressionBits)};
constexpr uint64_t kHasNextPolicy{kHasColumns << 1};

uint64_t FamilyTypeNumber(const FamilySchema& family) {
  const uint64_t type = family.type ? static_cast<uint64_t>(*family.type) : kNoType;
  return type | static_cast<uint64_t>(family.fold) << kFoldShift |
         (family.bucket_ms != 0 ? kHasBucket : 0) |
         static_cast<uint64_t>(family.compression) << kCompressionShift |
         (family.columns.empty() ? 0 : kHasColumns) | (family.next_policy ? kHasNextPolicy : 0);
}

// COLOCATE and WHOLE stand above the next family's id, where older versions find damage:
//   next family id, 32 bits | WHOLE, 1 bit | COLOCATE
constexpr int kWholeShift{32};
constexpr int kColocateShift{33};

uint64_t PlacementBits(const Placement& placement) {
  return uint64_t{placement.whole} << kWholeShift | uint64_t{placement.colocate} << kColocateShift;
}

bool TakePlacement(uint64_t* number, size_t key_components, Placement* placement) {
  const uint64_t colocate = *number >> kColocateShift;
  if (colocate > key_components) return false;
  placement->colocate = static_cast<uint32_t>(colocate);
  placement->whole = (*number >> kWholeShift & 1) != 0;
  *number &= UINT32_MAX;
  return true;
}

bool IsNameCharacter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

Status Malformed() {
  return Status::Error(ErrorCode::kCorruption, "a table's schema is malformed");
}

// policy  | b GC text, v versions, v ttl ms
void EncodePolicy(const RetentionPolicy& policy, std::string* to) {
  const bool expression = policy.is_expression();
  PutLengthPrefixed(to, expression ? policy.text() : std::string_view());
  PutVarint64(to, expression ? 0 : policy.versions());
  PutVarint64(to, expression ? 0 : static_cast<uint64_t>(policy.ttl_ms()));
}

Status DecodePolicy(std::string_view* from, RetentionPolicy* policy) {
  std::string_view text;
  uint64_t versions = 0;
  uint64_t ttl_ms = 0;
  if (!GetLengthPrefixed(from, &text) || !GetVarint64(from, &versions) ||
      !GetVarint64(from, &ttl_ms) || ttl_ms > static_cast<uint64_t>(kDurationMsMax)) {
    return Malformed();
  }
  if (text.empty()) {
    *policy = RetentionPolicy::FromVersionsAndTtl(versions, static_cast<int64_t>(ttl_ms));
    return Status::Ok();
  }
  ASSIGN_OR_RETURN(*policy, RetentionPolicy::Parse(text));
  return Status::Ok();
}

// The columns with types of their own, behind BUCKET. Their qualifiers are as the family's order
// would encode them.
Status DecodeColumns(std::string_view* from, FamilySchema* family) {
  uint64_t count = 0;
  if (!GetVarint64(from, &count) || count == 0 || count > kTypedColumnsMax) return Malformed();
  std::string text;
  std::string encoded;
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view qualifier;
    uint64_t type = 0;
    if (!GetLengthPrefixed(from, &qualifier) || !GetVarint64(from, &type) ||
        type >= kNamedTypeCount) {
      return Malformed();
    }
    text.clear();
    encoded.clear();
    if (!family->order.Decode(qualifier, &text) || text.size() > kQualifierBytesMax ||
        !family->order.Encode(text, &encoded).ok() || encoded != qualifier) {
      return Malformed();
    }
    if (!family->columns.empty() && family->columns.back().qualifier >= qualifier)
      return Malformed();
    family->columns.push_back({std::move(encoded), static_cast<ValueType>(type)});
  }
  return Status::Ok();
}

// Type, AGGREGATE, BUCKET and COLUMNs of a family, whose other fields have been taken from *from.
Status DecodeFamilyTypes(uint64_t number, std::string_view* from, FamilySchema* family) {
  const uint64_t type = number & 0xff;
  const uint64_t fold = (number >> kFoldShift) & ((1 << kFoldBits) - 1);
  const uint64_t compression = (number & ~(kHasColumns | kHasNextPolicy)) >> kCompressionShift;
  if (compression >= kCompressionCount || fold >= kFoldKindCount) {
    return Status::Error(ErrorCode::kCorruption,
                         "a table's schema has an option that this version does not know");
  }
  if (type != kNoType && type >= kNamedTypeCount) return Malformed();
  if (type != kNoType) family->type = static_cast<ValueType>(type);
  family->fold = static_cast<FoldKind>(fold);
  family->compression = static_cast<Compression>(compression);
  if (!FoldTakesType(family->fold, family->type)) return Malformed();
  if ((number & kHasBucket) != 0) {
    uint64_t bucket_ms = 0;
    if (!GetVarint64(from, &bucket_ms) || bucket_ms == 0 ||
        bucket_ms > static_cast<uint64_t>(kDurationMsMax)) {
      return Malformed();
    }
    family->bucket_ms = static_cast<int64_t>(bucket_ms);
  }
  if ((number & kHasColumns) != 0) {
    if (family->fold != FoldKind::kNone) return Malformed();
    RETURN_IF_ERROR(DecodeColumns(from, family));
  }
  if ((number & kHasNextPolicy) != 0)
    RETURN_IF_ERROR(DecodePolicy(from, &family->next_policy.emplace()));
  family->takes_plain_bytes = family->is_plain() && !Packs(family->compression) &&
                              family->type.value_or(ValueType::kBytes) == ValueType::kBytes &&
                              family->columns.empty();
  return Status::Ok();
}

// One family at the front of *from; its policy stands before what options add.
Status DecodeFamily(std::string_view* from, FamilySchema* family) {
  std::string_view name;
  std::string_view order;
  uint64_t id = 0;
  uint64_t group = 0;
  uint64_t type = 0;
  if (!GetLengthPrefixed(from, &name) || !GetVarint64(from, &id) || !GetVarint64(from, &group) ||
      !GetVarint64(from, &type) || !GetLengthPrefixed(from, &order)) {
    return Malformed();
  }
  if (!IsName(name) || id == 0 || id > UINT32_MAX || group >= kFamiliesMax) return Malformed();
  RETURN_IF_ERROR(DecodePolicy(from, &family->policy));
  family->name = name;
  family->id = static_cast<uint32_t>(id);
  family->group = static_cast<uint32_t>(group);
  ASSIGN_OR_RETURN(family->order, Order::Parse(order));
  return DecodeFamilyTypes(type, from, family);
}

}  // namespace

bool IsName(std::string_view text) {
  if (text.empty() || text.size() > kNameBytesMax || !IsNameCharacter(text[0])) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsNameCharacter(c) || c == '.' || c == '-'; });
}

bool FamilyOptions::empty() const {
  return !type && !order && !gc && !versions_max && !ttl_ms && !group && !fold && !bucket_ms &&
         !compression && columns.empty();
}

const TypedColumn* FamilySchema::FindColumn(std::string_view qualifier) const {
  // Most families have few: comparing them all is quicker than to search them.
  constexpr size_t kWalkedMax{8};
  if (columns.size() <= kWalkedMax) {
    for (const TypedColumn& column : columns) {
      if (EqualBytes(column.qualifier, qualifier)) return &column;
    }
    return nullptr;
  }
  const auto at = std::lower_bound(
      columns.begin(), columns.end(), qualifier,
      [](const TypedColumn& column, std::string_view wanted) { return column.qualifier < wanted; });
  return at != columns.end() && at->qualifier == qualifier ? &*at : nullptr;
}

const FamilySchema* TableSchema::SearchFamily(std::string_view name) const {
  const auto at = std::lower_bound(
      families.begin(), families.end(), name,
      [](const FamilySchema& family, std::string_view wanted) { return family.name < wanted; });
  return at != families.end() && at->name == name ? &*at : nullptr;
}

FamilySchema* TableSchema::FindFamily(std::string_view name) {
  return const_cast<FamilySchema*>(std::as_const(*this).FindFamily(name));
}

const FamilySchema* TableSchema::FindFamilyById(uint32_t id) const {
  for (const FamilySchema& family : families) {
    if (family.id == id) return &family;
  }
  return nullptr;
}

const IndexSchema* TableSchema::FindIndex(std::string_view name) const {
  for (const IndexSchema& index : indexes) {
    if (index.name == name) return &index;
  }
  return nullptr;
}

RetentionPolicy AlterRetention(const RetentionPolicy& policy, const FamilyOptions& options) {
  if (options.gc) return *options.gc;
  if (!options.versions_max && !options.ttl_ms) return policy;
  const uint64_t versions =
      options.versions_max.value_or(policy.is_expression() ? 0 : policy.versions());
  const uint64_t ttl_ms =
      options.ttl_ms.value_or(policy.is_expression() ? 0 : static_cast<uint64_t>(policy.ttl_ms()));
  return RetentionPolicy::FromVersionsAndTtl(versions, static_cast<int64_t>(ttl_ms));
}

std::string FamilyOptionsText(const TableSchema& schema, const FamilySchema& family) {
  std::string text;
  if (family.type) text += " TYPE " + std::string(ValueTypeName(*family.type));
  if (family.fold != FoldKind::kNone)
    text += " AGGREGATE " + std::string(FoldKindName(family.fold));
  if (family.bucket_ms != 0) text += " BUCKET " + FormatDurationShort(family.bucket_ms);
  if (Packs(family.compression))
    text += " COMPRESS " + std::string(CompressionName(family.compression));
  if (!family.order.is_plain_bytes()) text += " ORDER " + QuoteWord(family.order.spec());
  for (const TypedColumn& column : family.columns) {
    std::string qualifier;
    const bool decoded = family.order.Decode(column.qualifier, &qualifier);
    CELLAR_ASSERT(decoded);
    text += " COLUMN " + QuoteWord(qualifier) + " " + std::string(ValueTypeName(column.type));
  }
  const RetentionPolicy& policy = family.policy_said();
  if (policy.is_expression()) {
    text += " GC " + QuoteWord(policy.text());
  } else {
    if (policy.versions() != 0) text += " VERSIONS " + FormatUint64(policy.versions());
    if (policy.ttl_ms() != 0) text += " TTL " + FormatDurationShort(policy.ttl_ms());
  }
  CELLAR_ASSERT(family.group < schema.groups.size());
  const std::string& group = schema.groups[family.group].name;
  if (group != kDefaultGroup) text += " GROUP " + group;
  return text;
}

// schema  | b key order | v next family id | v groups { b name, v tree id }
//         | v families { b name, v id, v group,
//                        v type | aggregate << 8 | has bucket << 11 | compression << 12
//                          | has columns << 14 | has next policy << 15,
//                        b order, policy [, v bucket ms] [, v columns { b qualifier, v type }]
//                        [, policy] }
//         | v next index id | v indexes { index_schema.h }
void EncodeTableSchema(const TableSchema& schema, std::string* to) {
  PutLengthPrefixed(to, schema.key.spec());
  PutVarint64(to, schema.family_id_next | PlacementBits(schema.placement));
  PutVarint64(to, schema.groups.size());
  for (const GroupSchema& group : schema.groups) {
    PutLengthPrefixed(to, group.name);
    PutVarint64(to, group.tree_id);
  }
  PutVarint64(to, schema.families.size());
  for (const FamilySchema& family : schema.families) {
    PutLengthPrefixed(to, family.name);
    PutVarint64(to, family.id);
    PutVarint64(to, family.group);
    PutVarint64(to, FamilyTypeNumber(family));
    PutLengthPrefixed(to, family.order.spec());
    EncodePolicy(family.policy, to);
    if (family.bucket_ms != 0) PutVarint64(to, static_cast<uint64_t>(family.bucket_ms));
    if (!family.columns.empty()) PutVarint64(to, family.columns.size());
    for (const TypedColumn& column : family.columns) {
      PutLengthPrefixed(to, column.qualifier);
      PutVarint64(to, static_cast<uint64_t>(column.type));
    }
    if (family.next_policy) EncodePolicy(*family.next_policy, to);
  }
  PutVarint64(to, schema.index_id_next);
  PutVarint64(to, schema.indexes.size());
  for (const IndexSchema& index : schema.indexes) EncodeIndexSchema(index, to);
}

// Is a column of an index one that its family can have? Only the one ON column may be a family.
static bool IsIndexColumn(const TableSchema& schema, const IndexColumn& column,
                          bool may_be_family) {
  const FamilySchema* family = schema.FindFamilyById(column.family_id);
  if (family == nullptr || family->is_hll()) return false;
  if (column.whole_family) return may_be_family && column.qualifier.empty();
  std::string text;
  return family->order.Decode(column.qualifier, &text);
}

static bool IsIndexOf(const TableSchema& schema, const IndexSchema& index) {
  if (!IsName(index.name) || index.id == 0 || index.id >= schema.index_id_next) return false;
  const auto is_column = [&schema](bool may_be_family) {
    return [&schema, may_be_family](const IndexColumn& column) {
      return IsIndexColumn(schema, column, may_be_family);
    };
  };
  const bool of_family = index.on.size() == 1;
  return std::all_of(index.on.begin(), index.on.end(), is_column(of_family)) &&
         std::all_of(index.include.begin(), index.include.end(), is_column(true));
}

static Status DecodeIndexes(std::string_view* from, TableSchema* schema) {
  uint64_t indexes = 0;
  if (!GetVarint64(from, &schema->index_id_next) || !GetVarint64(from, &indexes) ||
      indexes > kIndexesMax) {
    return Malformed();
  }
  for (uint64_t i = 0; i < indexes; ++i) {
    IndexSchema index;
    if (!DecodeIndexSchema(from, &index) || !IsIndexOf(*schema, index)) return Malformed();
    // Formats before the flag: a type that is not the family's can only have been given.
    for (IndexColumn& column : index.on) {
      const FamilySchema* family = schema->FindFamilyById(column.family_id);
      const ValueType declared = TypeOf(*family, column.qualifier).value_or(ValueType::kBytes);
      if (!column.whole_family && column.type != declared) column.type_is_given = true;
    }
    for (const IndexSchema& other : schema->indexes) {
      if (other.id == index.id || other.name >= index.name) return Malformed();
    }
    schema->indexes.push_back(std::move(index));
  }
  return Status::Ok();
}

Status DecodeTableSchema(std::string_view* from, TableSchema* schema) {
  RETURN_IF_ERROR(DecodeTableSchemaV1(from, schema));
  // A record of the log holds nothing behind the schema, so one of the first format ends here.
  return from->empty() ? Status::Ok() : DecodeIndexes(from, schema);
}

bool DifferInIndexStatesAlone(const TableSchema& before, const TableSchema& after) {
  const auto same_states = [](const IndexSchema& one, const IndexSchema& other) {
    return one.id == other.id && one.state == other.state && one.judged == other.judged;
  };
  const auto encoded_without_states = [](TableSchema schema) {
    for (IndexSchema& index : schema.indexes) {
      index.state = IndexState::kBuilding;
      index.judged = false;
      index.failure = Status();
    }
    std::string bytes;
    EncodeTableSchema(schema, &bytes);
    return bytes;
  };
  return !std::equal(before.indexes.begin(), before.indexes.end(), after.indexes.begin(),
                     after.indexes.end(), same_states) &&
         encoded_without_states(before) == encoded_without_states(after);
}

bool IsPlainSchema(const TableSchema& schema) {
  return std::all_of(
             schema.families.begin(), schema.families.end(),
             [](const FamilySchema& family) { return family.is_plain() && !family.next_policy; }) &&
         !MayHoldPacked(schema) && !HasTypedColumns(schema) && !schema.placement.any();
}

bool HasTypedColumns(const TableSchema& schema) {
  return std::any_of(schema.families.begin(), schema.families.end(),
                     [](const FamilySchema& family) { return !family.columns.empty(); });
}

bool MayHoldPacked(const TableSchema& schema) {
  return std::any_of(
      schema.families.begin(), schema.families.end(),
      [](const FamilySchema& family) { return family.compression != Compression::kNever; });
}

// The part that schemas of all formats begin with. Bytes come out of files, so ids have to be
// unique and below the next one, and families sorted by name.
Status DecodeTableSchemaV1(std::string_view* from, TableSchema* schema) {
  *schema = TableSchema();
  std::string_view key;
  uint64_t family_id_next = 0;
  uint64_t groups = 0;
  if (!GetLengthPrefixed(from, &key) || !GetVarint64(from, &family_id_next) ||
      !GetVarint64(from, &groups) || groups == 0 || groups > kFamiliesMax + 1) {
    return Malformed();
  }
  ASSIGN_OR_RETURN(schema->key, Order::ParseKey(key));
  if (!TakePlacement(&family_id_next, schema->key.components().size(), &schema->placement))
    return Malformed();
  schema->family_id_next = static_cast<uint32_t>(family_id_next);
  for (uint64_t i = 0; i < groups; ++i) {
    std::string_view name;
    uint64_t tree_id = 0;
    if (!GetLengthPrefixed(from, &name) || !GetVarint64(from, &tree_id)) return Malformed();
    if (!IsName(name) || tree_id == 0) return Malformed();
    for (const GroupSchema& other : schema->groups) {
      if (other.name == name || other.tree_id == tree_id) return Malformed();
    }
    schema->groups.push_back({std::string(name), tree_id});
  }
  uint64_t families = 0;
  if (!GetVarint64(from, &families) || families > kFamiliesMax) return Malformed();
  for (uint64_t i = 0; i < families; ++i) {
    FamilySchema family;
    RETURN_IF_ERROR(DecodeFamily(from, &family));
    if (family.group >= schema->groups.size() || family.id >= schema->family_id_next ||
        family.order.is_recno() || schema->FindFamilyById(family.id) != nullptr) {
      return Malformed();
    }
    if (!schema->families.empty() && schema->families.back().name >= family.name)
      return Malformed();
    schema->families.push_back(std::move(family));
  }
  return Status::Ok();
}

}  // namespace cellar
