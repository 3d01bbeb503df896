// See raft_core.h. CELLAR_RAFT is 1 where the Makefile has found libraft 0.22 or newer.
//
// Memory: what the core is handed in an entry's `batch` or in a configuration is its own from then
// on in some cases and the caller's in others (raft_step's sources say which). The functions here
// give it copies of its own making, and free what it has not taken.
#include "replica/set/raft_core.h"

#include <stdlib.h>
#include <string.h>

#if CELLAR_RAFT

#include <raft.h>
#include <stdio.h>

// 0.17.1 mended the rule by which entries are committed; raft_step came later.
#if RAFT_VERSION_NUMBER < 2200
#error "libraft 0.22 or newer is needed"
#endif

#define AS_IN_RAFT_H(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), "as in raft.h")
AS_IN_RAFT_H(kRaftCommand, RAFT_COMMAND);
AS_IN_RAFT_H(kRaftBarrier, RAFT_BARRIER);
AS_IN_RAFT_H(kRaftChange, RAFT_CHANGE);
AS_IN_RAFT_H(kRaftStandby, RAFT_STANDBY);
AS_IN_RAFT_H(kRaftVoter, RAFT_VOTER);
AS_IN_RAFT_H(kRaftFollower, RAFT_FOLLOWER);
AS_IN_RAFT_H(kRaftCandidate, RAFT_CANDIDATE);
AS_IN_RAFT_H(kRaftLeader, RAFT_LEADER);
AS_IN_RAFT_H(kRaftAppend, RAFT_APPEND_ENTRIES);
AS_IN_RAFT_H(kRaftAppendResult, RAFT_APPEND_ENTRIES_RESULT);
AS_IN_RAFT_H(kRaftVote, RAFT_REQUEST_VOTE);
AS_IN_RAFT_H(kRaftVoteResult, RAFT_REQUEST_VOTE_RESULT);
AS_IN_RAFT_H(kRaftInstall, RAFT_INSTALL_SNAPSHOT);
AS_IN_RAFT_H(kRaftTimeoutNow, RAFT_TIMEOUT_NOW);

struct RaftCore {
  struct raft raft;
  struct raft_tracer tracer;
  struct raft_update update;
};

// Room on the disk is looked after elsewhere: the core shall never refuse an entry for it.
enum { kCapacity = 65535 };

static void TraceNothing(struct raft_tracer* tracer, int type, const void* info) {
  (void)tracer;
  (void)type;
  (void)info;
}

int raft_core_available(void) { return 1; }

const char* raft_core_version(void) {
  static char text[32];
  snprintf(text, sizeof(text), "%d.%d.%d", RAFT_VERSION_MAJOR, RAFT_VERSION_MINOR,
           RAFT_VERSION_RELEASE);
  return text;
}

const char* raft_core_error(int code) { return raft_strerror(code); }

int raft_core_is_conflict(int code) { return code == RAFT_SHUTDOWN; }

// The library has no use for addresses but to be different.
static void AddressOf(uint64_t id, char text[24]) {
  snprintf(text, 24, "%llu", (unsigned long long)id);
}

RaftCore* raft_core_new(const RaftCoreOptions* options) {
  RaftCore* core = calloc(1, sizeof(*core));
  char address[24];
  if (core == NULL) abort();
  AddressOf(options->id, address);
  if (raft_init(&core->raft, NULL, NULL, options->id, address) != 0) abort();
  core->tracer.version = 2;
  core->tracer.emit = TraceNothing;
  core->raft.tracer = &core->tracer;
  raft_seed(&core->raft, options->seed);
  raft_set_heartbeat_timeout(&core->raft, options->heartbeat_ms);
  raft_set_election_timeout(&core->raft, options->election_ms);
  raft_set_install_snapshot_timeout(&core->raft, options->install_ms);
  raft_set_pre_vote(&core->raft, true);
  raft_set_max_inflight_entries(&core->raft, options->inflight_entries_max);
  return core;
}

