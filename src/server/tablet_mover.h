// TabletMover: this node's part in moves of tablets: as the leader of the donor it goes on with
// each job of its set (cluster/move_protocol.h), as the leader of a set it deletes rows that the
// set does not own any more, and as the director it asks donors what has become of their jobs, and
// evens out what sets have and what machines lead.
//
//   director  jobs (cluster/move_jobs.h) --kJob, kCancel--> donor      --kDrop--> recipient
//             adoptions (cluster/adoption.h) --kHolds--> all, --kBegin, kPart, kOwn--> recipient
//   donor     MoveDonor ----kBegin, kPart, kOwn----> recipient
//
// All it knows may be lost: what counts is logged.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cluster/adoption.h"
#include "cluster/move_desk.h"
#include "cluster/move_jobs.h"
#include "cluster/move_protocol.h"
#include "commands/session/host.h"
#include "server/lead_balancer.h"
#include "server/move_calls.h"
#include "server/store_party.h"
#include "server/tablet_balancer.h"

namespace cellar {

class SetNode;

class TabletMover final : public MoveDesk {
 public:
  explicit TabletMover(Host& host);
  ~TabletMover() override;

  // In a turn, before its records are with the log.
  void Step();
  // At the end of a turn: wakes what waits for records that are settled by now.
  void OnTurn();
  // Something goes on, or may have to: Step is to be called now and then; at once.
  bool busy() const { return busy_; }
  bool proceeds() const { return purges_ && now() >= purge_micros_; }
  void OnRoleChanged() { wake_ = true; }

  // --- MoveDesk
  std::optional<MoveProgress> DonorProgress(uint64_t job) const override;
  MoveProgress JobProgress(uint64_t job) const override;
  void WantCancel(uint64_t job, std::string why) override;
  void Wake() override;
  void OnSets() override;
  void NoteRate(uint64_t bytes_per_second) override;
  const TabletSize* SizeOf(uint64_t table_id, std::string_view begin) const override {
    return balancer_.SizeOf(table_id, begin);
  }
  MoveFigures figures() const override;

 private:
  static constexpr int64_t kRetryMicros{20'000};
  static constexpr int64_t kPurgeRetryMicros{100'000};
  static constexpr int64_t kRestartMicrosMax{5'000'000};
  static constexpr int64_t kForgetMicros{10'000'000};
  static constexpr int64_t kPollMicros{20'000};
  static constexpr int64_t kPollGivenMicros{10'000};
  // A job that has come no further for so long is cancelled, if it may be (SCALE 41).
  static constexpr int64_t kStuckMicros{60'000'000};

  struct Donor {
    Donor(StoreParty& party, uint64_t job) : donor(party, job) {}
    MoveDonor donor;
    uint64_t ticket{0};  // 0: nothing is asked
    int64_t next_micros{0};
    int restarts{0};
    int64_t restart_micros{0};  // another attempt is not begun before, whatever waits for it
    int64_t given_micros{0};    // 0: not yet
    uint64_t given_bytes{0};    // sent until then
  };
  struct Ordered {
    uint64_t ticket{0};
    int64_t next_micros{0};
    MoveProgress progress{};
    int64_t moved_micros{0};  // it has come further then
    bool cancel{false};
    std::string why{};
    Adoption adoption{};  // of a job without a donor
  };

  SetNode* set() const;
  int64_t now() const { return host_.clock().MonotonicMicros(); }
  bool leads() const;
  void KeepLog();
  int64_t Patience() const;
  void DropDonors();
  void DropOrdered();
  void StepDonors();
  void StepDonor(uint64_t to, Donor* donor);
  void NoteEnds();
  void StepJobs();
  void StopBalance();
  bool Balances() const { return directs_ && (balancer_.busy() || leads_.busy()); }
  void StepJob(const MoveJob& job, Ordered* ordered);
  void TakeAnswer(const MoveJob& job, const MoveAnswer& answer, Ordered* ordered);
  void AskOf(const MoveJob& job, Ordered* ordered);
  void Note(const MoveJob& job, MoveJob::State state, std::string why, Ordered* ordered);
  bool IsOfCluster(uint64_t set) const;
  bool IsStillLost(const MoveJob& job) const;
  MoveStep StepOf(const MoveJob& job, const Ordered& ordered) const;

  Host& host_;
  MoveCalls calls_;
  StoreParty party_;
  TabletBalancer balancer_;
  LeadBalancer leads_;
  std::map<uint64_t, Donor> donors_;
  std::map<uint64_t, Ordered> ordered_;
  uint32_t term_{0};
  uint64_t lineage_{0};
  int64_t forget_micros_{0};  // jobs that have been told for long enough go then
  uint64_t floor_{0};         // of the jobs, as it is committed
  Lsn schema_seen_{};
  Lsn settled_seen_{};
  bool busy_{false};
  bool wake_{false};
  bool purges_{false};
  int64_t purge_micros_{0};  // not before
  bool directs_{false};
  uint64_t rate_{0};        // bytes a second that are copied; 0: as many as can be
  int64_t copy_micros_{0};  // the next part of a copy is due then
  MoveFigures figures_;
};

}  // namespace cellar
