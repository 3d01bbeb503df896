// See feed_group.h.
#include "engine/feeds/feed_group.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {
namespace {

using Change = FeedGroupChanges::Kind;

// Nodes of the trees with what they hold, and what the allocator adds.
constexpr size_t kPendingBytes{160};
constexpr size_t kConsumerBytes{256};
constexpr size_t kGroupBytes{320};

size_t BytesOf(const FeedConsumer& consumer) { return kConsumerBytes + 2 * consumer.name.size(); }
size_t BytesOf(const FeedGroup& group) {
  size_t bytes = kGroupBytes + 2 * group.name.size() + kPendingBytes * group.pending.size();
  for (const auto& [name, consumer] : group.consumers) bytes += BytesOf(*consumer);
  return bytes;
}

void PutKind(std::string* to, Change change) { to->push_back(static_cast<char>(change)); }

void PutId(std::string* to, const FeedId& id) {
  PutVarint64(to, id.ms);
  PutVarint64(to, id.n);
}

bool GetId(std::string_view* from, FeedId* id) {
  return GetVarint64(from, &id->ms) && GetVarint64(from, &id->n);
}

void PutMs(std::string* to, int64_t ms) { PutVarint64(to, static_cast<uint64_t>(ms)); }

bool GetMs(std::string_view* from, int64_t* ms) {
  uint64_t value = 0;
  if (!GetVarint64(from, &value) || value > INT64_MAX) return false;
  *ms = static_cast<int64_t>(value);
  return true;
}

bool IsGroupName(std::string_view name) { return name.size() <= kFeedGroupNameBytesMax; }

}  // namespace

const FeedConsumer* FeedGroup::FindConsumer(std::string_view consumer) const {
  const auto found = consumers.find(consumer);
  return found == consumers.end() ? nullptr : found->second.get();
}

// --- changes as bytes

void FeedGroupChanges::Create(const FeedId& last) {
  PutKind(&bytes_, Change::kCreate);
  PutId(&bytes_, last);
}

void FeedGroupChanges::Destroy() { PutKind(&bytes_, Change::kDestroy); }

void FeedGroupChanges::SetLast(const FeedId& last) {
  PutKind(&bytes_, Change::kSetLast);
  PutId(&bytes_, last);
}

void FeedGroupChanges::AddConsumer(std::string_view name, int64_t now_ms) {
  PutKind(&bytes_, Change::kAddConsumer);
  PutLengthPrefixed(&bytes_, name);
  PutMs(&bytes_, now_ms);
}

void FeedGroupChanges::DropConsumer(std::string_view name) {
  PutKind(&bytes_, Change::kDropConsumer);
  PutLengthPrefixed(&bytes_, name);
}

void FeedGroupChanges::Deliver(std::string_view consumer, int64_t now_ms,
                               const std::vector<FeedId>& ids) {
  CELLAR_ASSERT(!ids.empty());
  PutKind(&bytes_, Change::kDeliver);
  PutLengthPrefixed(&bytes_, consumer);
  PutMs(&bytes_, now_ms);
  PutVarint64(&bytes_, ids.size());
  for (const FeedId& id : ids) PutId(&bytes_, id);
}

void FeedGroupChanges::Claim(std::string_view consumer, const std::vector<Claimed>& claimed) {
  CELLAR_ASSERT(!claimed.empty());
  PutKind(&bytes_, Change::kClaim);
  PutLengthPrefixed(&bytes_, consumer);
  PutVarint64(&bytes_, claimed.size());
  for (const Claimed& one : claimed) {
    PutId(&bytes_, one.id);
    PutMs(&bytes_, one.delivered_ms);
    PutVarint64(&bytes_, one.times);
  }
}

void FeedGroupChanges::Forget(const std::vector<FeedId>& ids) {
  CELLAR_ASSERT(!ids.empty());
  PutKind(&bytes_, Change::kForget);
  PutVarint64(&bytes_, ids.size());
  for (const FeedId& id : ids) PutId(&bytes_, id);
}

// --- groups

const FeedGroups::OfFeed* FeedGroups::Of(uint64_t feed_id) const {
  const auto found = feeds_.find(feed_id);
  return found == feeds_.end() ? nullptr : &found->second;
}

const FeedGroup* FeedGroups::Find(uint64_t feed_id, std::string_view group) const {
  const OfFeed* groups = Of(feed_id);
  if (groups == nullptr) return nullptr;
  const auto found = groups->find(group);
  return found == groups->end() ? nullptr : found->second.get();
}

FeedGroup* FeedGroups::FindToChange(uint64_t feed_id, std::string_view group) {
  return const_cast<FeedGroup*>(std::as_const(*this).Find(feed_id, group));
}

