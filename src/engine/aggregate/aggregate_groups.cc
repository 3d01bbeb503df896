// See aggregate_groups.h.
#include "engine/aggregate/aggregate_groups.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {
namespace {

constexpr size_t kBlockBytesFirst{1024};
constexpr size_t kBlockBytesMax{256 * 1024};
constexpr size_t kSlotsFirst{16};

}  // namespace

AggregateGroups::~AggregateGroups() {
  for (AggregateGroup* group : groups_) {
    if (group->filled()) continue;
    for (const PlannedReduce& reduce : plan_.reduces)
      EndAccumulator(reduce, group->accumulator(reduce));
  }
}

char* AggregateGroups::Allocate(size_t key_bytes) {
  CELLAR_ASSERT(key_bytes <= AggregateGroup::kKeyBytesMask);
  const size_t bytes =
      (AggregateGroup::kHeaderBytes + plan_.accumulator_bytes + key_bytes + 7) / 8 * 8;
  if (bytes > block_left_) {
    size_t block = std::clamp(arena_bytes_ / 8, kBlockBytesFirst, kBlockBytesMax);
    block = std::max(block, bytes);
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block));
    block_at_ = blocks_.back().get();
    block_left_ = block;
    arena_bytes_ += block;
  }
  block_left_ -= bytes;
  return std::exchange(block_at_, block_at_ + bytes);
}

AggregateGroup* AggregateGroups::Make(std::string_view key, uint32_t float32_mask) {
  char* const at = Allocate(key.size());
  auto* group = new (at) AggregateGroup(static_cast<uint32_t>(key.size()), float32_mask);
  if (!key.empty())
    std::memcpy(at + AggregateGroup::kHeaderBytes + plan_.accumulator_bytes, key.data(),
                key.size());
  for (const PlannedReduce& reduce : plan_.reduces)
    heap_bytes_ += BeginAccumulator(reduce, group->accumulator(reduce));
  groups_.push_back(group);
  Count();
  return group;
}

void AggregateGroups::AddFilled(std::string_view key, uint32_t float32_mask,
                                const AggregateGroup* source) {
  CELLAR_ASSERT(source == nullptr || !source->filled());
  CELLAR_ASSERT(plan_.accumulator_bytes >= sizeof(void*));
  char* const at = Allocate(key.size());
  auto* group = new (at)
      AggregateGroup(static_cast<uint32_t>(key.size()) | AggregateGroup::kFilled, float32_mask);
  new (at + AggregateGroup::kHeaderBytes) const AggregateGroup*(source);
  std::memcpy(at + AggregateGroup::kHeaderBytes + plan_.accumulator_bytes, key.data(), key.size());
  groups_.push_back(group);
  Count();
}

void AggregateGroups::GrowTable() {
  std::vector<Slot> old(std::max(kSlotsFirst, 2 * slots_.size()));
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.place == 0) continue;
    size_t at = slot.hash & mask;
    while (slots_[at].place != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

AggregateGroup& AggregateGroups::Find(std::string_view key, uint32_t float32_mask) {
  if (3 * (groups_.size() + 1) > 2 * slots_.size()) GrowTable();
  const auto hash = static_cast<uint32_t>(XXH3_64bits(key.data(), key.size()));
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  for (; slots_[at].place != 0; at = (at + 1) & mask) {
    if (slots_[at].hash != hash) continue;
    AggregateGroup* const group = groups_[slots_[at].place - 1];
    if (group->key(plan_) == key) return *group;
  }
  CELLAR_ASSERT(groups_.size() < UINT32_MAX);
  AggregateGroup* const group = Make(key, float32_mask);
  slots_[at] = {hash, static_cast<uint32_t>(groups_.size())};
  return *group;
}

void AggregateGroups::Encode(size_t bytes, size_t* at, std::string* to) const {
  const size_t begin = to->size();
  for (; *at < groups_.size() && to->size() - begin < bytes; ++*at) {
    const AggregateGroup* const group = groups_[*at];
    CELLAR_ASSERT(!group->filled());
    PutLengthPrefixed(to, group->key(plan_));
    PutFixed32(to, group->float32_mask());
    for (const PlannedReduce& reduce : plan_.reduces)
      EncodeAccumulator(reduce, group->accumulator(reduce), to);
  }
}

bool AggregateGroups::Decode(std::string_view from) {
  // In words, so that they are aligned as in a group.
  std::vector<uint64_t> scratch(plan_.accumulator_bytes / sizeof(uint64_t) + 1);
  bool well = true;
  while (well && !from.empty()) {
    std::string_view key;
    uint32_t mask = 0;
    if (!GetLengthPrefixed(&from, &key) || key.size() > AggregateGroup::kKeyBytesMask ||
        !GetFixed32(&from, &mask))
      return false;
    AggregateGroup& group = Find(key, mask);
    for (const PlannedReduce& reduce : plan_.reduces) {
      char* const part = reinterpret_cast<char*>(scratch.data());
      (void)BeginAccumulator(reduce, part);
      well = well && DecodeAccumulator(reduce, &from, part);
      if (well) heap_bytes_ += MergeAccumulator(reduce, part, group.accumulator(reduce));
      EndAccumulator(reduce, part);
    }
  }
  return well;
}

bool AggregateGroups::Merge(const AggregateGroups& other, size_t* at, size_t count) {
  if (*at == 0) skipped_ += other.skipped_;
  const size_t left = other.groups_.size() - *at;
  const size_t end = *at + std::min(left, count);
  for (; *at < end; ++*at) {
    const AggregateGroup* from = other.groups_[*at];
    AggregateGroup& group = Find(from->key(plan_), from->float32_mask());
    for (const PlannedReduce& reduce : plan_.reduces)
      heap_bytes_ += MergeAccumulator(reduce, from->accumulator(reduce), group.accumulator(reduce));
  }
  return end == other.groups_.size();
}

}  // namespace cellar
