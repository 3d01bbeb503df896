// See upstream.h.
#include "replica/upstream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/log.h"
#include "store/diverged.h"

namespace cellar {
namespace {

constexpr size_t kHelloBytesMax = 16 * 1024;
constexpr int64_t kAckMicros = 1'000'000;  // also when there is nothing new

// A command in RESP.
std::string Request(std::initializer_list<std::string_view> words) {
  std::string text = fmt::format("*{}\r\n", words.size());
  for (const std::string_view word : words) text += fmt::format("${}\r\n{}\r\n", word.size(), word);
  return text;
}

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
}

void Upstream::Begin() { NameLast(); }

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
  snapshot_file_.reset();
  reader_ = FrameReader();
  state_ = State::kPausing;
  due_micros_ = now + kRetryMicros;
}

// --- the handshake

void Upstream::NameLast() {
  state_ = State::kNaming;
  queue_.clear();  // what was not applied comes again
  queue_begin_ = 0;
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
  hello_.clear();
  reader_ = FrameReader();
  dialling_ = true;
  due_micros_ = owner_.clock_.MonotonicMicros() + kDialMicros;
  owner_.host_.Dial(leader_.host, leader_.port, this);
}

void Upstream::OnConnected(PeerLink* link) {
  dialling_ = false;
  link_ = link;
  state_ = State::kHello;
  heard_micros_ = owner_.clock_.MonotonicMicros();
  const ReplicationOptions& options = owner_.options_;
  std::string hello;
  if (!options.password.empty()) {
    hello = options.user.empty() ? Request({"AUTH", options.password})
                                 : Request({"AUTH", options.user, options.password});
  }
  hello += Request({"PEER", fmt::format("{}", kPeerVersion),
                    fmt::format("{:016x}", owner_.identity_.cluster),
                    fmt::format("{:016x}", owner_.identity_.node), "follow", "0"});
  link_->Write(hello);
}

// Replies of one line each: the last one is PEER's.
void Upstream::ReadHello(std::string_view bytes) {
  hello_ += bytes;
  size_t replies = owner_.options_.password.empty() ? 1 : 2;
  while (state_ == State::kHello) {
    const size_t end = hello_.find("\r\n");
    if (end == std::string::npos) {
      if (hello_.size() > kHelloBytesMax) Fail("its reply is no line");
      return;
    }
    const std::string line = hello_.substr(0, end);
    hello_.erase(0, end + 2);
    if (line.empty() || line[0] != '+') {
      return Fail("it refuses: " + (line.empty() ? "(nothing)" : line.substr(1)));
    }
    // Both were sent at once, so AUTH's reply is the one that is no greeting of a peer.
    if (!line.starts_with("+PEER ") && --replies > 0) continue;
    if (!line.starts_with("+PEER ")) return Fail("it is no Cellar that can be followed: " + line);
    state_ = State::kAsked;
    const ReplicationOptions& options = owner_.options_;
    std::string body;
    PutLsn(&body, last_.lsn);
    PutFixed64(&body, static_cast<uint64_t>(last_.commit_micros));
    PutFixed64(&body, last_.identity);
    PutFixed64(&body, owner_.identity_.cluster);
    PutFixed32(&body, options.priority);
    body.push_back(static_cast<char>(options.announce_port & 0xff));
    body.push_back(static_cast<char>(options.announce_port >> 8));
    PutLengthPrefixed(&body, options.announce_host);
    owner_.Send(link_, FrameKind::kFollow, body);
  }
  if (link_ != nullptr && !hello_.empty()) reader_.Add(std::exchange(hello_, {}));
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
  // While a copy is put in place, what comes behind it waits in the reader.
  while (link_ != nullptr && state_ != State::kHello && state_ != State::kInstalling) {
    const Result<bool> next = reader_.Next(&frame);
    if (!next.ok()) return Fail(next.status().text());
    if (!*next) break;
    leader_sent_micros_ = frame.sent_micros;
    owner_.seen_term_ = std::max(owner_.seen_term_, frame.term);
    OnFrame(frame);
  }
  if (link_ == nullptr || !reading_) return;
  if (queue_.size() - queue_begin_ > kQueueBytesMax) {
    reading_ = false;
    link_->SetReading(false);
  }
}

