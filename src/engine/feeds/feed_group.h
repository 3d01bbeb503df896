// FeedGroups: consumer groups of feeds, as Redis' streams have them: how far each has been told of
// a feed, and which entries its consumers have not acknowledged yet.
//
//   group      last ............... the entry that was given out last
//     pending  id -> consumer, when it was given to it, how often
//     consumer name, when it was seen last, ids that are pending with it
//
// Groups are a part of the catalog. They change by mutations, kFeedGroup, whose bytes are a list of
// changes: what a command has decided, with its time, so that a replay reads no clock.
//
//   changes  | kind u8 | fields |  ...
//
//   kCreate        last                          the group
//   kDestroy       (nothing)                     and all that it knows
//   kSetLast       last
//   kAddConsumer   b name, v ms                  whom nobody knows yet
//   kDropConsumer  b name                        with what is pending with it
//   kDeliver       b name, v ms, v n { id }      to it for the first time; `last` moves on
//   kClaim         b name, v n { id, v ms, v times }    are pending with him, so
//   kForget        v n { id }                    are pending no more
//
//   id       | v ms | v n |
//
// In a cluster of several sets a feed has groups twice: those of the set's own part of it, f@n, by
// the feed's id, and at its home those of all of it (WholeFeedGroups), with ids of entries as all
// sets have them (merged_id.h).
//
// The entries themselves are nowhere here (store/history/feed_log.h). What a change costs is in
// proportion to itself; taking back a transaction costs what it has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/feeds/feed.h"

namespace cellar {

inline constexpr size_t kFeedGroupsMax{1'000};         // of a feed
inline constexpr size_t kFeedPendingMax{100'000};      // of a group
inline constexpr size_t kFeedConsumersMax{10'000};     // of a group
inline constexpr size_t kFeedGroupNameBytesMax{1024};  // of a group, of a consumer

inline constexpr uint64_t kWholeFeedBit{1ULL << 63};
// What FeedGroups calls the whole feed of that id.
constexpr uint64_t WholeFeedGroups(uint64_t feed_id) { return feed_id | kWholeFeedBit; }
constexpr uint64_t FeedOfGroups(uint64_t groups_id) { return groups_id & ~kWholeFeedBit; }

struct FeedConsumer {
  std::string name;
  // When it was seen last. What changes nothing else moves this in this server's memory alone.
  mutable int64_t seen_ms{0};
  std::set<FeedId> pending;
};

struct FeedPending {
  FeedConsumer* consumer{nullptr};
  int64_t delivered_ms{0};
  uint64_t times{0};
};

struct FeedGroup {
  std::string name;
  FeedId last;
  std::map<FeedId, FeedPending> pending;
  std::map<std::string, std::unique_ptr<FeedConsumer>, std::less<>> consumers;

  // Null if there is none.
  const FeedConsumer* FindConsumer(std::string_view consumer) const;
};

// Builds the bytes of kFeedGroup.
class FeedGroupChanges {
 public:
  // What a change begins with.
  enum class Kind : uint8_t {
    kCreate = 1,
    kDestroy = 2,
    kSetLast = 3,
    kAddConsumer = 4,
    kDropConsumer = 5,
    kDeliver = 6,
    kClaim = 7,
    kForget = 8,
  };
  // Of the first change, by which a command's are known. The bytes may be anything: so may it be.
  // REQUIRES: there are bytes.
  static Kind FirstOf(std::string_view bytes) { return static_cast<Kind>(bytes.front()); }

  bool empty() const { return bytes_.empty(); }
  const std::string& bytes() const { return bytes_; }

  void Create(const FeedId& last);
  void Destroy();
  void SetLast(const FeedId& last);
  void AddConsumer(std::string_view name, int64_t now_ms);
  void DropConsumer(std::string_view name);
  // Ascending.
  void Deliver(std::string_view consumer, int64_t now_ms, const std::vector<FeedId>& ids);
  struct Claimed {
    FeedId id;
    int64_t delivered_ms;
    uint64_t times;
  };
  void Claim(std::string_view consumer, const std::vector<Claimed>& claimed);
  void Forget(const std::vector<FeedId>& ids);
  void Append(const FeedGroupChanges& others) { bytes_ += others.bytes_; }

 private:
  std::string bytes_;
};

// A group as it is, in the form of changes that make it; `id_of`: what becomes of its ids, of which
// each is less than the next.
FeedGroupChanges ChangesOf(const FeedGroup& group,
                           const std::function<FeedId(const FeedId&)>& id_of);

class FeedGroups {
 public:
  using OfFeed = std::map<std::string, std::unique_ptr<FeedGroup>, std::less<>>;

  bool empty() const { return feeds_.empty(); }
  // Null if there is none.
  const FeedGroup* Find(uint64_t feed_id, std::string_view group) const;
  // Null: it has none.
  const OfFeed* Of(uint64_t feed_id) const;
  // About what they take.
  size_t bytes() const { return bytes_; }

  // Carries out the bytes of kFeedGroup. False: they cannot be so; those before the one at fault
  // have been carried out.
  [[nodiscard]] bool Apply(uint64_t feed_id, std::string_view group, std::string_view changes);
  void DropFeed(uint64_t feed_id);

  void BeginUndo() { undoing_ = true; }
  void RollBack();
  void ForgetUndo();

  void Encode(std::string* to) const;
  // `is_feed` tells of an id whether there is such a feed.
  [[nodiscard]] bool Decode(std::string_view* from, const std::function<bool(uint64_t)>& is_feed);

 private:
  // What one step back does. Pointers stay good: what is taken out is kept here.
  struct Undo {
    enum class Kind : uint8_t { kGroup, kNoGroup, kLast, kConsumer, kNoConsumer, kPending };
    Kind kind;
    uint64_t feed_id{0};
    FeedGroup* group{nullptr};
    FeedId id{};
    FeedPending pending{};                       // kPending: as it was; no consumer: it was not
    std::unique_ptr<FeedGroup> dropped_group{};  // kGroup
    std::unique_ptr<FeedConsumer> dropped_consumer{};  // kConsumer
    FeedConsumer* consumer{nullptr};                   // kNoConsumer
  };

  FeedGroup* FindToChange(uint64_t feed_id, std::string_view group);
  bool ApplyOne(uint64_t feed_id, std::string_view group, std::string_view* changes);
  bool ApplyDeliver(FeedGroup* group, std::string_view* changes);
  bool ApplyClaim(FeedGroup* group, std::string_view* changes);
  bool ApplyForget(FeedGroup* group, std::string_view* changes);
  void AddGroup(uint64_t feed_id, std::unique_ptr<FeedGroup> group);
  std::unique_ptr<FeedGroup> TakeGroup(uint64_t feed_id, std::string_view name);
  void SetLast(FeedGroup* group, const FeedId& last);
  FeedConsumer* AddConsumer(FeedGroup* group, std::unique_ptr<FeedConsumer> consumer);
  std::unique_ptr<FeedConsumer> TakeConsumer(FeedGroup* group, std::string_view name);
  void DropConsumer(FeedGroup* group, std::string_view name);
  // `now` without a consumer: it is pending no more.
  void SetPending(FeedGroup* group, const FeedId& id, const FeedPending& now);
  void StepBack(Undo* undo);

  std::map<uint64_t, OfFeed> feeds_;  // none without a group
  size_t bytes_{0};
  bool undoing_{false};
  std::vector<Undo> undo_;
};

}  // namespace cellar
