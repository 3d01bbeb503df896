// StoreParty: a set's store as a party to moves of tablets (cluster/move_protocol.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "cluster/move_protocol.h"
#include "cluster/move_trials.h"
#include "commands/session/host.h"
#include "store/move_changes.h"

namespace cellar {

class StoreParty final : public MoveParty {
 public:
  // `host` outlives it.
  explicit StoreParty(Host& host) : host_(host) {}
  // REQUIRES: its sources are gone.
  ~StoreParty() override;

  // Deletes some of what is stored and belongs to others. True: there may be more.
  Result<bool> Purge();

  // While tablets leave the set its log stays as far as any of its members may have to read it, who
  // leads or will lead. To be called now and then, of followers too; cheap.
  void KeepLog();
  // DEBUG CLUSTER STOP-AT.
  void StopIfToldTo(MoveTrials::Step step);

  // --- MoveParty
  const TabletMoves& moves() const override;
  uint64_t cluster_id() const override;
  uint64_t set() const override;
  uint64_t catalog() const override;
  uint32_t term() const override;
  uint64_t CountAttempt(uint64_t job) override;
  bool HasTable(uint64_t table_id) const override;
  bool Owns(uint64_t table_id, const Tablet& tablet) const override;
  bool OwnsPart(uint64_t table_id, const Tablet& tablet) const override;
  std::string WhyKept(const MoveOut& move) const override;
  std::string WhyNoRoom() const override;
  std::string WhyDiskIsFull() const;
  bool RowsAreHeld(uint64_t table_id) const override;
  LogMark Mark() const override;
  int64_t stamp() const override;
  uint64_t record_next(uint64_t table_id) const override;
  std::string IndexFailures(uint64_t table_id) const override;
  Status Begin(uint64_t job, const MoveOut& move) override;
  Status Give(uint64_t job) override;
  Status Done(uint64_t job) override;
  Status Cancel(uint64_t job) override;
  Status Reclaim(uint64_t job) override;
  Status Raise(uint64_t floor) override;
  Status Stage(uint64_t job, const MoveIn& move, std::string_view failures) override;
  Status Fill(uint64_t job, const MovePart& part, std::string_view ops) override;
  Status Own(uint64_t job, const MovePart& part, int64_t stamp, uint64_t record_next) override;
  Result<bool> PurgeStage(const MoveIn& move) override;
  std::unique_ptr<MoveSource> Open(const MoveOut& move, const LogMark* from) override;

 private:
  class Source;
  MoveChanges changes() const { return MoveChanges(host_.store()); }
  const Table* TableOf(uint64_t table_id) const;
  // The log that its sources still have to read stays.
  void Retain();
  Status Logged(MoveTrials::Step step, Status status);

  Host& host_;
  std::set<Source*> sources_;
  std::map<uint64_t, uint64_t> attempts_;  // by job
  uint64_t retained_{0};                   // segment
  // Of each tablet that leaves: what its copy is behind, is in this segment or a later one.
  std::map<uint64_t, uint64_t> kept_from_;
  Lsn looked_lsn_{};  // what had been applied when KeepLog looked
  uint64_t lineage_{0};
};

}  // namespace cellar