bool FeedGroups::Apply(uint64_t feed_id, std::string_view group, std::string_view changes) {
  if (changes.empty()) return false;
  while (!changes.empty()) {
    if (!ApplyOne(feed_id, group, &changes)) return false;
  }
  return true;
}

// The change comes out of a log, so nothing in it is taken for granted: only kCreate may find no
// group, and every other kind needs one. While undoing_ is set each change notes how it is taken
// back.
bool FeedGroups::ApplyOne(uint64_t feed_id, std::string_view name, std::string_view* changes) {
  const auto kind = static_cast<Change>(changes->front());
  changes->remove_prefix(1);
  FeedGroup* group = FindToChange(feed_id, name);
  if ((group == nullptr) != (kind == Change::kCreate)) return false;
  FeedId id;
  std::string_view consumer;
  int64_t ms = 0;
  switch (kind) {
    case Change::kCreate: {
      if (!GetId(changes, &id) || !IsGroupName(name)) return false;
      auto created = std::make_unique<FeedGroup>();
      created->name = name;
      created->last = id;
      FeedGroup* const added = created.get();
      AddGroup(feed_id, std::move(created));
      if (undoing_) {
        undo_.push_back({.kind = Undo::Kind::kNoGroup, .feed_id = feed_id, .group = added});
      }
      return true;
    }
    case Change::kDestroy: {
      std::unique_ptr<FeedGroup> dropped = TakeGroup(feed_id, name);
      if (undoing_) {
        undo_.push_back(
            {.kind = Undo::Kind::kGroup, .feed_id = feed_id, .dropped_group = std::move(dropped)});
      }
      return true;
    }
    case Change::kSetLast:
      if (!GetId(changes, &id)) return false;
      SetLast(group, id);
      return true;
    case Change::kAddConsumer: {
      if (!GetLengthPrefixed(changes, &consumer) || !GetMs(changes, &ms)) return false;
      if (!IsGroupName(consumer) || group->consumers.contains(consumer)) return false;
      auto added = std::make_unique<FeedConsumer>();
      added->name = consumer;
      added->seen_ms = ms;
      FeedConsumer* const there = AddConsumer(group, std::move(added));
      if (undoing_) {
        undo_.push_back({.kind = Undo::Kind::kNoConsumer, .group = group, .consumer = there});
      }
      return true;
    }
    case Change::kDropConsumer:
      if (!GetLengthPrefixed(changes, &consumer)) return false;
      if (!group->consumers.contains(consumer)) return false;
      DropConsumer(group, consumer);
      return true;
    case Change::kDeliver:
      return ApplyDeliver(group, changes);
    case Change::kClaim:
      return ApplyClaim(group, changes);
    case Change::kForget:
      return ApplyForget(group, changes);
  }
  return false;
}

// An entry that is delivered again changes its consumer; the group's last id never goes back by
// that.
bool FeedGroups::ApplyDeliver(FeedGroup* group, std::string_view* changes) {
  std::string_view name;
  int64_t ms = 0;
  uint64_t count = 0;
  if (!GetLengthPrefixed(changes, &name) || !GetMs(changes, &ms) || !GetVarint64(changes, &count))
    return false;
  const auto consumer = group->consumers.find(name);
  if (consumer == group->consumers.end()) return false;
  consumer->second->seen_ms = std::max(consumer->second->seen_ms, ms);
  FeedId last = group->last;
  for (uint64_t i = 0; i < count; ++i) {
    FeedId id;
    if (!GetId(changes, &id)) return false;
    SetPending(group, id, {.consumer = consumer->second.get(), .delivered_ms = ms, .times = 1});
    last = std::max(last, id);
  }
  SetLast(group, last);
  return true;
}

bool FeedGroups::ApplyClaim(FeedGroup* group, std::string_view* changes) {
  std::string_view name;
  uint64_t count = 0;
  if (!GetLengthPrefixed(changes, &name) || !GetVarint64(changes, &count)) return false;
  const auto consumer = group->consumers.find(name);
  if (consumer == group->consumers.end()) return false;
  for (uint64_t i = 0; i < count; ++i) {
    FeedId id;
    FeedPending now{.consumer = consumer->second.get()};
    if (!GetId(changes, &id) || !GetMs(changes, &now.delivered_ms) ||
        !GetVarint64(changes, &now.times)) {
      return false;
    }
    SetPending(group, id, now);
  }
  return true;
}

bool FeedGroups::ApplyForget(FeedGroup* group, std::string_view* changes) {
  uint64_t count = 0;
  if (!GetVarint64(changes, &count)) return false;
  for (uint64_t i = 0; i < count; ++i) {
    FeedId id;
    if (!GetId(changes, &id)) return false;
    SetPending(group, id, {});
  }
  return true;
}

