// See upstream.h.
#include "replica/upstream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/free_string.h"
#include "base/os/log.h"
#include "replica/set/set_message.h"
#include "store/format/snapshot_format.h"
#include "store/journal/diverged.h"

namespace cellar {
namespace {

constexpr int64_t kHandOverFreshMicros{3'000'000};
constexpr int64_t kAckMicros = 1'000'000;  // also when there is nothing new

}  // namespace

struct Upstream::Job {
  FileSystem* files{nullptr};
  std::string directory;
  Manifest manifest;
  Lsn last;
  RecordName name;
  std::unique_ptr<WritableFile> file;
  uint64_t common_seq{0};
  uint64_t diverged{0};
  std::string diverged_path;
  Status status;
};

Upstream::Upstream(Replication& owner, uint64_t id, NodeAddress leader)
    : owner_(owner),
      id_(id),
      leader_(std::move(leader)),
      down_micros_(owner.clock_.MonotonicMicros()) {}

Upstream::~Upstream() { End(); }

void Upstream::End() {
  ended_ = true;
  if (dialling_) owner_.host_.CancelDial(this);
  dialling_ = false;
  if (link_ != nullptr) link_->Close();
  link_ = nullptr;
  DropFetch();
}

void Upstream::DropFetch() {
  if (fetch_ == nullptr) return;
  if (owner_.store_ != nullptr) owner_.store_->Discard(fetch_->TakeEngine());
  fetch_.reset();
}

void Upstream::Begin() { NameLast(); }

// `work` runs in another thread and touches the job alone; `end` runs in the loop, unless this
// upstream has been replaced meanwhile.
void Upstream::Run(std::unique_ptr<Job> job, void (*work)(Job*), void (Upstream::*end)(Job*)) {
  job->files = &owner_.files_;
  job->directory = owner_.directory_;
  Job* const raw = job.release();  // adopted by the second function, which always runs
  owner_.host_.RunInBackground([raw, work] { work(raw); },
                               [raw, end, id = id_, owner = &owner_] {
                                 const std::unique_ptr<Job> self(raw);
                                 Upstream* const upstream = owner->upstream_.get();
                                 if (upstream == nullptr || upstream->id_ != id) return;
                                 (upstream->*end)(raw);
                               });
}

// Any error of the link ends here: it is closed, and after a pause the handshake begins anew. What
// has been applied stays.
void Upstream::Fail(std::string_view why) {
  const int64_t now = owner_.clock_.MonotonicMicros();
  const std::string text = fmt::format("Leader {}:{}: {}", leader_.host, leader_.port, why);
  // The same trouble is told once in a while, not twice a second.
  if (text != failure_ || now - failure_micros_ > 60'000'000) {
    Log(LogSeverity::kWarning, text);
    failure_ = text;
    failure_micros_ = now;
  }
  if (dialling_) owner_.host_.CancelDial(this);
  dialling_ = false;
  if (link_ != nullptr) link_->Close();
  link_ = nullptr;
  if (down_micros_ == 0) down_micros_ = now;
  DropFetch();
  reader_.Clear();
  state_ = State::kPausing;
  due_micros_ = now + kRetryMicros;
}

// A record that cannot be applied will not be the next time either: a whole copy is asked for.
// Where that does not help, the pauses become longer.
void Upstream::FailToApply(std::string_view why) {
  const Lsn stuck = owner_.store_->journal().last_lsn();
  stuck_micros_ = stuck == stuck_ && stuck_micros_ > 0
                      ? std::min(2 * stuck_micros_, kStuckMicrosMax)
                      : kStuckMicros;
  stuck_ = stuck;
  wants_copy_ = true;
  Fail(why);
  due_micros_ += stuck_micros_;
}

// --- the handshake

void Upstream::TellThatItLeads() {
  if (link_ == nullptr || state_ != State::kStreaming) return;
  std::string body;
  PutLsn(&body, owner_.store_->journal().last_lsn());
  owner_.Send(link_, FrameKind::kLead, body);
}

// The first step of the handshake: which record is the last one here. Its place in the log is read
// by another thread, since the segment may not be in the cache.
void Upstream::NameLast() {
  state_ = State::kNaming;
  ClearQueue();  // what was not applied comes again
  auto job = std::make_unique<Job>();
  Journal& journal = owner_.store_->journal();
  job->name = {.lsn = journal.last_lsn(), .commit_micros = journal.last_commit_micros()};
  job->manifest = journal.CopyManifest();
  const auto work = [](Job* self) {
    self->status =
        LogStream::IdentifyLast(*self->files, self->directory, self->manifest, &self->name);
  };
  Run(std::move(job), work, &Upstream::EndNaming);
}

void Upstream::EndNaming(Job* job) {
  if (ended_ || state_ != State::kNaming) return;
  if (!job->status.ok()) return Fail(job->status.text());
  last_ = job->name;
  Dial();
}

void Upstream::Dial() {
  state_ = State::kDialing;
  reader_.Clear();
  reading_ = true;
  dialling_ = true;
  due_micros_ = owner_.clock_.MonotonicMicros() + dial_micros_;
  owner_.host_.Dial(leader_.host, leader_.port, this);
}

void Upstream::OnConnected(PeerLink* link) {
  dialling_ = false;
  link_ = link;
  state_ = State::kHello;
  heard_micros_ = owner_.clock_.MonotonicMicros();
  dial_micros_ = kDialMicros;
  link_->Write(greeting_.Begin(owner_.options_, owner_.identity_, "follow", 0));
}

// Second step: both have greeted, and this node says how far its log goes. A cluster of 0 asks for
// a copy.
void Upstream::ReadHello(std::string_view bytes) {
  std::string rest;
  const Result<bool> greeted = greeting_.Take(bytes, &rest);
  if (!greeted.ok()) return Fail(greeted.status().text());
  if (!*greeted) return;
  state_ = State::kAsked;
  owner_.LookForCircle();
  const ReplicationOptions& options = owner_.options_;
  std::string body;
  PutLsn(&body, last_.lsn);
  PutFixed64(&body, static_cast<uint64_t>(last_.commit_micros));
  PutFixed64(&body, last_.identity);
  PutFixed64(&body, wants_copy_ ? 0 : owner_.identity_.cluster);
  PutFixed32(&body, options.priority);
  body.push_back(static_cast<char>(options.announce_port & 0xff));
  body.push_back(static_cast<char>(options.announce_port >> 8));
  PutLengthPrefixed(&body, options.announce_host);
  owner_.Send(link_, FrameKind::kFollow, body);
  reader_.Add(rest);
}

void Upstream::OnClosed(std::string_view why) {
  link_ = nullptr;
  dialling_ = false;
  if (ended_) return;
  Fail(why);
}

// --- what comes

void Upstream::OnBytes(std::string_view bytes) {
  owner_.stats_.link_bytes_in += bytes.size();
  heard_micros_ = owner_.clock_.MonotonicMicros();
  if (state_ == State::kHello) {
    ReadHello(bytes);
    if (state_ == State::kHello) return;
  } else {
    reader_.Add(bytes);
  }
  Frame frame;
  while (link_ != nullptr && state_ != State::kHello) {
    const Result<bool> next = reader_.Next(&frame);
    if (!next.ok()) return Fail(next.status().text());
    if (!*next) break;
    leader_sent_micros_ = frame.sent_micros;
    // One that would leave no epochs to lead in is not believed as it is.
    owner_.seen_term_ =
        std::max(owner_.seen_term_, static_cast<uint32_t>(TermTowards(owner_.term(), frame.term)));
    OnFrame(frame);
  }
  if (link_ == nullptr || !reading_) return;
  if (waiting_bytes() > kQueueBytesMax && !AwaitsCommit()) {
    reading_ = false;
    link_->SetReading(false);
  }
}

void Upstream::OnFrame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kFrom:
      return OnFrom(frame);
    case FrameKind::kFull:
      return OnFull(frame);
    case FrameKind::kRecords:
      return OnRecords(frame);
    case FrameKind::kBeat:
      return OnBeat(frame);
    case FrameKind::kLead:
      return OnLead(frame);
    case FrameKind::kError:
      return Fail(WhatItSays(frame));
    default:
      return Fail("it sent a frame that only a follower sends");
  }
}