void raft_core_free(RaftCore* core) {
  if (core == NULL) return;
  raft_close(&core->raft, NULL);
  free(core);
}

static void MakeConfiguration(RaftMembers members, struct raft_configuration* configuration) {
  raft_configuration_init(configuration);
  for (uint32_t i = 0; i < members.n; ++i) {
    char address[24];
    AddressOf(members.list[i].id, address);
    if (raft_configuration_add(configuration, members.list[i].id, address, members.list[i].kind))
      abort();
  }
}

static void MakeMetadata(const RaftSnapshot* snapshot, struct raft_snapshot_metadata* metadata) {
  memset(metadata, 0, sizeof(*metadata));
  metadata->index = snapshot->index;
  metadata->term = snapshot->term;
  metadata->configuration_index = snapshot->members_index;
  MakeConfiguration(snapshot->members, &metadata->configuration);
}

// The library's form of `n` entries, whose batch is the first return value. An entry of the log is
// known by its term; the content of a change alone is looked at.
static void* MakeEntries(const RaftEntry* entries, uint32_t n, struct raft_entry** made) {
  void* batch = raft_malloc(8);
  *made = calloc(n, sizeof(**made));
  if (batch == NULL || *made == NULL) abort();
  for (uint32_t i = 0; i < n; ++i) {
    struct raft_entry* entry = &(*made)[i];
    entry->term = entries[i].term;
    entry->type = (enum raft_entry_type)entries[i].kind;
    entry->batch = batch;
    entry->buf.base = batch;
    if (entries[i].kind == kRaftChange) {
      struct raft_configuration configuration;
      MakeConfiguration(entries[i].members, &configuration);
      if (raft_configuration_encode(&configuration, &entry->buf) != 0) abort();
      raft_configuration_close(&configuration);
    }
  }
  return batch;
}

static void FreeEntries(struct raft_entry* made, uint32_t n, const void* batch) {
  for (uint32_t i = 0; i < n; ++i) {
    if (made[i].buf.base != batch) raft_free(made[i].buf.base);
  }
  free(made);
}

static int Step(RaftCore* core, uint64_t now_ms, struct raft_event* event, RaftUpdate* update) {
  struct raft_update* done = &core->update;
  memset(done, 0, sizeof(*done));
  memset(update, 0, sizeof(*update));
  event->time = now_ms;
  event->capacity = kCapacity;
  const int code = raft_step(&core->raft, event, done);
  if (code != 0) {
    memset(done, 0, sizeof(*done));
    return code;
  }
  update->vote_changed =
      (done->flags & ((RAFT_UPDATE_CURRENT_TERM) | (RAFT_UPDATE_VOTED_FOR))) != 0;
  update->begins_install = (done->flags & (RAFT_UPDATE_SNAPSHOT)) != 0;
  update->n_messages = (done->flags & (RAFT_UPDATE_MESSAGES)) != 0 ? done->messages.n : 0;
  if ((done->flags & (RAFT_UPDATE_ENTRIES)) != 0) {
    update->first_entry = done->entries.index;
    update->n_entries = done->entries.n;
    update->is_own_barrier = done->entries.batch == &core->raft.barrier;
    if (update->is_own_barrier) raft_free(core->raft.barrier.batch);
  }
  return 0;
}

int raft_core_start(RaftCore* core, uint64_t now_ms, uint64_t term, uint64_t vote,
                    const RaftSnapshot* snapshot, uint64_t first_index, const RaftEntry* entries,
                    uint32_t n_entries, RaftUpdate* update) {
  struct raft_event event = {.type = RAFT_START};
  struct raft_snapshot_metadata metadata;
  struct raft_entry* made = NULL;
  void* batch = NULL;
  event.start.term = term;
  event.start.voted_for = vote;
  if (snapshot->index != 0) {
    MakeMetadata(snapshot, &metadata);
    event.start.metadata = &metadata;
  }
  event.start.start_index = first_index;
  event.start.n_entries = n_entries;
  if (n_entries > 0) batch = MakeEntries(entries, n_entries, &made);
  event.start.entries = made;
  const int code = Step(core, now_ms, &event, update);
  // The library would have freed some of it by then, and there is no going on anyway.
  if (code != 0) abort();
  FreeEntries(made, n_entries, batch);
  raft_free(batch);
  return code;
}

