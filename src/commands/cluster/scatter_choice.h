// ScatterChoice: which rows of all sets a command is about, where no set can say that of its own:
// EACH, whose groups lie on several sets, and the first rows of an index (CUPDATE ... LIMIT).
//
//   set 0   ber|r7   ham|r2   ulm|r9 ...
//   set 1   bon|r1   ham|r5   ...            chosen   r7 r1 r2 ...   (EACH 1 1: r5 is one too many)
//
// Each set lists the rows that it would give (CallPiece::lists_rows), as pages of keys; they are
// merged by their places, counted, and handed over a batch at a time. Whoever asks does the
// command's work with these rows alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "commands/cluster/scatter_task.h"
#include "engine/request/read_options.h"
#include "engine/table/index_entry.h"

namespace cellar {

class ScatterChoice {
 public:
  struct Plan {
    KeyRangeSet rows;  // in which all of them lie
    bool reverse{false};
    std::optional<EachOptions> each;
    std::optional<IndexOrder> index;  // none: in the order of keys
    bool once{false};                 // a row that an index names twice is the first of its places
    uint64_t seed{0};
  };
  explicit ScatterChoice(Plan plan);

  enum class Came : uint8_t { kWaits, kGoesOn, kChosen, kFailed };
  // Goes on until there are so many rows, or no more. What `task` has failed with is told; it waits
  // for its turns and answers. kGoesOn: the budget is spent.
  Came Choose(ScatterTask& task, TaskContext& context, uint64_t rows_max);
  // After kChosen: these, and the next ones are looked for. Rows that an index names twice are
  // never in one batch.
  KeyRangeSet TakeRows();
  uint64_t chosen() const { return chosen_.size(); }
  // All rows have been chosen.
  bool ended() const { return ended_; }
  // All that it chooses from.
  const KeyRangeSet& rows() const { return plan_.rows; }
  size_t memory_bytes() const;

 private:
  struct Place {
    std::string key;
    size_t front_bytes;
  };
  // Rows of one set, in order.
  struct Stream {
    uint64_t set{0};
    KeyRangeSet rows;
    std::string cursor{"0"};
    bool ended{false};
    std::optional<uint64_t> ticket;
    std::vector<Place> places;
    size_t next{0};

    bool has_row() const { return next < places.size(); }
  };
  struct Rest {
    KeyRangeSet rows;
    std::string cursor;
  };

  bool OpenStreams(ScatterTask& task);
  void Ask(ScatterTask& task, Stream* stream, uint64_t rows_max);
  // False: it has failed.
  bool TakeAnswers(ScatterTask& task, TaskContext& context, bool* moved);
  static bool TakePart(Stream* stream, std::string_view reply);
  Stream* FindNext();
  // False: the row begins the next batch.
  bool TakeRow(Stream* stream);
  bool CountInGroup(const Place& place);

  const Plan plan_;
  std::vector<Rest> rests_;  // to be divided
  std::vector<Stream> streams_;
  std::string group_front_;
  uint64_t group_rows_{0};
  std::vector<std::string> chosen_;  // keys of rows
  size_t chosen_bytes_{0};
  std::unordered_set<std::string> met_;  // of these, or with `once` of all
  size_t met_bytes_{0};
  bool ended_{false};
};

}  // namespace cellar