// The leader has our last record: its log goes on from there, and nothing has to be copied.
void Upstream::OnFrom(const Frame& frame) {
  if (state_ != State::kAsked) return Fail("it answered twice");
  BodyReader body(frame.body);
  (void)body.U64();
  const bool leads = body.Byte() != 0;
  if (!body.ok()) return Fail("its answer cannot be read");
  if (!owner_.MayFollow(leads)) return Fail("it does not lead yet");
  ++owner_.stats_.partial_syncs;
  Log(LogSeverity::kNotice, fmt::format("Leader {}:{}: the log goes on from record {}",
                                        leader_.host, leader_.port, FormatLsn(last_.lsn)));
  BeginStreaming();
}

void Upstream::OnLead(const Frame& frame) {
  if (state_ != State::kStreaming) return Fail("it hands over to who has not got everything");
  // One that was long on its way comes too late: the other may have given it up, and lead again.
  if (owner_.clock_.MonotonicMicros() - frame.echo_micros > kHandOverFreshMicros)
    return Fail("its handing over came too late");
  if (const Status led = owner_.Lead(); !led.ok()) {
    // Then the other goes on leading.
    owner_.Send(link_, FrameKind::kError, "cannot take over: " + led.text());
    Fail("cannot take over: " + led.text());
  }
}