void FeedGroups::DropFeed(uint64_t feed_id) {
  const auto found = feeds_.find(feed_id);
  if (found == feeds_.end()) return;
  std::vector<std::string> names;
  for (const auto& [name, group] : found->second) names.push_back(name);
  for (const std::string& name : names) {
    std::unique_ptr<FeedGroup> dropped = TakeGroup(feed_id, name);
    if (!undoing_) continue;
    undo_.push_back(
        {.kind = Undo::Kind::kGroup, .feed_id = feed_id, .dropped_group = std::move(dropped)});
  }
}

// --- what changes consist of

void FeedGroups::AddGroup(uint64_t feed_id, std::unique_ptr<FeedGroup> group) {
  bytes_ += BytesOf(*group);
  const std::string name = group->name;
  const bool added = feeds_[feed_id].emplace(name, std::move(group)).second;
  CELLAR_ASSERT(added);
}

std::unique_ptr<FeedGroup> FeedGroups::TakeGroup(uint64_t feed_id, std::string_view name) {
  const auto feed = feeds_.find(feed_id);
  CELLAR_ASSERT(feed != feeds_.end());
  const auto found = feed->second.find(name);
  CELLAR_ASSERT(found != feed->second.end());
  std::unique_ptr<FeedGroup> group = std::move(found->second);
  feed->second.erase(found);
  if (feed->second.empty()) feeds_.erase(feed);
  bytes_ -= BytesOf(*group);
  return group;
}

void FeedGroups::SetLast(FeedGroup* group, const FeedId& last) {
  if (group->last == last) return;
  if (undoing_) undo_.push_back({.kind = Undo::Kind::kLast, .group = group, .id = group->last});
  group->last = last;
}

FeedConsumer* FeedGroups::AddConsumer(FeedGroup* group, std::unique_ptr<FeedConsumer> consumer) {
  bytes_ += BytesOf(*consumer);
  const std::string name = consumer->name;
  const auto [at, added] = group->consumers.emplace(name, std::move(consumer));
  CELLAR_ASSERT(added);
  return at->second.get();
}

std::unique_ptr<FeedConsumer> FeedGroups::TakeConsumer(FeedGroup* group, std::string_view name) {
  const auto found = group->consumers.find(name);
  CELLAR_ASSERT(found != group->consumers.end());
  CELLAR_ASSERT(found->second->pending.empty());
  std::unique_ptr<FeedConsumer> consumer = std::move(found->second);
  group->consumers.erase(found);
  bytes_ -= BytesOf(*consumer);
  return consumer;
}

// What the consumer had pending goes first, entry by entry, so that undo puts all of it back.
void FeedGroups::DropConsumer(FeedGroup* group, std::string_view name) {
  const auto found = group->consumers.find(name);
  const std::set<FeedId> pending = found->second->pending;
  for (const FeedId& id : pending) SetPending(group, id, {});
  std::unique_ptr<FeedConsumer> dropped = TakeConsumer(group, name);
  if (!undoing_) return;
  undo_.push_back(
      {.kind = Undo::Kind::kConsumer, .group = group, .dropped_consumer = std::move(dropped)});
}

// The one place where entries become pending, change hands, or are no longer pending (`now` without
// a consumer). Each stands twice, in the group and with its consumer, and both change here.
void FeedGroups::SetPending(FeedGroup* group, const FeedId& id, const FeedPending& now) {
  const auto found = group->pending.find(id);
  const FeedPending was = found == group->pending.end() ? FeedPending{} : found->second;
  if (was.consumer == nullptr && now.consumer == nullptr) return;
  if (undoing_) {
    undo_.push_back({.kind = Undo::Kind::kPending, .group = group, .id = id, .pending = was});
  }
  if (was.consumer != nullptr && was.consumer != now.consumer) was.consumer->pending.erase(id);
  if (now.consumer == nullptr) {
    group->pending.erase(found);
    bytes_ -= kPendingBytes;
    return;
  }
  if (was.consumer != now.consumer) now.consumer->pending.insert(id);
  if (was.consumer == nullptr) {
    group->pending.emplace(id, now);
    bytes_ += kPendingBytes;
  } else {
    found->second = now;
  }
}

// --- undo

// Undo of one step by the same functions that make steps: undoing_ is off by now, so nothing is
// noted.
void FeedGroups::StepBack(Undo* undo) {
  switch (undo->kind) {
    case Undo::Kind::kGroup:
      return AddGroup(undo->feed_id, std::move(undo->dropped_group));
    case Undo::Kind::kNoGroup: {
      const std::string name = undo->group->name;
      (void)TakeGroup(undo->feed_id, name);
      return;
    }
    case Undo::Kind::kLast:
      return SetLast(undo->group, undo->id);
    case Undo::Kind::kConsumer:
      (void)AddConsumer(undo->group, std::move(undo->dropped_consumer));
      return;
    case Undo::Kind::kNoConsumer: {
      const std::string name = undo->consumer->name;
      (void)TakeConsumer(undo->group, name);
      return;
    }
    case Undo::Kind::kPending:
      return SetPending(undo->group, undo->id, undo->pending);
  }
}