void Upstream::OnFrame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kFrom:
      if (state_ != State::kAsked) return Fail("it answered twice");
      ++owner_.stats_.partial_syncs;
      Log(LogSeverity::kNotice, fmt::format("Leader {}:{}: the log goes on from record {}",
                                            leader_.host, leader_.port, FormatLsn(last_.lsn)));
      return BeginStreaming();
    case FrameKind::kFull:
      return OnFull(frame);
    case FrameKind::kChunk:
      return OnChunk(frame);
    case FrameKind::kRecords:
      return OnRecords(frame);
    case FrameKind::kBeat:
      return OnBeat(frame);
    case FrameKind::kLead:
      if (state_ != State::kStreaming) return Fail("it hands over to who has not got everything");
      if (const Status led = owner_.Lead(); !led.ok())
        Log(LogSeverity::kWarning, "cannot take over: " + led.text());
      return;
    case FrameKind::kError:
      return Fail("it says: " + std::string(frame.body.substr(0, 200)));
    default:
      return Fail("it sent a frame that only a follower sends");
  }
}

void Upstream::OnFull(const Frame& frame) {
  if (state_ != State::kAsked) return Fail("it answered twice");
  BodyReader body(frame.body);
  leader_cluster_ = body.U64();
  const uint64_t common_seq = body.U64();
  const bool has_snapshot = body.Byte() != 0;
  SnapshotEntry entry;
  entry.lsn = body.ReadLsn();
  entry.bytes = body.U64();
  entry.hash = body.U64();
  if (!body.ok() || leader_cluster_ == 0) return Fail("its answer cannot be read");
  ++owner_.stats_.full_syncs;
  snapshot_.reset();
  snapshot_offset_ = 0;
  state_ = State::kSnapshot;
  if (leader_cluster_ == owner_.identity_.cluster && common_seq < last_.lsn.seq && common_seq > 0)
    SaveDiverged(common_seq);
  if (!has_snapshot) return Install();
  snapshot_ = entry;
  const std::string path = JoinPath(owner_.directory_, kSyncName);
  const Result<bool> there = owner_.files_.Exists(path);
  if (there.ok() && *there) (void)owner_.files_.Remove(path);
  auto file = owner_.files_.Create(path);
  if (!file.ok()) return Fail(file.status().text());
  snapshot_file_ = *std::move(file);
}

void Upstream::OnChunk(const Frame& frame) {
  if (state_ != State::kSnapshot || snapshot_file_ == nullptr)
    return Fail("it sent a piece of a snapshot that was not asked for");
  BodyReader body(frame.body);
  const uint64_t offset = body.U64();
  const std::string_view bytes = body.Rest();
  if (!body.ok() || offset != snapshot_offset_ || bytes.empty() ||
      bytes.size() > snapshot_->bytes - offset)
    return Fail("a piece of its snapshot is out of place");
  if (const Status written = snapshot_file_->WriteAt(offset, bytes); !written.ok())
    return Fail(written.text());
  snapshot_file_->BeginWriteback(offset, bytes.size());
  snapshot_offset_ += bytes.size();
  if (snapshot_offset_ == snapshot_->bytes) Install();
}

void Upstream::Install() {
  state_ = State::kInstalling;
  reading_ = false;
  link_->SetReading(false);
  auto job = std::make_unique<Job>();
  job->file = std::move(snapshot_file_);
  const auto work = [](Job* self) {
    if (self->file == nullptr) return;
    self->status = self->file->Sync();
    if (self->status.ok()) self->status = self->file->Close();
  };
  Run(std::move(job), work, &Upstream::EndInstall);
}

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
  const Status replaced = owner_.host_.ReplaceStore(
      [&](Status* status) { return owner_.store_->ReplaceContent(path, snapshot_, status); });
  if (!replaced.ok()) return Fail(replaced.text());
  owner_.StartTail();
  Log(LogSeverity::kNotice,
      fmt::format("Leader {}:{}: the copy is in place, up to record {}", leader_.host, leader_.port,
                  FormatLsn(owner_.store_->journal().last_lsn())));
  BeginStreaming();
  if (link_ != nullptr) OnBytes({});
}

