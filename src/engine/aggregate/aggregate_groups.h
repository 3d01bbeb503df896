// AggregateGroups: the groups of a CAGG by their keys, each with its accumulators.
//
//   table    hash u32 and place u32 of a group, open addressing
//   arena    blocks of memory, in which groups lie one behind the other:
//              | key bytes u31, filled u1 | float32 mask u32 | accumulators | key, up to 8 bytes |
//
// The mask has a bit for each term whose value was an f32 when the group was made, so that it is
// shown with the digits of one. A group that FILL has added has no accumulators: in their place
// stands the group whose results are its own, or null. What it all takes is counted to the byte and
// asked for by memory_bytes().
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/status.h"
#include "engine/aggregate/accumulator.h"
#include "engine/aggregate/aggregate_plan.h"

namespace cellar {

// One group; the address stays.
class AggregateGroup {
 public:
  static constexpr size_t kHeaderBytes{8};

  std::string_view key(const AggregatePlan& plan) const {
    return {memory() + kHeaderBytes + plan.accumulator_bytes, key_bytes_ & kKeyBytesMask};
  }
  bool filled() const { return (key_bytes_ & kFilled) != 0; }
  // Whose results it shows. REQUIRES: filled().
  const AggregateGroup* source() const {
    return *std::launder(reinterpret_cast<const AggregateGroup* const*>(memory() + kHeaderBytes));
  }
  uint32_t float32_mask() const { return float32_mask_; }
  char* accumulator(const PlannedReduce& reduce) { return memory() + kHeaderBytes + reduce.offset; }
  const char* accumulator(const PlannedReduce& reduce) const {
    return memory() + kHeaderBytes + reduce.offset;
  }

 private:
  friend class AggregateGroups;
  static constexpr uint32_t kFilled{uint32_t{1} << 31};
  static constexpr uint32_t kKeyBytesMask{kFilled - 1};
  AggregateGroup(uint32_t key_bytes, uint32_t float32_mask)
      : key_bytes_(key_bytes), float32_mask_(float32_mask) {}
  char* memory() { return reinterpret_cast<char*>(this); }
  const char* memory() const { return reinterpret_cast<const char*>(this); }

  uint32_t key_bytes_;
  uint32_t float32_mask_;
};
static_assert(sizeof(AggregateGroup) == AggregateGroup::kHeaderBytes);

class AggregateGroups {
 public:
  explicit AggregateGroups(const AggregatePlan& plan) : plan_(plan) {}  // outlives it
  ~AggregateGroups();
  AggregateGroups(const AggregateGroups&) = delete;
  AggregateGroups& operator=(const AggregateGroups&) = delete;

  // The group of that key; made if there is none yet.
  AggregateGroup& Find(std::string_view key, uint32_t float32_mask);
  // A group of no cells, of which Find does not know. `source` is not filled, and may be null.
  void AddFilled(std::string_view key, uint32_t float32_mask, const AggregateGroup* source);
  // Adds a cell, or a FoldRun of them, to what these of the plan's REDUCEs keep for a group. A cell
  // is skipped once, however many skip it: those that do skip the same ones.
  template <typename Cells>
  void Add(AggregateGroup* group, const std::vector<uint32_t>& takers, const Cells& cells) {
    uint64_t skipped_most = 0;
    for (const uint32_t taker : takers) {
      const PlannedReduce& reduce = plan_.reduces[taker];
      uint64_t skipped = 0;
      heap_bytes_ += AddToAccumulator(reduce, cells, group->accumulator(reduce), &skipped);
      skipped_most = std::max(skipped_most, skipped);
    }
    skipped_ += skipped_most;
  }
  // Takes `count` of the groups of another table of the same plan, from the *at-th on, into this
  // one; moves *at. True when there are no more.
  bool Merge(const AggregateGroups& other, size_t* at, size_t count);

  // A part of them for another node: groups from the *at-th on, about `bytes` of them; moves *at.
  //   key b, mask of f32s u32, accumulators
  // REQUIRES: none is filled.
  void Encode(size_t bytes, size_t* at, std::string* to) const;
  // Merges that into this one. False: these are no bytes of groups of this plan.
  [[nodiscard]] bool Decode(std::string_view from);
  void AddSkipped(uint64_t cells) { skipped_ += cells; }

  size_t size() const { return groups_.size(); }
  // In the order in which they were made.
  const std::vector<AggregateGroup*>& all() const { return groups_; }
  size_t memory_bytes() const { return memory_bytes_ + heap_bytes_; }
  // Cells that a REDUCE has left out since they are no numbers.
  uint64_t skipped() const { return skipped_; }
  // A cell was met that belongs to no group: there is no answer. The first one stays.
  void Refuse(Status refusal) {
    if (refusal_.ok()) refusal_ = std::move(refusal);
  }
  const Status& refusal() const { return refusal_; }

 private:
  struct Slot {
    uint32_t hash{0};
    uint32_t place{0};  // in groups_, from 1; 0: free
  };
  char* Allocate(size_t key_bytes);
  AggregateGroup* Make(std::string_view key, uint32_t float32_mask);
  void GrowTable();
  void Count() {
    memory_bytes_ =
        arena_bytes_ + slots_.capacity() * sizeof(Slot) + groups_.capacity() * sizeof(void*);
  }

  const AggregatePlan& plan_;
  std::vector<Slot> slots_;
  std::vector<AggregateGroup*> groups_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_left_{0};
  char* block_at_{nullptr};
  size_t arena_bytes_{0};
  size_t memory_bytes_{0};
  size_t heap_bytes_{0};
  uint64_t skipped_{0};
  Status refusal_;
};

}  // namespace cellar
