// See snapshot_serve.h.
#include "replica/snapshot_serve.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/os/background_pace.h"
#include "base/os/log.h"
#include "replica/follower_feed.h"
#include "replica/replication.h"
#include "store/format/snapshot_format.h"

namespace cellar {

struct SnapshotServe::Job {
  // A frame with the bytes of the file from `offset` on.
  Status MakeFrame(Clock& clock);

  std::unique_ptr<ReadableFile> file;
  FrameHead head;
  uint64_t place{0};
  uint64_t offset{0};
  size_t size{0};
  std::string frame;
  Status status;
};

Status SnapshotServe::Job::MakeFrame(Clock& clock) {
  BackgroundPace pace(clock);
  BeginFrame(head, &frame);
  PutFixed64(&frame, place);
  const size_t begin = frame.size();
  frame.resize(begin + size);
  for (size_t done = 0; done < size;) {
    const size_t wanted = std::min(size - done, kReadBytes);
    ASSIGN_OR_RETURN(const size_t got,
                     file->ReadAt(offset + done, wanted, frame.data() + begin + done));
    if (got < wanted)
      return Status::Error(ErrorCode::kCorruption, "the snapshot is shorter than it was");
    done += got;
    pace.Pause();
  }
  SealFrame(&frame);
  return Status::Ok();
}

SnapshotServe::SnapshotServe(Replication& owner, uint64_t feed, uint64_t ticket, Source source)
    : owner_(owner),
      feed_(feed),
      ticket_(ticket),
      source_(std::move(source)),
      moved_micros_(owner.clock_.MonotonicMicros()) {}

SnapshotServe::~SnapshotServe() {
  if (link_ != nullptr) link_->Close();
}

void SnapshotServe::Attach(PeerLink* link) {
  CELLAR_ASSERT(!attached_);
  attached_ = true;
  link_ = link;
  begin_micros_ = moved_micros_ = owner_.clock_.MonotonicMicros();
  Pump();
}

// A follower's feed ends with its copy. A member of a set has none: it asks again when its link
// has gone. What nobody has come for has ended, too: its file may be one that is gone otherwise.
void SnapshotServe::Fail(std::string_view why) {
  if (FollowerFeed* const feed = owner_.FeedById(feed_); feed != nullptr) return feed->Fail(why);
  attached_ = true;
  if (link_ == nullptr) return;
  Log(LogSeverity::kWarning, fmt::format("A copy for {} is given up: {}", link_->peer_host(), why));
  link_->Close();
  link_ = nullptr;
}

void SnapshotServe::OnClosed(std::string_view why) {
  link_ = nullptr;
  // A follower closes it when it has everything; it says so on the other link.
  if (place_ < source_.bytes) Fail(std::string("its copy ended too early: ").append(why));
}

void SnapshotServe::OnBytes(std::string_view bytes) {
  owner_.stats_.link_bytes_in += bytes.size();
  reader_.Add(bytes);
  Frame frame;
  const Result<bool> next = reader_.Next(&frame);
  if (!next.ok()) return Fail(next.status().text());
  if (!*next) return;
  // All that it says is that the copy is damaged: on the way each frame has a checksum.
  const std::string why = WhatItSays(frame);
  owner_.remake_.Note(source_.number, why);
  Fail(why);
}

void SnapshotServe::Pump() {
  if (link_ == nullptr || job_runs_) return;
  // What waits here was not taken by the socket in the turn that wrote it: OnDrained will come.
  if (link_->waiting_bytes() >= kWindowBytes) return;
  if (place_ == source_.bytes) return;
  const int64_t now = owner_.clock_.MonotonicMicros();
  moved_micros_ = now;
  const uint64_t rate = owner_.options_.sync_bytes_per_second;
  if (rate == 0) return ReadPiece(PieceBytes(now));
  // A twentieth of a second at a time; what was not sent in time is not made up for.
  const auto elapsed = static_cast<uint64_t>(now - begin_micros_);
  const auto allowed =
      static_cast<uint64_t>(static_cast<double>(rate) * static_cast<double>(elapsed) / 1e6);
  if (sent_ > allowed) return;
  if (allowed - sent_ > rate) {
    begin_micros_ = now;
    sent_ = 0;
  }
  ReadPiece(std::clamp<size_t>(rate / 20, kPieceBytesMin, kPieceBytesMax));
}

size_t SnapshotServe::PieceBytes(int64_t now_micros) {
  const auto elapsed = static_cast<uint64_t>(now_micros - std::exchange(piece_micros_, now_micros));
  return std::clamp<uint64_t>(elapsed * kBytesPerMicro, kPieceBytesUsual, kPieceBytesMax);
}

// Within a part of the file: the header, its end, the blocks between them.
void SnapshotServe::ReadPiece(size_t bytes) {
  const SnapshotPart part = SnapshotPartAt(place_, source_.bytes, source_.end_bytes);
  auto job = std::make_unique<Job>();
  job->file = std::move(source_.file);
  job->head = owner_.MakeHead(FrameKind::kChunk);
  job->place = place_;
  job->offset = part.offset;
  job->size = static_cast<size_t>(std::min<uint64_t>(bytes, part.bytes));
  job->frame = std::move(frame_);
  job_runs_ = true;
  Job* const raw = job.release();  // adopted by the second function, which always runs
  owner_.host_.RunInBackground(
      [raw, clock = &owner_.clock_] { raw->status = raw->MakeFrame(*clock); },
      [raw, owner = &owner_, feed = feed_, ticket = ticket_] {
        const std::unique_ptr<Job> self(raw);
        SnapshotServe* const serve = owner->ServeOf(feed, ticket);
        if (serve != nullptr) serve->EndPiece(raw);
      });
}

void SnapshotServe::EndPiece(Job* job) {
  job_runs_ = false;
  if (!job->status.ok()) {
    owner_.remake_.Note(source_.number, job->status.text());
    return Fail(job->status.text());
  }
  source_.file = std::move(job->file);
  frame_ = std::move(job->frame);
  if (link_ == nullptr) return;
  owner_.SendFrame(link_, frame_);
  place_ += job->size;
  sent_ += job->size;
  Pump();
}

void SnapshotServe::OnTick() {
  Pump();
  const int64_t still = owner_.clock_.MonotonicMicros() - moved_micros_;
  if (place_ < source_.bytes && still > owner_.options_.timeout_micros)
    Fail(attached_ ? "it takes nothing of its copy" : "it does not fetch its copy");
}

}  // namespace cellar
