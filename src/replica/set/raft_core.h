// RaftCore: libraft's core (raft_step of cowsql/raft 0.22) as plain structs. raft.h is C and does
// not compile as C++, so that raft_core.c alone includes it.
//
// The core decides: votes, which entries match, what is committed, who belongs to the set. It does
// nothing: it knows an entry by index, term and kind, has no clock, no disk, no network. Each step
// takes one event and says what is to be done (RaftUpdate). One thread.
//
//   event   ->  raft_core_receive, _persisted, _submit, _timeout ...
//   update  <-  vote to be made durable (before anything of this step is sent)
//               entries to be appended, a snapshot to be fetched
//               messages to be sent
//   state   <-  raft_core_role, _commit, _timeout_at ...
//
// Where the library is missing all compiles, and raft_core_available() is 0: nothing else may be
// called then.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct RaftCore RaftCore;

enum { kRaftCommand = 1, kRaftBarrier = 2, kRaftChange = 3 };     // of entries
enum { kRaftStandby = 0, kRaftVoter = 1 };                        // of members
enum { kRaftFollower = 1, kRaftCandidate = 2, kRaftLeader = 3 };  // of this node

typedef struct RaftMember {
  uint64_t id;  // not 0
  int kind;
} RaftMember;

// The members of a set; borrowed.
typedef struct RaftMembers {
  const RaftMember* list;
  uint32_t n;
} RaftMembers;

typedef struct RaftEntry {
  uint64_t term;
  int kind;
  RaftMembers members;  // of a kRaftChange
} RaftEntry;

enum {
  kRaftAppend = 1,
  kRaftAppendResult = 2,
  kRaftVote = 3,
  kRaftVoteResult = 4,
  kRaftInstall = 5,
  kRaftTimeoutNow = 6,
};

// One message, received or to be sent; what its kind does not name is 0.
typedef struct RaftMessage {
  int kind;
  uint64_t peer;  // sender or receiver
  uint64_t term;
  uint8_t version;
  uint16_t features;  // of results
  uint16_t capacity;  // likewise
  // kRaftVote: the candidate's last entry; kRaftTimeoutNow: the leader's. kRaftAppendResult: the
  // index, and beside the core the term of that entry plus one, 0 if that is not said.
  uint64_t candidate;
  uint64_t last_index;
  uint64_t last_term;
  uint8_t disrupts_leader;
  uint8_t is_pre_vote;  // kRaftVoteResult too
  uint8_t granted;
  // kRaftAppend
  uint64_t previous_index;
  uint64_t previous_term;
  uint64_t commit;
  uint32_t n_entries;
  const RaftEntry* entries;  // of a received one
  // kRaftAppendResult
  uint64_t rejected;
  // kRaftInstall
  uint64_t snapshot_index;
  uint64_t snapshot_term;
  uint64_t members_index;  // when `members` were committed
  RaftMembers members;     // of a received one
} RaftMessage;

// What is to be done after a step.
typedef struct RaftUpdate {
  int vote_changed;      // term or vote
  uint64_t first_entry;  // 0: none are to be appended. All from there on give way to them
  uint32_t n_entries;    // the last ones of those received, or all that were submitted
  int is_own_barrier;    // the one entry is a barrier that the core itself submits
  int begins_install;    // the snapshot of the message shall be fetched
  uint32_t n_messages;
} RaftUpdate;

typedef struct RaftCoreOptions {
  uint64_t id;
  uint32_t election_ms;
  uint32_t heartbeat_ms;
  uint32_t install_ms;  // after which a snapshot is offered again
  uint32_t inflight_entries_max;
  uint32_t seed;
} RaftCoreOptions;

typedef struct RaftSnapshot {
  uint64_t index;  // 0: there is none
  uint64_t term;
  uint64_t members_index;
  RaftMembers members;
} RaftSnapshot;

int raft_core_available(void);
const char* raft_core_version(void);  // of the library: "0.22.1"

RaftCore* raft_core_new(const RaftCoreOptions* options);
void raft_core_free(RaftCore* core);

// Steps. Times are milliseconds of one monotonic clock. 0, or the library's code for what went
// wrong: nothing has changed then. raft_core_error() has it in words.
int raft_core_start(RaftCore* core, uint64_t now_ms, uint64_t term, uint64_t vote,
                    const RaftSnapshot* snapshot, uint64_t first_index, const RaftEntry* entries,
                    uint32_t n_entries, RaftUpdate* update);
int raft_core_receive(RaftCore* core, uint64_t now_ms, const RaftMessage* message,
                      RaftUpdate* update);
int raft_core_persisted(RaftCore* core, uint64_t now_ms, uint64_t index, RaftUpdate* update);
int raft_core_submit(RaftCore* core, uint64_t now_ms, const RaftEntry* entries, uint32_t n_entries,
                     RaftUpdate* update);
int raft_core_timeout(RaftCore* core, uint64_t now_ms, RaftUpdate* update);
// The members that the entry at `index` names are committed.
int raft_core_configured(RaftCore* core, uint64_t now_ms, uint64_t index, RaftMembers members,
                         RaftUpdate* update);
// A snapshot of its own is durable; `trailing` entries before its end are still in the log.
int raft_core_snapshot_taken(RaftCore* core, uint64_t now_ms, const RaftSnapshot* snapshot,
                             uint32_t trailing, RaftUpdate* update);
int raft_core_installed(RaftCore* core, uint64_t now_ms, const RaftSnapshot* snapshot,
                        RaftUpdate* update);
// To `to`, or, if that is 0, to whom the core chooses.
int raft_core_transfer(RaftCore* core, uint64_t now_ms, uint64_t to, RaftUpdate* update);
const char* raft_core_error(int code);
// What is committed is not what a leader has.
int raft_core_is_conflict(int code);

// A message of the last step; i < update->n_messages.
void raft_core_message(const RaftCore* core, uint32_t i, RaftMessage* message);

// State.
int raft_core_role(const RaftCore* core);
uint64_t raft_core_term(const RaftCore* core);
uint64_t raft_core_vote(const RaftCore* core);
uint64_t raft_core_commit(const RaftCore* core);
uint64_t raft_core_last_index(const RaftCore* core);
uint64_t raft_core_stored_index(const RaftCore* core);
uint64_t raft_core_leader(const RaftCore* core);  // 0: none is known
uint64_t raft_core_transferee(const RaftCore* core);
uint64_t raft_core_timeout_at(const RaftCore* core);  // in ms
// Of a leader: up to where `id` has what the leader has. 0 if it is no member.
uint64_t raft_core_match(const RaftCore* core, uint64_t id);
// The newest members that it knows, committed or not; at most `n_max` are filled in.
uint32_t raft_core_members(const RaftCore* core, RaftMember* list, uint32_t n_max);
// Where in the log they are named if they are not committed yet, else 0.
uint64_t raft_core_members_uncommitted(const RaftCore* core);
// Votes for `candidate` in the current term although the core would not: see replica_set.cc.
void raft_core_set_vote(RaftCore* core, uint64_t candidate);
// A follower takes nobody for the leader any more.
void raft_core_forget_leader(RaftCore* core);

#ifdef __cplusplus
}
#endif