static void FillReceived(const RaftMessage* from, struct raft_message* to) {
  to->type = (enum raft_message_type)from->kind;
  to->server_id = from->peer;
  switch (from->kind) {
    case kRaftVote:
      to->request_vote.version = from->version;
      to->request_vote.term = from->term;
      to->request_vote.candidate_id = from->candidate;
      to->request_vote.last_log_index = from->last_index;
      to->request_vote.last_log_term = from->last_term;
      to->request_vote.disrupt_leader = from->disrupts_leader != 0;
      to->request_vote.pre_vote = from->is_pre_vote != 0;
      break;
    case kRaftVoteResult:
      to->request_vote_result.version = from->version;
      to->request_vote_result.term = from->term;
      to->request_vote_result.vote_granted = from->granted != 0;
      to->request_vote_result.pre_vote = from->is_pre_vote != 0;
      to->request_vote_result.features = from->features;
      to->request_vote_result.capacity = from->capacity;
      break;
    case kRaftAppend:
      to->append_entries.version = from->version;
      to->append_entries.term = from->term;
      to->append_entries.prev_log_index = from->previous_index;
      to->append_entries.prev_log_term = from->previous_term;
      to->append_entries.leader_commit = from->commit;
      to->append_entries.n_entries = from->n_entries;
      break;
    case kRaftAppendResult:
      to->append_entries_result.version = from->version;
      to->append_entries_result.term = from->term;
      to->append_entries_result.rejected = from->rejected;
      to->append_entries_result.last_log_index = from->last_index;
      to->append_entries_result.features = from->features;
      to->append_entries_result.capacity = from->capacity;
      break;
    case kRaftInstall:
      to->install_snapshot.version = from->version;
      to->install_snapshot.term = from->term;
      to->install_snapshot.last_index = from->snapshot_index;
      to->install_snapshot.last_term = from->snapshot_term;
      to->install_snapshot.conf_index = from->members_index;
      MakeConfiguration(from->members, &to->install_snapshot.conf);
      to->install_snapshot.data.base = raft_malloc(8);
      to->install_snapshot.data.len = 8;
      if (to->install_snapshot.data.base == NULL) abort();
      break;
    default:
      to->timeout_now.version = from->version;
      to->timeout_now.term = from->term;
      to->timeout_now.last_log_index = from->last_index;
      to->timeout_now.last_log_term = from->last_term;
      break;
  }
}

int raft_core_receive(RaftCore* core, uint64_t now_ms, const RaftMessage* message,
                      RaftUpdate* update) {
  struct raft_event event = {.type = RAFT_RECEIVE};
  struct raft_message received;
  struct raft_entry* made = NULL;
  void* batch = NULL;
  char address[24];
  memset(&received, 0, sizeof(received));
  AddressOf(message->peer, address);
  received.server_address = address;
  FillReceived(message, &received);
  if (message->kind == kRaftAppend && message->n_entries > 0) {
    batch = MakeEntries(message->entries, message->n_entries, &made);
    received.append_entries.entries = made;
  }
  event.receive.message = &received;
  const int code = Step(core, now_ms, &event, update);
  // What is appended stays the caller's; in all other cases the library has freed the batch.
  if (update->first_entry != 0 && !update->is_own_barrier) raft_free(batch);
  FreeEntries(made, message->kind == kRaftAppend ? message->n_entries : 0, batch);
  if (update->begins_install) {
    // The caller hands it in once more when it stands.
    raft_configuration_close(&core->update.snapshot.metadata.configuration);
    raft_free(core->update.snapshot.chunk.base);
  }
  return code;
}

