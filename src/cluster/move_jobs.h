// MoveJobs: which tablets are to move from which set to which, as set 0 has it in its own tables
// (map_tables.h, `jobs`): what was ordered, and what has become of it. The director asks the donor
// until the job has ended there, and the recipient too where it was cancelled; a job that both have
// ended is told for an hour, and its number is never used again.
//
//   ordered --> done                 the donor says so, which is when the recipient owns it
//      `-----> cancelling --> cancelled      ... and the recipient has dropped what it had
//
// What is cancelled at the donor is cancelled for people: its number alone is not done with yet.
//
// No sockets and no clocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cellar/lsn.h"
#include "cellar/status.h"
#include "cluster/map_cache.h"
#include "engine/table/tablets.h"

namespace cellar {

class Store;

struct MoveJob {
  enum class State : uint8_t { kOrdered = 0, kCancelling = 1, kCancelled = 2, kDone = 3 };
  uint64_t number{0};
  uint64_t table_id{0};
  std::string table;  // keyspace/table
  Tablet tablet;      // as the donor owns it
  uint64_t from{0};   // a set, or LostWith (lost_rows.h): nobody gives it
  uint64_t to{0};
  State state{State::kOrdered};
  int64_t started_ms{0};
  int64_t ended_ms{0};
  std::string why;    // who wanted it
  std::string error;  // why it was cancelled

  bool ended() const { return state == State::kCancelled || state == State::kDone; }
  // Nothing comes of it any more, or all of it has.
  bool decided() const { return IsLost(from) ? ended() : state != State::kOrdered; }
};

class MoveJobs {
 public:
  static constexpr int64_t kToldMs{3'600'000};
  static constexpr size_t kToldMax{1'000};  // that have ended

  // As the store has them now, by number. O(1) while they do not change.
  const std::map<uint64_t, MoveJob>& All(Store& store);
  const MoveJob* Find(Store& store, uint64_t number);
  // The one that has not ended and moves that range or a part of it; null: none does.
  const MoveJob* Of(Store& store, uint64_t table_id, const Tablet& range);
  // Whether all have ended, at both sets, that moved a part of that range.
  bool AreOver(Store& store, uint64_t table_id, const Tablet& range);
  // All jobs up to this number have ended at both sets.
  uint64_t Floor(Store& store);
  // That have not ended. REQUIRES: All.
  size_t running() const { return running_; }

  // --- the director. REQUIRES: no transaction
  // The next number; the event says who wanted it.
  Result<uint64_t> Order(Store& store, MoveJob job);
  Status Note(Store& store, uint64_t number, MoveJob::State state, std::string error);
  // An event of what was done besides.
  static Status Tell(Store& store, std::string what, std::string why);
  // Those that have been told for long enough go.
  Status Forget(Store& store, int64_t now_ms);

 private:
  void Load(Store& store);
  void Took(Store& store);

  std::map<uint64_t, MoveJob> jobs_;
  uint64_t next_{1};
  size_t running_{0};
  uint64_t table_id_{0};
  uint64_t lineage_{0};
  Lsn lsn_{};
};

std::string_view MoveJobStateName(MoveJob::State state);

}  // namespace cellar