void FeedGroups::RollBack() {
  undoing_ = false;
  for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) StepBack(&*undo);
  undo_.clear();
}

void FeedGroups::ForgetUndo() {
  undoing_ = false;
  undo_.clear();
}

// --- catalog

namespace {

// A consumer with what is pending with it; times and counts stand in the group.
void EncodeConsumer(const FeedGroup& group, const FeedConsumer& consumer, std::string* to) {
  PutLengthPrefixed(to, consumer.name);
  PutMs(to, consumer.seen_ms);
  PutVarint64(to, consumer.pending.size());
  for (const FeedId& id : consumer.pending) {
    const auto pending = group.pending.find(id);
    CELLAR_ASSERT(pending != group.pending.end());
    PutId(to, id);
    PutMs(to, pending->second.delivered_ms);
    PutVarint64(to, pending->second.times);
  }
}

}  // namespace

// groups  | v feeds { v id, v groups { b name, last, v consumers { b name, v seen,
//         | v pending { id, v ms, v times } } } } |
void FeedGroups::Encode(std::string* to) const {
  PutVarint64(to, feeds_.size());
  for (const auto& [feed_id, groups] : feeds_) {
    PutVarint64(to, feed_id);
    PutVarint64(to, groups.size());
    for (const auto& [name, group] : groups) {
      PutLengthPrefixed(to, name);
      PutId(to, group->last);
      PutVarint64(to, group->consumers.size());
      for (const auto& [consumer_name, consumer] : group->consumers)
        EncodeConsumer(*group, *consumer, to);
    }
  }
}

namespace {

// As it stands in a catalog, in the form of changes that make it.
bool DecodeGroup(std::string_view* from, std::string* name, FeedGroupChanges* changes) {
  std::string_view group;
  FeedId last;
  uint64_t consumers = 0;
  if (!GetLengthPrefixed(from, &group) || !GetId(from, &last) || !GetVarint64(from, &consumers))
    return false;
  *name = group;
  changes->Create(last);
  for (uint64_t i = 0; i < consumers; ++i) {
    std::string_view consumer;
    int64_t seen_ms = 0;
    uint64_t pending = 0;
    if (!GetLengthPrefixed(from, &consumer) || !GetMs(from, &seen_ms) ||
        !GetVarint64(from, &pending)) {
      return false;
    }
    changes->AddConsumer(consumer, seen_ms);
    std::vector<FeedGroupChanges::Claimed> claimed;
    for (uint64_t j = 0; j < pending; ++j) {
      FeedGroupChanges::Claimed one{};
      if (!GetId(from, &one.id) || !GetMs(from, &one.delivered_ms) ||
          !GetVarint64(from, &one.times)) {
        return false;
      }
      claimed.push_back(one);
    }
    if (!claimed.empty()) changes->Claim(consumer, claimed);
  }
  return true;
}

}  // namespace

FeedGroupChanges ChangesOf(const FeedGroup& group,
                           const std::function<FeedId(const FeedId&)>& id_of) {
  FeedGroupChanges changes;
  changes.Create(id_of(group.last));
  for (const auto& [name, consumer] : group.consumers) {
    changes.AddConsumer(name, consumer->seen_ms);
    std::vector<FeedGroupChanges::Claimed> claimed;
    for (const FeedId& id : consumer->pending) {
      const FeedPending& pending = group.pending.at(id);
      claimed.push_back({id_of(id), pending.delivered_ms, pending.times});
    }
    if (!claimed.empty()) changes.Claim(name, claimed);
  }
  return changes;
}

bool FeedGroups::Decode(std::string_view* from, const std::function<bool(uint64_t)>& is_feed) {
  CELLAR_ASSERT(!undoing_);
  uint64_t feeds = 0;
  if (!GetVarint64(from, &feeds)) return false;
  for (uint64_t i = 0; i < feeds; ++i) {
    uint64_t feed_id = 0;
    uint64_t groups = 0;
    if (!GetVarint64(from, &feed_id) || !GetVarint64(from, &groups) ||
        !is_feed(FeedOfGroups(feed_id)))
      return false;
    for (uint64_t j = 0; j < groups; ++j) {
      std::string name;
      FeedGroupChanges changes;
      if (!DecodeGroup(from, &name, &changes) || !Apply(feed_id, name, changes.bytes()))
        return false;
    }
  }
  return true;
}

}  // namespace cellar