void Upstream::BeginStreaming() {
  state_ = State::kStreaming;
  commit_ = acked_durable_ = acked_applied_ = sync_asked_ = sync_begun_ = Lsn{};
  leader_last_ = owner_.store_->journal().last_lsn();
  failure_.clear();
  if (!reading_) {
    reading_ = true;
    link_->SetReading(true);
  }
}

void Upstream::OnRecords(const Frame& frame) {
  if (state_ != State::kStreaming) return Fail("records came before it was time");
  BodyReader body(frame.body);
  const Lsn commit = body.ReadLsn();
  if (!body.ok()) return Fail("its records cannot be read");
  commit_ = std::max(commit_, commit);
  if (queue_begin_ == queue_.size()) {
    queue_.clear();
    queue_begin_ = 0;
  } else if (queue_begin_ > kFrameBytesMax) {
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

Status Upstream::ApplyFront(int64_t deadline_micros) {
  Store& store = *owner_.store_;
  for (unsigned n = 0; queue_begin_ < queue_.size(); ++n) {
    if (n % 32 == 31 && owner_.clock_.MonotonicMicros() >= deadline_micros) break;
    LogRecord record;
    const auto bytes = NextWireRecord(std::string_view(queue_).substr(queue_begin_), &record);
    if (!bytes) return Status::Error(ErrorCode::kCorruption, "a record that it sent is damaged");
    if (record.is_entry()) {
      if (record.lsn > commit_) break;
      RETURN_IF_ERROR(store.ApplyRecord(record));
    }
    queue_begin_ += *bytes;
  }
  return Status::Ok();
}

bool Upstream::ApplySlice(int64_t deadline_micros) {
  if (state_ != State::kStreaming) return false;
  if (const Status applied = ApplyFront(deadline_micros); !applied.ok()) {
    // A disk without room: what has come waits, and so does the leader, as far as it must.
    if (applied.code() == ErrorCode::kMisconf) return false;
    Fail(applied.text());
    return false;
  }
  if (!reading_ && queue_.size() - queue_begin_ < kQueueBytesMax / 2) {
    reading_ = true;
    link_->SetReading(true);
  }
  const Lsn applied = owner_.store_->journal().last_lsn();
  const int64_t now = owner_.clock_.MonotonicMicros();
  if (applied >= std::min(commit_, leader_last_) && link_ != nullptr) {
    up_micros_ = now;
    down_micros_ = 0;
  }
  if (queue_begin_ == queue_.size()) return false;
  LogRecord record;
  const auto next = NextWireRecord(std::string_view(queue_).substr(queue_begin_), &record);
  return !next || !record.is_entry() || record.lsn <= commit_;
}

void Upstream::SendAck() {
  if (state_ != State::kStreaming || link_ == nullptr) return;
  Journal& journal = owner_.store_->journal();
  const Lsn durable = journal.durable_lsn();
  const Lsn applied = journal.last_lsn();
  const int64_t now = owner_.clock_.MonotonicMicros();
  // What is asked for may come after the asking, and is synced once it is in the log.
  if (durable < std::min(applied, sync_asked_) && applied > sync_begun_) {
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

void Upstream::OnTick() {
  const int64_t now = owner_.clock_.MonotonicMicros();
  if (state_ == State::kPausing) {
    if (now >= due_micros_) NameLast();
    return;
  }
  if (state_ == State::kDialing) {
    if (now >= due_micros_) Fail("no answer");
    return;
  }
  if (link_ == nullptr) return;
  // The leader beats ten times a second; a link that was cut in silence would wait for TCP.
  const bool silent = now - heard_micros_ > kSilenceMicros;
  const bool deaf = !reading_ || state_ == State::kInstalling;
  if (silent && !deaf) return Fail("nothing heard for a while; the link is made anew");
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

UpstreamFigures Upstream::Figures() const {
  const int64_t now = owner_.clock_.MonotonicMicros();
  UpstreamFigures figures{.address = leader_,
                          .state = LinkState::kConnect,
                          .up = false,
                          .last_io_age_micros = heard_micros_ == 0 ? -1 : now - heard_micros_,
                          .down_since_micros = down_micros_,
                          .sync_bytes = snapshot_offset_,
                          .sync_bytes_total = snapshot_ ? snapshot_->bytes : 0,
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
    case State::kSnapshot:
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
