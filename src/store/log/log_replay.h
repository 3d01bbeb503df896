// LogReplay: the records of a log, in order, applied to the state that they make. Shared by
// recovery and --check, which must not see different things.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/lsn.h"
#include "cellar/status.h"
#include "engine/state/state_machine.h"
#include "store/format/log_format.h"

namespace cellar {

// A record that is in the log and has not been applied, since it may yet be voided.
struct PendingRecord {
  RecordHead head;
  std::string payload;
};

// A record that says who belongs to a replica set from there on.
struct NamedMembers {
  Lsn lsn;
  std::string payload;
};

// Which records of the log are applied.
enum class ApplyUpTo : uint8_t {
  kEnd,         // all: every record is final
  kCommitMark,  // those that are committed; the rest is `pending`
};

// What becomes of a record that is applied.
enum class StoreContent : uint8_t {
  kState,    // it changes the state
  kLogOnly,  // it is known to be there: the state stays empty (Manifest::holds_log_only)
};

// Who decides what of each record is applied, for who does not want all of the log.
class RecordGate {
 public:
  virtual ~RecordGate() = default;
  struct Admission {
    size_t payload_bytes{0};   // that are applied, from the front; whole steps
    int64_t commit_micros{0};  // of the last step in them
    bool is_last{false};       // nothing behind them is
  };
  // Called for each record that has a number, in order, once nothing can void it.
  virtual Admission Admit(const RecordHead& head, std::string_view payload) = 0;
};

class LogReplay {
 public:
  LogReplay(StateMachine& state, ApplyUpTo up_to) : state_(state), up_to_(up_to) {}

  // Before the first record. Borrowed.
  void SetGate(RecordGate* gate) { gate_ = gate; }
  // The gate has let the last record through: none is taken any more.
  bool ended() const { return ended_; }
  // The last record of which something was applied, or that the gate has let pass.
  Lsn applied() const { return applied_; }

  // The state holds a snapshot up to `lsn`, when these were the members of the replica set.
  void BeginBehind(Lsn lsn, std::string members) {
    applied_ = lsn;
    first_epoch_ = lsn.epoch;
    members_ = std::move(members);
  }
  // The next record that is no claim and is not in the snapshot. kCorruption: it cannot be.
  Status Take(const LogRecord& record);
  // From the next record on.
  void SetUpTo(ApplyUpTo up_to) { up_to_ = up_to; }
  void SetContent(StoreContent content) { content_ = content; }
  // Applies what is pending, as if it were committed.
  Status ApplyPending();

  const std::string& members() const { return members_; }
  const CommitMark& mark() const { return mark_; }
  // The epoch of the snapshot, or else of the first record; and the first record of each behind it.
  uint32_t first_epoch() const { return first_epoch_; }
  const std::vector<Lsn>& epoch_begins() const { return epoch_begins_; }
  // The kMembers records applied, behind the snapshot.
  const std::vector<NamedMembers>& named() const { return named_; }
  const std::vector<PendingRecord>& pending() const { return pending_; }
  std::vector<PendingRecord> TakePending() { return std::move(pending_); }

 private:
  Status TakeMark(const LogRecord& record);
  Status ApplyEntry(RecordHead head, std::string_view payload);
  Status ApplyFirst(size_t count);

  StateMachine& state_;
  ApplyUpTo up_to_;
  StoreContent content_{StoreContent::kState};
  RecordGate* gate_{nullptr};
  bool ended_{false};
  Lsn applied_;
  std::string members_;
  CommitMark mark_;
  uint32_t first_epoch_{0};
  std::vector<Lsn> epoch_begins_;
  std::vector<NamedMembers> named_;
  std::vector<PendingRecord> pending_;
};

}  // namespace cellar
