// See follower_feed.h.
#include "replica/follower_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/os/log.h"
#include "replica/greeting.h"
#include "replica/links/frame.h"
#include "replica/set/set_message.h"
#include "store/format/log_format.h"
#include "store/snapshot/snapshot_reader.h"

namespace cellar {
namespace {

constexpr int64_t kBeatMicros{100'000};

}  // namespace

// What a worker gets, and gives back.
struct FollowerFeed::Job {
  FileSystem* files{nullptr};
  std::string directory;
  Manifest manifest;
  RecordName after;
  bool full{false};
  Lsn last;
  std::unique_ptr<LogStream> stream;
  std::unique_ptr<ReadableFile> file;
  uint64_t end_bytes{0};  // of the snapshot: footer and trailer
  bool partial{false};
  LogStream::Found found{LogStream::Found::kYes};
  LogStream::Found refused{LogStream::Found::kYes};  // why no partial sync is to be had
  bool has_snapshot{false};
  SnapshotEntry snapshot;
  size_t bytes_max{0};
  std::string bytes;
  Status status;
};

FollowerFeed::FollowerFeed(Replication& owner, PeerLink* link, uint64_t id, uint64_t node)
    : owner_(owner),
      link_(link),
      id_(id),
      node_(node),
      acked_micros_(owner.clock_.MonotonicMicros()) {
  address_.host = link->peer_host();
}

FollowerFeed::~FollowerFeed() {
  if (link_ != nullptr) link_->Close();
}

void FollowerFeed::OnClosed(std::string_view why) {
  link_ = nullptr;
  Log(LogSeverity::kNotice,
      fmt::format("Follower {}:{} is gone: {}", address_.host, address_.port, why));
  owner_.DropFeed(this);
}

void FollowerFeed::Fail(std::string_view why) {
  Log(LogSeverity::kWarning,
      fmt::format("Follower {}:{} is dropped: {}", address_.host, address_.port, why));
  if (link_ != nullptr) {
    Write(FrameKind::kError, why);
    link_->Close();
    link_ = nullptr;
  }
  owner_.DropFeed(this);
}

void FollowerFeed::Write(FrameKind kind, std::string_view body, std::string_view rest) {
  if (link_ == nullptr) return;
  FrameHead head = owner_.MakeHead(kind);
  head.echo_micros = peer_sent_micros_;
  owner_.Send(link_, head, body, rest);
}

// --- what comes

void FollowerFeed::OnBytes(std::string_view bytes) {
  owner_.stats_.link_bytes_in += bytes.size();
  reader_.Add(bytes);
  Frame frame;
  while (link_ != nullptr) {
    const Result<bool> next = reader_.Next(&frame);
    if (!next.ok()) return Fail(next.status().text());
    if (!*next) break;
    peer_sent_micros_ = frame.sent_micros;
    // One that would leave no epochs to lead in is not believed as it is.
    owner_.seen_term_ =
        std::max(owner_.seen_term_, static_cast<uint32_t>(TermTowards(owner_.term(), frame.term)));
    OnFrame(frame);
  }
}

void FollowerFeed::OnFrame(const Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kFollow:
      return OnFollow(frame);
    case FrameKind::kAck:
      return OnAck(frame);
    case FrameKind::kReady:
      return OnReady();
    case FrameKind::kLead:
      return owner_.EndHandOver(this, true);
    case FrameKind::kError:
      owner_.EndHandOver(this, false);
      return Fail(WhatItSays(frame));
    default:
      return Fail("it sent a frame that only a leader sends");
  }
}

void FollowerFeed::OnFollow(const Frame& frame) {
  if (state_ != State::kHello) return Fail("it asked twice");
  BodyReader body(frame.body);
  after_.lsn = body.ReadLsn();
  after_.commit_micros = body.Micros();
  after_.identity = body.U64();
  const uint64_t cluster = body.U64();
  priority_ = body.U32();
  address_.port = body.U16();
  const std::string_view host = body.Prefixed();
  if (!body.ok() || !(host.empty() || IsPlainHost(host))) return Fail("its request cannot be read");
  if (!host.empty()) address_.host = host;
  same_cluster_ = cluster == owner_.identity_.cluster;
  acked_micros_ = owner_.clock_.MonotonicMicros();
  Log(LogSeverity::kNotice,
      fmt::format("Follower {}:{} has record {} of {}", address_.host, address_.port,
                  FormatLsn(after_.lsn), same_cluster_ ? "this log" : "another log"));
  Search();
}

void FollowerFeed::OnAck(const Frame& frame) {
  if (state_ == State::kHello) return Fail("it acknowledged what it was not sent");
  BodyReader body(frame.body);
  const Lsn durable = body.ReadLsn();
  const Lsn applied = body.ReadLsn();
  const int64_t wall_micros = body.Micros();
  if (!body.ok()) return Fail("its acknowledgement cannot be read");
  const Lsn known = state_ == State::kLog ? position_ : Lsn{};
  if (durable > known || applied > known) return Fail("it acknowledged what is not there");
  durable_ = std::max(durable_, durable);
  applied_ = std::max(applied_, applied);
  acked_micros_ = owner_.clock_.MonotonicMicros();
  skew_micros_ = owner_.SkewOf(address_, wall_micros, skew_micros_);
  while (!sent_.empty() && sent_.front().lsn <= durable_) sent_.pop_front();
  TakeAnswer(applied);
  if (link_ == nullptr) return;
  owner_.host_.WakeTasks();
  owner_.StepFailover();
}

// What is waited for is a sign that the link carries both ways now: of a link that was dead for a
// while, old acknowledgements may come at once, and then its end.
void FollowerFeed::TakeAnswer(Lsn applied) {
  const bool waited = IsUnanswered();
  if (!answered_) {
    answered_ = applied > begun_;
    if (!answered_ && unanswered_bytes_ > 0) return;
  } else if (waited) {
    answered_ = false;
    begun_ = position_;
  }
  unanswered_bytes_ = 0;
  if (waited) Pump();
}

void FollowerFeed::OnReady() {
  if (state_ != State::kCopying) return Fail("it has a copy that it was not sent");
  serve_.reset();
  state_ = State::kLog;
  owner_.UpdateRetention();
  Pump();
}

// --- finding where to begin

void FollowerFeed::Run(std::unique_ptr<Job> job, void (*work)(Job*),
                       void (FollowerFeed::*end)(Job*)) {
  CELLAR_ASSERT(!job_runs_);
  job_runs_ = true;
  Job* const raw = job.release();  // adopted by the second function, which always runs
  owner_.host_.RunInBackground([raw, work] { work(raw); },
                               [raw, end, id = id_, owner = &owner_] {
                                 const std::unique_ptr<Job> self(raw);
                                 FollowerFeed* const feed = owner->FeedById(id);
                                 if (feed == nullptr) return;
                                 feed->job_runs_ = false;
                                 (feed->*end)(raw);
                               });
}

// A snapshot that nobody is to be sent: who can go on without one does not wait for the next.
bool FollowerFeed::IsReplaced(const std::optional<SnapshotEntry>& snapshot) const {
  return snapshot && owner_.remake_.Replaces(snapshot->number);
}

// Looks, on a worker, where the follower can go on: behind its own last record, else behind the
// newest snapshot. The manifest is a copy, so a file that it names may be gone by then, which only
// means to search again; kSearchesMax ends that.
void FollowerFeed::Search() {
  Manifest manifest = owner_.store_->journal().CopyManifest();
  const bool full = !same_cluster_ || searches_ > 0;
  if (full && IsReplaced(manifest.snapshot)) {
    state_ = State::kWaiting;
    return;
  }
  state_ = State::kSearching;
  if (++searches_ > kSearchesMax) {
    if (search_error_.empty()) return Fail("the log is cut faster than it can be sent");
    if (search_snapshot_ != 0) owner_.remake_.Note(search_snapshot_, search_error_);
    return Fail("nothing is found that it can go on from: " + search_error_);
  }
  auto job = std::make_unique<Job>();
  job->files = &owner_.files_;
  job->directory = owner_.directory_;
  job->after = after_;
  job->full = full;
  job->manifest = std::move(manifest);
  const auto work = [](Job* self) {
    const auto open = [self](const RecordName& after) -> Status {
      ASSIGN_OR_RETURN(LogStream::Opened opened,
                       LogStream::Open(*self->files, self->directory, self->manifest, after));
      self->stream = std::move(opened.stream);
      self->found = opened.found;
      return Status::Ok();
    };
    if (!self->full) {
      self->status = open(self->after);
      self->partial = self->stream != nullptr;
      self->refused = self->found;
      if (self->partial || !self->status.ok()) return;
    }
    if (!self->manifest.snapshot) {
      self->status = open({});
      return;
    }
    const std::string path = JoinPath(
        self->directory, FormatFileName(StoreFileKind::kSnapshot, self->manifest.snapshot->number));
    auto reader = SnapshotReader::Open(*self->files, path);
    self->status = reader.status();
    if (!reader.ok()) return;
    self->has_snapshot = true;
    self->snapshot = *self->manifest.snapshot;
    self->end_bytes = (*reader)->file_bytes() - (*reader)->footer_offset();
    self->status = open({.lsn = self->snapshot.lsn,
                         .commit_micros = (*reader)->header().commit_micros,
                         .identity = 0});
    if (!self->status.ok() || self->stream == nullptr) return;
    auto file = self->files->OpenForReading(path);
    self->status = file.status();
    if (file.ok()) self->file = *std::move(file);
  };
  Run(std::move(job), work, &FollowerFeed::EndSearch);
}

// Without a place to begin, or after a failure, the feed waits, and OnTick searches again: at once,
// or when the snapshot that is begun here has been written.
void FollowerFeed::EndSearch(Job* job) {
  if (job->refused != LogStream::Found::kYes) {
    ++owner_.stats_.partial_syncs_refused;
    Log(LogSeverity::kNotice, fmt::format("Follower {}:{}: record {} {}", address_.host,
                                          address_.port, FormatLsn(after_.lsn),
                                          job->refused == LogStream::Found::kDiverged
                                              ? "is not the one of this log"
                                              : "is no longer in the files of the log"));
  }
  // A file that has gone since the manifest was copied: look again. Everything else looks alike,
  // and is told if it stays.
  search_error_.clear();
  if (!job->status.ok()) {
    search_error_ = job->status.text();
    search_snapshot_ = job->manifest.snapshot ? job->manifest.snapshot->number : 0;
    state_ = State::kWaiting;
    return;
  }
  if (!job->partial && IsReplaced(job->manifest.snapshot)) {
    state_ = State::kWaiting;
    return;
  }
  if (job->stream == nullptr) {
    state_ = State::kWaiting;
    Journal& journal = owner_.store_->journal();
    if (journal.snapshot_running()) return;
    if (const Status begun = journal.StartSnapshot(); !begun.ok()) Fail(begun.text());
    return;
  }
  stream_ = std::move(job->stream);
  if (!job->partial) return BeginFull(job);
  ++owner_.stats_.partial_syncs_served;
  begun_ = position_ = stream_->position();
  std::string body;
  PutFixed64(&body, owner_.identity_.cluster);
  body.push_back(owner_.is_leader() ? '\1' : '\0');
  Write(FrameKind::kFrom, body);
  state_ = State::kLog;
  Pump();
}

// `common` is the last record that the follower may share with this log: what it has behind that is
// no part of the leader's history, and it saves it aside. The snapshot goes over a link of its own,
// which shows the ticket; records wait until the copy is in place.
void FollowerFeed::BeginFull(Job* job) {
  ++owner_.stats_.full_syncs_served;
  begun_ = position_ = stream_->position();
  uint64_t common = 0;
  if (same_cluster_) {
    Journal& journal = owner_.store_->journal();
    auto last = journal.LastSeqOf(after_.lsn.epoch);
    // Two have led in the same epoch: they parted somewhere in it.
    if (last && *last >= after_.lsn.seq && after_.lsn.epoch > 0)
      last = journal.LastSeqOf(after_.lsn.epoch - 1);
    if (last) common = std::min(*last, after_.lsn.seq);
  }
  const uint64_t ticket = owner_.random_.Next();
  std::string body;
  PutFixed64(&body, owner_.identity_.cluster);
  body.push_back(owner_.is_leader() ? '\1' : '\0');
  PutFixed64(&body, common);
  body.push_back(job->has_snapshot ? '\1' : '\0');
  PutLsn(&body, job->snapshot.lsn);
  PutFixed64(&body, job->snapshot.bytes);
  PutFixed64(&body, job->snapshot.hash);
  PutFixed64(&body, job->end_bytes);
  PutFixed64(&body, ticket);
  Write(FrameKind::kFull, body);
  Log(LogSeverity::kNotice,
      fmt::format("Follower {}:{} gets a full copy: {}", address_.host, address_.port,
                  job->has_snapshot
                      ? fmt::format("a snapshot of {} bytes, then the log from record {} on",
                                    job->snapshot.bytes, FormatLsn(job->snapshot.lsn))
                      : "the whole log"));
  state_ = State::kCopying;
  owner_.UpdateRetention();
  if (!job->has_snapshot) return;
  serve_ = std::make_unique<SnapshotServe>(owner_, id_, ticket,
                                           SnapshotServe::Source{.file = std::move(job->file),
                                                                 .number = job->snapshot.number,
                                                                 .bytes = job->snapshot.bytes,
                                                                 .end_bytes = job->end_bytes});
}

// --- sending

void FollowerFeed::Pump(bool at_once) {
  postpones_ = false;
  if (link_ == nullptr || job_runs_ || state_ != State::kLog || IsUnanswered()) return;
  const Lsn commit = owner_.store_->journal().released_lsn();
  size_t sent = 0;
  while (link_->waiting_bytes() < kWindowBytes && !IsUnanswered()) {
    if (sent >= kPieceBytes) {
      owner_.host_.WakeSoon();
      break;
    }
    const auto piece = owner_.tail_.Behind(position_, PieceBytes(kPieceBytes));
    if (!piece) return ReadLog();
    if (piece->records.empty()) break;
    // Each frame has a head: what a few turns have written goes together.
    const int64_t now = owner_.clock_.MonotonicMicros();
    postpones_ =
        !at_once && piece->records.size() < kSmallBytes && now - records_micros_ < kGatherMicros;
    if (postpones_) return;
    records_micros_ = now;
    stream_.reset();
    sent += piece->records.size();
    SendRecords(piece->records, piece->last);
  }
  // Under load the next records tell of it anyway.
  if (commit > commit_sent_ && owner_.clock_.MonotonicMicros() - commit_micros_ >= kCommitMicros)
    SendBeat(false);
}

// The tail begins behind where this follower stands.
void FollowerFeed::ReadLog() {
  if (stream_ == nullptr || stream_->position() != position_) {
    // It kept up once, and has fallen behind what is in memory.
    after_ = {.lsn = position_, .commit_micros = 0, .identity = 0};
    return Fail("it has fallen behind what is kept in memory; it may come again");
  }
  auto job = std::make_unique<Job>();
  job->manifest = owner_.store_->journal().CopyManifest();
  job->last = owner_.store_->journal().flushed_lsn();
  job->stream = std::move(stream_);
  job->bytes_max = PieceBytes(kPieceBytes);
  const auto work = [](Job* self) {
    self->status = self->stream->Read(self->manifest, self->last, self->bytes_max, &self->bytes);
  };
  Run(std::move(job), work, &FollowerFeed::EndReadLog);
}

void FollowerFeed::EndReadLog(Job* job) {
  stream_ = std::move(job->stream);
  if (!job->status.ok()) return Fail(job->status.text());
  // Nothing: the log's writer still has what comes next. A tick or turn looks again.
  if (job->bytes.empty()) return;
  // A long record goes alone (frame.h), and what was read before it in a frame of its own.
  for (std::string_view rest = job->bytes; !rest.empty();) {
    const RecordPlace place = PlaceOfRecords(rest, kFrameRecordsMax);
    SendRecords(rest.substr(0, place.bytes), place.lsn);
    rest.remove_prefix(place.bytes);
  }
  Pump();
}

bool FollowerFeed::IsUnanswered() const {
  if (!answered_ && unanswered_bytes_ > 0) return true;
  return unanswered_bytes_ > kUnansweredBytes &&
         owner_.clock_.MonotonicMicros() - unanswered_since_ > kUnansweredMicros;
}

void FollowerFeed::SendRecords(std::string_view records, Lsn last) {
  const Lsn commit = std::min(owner_.store_->journal().released_lsn(), last);
  std::string body;
  PutLsn(&body, commit);
  Write(FrameKind::kRecords, body, records);
  if (unanswered_bytes_ == 0) unanswered_since_ = owner_.clock_.MonotonicMicros();
  unanswered_bytes_ += records.size();
  position_ = last;
  commit_sent_ = std::max(commit_sent_, commit);
  const int64_t now = owner_.clock_.MonotonicMicros();
  beat_micros_ = now;
  // Some ten milliseconds share a mark.
  if (sent_.empty() || now - sent_.back().micros > 10'000) {
    sent_.push_back({last, now});
  } else {
    sent_.back().lsn = last;
  }
}

void FollowerFeed::AskForSync() {
  Pump(true);
  if (link_ != nullptr && state_ == State::kLog && durable_ < position_) SendBeat(true);
}

void FollowerFeed::SendBeat(bool sync) {
  Journal& journal = owner_.store_->journal();
  const Lsn commit = std::min(journal.released_lsn(), position_);
  std::string body;
  PutLsn(&body, commit);
  PutLsn(&body, journal.last_lsn());
  PutFixed64(&body, static_cast<uint64_t>(owner_.clock_.WallMicros()));
  body.push_back(sync ? '\1' : '\0');
  Write(FrameKind::kBeat, body);
  commit_sent_ = std::max(commit_sent_, commit);
  beat_micros_ = commit_micros_ = owner_.clock_.MonotonicMicros();
}

void FollowerFeed::HandOver(Lsn last) {
  std::string body;
  PutLsn(&body, last);
  Write(FrameKind::kLead, body);
}

void FollowerFeed::OnTick() {
  if (link_ == nullptr) return;
  const int64_t now = owner_.clock_.MonotonicMicros();
  if (now - acked_micros_ > owner_.options_.timeout_micros) return Fail("it has been silent");
  if (state_ == State::kWaiting && !job_runs_ && !owner_.store_->journal().snapshot_running())
    return Search();
  if (serve_ != nullptr) serve_->OnTick();
  Pump();
  if (link_ != nullptr && state_ != State::kHello && now - beat_micros_ >= kBeatMicros)
    SendBeat(false);
}

FollowerFigures FollowerFeed::Figures() const {
  const int64_t now = owner_.clock_.MonotonicMicros();
  FollowerFigures figures{.address = address_,
                          .node = node_,
                          .priority = priority_,
                          .state = "wait_bgsave",
                          .durable = durable_,
                          .applied = applied_,
                          .ack_age_micros = now - acked_micros_,
                          .lag_micros = sent_.empty() ? 0 : now - sent_.front().micros,
                          .skew_micros = skew_micros_};
  if (state_ == State::kCopying) figures.state = "send_bulk";
  if (state_ == State::kLog) figures.state = "online";
  return figures;
}

}  // namespace cellar
