// TableCopy: a frozen table made again in memory of its own, leaf by leaf: COPY at work. Step
// copies a little, so that other work goes on between; what it reads stays, whatever becomes of
// the snapshot meanwhile.
//
// What kCopyTable says of a copy besides its names and number: v table id of the source, which is
// of a snapshot; v first tree id; and for feeds what the source is called, when it was so, and the
// schema.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "btree/btree.h"

namespace cellar {

class Table;

struct CopyDefinition {
  uint64_t source_id{0};
  uint64_t tree_id_first{0};
  std::string source_keyspace;
  std::string source;  // table, or table@snapshot
  int64_t as_at_micros{0};
  std::string schema;  // encoded
};
std::string EncodeCopyDefinition(const CopyDefinition& definition);
[[nodiscard]] bool DecodeCopyDefinition(std::string_view from, CopyDefinition* definition);

class TableCopy {
 public:
  explicit TableCopy(Table& source);  // REQUIRES: it is frozen
  ~TableCopy();
  TableCopy(const TableCopy&) = delete;
  TableCopy& operator=(const TableCopy&) = delete;

  uint64_t source_id() const { return source_id_; }
  // Copies about so many bytes. True when all is copied.
  bool Step(uint64_t bytes_max);
  // Memory of what has been copied.
  uint64_t memory_bytes() const;
  // Makes `table`, which is new and of the source's schema, the copy. REQUIRES: all is copied.
  void FinishTo(const Table& source, Table* table);
  // What has been copied in vain, to be freed in slices.
  std::vector<std::unique_ptr<BTree>> GiveUp();

 private:
  struct Part {
    uint64_t index_id{0};  // 0: of a group
    BTreeSnapshot from;
    std::unique_ptr<BTree> to;
  };

  const uint64_t source_id_;
  std::vector<Part> parts_;
  size_t part_{0};
  std::unique_ptr<BTreeCopier> copier_;
};

}  // namespace cellar