// The leader does not have our last record, or no longer the log behind it: a snapshot comes first.
// Records of this node that the leader lacks are saved aside before they are replaced.
void Upstream::OnFull(const Frame& frame) {
  if (state_ != State::kAsked) return Fail("it answered twice");
  BodyReader body(frame.body);
  leader_cluster_ = body.U64();
  const bool leads = body.Byte() != 0;
  const uint64_t common_seq = body.U64();
  const bool has_snapshot = body.Byte() != 0;
  SnapshotEntry entry;
  entry.lsn = body.ReadLsn();
  entry.bytes = body.U64();
  entry.hash = body.U64();
  const uint64_t end_bytes = body.U64();
  const uint64_t ticket = body.U64();
  if (!body.ok() || leader_cluster_ == 0) return Fail("its answer cannot be read");
  if (has_snapshot && (end_bytes < kSnapshotTrailerBytes || entry.bytes < kSnapshotHeaderBytes ||
                       end_bytes > entry.bytes - kSnapshotHeaderBytes))
    return Fail("its snapshot cannot be one");
  if (!owner_.MayFollow(leads)) return Fail("it does not lead yet");
  ++owner_.stats_.full_syncs;
  state_ = State::kCopying;
  copy_begin_micros_ = owner_.clock_.WallMicros();
  if (leader_cluster_ == owner_.identity_.cluster && common_seq < last_.lsn.seq && common_seq > 0)
    SaveDiverged(common_seq);
  snapshot_.reset();
  if (!has_snapshot) return Install();
  const std::string path = JoinPath(owner_.directory_, kSyncName);
  fetch_ = std::make_unique<SnapshotFetch>(owner_, owner_.feed_id_next_++, entry, end_bytes);
  if (const Status begun = fetch_->Begin(leader_, path, ticket); !begun.ok())
    return Fail(begun.text());
}

bool Upstream::Copy(int64_t deadline_micros) {
  if (fetch_ == nullptr) return false;
  const Result<bool> more = fetch_->Step(deadline_micros);
  if (!more.ok()) {
    Fail(more.status().text());
    return false;
  }
  if (fetch_->done()) Install();
  return *more;
}

void Upstream::Install() {
  state_ = State::kInstalling;
  auto job = std::make_unique<Job>();
  if (fetch_ != nullptr) {
    snapshot_ = fetch_->entry();
    job->file = fetch_->TakeFile();
  }
  const auto work = [](Job* self) {
    if (self->file == nullptr) return;
    self->status = self->file->Sync();
    if (self->status.ok()) self->status = self->file->Close();
  };
  Run(std::move(job), work, &Upstream::EndInstall);
}

// The file is on the disk; now the store is replaced by it in one go.
void Upstream::EndInstall(Job* job) {
  if (ended_ || state_ != State::kInstalling) return;
  if (!job->status.ok()) return Fail(job->status.text());
  const std::string path = JoinPath(owner_.directory_, kSyncName);
  // The content is another one from here on, so the identity goes first: should this end between
  // the two, what is here counts as of another cluster, and is copied again.
  Identity identity = owner_.identity_;
  identity.cluster = leader_cluster_;
  if (const Status written = owner_.WriteIdentity(identity); !written.ok())
    return Fail(written.text());
  std::unique_ptr<Engine> loaded = fetch_ == nullptr ? nullptr : fetch_->TakeEngine();
  fetch_.reset();
  const Status replaced = owner_.host_.ReplaceStore([&](Status* status) {
    return owner_.store_->ReplaceContent(path, snapshot_, std::move(loaded), status);
  });
  if (!replaced.ok()) return Fail(replaced.text());
  owner_.StartTail();
  Log(LogSeverity::kNotice,
      fmt::format("Leader {}:{}: the copy is in place, up to record {}", leader_.host, leader_.port,
                  FormatLsn(owner_.store_->journal().last_lsn())));
  if (link_ == nullptr) return;
  owner_.Send(link_, FrameKind::kReady, {});
  BeginStreaming();
}

