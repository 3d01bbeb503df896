// VersionWalk: which versions of a column live. The one place that says so; whoever goes over
// versions (reads, folds, writes, indexes, the sweeper, feeds) asks it.
//
//   column | newest | ... | oldest |     rank counts all stored versions, those that are dropped
//            rank 1   2 ..   n           too, so a column is always walked from its newest
//
// A version is dropped when its family's policy drops its rank at its age, or when its own expiry
// has come. Behind a rank that goes whatever its age nothing lives (Fate::kAllDropped); an age
// says nothing of what stands behind it: timestamp 0 has none.
//
// What stands in a tree is a cell. Records and files are checked before anything of them is applied
// (mutation_check.h), so an entry that cannot be read is this process gone wrong. It ends then, in
// every build: stepping over the entry would be a wrong answer.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "base/inline.h"
#include "btree/btree.h"
#include "engine/keys/cell.h"
#include "engine/keys/timestamp.h"
#include "engine/schema/retention.h"
#include "engine/schema/schema.h"

namespace cellar {

// --- reading what stands in a tree

// Of an entry's key, what comes behind its column.
CELLAR_INLINE int64_t StoredTimestamp(std::string_view version) {
  int64_t timestamp = 0;
  const bool is_timestamp = LoadTimestamp(version, &timestamp);
  CELLAR_ASSERT(is_timestamp);
  return timestamp;
}

// As DecodeCellValue and DecodeCellHead.
CELLAR_INLINE void ReadStoredCell(std::string_view value, PlainValue* plain, CellValue* cell) {
  const bool is_cell = DecodeCellValue(value, plain, cell);
  CELLAR_ASSERT(is_cell);
}
CELLAR_INLINE void ReadStoredHead(std::string_view value, CellValue* cell) {
  const bool is_cell = DecodeCellHead(value, cell);
  CELLAR_ASSERT(is_cell);
}

// --- what lives

enum class Fate : uint8_t {
  kLive,
  kDropped,
  kAllDropped,  // and so is every version behind it
};

// Counts the versions of one column after the other, all of one family.
class VersionWalk {
 public:
  VersionWalk() = default;
  // `all_live`: every stored cell of the family is known to live, and nothing else is asked.
  VersionWalk(const RetentionPolicy& policy, bool all_live, int64_t now_micros)
      : policy_(&policy), now_micros_(now_micros), all_live_(all_live) {}

  void BeginColumn() { rank_ = 0; }
  // The same walk, where the family has been copied.
  void Rebind(const RetentionPolicy& policy) { policy_ = &policy; }

  // One version further. FateOf and DueOf speak of that one.
  void Count() { ++rank_; }
  uint64_t rank() const { return rank_; }
  bool all_live() const { return all_live_; }
  // Does the policy drop whatever has this rank, and so all behind it?
  bool is_behind_last() const { return rank_ > policy_->rank_kept_max(); }

  // Is its timestamp of no account for FateOf?
  bool ignores_timestamp() const { return all_live_ || !policy_->Risks(rank_); }
  // ... so that the newest version of a column lives until its own expiry.
  bool keeps_newest() const { return all_live_ || !policy_->Risks(1); }

  // The moment from which on it is dropped; kNeverMicros if there is none.
  int64_t DueOf(int64_t timestamp, int64_t expiry_micros) const {
    return policy_->DueMicros(rank_, timestamp, expiry_micros);
  }
  CELLAR_INLINE Fate FateOf(int64_t timestamp, int64_t expiry_micros) const {
    if (all_live_) return Fate::kLive;
    if (!policy_->Drops(rank_, timestamp, expiry_micros, now_micros_)) return Fate::kLive;
    return is_behind_last() ? Fate::kAllDropped : Fate::kDropped;
  }

 private:
  const RetentionPolicy* policy_{nullptr};
  int64_t now_micros_{0};
  uint64_t rank_{0};
  bool all_live_{false};
};

// A walk of one column along a cursor. What it shows dies when the cursor moves.
class ColumnWalk {
 public:
  // `at` stands where the column, of which `column` is the key (row, family, qualifier), begins;
  // or, where the policy asks for no ranks, on any version of it.
  ColumnWalk(BTreeCursor& at, std::string_view column, VersionWalk versions)
      : at_(at), column_(column), versions_(versions) {}

  // To the next version, the newest first. False behind the oldest one.
  bool Next() {
    if (begun_) at_.Next();
    begun_ = true;
    if (!at_.valid() || !at_.key().starts_with(column_)) return false;
    versions_.Count();
    timestamp_ = StoredTimestamp(version());
    ReadStoredHead(at_.value(), &head_);
    return true;
  }
  // To the newest live version at or before `at_micros`. False if there is none; then the cursor
  // is somewhere in the column or behind it.
  bool FindLive(int64_t at_micros) {
    while (Next()) {
      const Fate fate = this->fate();
      if (fate == Fate::kAllDropped) return false;
      if (fate == Fate::kLive && timestamp_ <= at_micros) return true;
    }
    return false;
  }

  Fate fate() const { return versions_.FateOf(timestamp_, head_.expiry_micros); }
  uint64_t rank() const { return versions_.rank(); }
  int64_t timestamp_micros() const { return timestamp_; }
  std::string_view version() const { return at_.key().substr(column_.size()); }
  std::string_view value() const { return at_.value(); }

 private:
  BTreeCursor& at_;
  std::string_view column_;
  VersionWalk versions_;
  int64_t timestamp_{0};
  CellValue head_;
  bool begun_{false};
};

}  // namespace cellar
