// ScatterRows: a CROWS whose rows lie on several sets. Each set is asked for its rows, all beside
// each other, and their maps are put together in the order in which the rows were named.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands/cluster/scatter_task.h"

namespace cellar {

class ScatterRows final : public ScatterTask {
 public:
  // `keys`: of the rows, encoded, in their order; the words have them from `first_word` on.
  ScatterRows(const CommandContext& ctx, const Table& table, std::vector<std::string> keys,
              size_t first_word, size_t reply_bytes_max);

  bool Streams() const override { return delivering_; }
  char FirstByte() const override { return '*'; }
  size_t reply_bytes() const override { return bytes_; }

 private:
  static constexpr size_t kNoPart{SIZE_MAX};
  struct Row {
    std::string key;
    bool asked{false};
    size_t part{kNoPart};  // of parts_: where its map is
    size_t begin{0};
    size_t end{0};
  };
  struct Asked {
    uint64_t ticket;
    std::vector<size_t> rows;
  };

  TaskProgress Advance(TaskContext& context) override;
  // False: some rows are nobody's by the map.
  bool AskForRest();
  void AskFor(uint64_t set, KeyRangeSet tablets, std::vector<size_t> rows);
  // False: it has failed. *moved: the rows of one are to be asked for anew.
  bool TakeAnswers(TaskContext& context, bool* moved);
  bool TakeMaps(const Asked& asked, std::string reply);
  TaskProgress Deliver(TaskContext& context);

  const size_t first_word_;
  const size_t reply_bytes_max_;
  std::vector<Row> rows_;
  size_t left_;  // rows that have not come
  std::vector<Asked> asked_;
  std::vector<std::string> parts_;
  size_t bytes_{0};  // of their maps
  bool delivering_{false};
  size_t delivered_{0};  // rows
};

}  // namespace cellar
