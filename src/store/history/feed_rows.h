// FeedRows: with ENTRIES ROW, which entry tells of a row in the step at hand, and how many changes
// it has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

namespace cellar {

class FeedRows {
 public:
  struct Row {
    bool wanted{false};  // by who reads
    size_t entry{0};     // its index, if so
    uint64_t changes{0};
  };
  // So many changes of a step are told together at most: then all rows begin another entry.
  static constexpr uint64_t kChangesMax{100'000};

  // Of one more change; with no changes before it is a row that is met first.
  Row& Of(std::string_view table, std::string_view row) {
    ++changes_;
    key_.assign(table).push_back('\0');  // which no name has
    return rows_[key_.append(row)];
  }
  uint64_t changes() const { return changes_; }
  const std::unordered_map<std::string, Row>& all() const { return rows_; }
  void Clear() {
    rows_.clear();
    changes_ = 0;
  }

 private:
  std::unordered_map<std::string, Row> rows_;
  uint64_t changes_{0};
  std::string key_;
};

}  // namespace cellar
