// Column after column, to the end of each group.
#include "engine/table/reclaim_walk.h"

#include "base/assert.h"
#include "engine/table/version_walk.h"

namespace cellar {
namespace {

// Goes over the versions of one column, to the entry behind it; returns how many there were.
// *column := the column's key if retention drops one of them.
uint64_t StepOverColumn(BTreeCursor& at, const FamilySchema& family, size_t column_bytes,
                        int64_t now_micros, std::string* column) {
  VersionWalk walk(family.policy, false, now_micros);
  do {
    walk.Count();
    if (column->empty()) {
      CellValue cell;
      ReadStoredHead(at.value(), &cell);
      const int64_t timestamp = StoredTimestamp(at.key().substr(column_bytes));
      if (walk.FateOf(timestamp, cell.expiry_micros) != Fate::kLive)
        column->assign(at.key().substr(0, column_bytes));
    }
    at.Next();
  } while (at.valid() && at.shared_with_last() >= column_bytes);
  return walk.rank();
}

}  // namespace

bool ReclaimWalk::Wanted(const Table& table, const FamilySchema* family) const {
  return family != nullptr && (!family_id_ || family->id == *family_id_) &&
         !table.family_is_all_live(*family);
}

// A column is looked at as a whole, even beyond cells_max: retention counts its versions from the
// newest on. Of one that has a dropped version only the name is noted, since the op drops all of
// them.
bool ReclaimWalk::Step(const Table& table, int64_t now_micros, uint64_t cells_max,
                       MutationBuilder* mutation) {
  const TableSchema& schema = table.schema();
  uint64_t examined = 0;
  std::string column;
  for (; group_ < table.groups(); ++group_, from_ = row_) {
    bool any = false;
    for (const FamilySchema& family : schema.families) {
      any = any || (family.group == group_ && Wanted(table, &family));
    }
    if (!any) continue;
    BTreeCursor& at = table.cursor(group_);
    for (at.Seek(from_); at.valid();) {
      if (examined >= cells_max) {
        from_.assign(at.key());
        return false;
      }
      const size_t row_bytes = schema.key.EncodedSize(at.key());
      CELLAR_ASSERT(row_bytes > 0);
      if (!row_.empty() && at.key().substr(0, row_bytes) != row_) break;
      uint32_t family_id = 0;
      const size_t id_bytes = DecodeFamilyId(at.key().substr(row_bytes), &family_id);
      CELLAR_ASSERT(id_bytes > 0);
      const size_t prefix_bytes = row_bytes + id_bytes;
      const FamilySchema* family = schema.FindFamilyById(family_id);
      if (!Wanted(table, family)) {
        ++examined;
        at.Leave(prefix_bytes);
        continue;
      }
      const size_t column_bytes =
          prefix_bytes + family->order.EncodedSize(at.key().substr(prefix_bytes));
      CELLAR_ASSERT(column_bytes > prefix_bytes);
      column.clear();
      examined += StepOverColumn(at, *family, column_bytes, now_micros, &column);
      if (!column.empty()) {
        ++columns_found_;
        const std::string_view whole(column);
        mutation->Row(table.id(), whole.substr(0, row_bytes));
        mutation->ReclaimColumn(family->id, whole.substr(prefix_bytes), now_micros);
      }
    }
  }
  return true;
}

}  // namespace cellar
