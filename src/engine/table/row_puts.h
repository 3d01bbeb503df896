// RowPuts: several puts of one row, by whoever has just resolved them, as Table::ApplyPuts takes
// them.
//
//   keys   | row, family id, qualifier, timestamp | row, family id, qualifier, timestamp | ...
//   puts   | family, where the key stands, where the cell's value stands |                 ...
//
// The values stand in the mutation that the puts were added to as well: nothing is copied but keys.
// What the ops of the mutation say in the order of the client is sorted here by key, so that cells
// that stand side by side in the tree are put by one run (BTree::PutRun). The order does not matter
// as long as no cell is put twice: a list with such cells is of no use, and the mutation is applied
// op by op.
//
// A list holds at most kKeysBytesMax of keys. That is a thousand columns of a usual row; more go op
// by op as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/byte_buffer.h"
#include "engine/table/mutation.h"

namespace cellar {

class RowPuts {
 public:
  static constexpr size_t kKeysBytesMax{256 * 1024};

  struct Put {
    const FamilySchema* family;
    uint32_t key_at;
    uint32_t key_bytes;
    uint32_t value_at;  // in the mutation's payload
    uint32_t value_bytes;
  };

  void Clear() {
    keys_.Clear();
    puts_.clear();
    row_bytes_ = 0;
    complete_ = true;
    ascends_ = true;
  }
  // Adds a put of the same row whose value stands in `payload`, its mutation's. One that replaces a
  // version, or is too much, spoils the list.
  void Add(const ResolvedPut& put, std::string_view payload);
  void MarkIncomplete() { complete_ = false; }

  // Sorts the puts by key. False if they are of no use.
  [[nodiscard]] bool Finish();

  size_t row_bytes() const { return row_bytes_; }
  // REQUIRES: Finish was true.
  std::span<const Put> puts() const { return puts_; }
  std::string_view key(const Put& put) const {
    return keys_.view().substr(put.key_at, put.key_bytes);
  }

 private:
  ByteBuffer keys_;
  std::vector<Put> puts_;
  size_t row_bytes_{0};
  bool complete_{true};
  bool ascends_{true};
};

}  // namespace cellar
