// Column after column, to the end of the family's group, or of the row.
#include "engine/table/type_walk.h"

#include <optional>
#include <utility>

#include "base/assert.h"

namespace cellar {
namespace {

// What a version that is passed counts beside what is shown of it.
constexpr size_t kBytesOfVersion{16};

}  // namespace

// Where in a key what ends.
struct TypeWalk::Place {
  size_t row_bytes{0};
  size_t family_bytes{0};  // row and family id
  size_t column_bytes{0};  // and the qualifier; 0: the key is of another family
  uint32_t family_id{0};
};

struct TypeWalk::Slice {
  const Visitor& visit;
  uint64_t cells_max;
  uint64_t cells{0};
  size_t bytes{0};

  bool is_full() const { return cells >= cells_max || bytes >= kSliceBytesMax; }
};

TypeWalk::TypeWalk(uint32_t family_id, std::string_view row_key)
    : family_id_(family_id), only_(row_key) {
  PutFamilyId(&only_, family_id);
  from_ = only_;
}

void TypeWalk::Locate(const Table& table, const FamilySchema& family, std::string_view key,
                      Place* place) const {
  place->row_bytes = table.schema().key.EncodedSize(key);
  CELLAR_ASSERT(place->row_bytes > 0);
  const size_t id_bytes = DecodeFamilyId(key.substr(place->row_bytes), &place->family_id);
  CELLAR_ASSERT(id_bytes > 0);
  place->family_bytes = place->row_bytes + id_bytes;
  place->column_bytes = 0;
  if (place->family_id != family_id_) return;
  const size_t qualifier_bytes = family.order.EncodedSize(key.substr(place->family_bytes));
  CELLAR_ASSERT(qualifier_bytes > 0);
  place->column_bytes = place->family_bytes + qualifier_bytes;
}

// `at` stands at the first version from from_ on, and is put there again.
void TypeWalk::CountPassed(BTreeCursor& at, size_t column_bytes, VersionWalk* versions) const {
  for (at.Seek(std::string_view(from_).substr(0, column_bytes)); at.valid() && at.key() < from_;
       at.Next())
    versions->Count();
  CELLAR_ASSERT(at.valid());
}

// Over the versions of the column from `at` on, to the entry behind it, or to where the slice ends.
void TypeWalk::VisitColumn(BTreeCursor& at, const Place& place, const TypeChange::Wanted& wanted,
                           VersionWalk versions, Slice* slice) {
  const std::string_view key(key_);
  do {
    if (slice->bytes >= kSliceBytesMax) {
      from_.assign(at.key());
      amid_bytes_ = place.column_bytes;
      return;
    }
    versions.Count();
    ++slice->cells;
    slice->bytes += kBytesOfVersion;
    CellValue cell;
    ReadStoredHead(at.value(), &cell);
    if (wanted.Takes(cell.type)) continue;
    const int64_t timestamp = StoredTimestamp(at.key().substr(place.column_bytes));
    if (versions.FateOf(timestamp, cell.expiry_micros) != Fate::kLive) continue;
    ReadStoredCell(at.value(), &plain_, &cell);
    slice->bytes += key.size() + cell.stored.size();
    slice->visit(
        {key.substr(0, place.row_bytes), key.substr(place.family_bytes), timestamp, cell, wanted});
  } while (at.Next(), at.valid() && at.shared_with_last() >= place.column_bytes);
}

uint64_t TypeWalk::Step(const Table& table, const TypeChange& change, int64_t now_micros,
                        uint64_t cells_max, const Visitor& visit) {
  // What another set owns it changes itself.
  const Tablets* const clamp = table.clamp();
  const Visitor visit_owned = [clamp, &visit](const Cell& cell) {
    if (clamp->Owns(cell.row_key)) visit(cell);
  };
  Slice slice{clamp == nullptr ? visit : visit_owned, cells_max};
  if (at_end_) return 0;
  const FamilySchema* const family = table.schema().FindFamilyById(family_id_);
  CELLAR_ASSERT(family != nullptr);
  const bool all_live = table.family_is_all_live(*family);
  BTreeCursor& at = table.cursor(family->group);
  const size_t amid_bytes = std::exchange(amid_bytes_, 0);
  at.Seek(from_);
  bool resumes = amid_bytes > 0 && at.valid() &&
                 at.key().starts_with(std::string_view(from_).substr(0, amid_bytes));
  while (at.valid() && at.key().starts_with(only_)) {
    if (slice.is_full()) {
      from_.assign(at.key());
      return slice.cells;
    }
    Place place;
    Locate(table, *family, at.key(), &place);
    if (place.column_bytes == 0) {
      ++slice.cells;
      // Straight to the family, in this row or behind it.
      key_.assign(at.key().substr(0, place.row_bytes));
      if (place.family_id < family_id_) {
        PutFamilyId(&key_, family_id_);
        at.Seek(key_);
      } else {
        at.Leave(key_.size());
      }
      continue;
    }
    key_.assign(at.key().substr(0, place.column_bytes));
    const std::optional<TypeChange::Wanted> wanted =
        change.WantedOf(std::string_view(key_).substr(place.family_bytes));
    if (!wanted) {
      ++slice.cells;
      resumes = false;
      at.Leave(key_.size());
      continue;
    }
    VersionWalk versions(family->policy, all_live, now_micros);
    if (std::exchange(resumes, false) && !all_live && family->policy.depends_on_rank())
      CountPassed(at, amid_bytes, &versions);
    VisitColumn(at, place, *wanted, versions, &slice);
    if (amid_bytes_ > 0) return slice.cells;
  }
  at_end_ = true;
  return slice.cells;
}

}  // namespace cellar