void Upstream::BeginStreaming() {
  state_ = State::kStreaming;
  wants_copy_ = false;
  commit_ = acked_durable_ = acked_applied_ = sync_asked_ = sync_begun_ = Lsn{};
  leader_last_ = owner_.store_->journal().last_lsn();
  failure_.clear();
}

// A long record was long enough here.
void Upstream::ClearQueue() {
  if (queue_.capacity() > kQueueBytesMax) {
    FreeString(&queue_);
  } else {
    queue_.clear();
  }
  queue_begin_ = 0;
  awaited_ = {};
}

// Records wait in queue_ until the leader says that they are committed. Its front is cut off now
// and then, not at each record, as that would move the rest.
void Upstream::OnRecords(const Frame& frame) {
  if (state_ != State::kStreaming) return Fail("records came before it was time");
  BodyReader body(frame.body);
  const Lsn commit = body.ReadLsn();
  if (!body.ok()) return Fail("its records cannot be read");
  commit_ = std::max(commit_, commit);
  if (queue_begin_ > kFrameBytesMax) {
    queue_.erase(0, queue_begin_);
    queue_begin_ = 0;
  }
  queue_ += body.Rest();
  owner_.host_.WakeSoon();
}

void Upstream::OnBeat(const Frame& frame) {
  BodyReader body(frame.body);
  const Lsn commit = body.ReadLsn();
  const Lsn last = body.ReadLsn();
  const int64_t wall_micros = body.Micros();
  const bool sync = body.Byte() != 0;
  if (!body.ok()) return Fail("its heartbeat cannot be read");
  skew_micros_ = owner_.SkewOf(leader_, wall_micros, skew_micros_);
  if (state_ != State::kStreaming) return;
  if (sync) sync_asked_ = std::max(sync_asked_, last);
  commit_ = std::max(commit_, commit);
  leader_last_ = std::max(leader_last_, last);
  owner_.host_.WakeSoon();
}

// --- applying

// Applies what is committed, in order, until the turn's time is spent. Every record is whole in the
// queue, since frames carry whole ones.
Status Upstream::ApplyFront(int64_t deadline_micros) {
  Store& store = *owner_.store_;
  for (unsigned n = 0; queue_begin_ < queue_.size(); ++n) {
    if (n % 32 == 31 && owner_.clock_.MonotonicMicros() >= deadline_micros) break;
    LogRecord record;
    const auto bytes = NextWireRecord(std::string_view(queue_).substr(queue_begin_), &record);
    if (!bytes) return Status::Error(ErrorCode::kErr, "a record that it sent is damaged");
    if (record.is_entry()) {
      awaited_ = record.lsn > commit_ ? record.lsn : Lsn{};
      if (AwaitsCommit()) break;
      RETURN_IF_ERROR(store.ApplyRecord(record));
    }
    queue_begin_ += *bytes;
  }
  if (waiting_bytes() == 0) ClearQueue();
  return Status::Ok();
}

void Upstream::ReadAgain() {
  reading_ = true;
  heard_micros_ = owner_.clock_.MonotonicMicros();  // nothing could be heard until now
  link_->SetReading(true);
}

// True: there is more to be done at once. Reading from the link stops while the queue is full
// (OnBytes) and goes on when half of it is applied, so that a follower does not hold more than that
// of what it may apply. What the leader has not committed is no reason to stop: that it has comes
// behind it on the same link.
bool Upstream::ApplySlice(int64_t deadline_micros) {
  if (state_ == State::kCopying) return Copy(deadline_micros);
  if (state_ != State::kStreaming) return false;
  if (const Status applied = ApplyFront(deadline_micros); !applied.ok()) {
    // A disk without room: what has come waits, and so does the leader, as far as it must.
    if (applied.code() == ErrorCode::kMisconf) return false;
    // Some of a record may have been applied: what is here is not what the log says any more.
    if (applied.code() == ErrorCode::kCorruption) {
      FailToApply(applied.text());
    } else {
      Fail(applied.text());
    }
    return false;
  }
  if (!reading_ && link_ != nullptr && (waiting_bytes() < kQueueBytesMax / 2 || AwaitsCommit()))
    ReadAgain();
  const Lsn applied = owner_.store_->journal().last_lsn();
  const int64_t now = owner_.clock_.MonotonicMicros();
  if (applied >= std::min(commit_, leader_last_) && link_ != nullptr) {
    up_micros_ = now;
    down_micros_ = 0;
  }
  return waiting_bytes() > 0 && !AwaitsCommit();
}