int raft_core_persisted(RaftCore* core, uint64_t now_ms, uint64_t index, RaftUpdate* update) {
  struct raft_event event = {.type = RAFT_PERSISTED_ENTRIES};
  event.persisted_entries.index = index;
  return Step(core, now_ms, &event, update);
}

int raft_core_submit(RaftCore* core, uint64_t now_ms, const RaftEntry* entries, uint32_t n_entries,
                     RaftUpdate* update) {
  struct raft_event event = {.type = RAFT_SUBMIT};
  struct raft_entry* made = NULL;
  void* batch = MakeEntries(entries, n_entries, &made);
  event.submit.entries = made;
  event.submit.n = n_entries;
  const int code = Step(core, now_ms, &event, update);
  FreeEntries(made, n_entries, batch);
  raft_free(batch);
  return code;
}

int raft_core_timeout(RaftCore* core, uint64_t now_ms, RaftUpdate* update) {
  struct raft_event event = {.type = RAFT_TIMEOUT};
  return Step(core, now_ms, &event, update);
}

int raft_core_configured(RaftCore* core, uint64_t now_ms, uint64_t index, RaftMembers members,
                         RaftUpdate* update) {
  struct raft_event event = {.type = RAFT_CONFIGURATION};
  event.configuration.index = index;
  MakeConfiguration(members, &event.configuration.conf);
  return Step(core, now_ms, &event, update);
}

int raft_core_snapshot_taken(RaftCore* core, uint64_t now_ms, const RaftSnapshot* snapshot,
                             uint32_t trailing, RaftUpdate* update) {
  struct raft_event event = {.type = RAFT_SNAPSHOT};
  MakeMetadata(snapshot, &event.snapshot.metadata);
  event.snapshot.trailing = trailing;
  return Step(core, now_ms, &event, update);
}

int raft_core_installed(RaftCore* core, uint64_t now_ms, const RaftSnapshot* snapshot,
                        RaftUpdate* update) {
  struct raft_event event = {.type = RAFT_PERSISTED_SNAPSHOT};
  MakeMetadata(snapshot, &event.persisted_snapshot.metadata);
  event.persisted_snapshot.last = true;
  return Step(core, now_ms, &event, update);
}

int raft_core_transfer(RaftCore* core, uint64_t now_ms, uint64_t to, RaftUpdate* update) {
  struct raft_event event = {.type = RAFT_TRANSFER};
  event.transfer.server_id = to;
  return Step(core, now_ms, &event, update);
}

void raft_core_message(const RaftCore* core, uint32_t i, RaftMessage* to) {
  const struct raft_message* from = &core->update.messages.batch[i];
  memset(to, 0, sizeof(*to));
  to->kind = (int)from->type;
  to->peer = from->server_id;
  switch (from->type) {
    case RAFT_REQUEST_VOTE:
      to->version = from->request_vote.version;
      to->term = from->request_vote.term;
      to->candidate = from->request_vote.candidate_id;
      to->last_index = from->request_vote.last_log_index;
      to->last_term = from->request_vote.last_log_term;
      to->disrupts_leader = from->request_vote.disrupt_leader;
      to->is_pre_vote = from->request_vote.pre_vote;
      break;
    case RAFT_REQUEST_VOTE_RESULT:
      to->version = from->request_vote_result.version;
      to->term = from->request_vote_result.term;
      to->granted = from->request_vote_result.vote_granted;
      to->is_pre_vote = from->request_vote_result.pre_vote;
      to->features = from->request_vote_result.features;
      to->capacity = from->request_vote_result.capacity;
      break;
    case RAFT_APPEND_ENTRIES:
      to->version = from->append_entries.version;
      to->term = from->append_entries.term;
      to->previous_index = from->append_entries.prev_log_index;
      to->previous_term = from->append_entries.prev_log_term;
      to->commit = from->append_entries.leader_commit;
      to->n_entries = from->append_entries.n_entries;
      break;
    case RAFT_APPEND_ENTRIES_RESULT:
      to->version = from->append_entries_result.version;
      to->term = from->append_entries_result.term;
      to->rejected = from->append_entries_result.rejected;
      to->last_index = from->append_entries_result.last_log_index;
      to->features = from->append_entries_result.features;
      to->capacity = from->append_entries_result.capacity;
      break;
    case RAFT_INSTALL_SNAPSHOT:
      to->version = from->install_snapshot.version;
      to->term = from->install_snapshot.term;
      to->snapshot_index = from->install_snapshot.last_index;
      to->snapshot_term = from->install_snapshot.last_term;
      to->members_index = from->install_snapshot.conf_index;
      break;
    default:
      to->version = from->timeout_now.version;
      to->term = from->timeout_now.term;
      to->last_index = from->timeout_now.last_log_index;
      to->last_term = from->timeout_now.last_log_term;
      break;
  }
}

