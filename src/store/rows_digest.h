// RowsDigest: a digest that can be added up. Of rows that lie on several sets it is the sum of what
// each of them owns, and that of one server with the same rows (DEBUG DIGEST CLUSTER).
//
//   schema   a hash of tables and their families. Left out is what each set has for itself: next
//            record numbers, and whether an index is ready, and so indexes
//   rows     of each row a hash of its table, its key and its live cells with their expiry; summed
//   ends     hashes of where tablets begin, less those of where they end: over all sets that is
//            `whole` if, and almost surely only if, they have every row once
//
// It is of the rows as they are when it is made, which costs a snapshot of each tree. Step counts
// them, beside writers. Owned by one thread; dies before the store.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/digest_hash.h"

namespace cellar {

class ReadView;
class Scan;
class Store;
class Table;
struct NamedSnapshot;

class RowsDigest {
 public:
  // Of one set, or of several.
  struct Part {
    DigestSum schema;
    DigestSum rows;
    uint64_t ends{0};
    uint64_t whole{0};

    // That of another set. REQUIRES: its schema is the same.
    void Add(const Part& other);
    bool is_whole() const { return ends == whole; }
    std::string Text() const;  // 32 hexadecimal digits
    std::string Encode() const;
    // False if these are not the bytes of one.
    [[nodiscard]] static bool Decode(std::string_view from, Part* part);
  };

  // Of all tables but the cluster's own; of cells those that live at `at_micros`.
  RowsDigest(Store& store, int64_t at_micros);
  // Of the tables of a snapshot, as they were then.
  explicit RowsDigest(const NamedSnapshot& snapshot);
  ~RowsDigest();
  RowsDigest(const RowsDigest&) = delete;
  RowsDigest& operator=(const RowsDigest&) = delete;

  // Goes on, by about so many cells. True: all is counted.
  bool Step(uint64_t cells_max);
  // REQUIRES: all is counted.
  const Part& part() const;

 private:
  struct Waiting {
    std::string prefix;  // of what is hashed of each row
    std::unique_ptr<ReadView> view;
  };
  void Add(const Table& table, int64_t at_micros);
  void EndSchema();
  void Open();
  void EndRow();

  Part part_;
  std::string schema_;
  DigestHash hash_;
  std::vector<Waiting> tables_;  // the last one is next
  std::unique_ptr<Scan> scan_;   // of that one; null: it is not begun
  bool in_row_{false};
};

}  // namespace cellar
