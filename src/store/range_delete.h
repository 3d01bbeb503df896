// CDELRANGE: walks the live rows of the ranges, and deletes whole runs of rows, a bounded number of
// cells at a time. Rows that only hold what retention has dropped go along uncounted.
//
// So goes, too, what a set of a cluster holds and does not own (Purpose::kPurge): uncounted, and
// untold by feeds.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/keys/order.h"
#include "engine/table/table.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar {

class RangeDelete final : public SlicedChange {
 public:
  enum class Purpose : uint8_t { kCommand, kPurge };

  RangeDelete(Store& store, Table& table, std::vector<KeyRange> ranges,
              Purpose purpose = Purpose::kCommand);

  bool done() const override { return at_ == ranges_.size(); }
  uint64_t rows() const override { return rows_deleted_; }
  std::string_view place() const override { return place_; }
  Status Step(uint64_t cells_max) override;

 private:
  struct Slice {
    KeyBound end;
    uint64_t rows{0};     // live
    uint64_t entries{0};  // stored, about: 0 means that nothing is there
    std::string first_row{};
    std::string last_row{};
  };

  KeyRange RangeToDelete(const KeyRange& range, const Slice& slice) const;
  Slice FindSlice(const Table& table, const KeyRange& range, uint64_t cells_max);
  TableWatches::Mark MarkDeadRows(const Table& table, std::string_view begin,
                                  std::string_view end) const;

  Store& store_;
  const uint64_t table_id_;
  const uint64_t lineage_;
  const Purpose purpose_;
  std::vector<KeyRange> ranges_;
  size_t at_{0};
  std::string place_;  // where the last slice began
  uint64_t rows_deleted_{0};
  std::shared_ptr<void> hold_;  // rows stay where they are meanwhile (Table::HoldRows)
};

}  // namespace cellar