// The library's getters take what they do not change as not const.
static struct raft* RaftOf(const RaftCore* core) { return (struct raft*)(uintptr_t)&core->raft; }

int raft_core_role(const RaftCore* core) { return (int)raft_state(RaftOf(core)); }
uint64_t raft_core_term(const RaftCore* core) { return raft_current_term(&core->raft); }
uint64_t raft_core_vote(const RaftCore* core) { return raft_voted_for(&core->raft); }
uint64_t raft_core_commit(const RaftCore* core) { return raft_commit_index(&core->raft); }
uint64_t raft_core_last_index(const RaftCore* core) { return raft_last_index(RaftOf(core)); }
uint64_t raft_core_stored_index(const RaftCore* core) { return core->raft.last_stored; }
uint64_t raft_core_timeout_at(const RaftCore* core) { return raft_timeout(&core->raft); }
uint64_t raft_core_transferee(const RaftCore* core) { return raft_transferee(&core->raft); }

uint64_t raft_core_leader(const RaftCore* core) {
  if (core->raft.state == RAFT_LEADER) return core->raft.id;
  return core->raft.state == RAFT_FOLLOWER ? core->raft.follower_state.current_leader.id : 0;
}

uint64_t raft_core_match(const RaftCore* core, uint64_t id) {
  raft_index index = 0;
  return raft_match_index(&core->raft, id, &index) == 0 ? index : 0;
}

uint32_t raft_core_members(const RaftCore* core, RaftMember* list, uint32_t n_max) {
  const struct raft_configuration* configuration = &core->raft.configuration;
  for (uint32_t i = 0; i < configuration->n && i < n_max; ++i) {
    list[i].id = configuration->servers[i].id;
    list[i].kind = configuration->servers[i].role;
  }
  return configuration->n;
}

uint64_t raft_core_members_uncommitted(const RaftCore* core) {
  return core->raft.configuration_uncommitted_index;
}

void raft_core_set_vote(RaftCore* core, uint64_t candidate) { core->raft.voted_for = candidate; }

void raft_core_forget_leader(RaftCore* core) {
  if (core->raft.state != RAFT_FOLLOWER) return;
  core->raft.follower_state.current_leader.id = 0;
  if (core->raft.follower_state.current_leader.address != NULL)
    raft_free(core->raft.follower_state.current_leader.address);
  core->raft.follower_state.current_leader.address = NULL;
}

#else  // without the library

int raft_core_available(void) { return 0; }
const char* raft_core_version(void) { return "none"; }

