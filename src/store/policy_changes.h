// FAMILY ALTER of what a family keeps, at the sets of a cluster that hear of it from set 0.
//
// What the old policy has dropped may still be stored, and no looser policy may bring it back
// (family_alter.cc). So a set with such cells takes the schema as it is told, but for this:
//
//   policy       the old one, by which it goes on reading and writing
//   next_policy  the new one, from when a job of its leader has reclaimed the family
//
// Both are in the set's log: whoever leads next goes on. Meanwhile no tablet of the table goes from
// or to the set, since the other one may go by another policy; and who has sent FAMILY ALTER waits
// (commands/cluster/alter_wait.h).
#pragma once

#include <cstdint>
#include <memory>

#include "cellar/status.h"
#include "engine/schema/schema.h"
#include "engine/table/table.h"

namespace cellar {

class SlicedChange;
class Store;

// Does the new policy drop all that retention drops now, at any moment to come, whether that has
// been reclaimed or not? So where both policies ask for the age alone, and the new one drops
// sooner. Where ranks matter, what is still stored counts in them: then only if nothing changes,
// and no cell expires while others keep its rank.
bool StaysDropped(const Table& table, const FamilySchema& family, const RetentionPolicy& policy);

// The part of the job of one family: SlicedChange, FAMILY ALTER to its next_policy. REQUIRES: it
// has one; the store does not follow.
std::unique_ptr<SlicedChange> SettlePolicy(Store& store, const Table& table,
                                           const FamilySchema& family);

class PolicyChanges {
 public:
  explicit PolicyChanges(Store& store) : store_(store) {}

  // `schema`, as it came from set 0, becomes this set's own, which has `table` already.
  static void TakeOver(const Table& table, TableSchema* schema);
  // Whether one of its families has a next policy.
  static bool IsSettled(const Table& table);
  // TRYAGAIN if it is not: no tablet of it may be on its way.
  static Status CheckSettled(const Table& table);
  // A slice of the job. False: there is more. REQUIRES: no transaction; the store does not follow.
  bool Step(uint64_t cells_max);
  // Why it does not go on: a full disk, say. Ok: it does.
  Status stuck() const;
  // What has been done of it by now: another one may lead meanwhile.
  void Forget();

 private:
  Store& store_;
};

}  // namespace cellar
