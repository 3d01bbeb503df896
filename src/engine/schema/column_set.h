// Keys and columns as clients name them, checked and encoded against a schema.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "base/inline.h"
#include "cellar/status.h"
#include "engine/keys/cell.h"
#include "engine/keys/key_range_set.h"
#include "engine/request/read_options.h"
#include "engine/schema/schema.h"

namespace cellar {

// Takes a column's name apart, which is family:qualifier: at the first ':'. False if there is none.
[[nodiscard]] CELLAR_INLINE bool SplitColumn(std::string_view name, std::string_view* family,
                                             std::string_view* qualifier) {
  const size_t colon = FindByte(name.data(), name.size(), ':');
  if (colon == name.size()) return false;
  *family = {name.data(), colon};
  *qualifier = {name.data() + colon + 1, name.size() - colon - 1};
  return true;
}
CELLAR_INLINE bool IsColumn(std::string_view name) {
  return FindByte(name.data(), name.size(), ':') < name.size();
}

// Why a row key, a qualifier of such a size is refused.
Status RowKeyOfBadSize(std::string_view text);
Status QualifierTooLarge(const FamilySchema& family, std::string_view text);
// `status`, which refuses a qualifier or a prefix or bound of one, naming the family as well.
[[gnu::cold]] Status QualifierRefused(const FamilySchema& family, const Status& status);

// Room for the second part of a column's key, family id and qualifier; for all of it.
inline constexpr size_t kColumnPartBytesMax{kFamilyIdBytesMax +
                                            Order::EncodedBytesMax(kQualifierBytesMax)};
inline constexpr size_t kColumnKeyBytesMax{Order::EncodedBytesMax(kRowKeyBytesMax) +
                                           kColumnPartBytesMax};

// Appends the encoded row key to a std::string, or to memory as Order::Encode does. TOOLARGE, or
// BADKEY naming the component at fault.
template <typename Bytes>
CELLAR_INLINE Status EncodeRowKey(const TableSchema& schema, std::string_view text, Bytes* to) {
  if (text.size() - 1 >= kRowKeyBytesMax) [[unlikely]]  // of an empty one it is beyond every limit
    return RowKeyOfBadSize(text);
  return schema.key.Encode(text, to);
}
// Appends the encoded qualifier, likewise. TOOLARGE, BADKEY.
template <typename Bytes>
CELLAR_INLINE Status EncodeQualifier(const FamilySchema& family, std::string_view text, Bytes* to) {
  if (text.size() > kQualifierBytesMax) [[unlikely]]
    return QualifierTooLarge(family, text);
  const Status status = family.order.Encode(text, to);
  return status.ok() ? Status::Ok() : QualifierRefused(family, status);
}
// Appends a column's part of the keys of its cells, family id and encoded qualifier, to *to, where
// kColumnPartBytesMax bytes are; *to becomes its end. Sets *family. NOFAMILY, TOOLARGE, BADKEY.
CELLAR_INLINE Status EncodeColumn(const TableSchema& schema, std::string_view family_name,
                                  std::string_view qualifier, const FamilySchema** family,
                                  char** to);
// NOFAMILY naming the family; NOPERM if the schema is restricted and the family may not be read.
Result<const FamilySchema*> RequireFamily(const TableSchema& schema, std::string_view name);

// NOPERM in Redis' words.
Status NoPermission();

Status EncodeColumn(const TableSchema& schema, std::string_view family_name,
                    std::string_view qualifier, const FamilySchema** family, char** to) {
  *family = schema.FindFamily(family_name);
  if (*family == nullptr) [[unlikely]]
    return RequireFamily(schema, family_name).status();
  *to = EncodeFamilyId(*to, (*family)->id);
  return EncodeQualifier(**family, qualifier, to);
}

// A range from two bounds as sent: "[key", "(key", "-", "+". A bound of another shape is plain ERR,
// a key that does not fit BADKEY.
Result<KeyRange> EncodeRange(const Order& order, std::string_view min, std::string_view max);

// Sorts `ranges` and joins those that touch, so that each key lies in at most one.
void MergeRanges(std::vector<KeyRange>* ranges);

// A set of columns: for each family that has any, ranges of encoded qualifiers.
class ColumnSet {
 public:
  struct Family {
    size_t index{0};               // in TableSchema::families
    bool whole{false};             // every qualifier
    std::vector<KeyRange> ranges;  // ascending, disjoint; empty if whole
  };

  // No selector at all means every column of every family.
  static Result<ColumnSet> Compile(const TableSchema& schema,
                                   std::span<const ColumnSelector> selectors);
  // Makes this set that one, keeping its memory. After an error it is unspecified.
  Status Recompile(const TableSchema& schema, std::span<const ColumnSelector> selectors);

  // Leaves only qualifiers that are in `allowed` (by family index) too.
  void IntersectWith(const std::vector<KeyRangeSet>& allowed);

  // What IntersectWith takes.
  std::vector<KeyRangeSet> RangesByFamily(size_t families) const;

  const std::vector<Family>& families() const { return families_; }  // ascending by name

 private:
  std::vector<Family> families_;
};

// Marks the locality groups, by number, that hold these columns.
void MarkGroupsOf(const ColumnSet& columns, const TableSchema& schema, std::vector<bool>* groups);

}  // namespace cellar
