// The schema of a cluster of several sets, which all of them have: what changes it at set 0, and
// how another set takes that over.
//
//   set 0        Store::CommitSchema --- CatalogKeeper::Keep: one record with the change
//   another set  CatalogChanges::Apply: the same ops, and what the set owns of new tables
//
// Changes are numbered; each set has them in the order of numbers (cluster/catalog_agreement.h says
// when). Table ids are set 0's everywhere. What a set has of its own stays its own: the ids of its
// trees, the states of indexes, which it builds itself, and who owns what. Of a feed each set tells
// what is in its own log, from the record on with which it has taken the feed over; what becomes of
// tables set 0 tells alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/feeds/feed.h"
#include "engine/state/cluster_state.h"
#include "engine/state/cut_mark.h"

namespace cellar {

class Engine;
class FeedSet;
class Store;
struct Feed;
struct DecodedOp;

struct CatalogChange {
  // What a set owns of a table that is new.
  struct Part {
    uint64_t table_id{0};
    uint64_t set{0};
    std::string tablets;  // Tablets::Encode
    friend bool operator==(const Part&, const Part&) = default;
  };
  uint64_t number{0};
  std::string ops;  // of a mutation, without those of ownership
  std::vector<Part> parts;
  CutMark cut{};
  friend bool operator==(const CatalogChange&, const CatalogChange&) = default;
};

// v number, b ops, v count { v table id, v set, b tablets }, of a cut its mark
void EncodeCatalogChange(const CatalogChange& change, std::string* to);
// False if these are not the bytes of one and nothing else.
[[nodiscard]] bool DecodeCatalogChange(std::string_view from, CatalogChange* change);

// At set 0, where there are others.
class CatalogKeeper {
 public:
  virtual ~CatalogKeeper() = default;
  // Whether there are other sets: without them nothing is kept.
  virtual bool has_others() const = 0;
  // The sets that tablets of a new table go to, one for each. TOOLARGE: not all find room, as far
  // as is known of other sets here. O(tablets * sets), and those that there are
  virtual Result<std::vector<uint64_t>> Deal(size_t tablets) const = 0;
  // Whether another set owns all rows of the table as one tablet, by what is known of it here.
  virtual bool IsWholeElsewhere(uint64_t table_id) const = 0;
  // Notes the change until every set has it, by writes to `store` that become part of its record.
  // An error: the change is taken back. REQUIRES: a transaction.
  virtual Status Keep(Store& store, const CatalogChange& change) = 0;
  // Whether all sets know cuts, and snapshots of several sets, as far as is known.
  virtual bool KnowCuts() const = 0;
  // Likewise homes of feeds.
  virtual bool KnowHomes() const = 0;
  // The home of a new feed beside these: the set that is home to the fewest.
  virtual uint64_t NextHome(const FeedSet& feeds) const = 0;
};

// Nobody's commit time goes further ahead of its own clock because others say so: a clock that is
// wrong by more is not followed.
inline constexpr int64_t kAheadMicrosMax{24LL * 3600 * 1'000'000};

class CatalogChanges {
 public:
  explicit CatalogChanges(Store& store) : store_(store) {}

  // `keeper` outlives the store; null: none.
  static void SetKeeper(Store& store, CatalogKeeper* keeper);

  // The next change, as one record. CORRUPTION: it does not fit what is here. REQUIRES: a set other
  // than 0, of the number before; no transaction. `fits`: whether a cut is one moment of this set,
  // at the time that it says: no record has a later one, and no tablet is on its way from here.
  Status Apply(const CatalogChange& change, bool* fits);
  // At set 0: the next change, which `make` makes, is a cut; `make` null: it is nothing but that.
  // Its record gets the time of `mark`, which is later than all before. TRYAGAIN, ERR: not all
  // members know cuts; the errors of `make`. REQUIRES: a transaction.
  Status MakeCut(const CutMark& mark, const std::function<Status()>& make);
  // Whether no tablet is given away by the set and not yet known to be owned by another one.
  static bool NothingIsGiven(const Engine& engine);
  // The latest time that a record of this set has.
  int64_t last_commit_micros() const;
  // Logs that time has passed, by a record that says nothing new: no record behind it has an
  // earlier commit time than now. REQUIRES: the store does not follow; no transaction.
  Status LogQuiet(const Feed& feed);
  // TRYAGAIN, ERR: not all members know groups of whole feeds, and homes of them.
  Status CheckWholeGroups() const;
  // At set 0: the groups of all of the feed have another home from here on, or have come there.
  // TRYAGAIN, ERR: not all know of homes.
  Status MoveHome(const Feed& feed, const FeedHome& home);
  static Status HomesUnknown();
  // At the home: one of its groups has come, as ChangesOf says it. REQUIRES: as NoteArrived.
  Status TakeGroup(const Feed& feed, std::string_view group, std::string_view changes);
  // At the home: its groups have come. REQUIRES: the store does not follow; the home awaits them.
  Status NoteArrived(const Feed& feed);
  // Of a set that is about to be one of several: what was a group of a feed is one of all of it, at
  // this set, from here on. A record for each feed. TRYAGAIN, ERR: not all members know such
  // groups.
  Status MakeWhole();
  // The set becomes part of a cluster whose schema is `whole.ops`, of that number, and owns nothing
  // of it. Its own keyspaces, which are empty, go. ERR: it is part of one, or not empty.
  Status Join(const ClusterState& state, const CatalogChange& whole);
  // Why this set cannot join: a text that names what it has; empty: it can.
  static std::string WhatIsHere(const Engine& engine);
  // Of the ops of a part those that other sets carry out as well.
  static std::string OpsForOthers(std::string_view part);
  // All of the schema as ops on an empty store. TRYAGAIN: something in it is being made.
  static Result<std::string> Whole(const Engine& engine);

 private:
  // Adds the ops to the store's mutation, with what is this set's own; notes the tables.
  Status AddOps(std::string_view ops, std::vector<uint64_t>* tables);
  Result<std::string> OwnSchema(const DecodedOp& op);
  Result<std::string> OwnFeed(const DecodedOp& op) const;
  // Of a table that is to have that schema: the set's tablets part no rows that belong together.
  Status KeepTogether(uint64_t table_id, std::string_view encoded);
  // What concerns snapshots and copies; of others nothing is done, and *taken is false.
  Status AddSnapshotOp(const DecodedOp& op, bool* taken);
  void RaiseCommitTime(int64_t micros);
  enum class Of : uint8_t { kSchema, kGroup };
  // Applies and logs what was added; an op that cannot be carried out, or a state that `fits` says
  // is none, takes all of it back.
  Status Carry(Of of = Of::kSchema, const std::function<bool()>& fits = nullptr);
  void Begin(const std::vector<uint64_t>& tables, std::string_view ops);

  Store& store_;
  uint64_t tree_id_next_{0};  // of the change at hand
};

}  // namespace cellar
