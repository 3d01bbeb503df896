// See policy_changes.h.
#include "store/policy_changes.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar {
namespace {

const FamilySchema* UnsettledFamily(const Table& table) {
  for (const FamilySchema& family : table.schema().families)
    if (family.next_policy) return &family;
  return nullptr;
}

}  // namespace

bool StaysDropped(const Table& table, const FamilySchema& family, const RetentionPolicy& policy) {
  if (family.policy.depends_on_rank() || policy.depends_on_rank()) {
    return family.policy == policy && table.family_counters(family).expiring_cells == 0;
  }
  constexpr int64_t kAnyTimestamp{1};
  return policy.DueMicros(1, kAnyTimestamp) <= family.policy.DueMicros(1, kAnyTimestamp);
}

void PolicyChanges::TakeOver(const Table& table, TableSchema* schema) {
  for (FamilySchema& family : schema->families) {
    const FamilySchema* const own = table.schema().FindFamilyById(family.id);
    if (own == nullptr || own->policy == family.policy) continue;
    if (table.family_counters(*own).cells == 0 || StaysDropped(table, *own, family.policy))
      continue;
    family.next_policy = std::exchange(family.policy, own->policy);
  }
}

bool PolicyChanges::IsSettled(const Table& table) { return UnsettledFamily(table) == nullptr; }

Status PolicyChanges::CheckSettled(const Table& table) {
  const FamilySchema* const family = UnsettledFamily(table);
  if (family == nullptr) return Status::Ok();
  return Status::Error(ErrorCode::kTryAgain, "what family " + Quote(family->name) + " of table " +
                                                 Quote(table.name()) + " keeps is being changed");
}

Status PolicyChanges::stuck() const { return store_.catalog_.settling.stuck; }

void PolicyChanges::Forget() { store_.catalog_.settling = {}; }

bool PolicyChanges::Step(uint64_t cells_max) {
  CELLAR_ASSERT(!store_.in_transaction_ && !store_.following_);
  Store::Catalog::Settling& at = store_.catalog_.settling;
  const Engine& engine = *store_.engine_;
  const Table* table = engine.FindTableFrom(at.table_id);
  while (table != nullptr && IsSettled(*table)) table = engine.FindTableFrom(table->id() + 1);
  if (table == nullptr) {
    at = {};
    return true;
  }
  const FamilySchema& family = *UnsettledFamily(*table);
  // It may have been said anew, or been dropped, since the last slice.
  const bool goes_on = at.change != nullptr && at.table_id == table->id() &&
                       at.family_id == family.id && at.policy == *family.next_policy;
  if (!goes_on) {
    at = {table->id(), family.id, *family.next_policy, SettlePolicy(store_, *table, family)};
  }
  // A full disk, say: another time.
  Status step = at.change->Step(cells_max);
  if (!step.ok()) {
    at = {};
    at.stuck = std::move(step);
    return true;
  }
  at.stuck = Status::Ok();
  if (at.change->done()) at.change.reset();
  return false;
}

}  // namespace cellar