// Tells the leader what is durable and what is applied here: at once if that has changed, and once
// a second as a sign of life.
void Upstream::SendAck() {
  const bool streams = state_ == State::kStreaming;
  if (link_ == nullptr || (!streams && state_ != State::kAsked && !copies())) return;
  Journal& journal = owner_.store_->journal();
  // Before, what it has is none of the leader's business.
  const Lsn durable = streams ? journal.durable_lsn() : Lsn{};
  const Lsn applied = streams ? journal.last_lsn() : Lsn{};
  const int64_t now = owner_.clock_.MonotonicMicros();
  // What is asked for may come after the asking, and is synced once it is in the log.
  if (streams && durable < std::min(applied, sync_asked_) && applied > sync_begun_) {
    journal.RequestSync();
    sync_begun_ = applied;
  }
  if (durable == acked_durable_ && applied == acked_applied_ && now - ack_micros_ < kAckMicros)
    return;
  std::string body;
  PutLsn(&body, durable);
  PutLsn(&body, applied);
  PutFixed64(&body, static_cast<uint64_t>(owner_.clock_.WallMicros()));
  owner_.Send(link_, FrameKind::kAck, body);
  acked_durable_ = durable;
  acked_applied_ = applied;
  ack_micros_ = now;
}

// What may take too long in each state, and what happens then.
void Upstream::OnTick() {
  const int64_t now = owner_.clock_.MonotonicMicros();
  if (state_ == State::kPausing) {
    if (now >= due_micros_) NameLast();
    return;
  }
  if (state_ == State::kDialing) {
    if (now < due_micros_) return;
    dial_micros_ = std::min(2 * dial_micros_, kDialMicrosMax);
    return Fail("no answer");
  }
  if (link_ == nullptr) return;
  const int64_t silence = std::min(kSilenceMicros, owner_.options_.timeout_micros);
  if (reading_ && now - heard_micros_ > silence)
    return Fail("nothing heard for a while; the link is made anew");
  if (fetch_ != nullptr && now - fetch_->heard_micros() > owner_.options_.timeout_micros)
    return Fail("nothing of the copy came for a while");
  SendAck();
}

void Upstream::SaveDiverged(uint64_t common_seq) {
  DivergedTail tail;
  const Status saved = SaveDivergedTail(owner_.files_, owner_.directory_,
                                        owner_.store_->journal().CopyManifest(), common_seq, &tail);
  if (!saved.ok()) {
    Log(LogSeverity::kWarning, "what no leader has could not be saved: " + saved.text());
    return;
  }
  if (tail.records == 0) return;
  owner_.stats_.diverged_records += tail.records;
  Identity identity = owner_.identity_;
  identity.diverged += tail.records;
  (void)owner_.WriteIdentity(identity);
  Log(LogSeverity::kWarning,
      fmt::format("{} records of this node are in no leader's log: they are saved in {} and "
                  "dropped",
                  tail.records, tail.path));
}

size_t Upstream::memory_bytes() const {
  return queue_.capacity() + reader_.memory_bytes() +
         (fetch_ == nullptr ? 0 : fetch_->memory_bytes());
}

// This side's states come down to the four that Redis shows. A link that streams counts as up only
// once this node has caught up with the leader.
UpstreamFigures Upstream::Figures() const {
  const int64_t now = owner_.clock_.MonotonicMicros();
  UpstreamFigures figures{.copies = copies(),
                          .copy_begin_micros = copy_begin_micros_,
                          .address = leader_,
                          .state = LinkState::kConnect,
                          .up = false,
                          .last_io_age_micros = heard_micros_ == 0 ? -1 : now - heard_micros_,
                          .down_since_micros = down_micros_,
                          .sync_bytes = fetch_ == nullptr ? 0 : fetch_->received_bytes(),
                          .sync_bytes_total = fetch_ == nullptr ? 0 : fetch_->entry().bytes,
                          .lag_micros = up_micros_ == 0 ? -1 : now - up_micros_,
                          .commit = commit_,
                          .skew_micros = skew_micros_};
  switch (state_) {
    case State::kNaming:
    case State::kPausing:
      break;
    case State::kDialing:
    case State::kHello:
      figures.state = LinkState::kConnecting;
      break;
    case State::kAsked:
    case State::kCopying:
    case State::kInstalling:
      figures.state = LinkState::kSync;
      break;
    case State::kStreaming:
      figures.state = LinkState::kConnected;
      figures.up = down_micros_ == 0;
      break;
  }
  return figures;
}

}  // namespace cellar