// clang-format off
#define RAFT_CORE_ABSENT abort();
RaftCore* raft_core_new(const RaftCoreOptions* options) { (void)options; RAFT_CORE_ABSENT }
void raft_core_free(RaftCore* core) { if (core != NULL) RAFT_CORE_ABSENT }
int raft_core_start(RaftCore* core, uint64_t now_ms, uint64_t term, uint64_t vote,
                    const RaftSnapshot* snapshot, uint64_t first_index, const RaftEntry* entries,
                    uint32_t n_entries, RaftUpdate* update) {
  (void)core; (void)now_ms; (void)term; (void)vote; (void)snapshot; (void)first_index;
  (void)entries; (void)n_entries; (void)update; RAFT_CORE_ABSENT
}
int raft_core_receive(RaftCore* core, uint64_t now_ms, const RaftMessage* message,
                      RaftUpdate* update) {
  (void)core; (void)now_ms; (void)message; (void)update; RAFT_CORE_ABSENT
}
int raft_core_persisted(RaftCore* core, uint64_t now_ms, uint64_t index, RaftUpdate* update) {
  (void)core; (void)now_ms; (void)index; (void)update; RAFT_CORE_ABSENT
}
int raft_core_submit(RaftCore* core, uint64_t now_ms, const RaftEntry* entries, uint32_t n_entries,
                     RaftUpdate* update) {
  (void)core; (void)now_ms; (void)entries; (void)n_entries; (void)update; RAFT_CORE_ABSENT
}
int raft_core_timeout(RaftCore* core, uint64_t now_ms, RaftUpdate* update) {
  (void)core; (void)now_ms; (void)update; RAFT_CORE_ABSENT
}
int raft_core_configured(RaftCore* core, uint64_t now_ms, uint64_t index, RaftMembers members,
                         RaftUpdate* update) {
  (void)core; (void)now_ms; (void)index; (void)members; (void)update; RAFT_CORE_ABSENT
}
int raft_core_snapshot_taken(RaftCore* core, uint64_t now_ms, const RaftSnapshot* snapshot,
                             uint32_t trailing, RaftUpdate* update) {
  (void)core; (void)now_ms; (void)snapshot; (void)trailing; (void)update; RAFT_CORE_ABSENT
}
int raft_core_installed(RaftCore* core, uint64_t now_ms, const RaftSnapshot* snapshot,
                        RaftUpdate* update) {
  (void)core; (void)now_ms; (void)snapshot; (void)update; RAFT_CORE_ABSENT
}
int raft_core_transfer(RaftCore* core, uint64_t now_ms, uint64_t to, RaftUpdate* update) {
  (void)core; (void)now_ms; (void)to; (void)update; RAFT_CORE_ABSENT
}
const char* raft_core_error(int code) { (void)code; RAFT_CORE_ABSENT }
int raft_core_is_conflict(int code) { (void)code; RAFT_CORE_ABSENT }
void raft_core_message(const RaftCore* core, uint32_t i, RaftMessage* message) {
  (void)core; (void)i; (void)message; RAFT_CORE_ABSENT
}
int raft_core_role(const RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
uint64_t raft_core_term(const RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
uint64_t raft_core_vote(const RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
uint64_t raft_core_commit(const RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
uint64_t raft_core_last_index(const RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
uint64_t raft_core_stored_index(const RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
uint64_t raft_core_leader(const RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
uint64_t raft_core_transferee(const RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
uint64_t raft_core_timeout_at(const RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
uint64_t raft_core_match(const RaftCore* core, uint64_t id) {
  (void)core; (void)id; RAFT_CORE_ABSENT
}
uint32_t raft_core_members(const RaftCore* core, RaftMember* list, uint32_t n_max) {
  (void)core; (void)list; (void)n_max; RAFT_CORE_ABSENT
}
uint64_t raft_core_members_uncommitted(const RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
void raft_core_set_vote(RaftCore* core, uint64_t candidate) {
  (void)core; (void)candidate; RAFT_CORE_ABSENT
}
void raft_core_forget_leader(RaftCore* core) { (void)core; RAFT_CORE_ABSENT }
// clang-format on

#endif
