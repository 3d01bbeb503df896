// See snapshot_fetch.h.
#include "replica/snapshot_fetch.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "replica/replication.h"

namespace cellar {

struct SnapshotFetch::Job {
  std::unique_ptr<WritableFile> file;
  uint64_t place{0};
  uint64_t file_bytes{0};
  uint64_t end_bytes{0};
  std::string bytes;
  Status status;
};

SnapshotFetch::SnapshotFetch(Replication& owner, uint64_t id, const SnapshotEntry& entry,
                             uint64_t end_bytes)
    : owner_(owner),
      id_(id),
      entry_(entry),
      end_bytes_(end_bytes),
      intake_(entry, end_bytes),
      heard_micros_(owner.clock_.MonotonicMicros()) {}

SnapshotFetch::~SnapshotFetch() { Hangup(); }

void SnapshotFetch::Hangup() {
  if (dialling_) owner_.host_.CancelDial(this);
  dialling_ = false;
  if (link_ != nullptr) link_->Close();
  link_ = nullptr;
}

Status SnapshotFetch::Begin(const NodeAddress& leader, const std::string& path, uint64_t ticket) {
  ASSIGN_OR_RETURN(const bool there, owner_.files_.Exists(path));
  if (there) RETURN_IF_ERROR(owner_.files_.Remove(path));
  ASSIGN_OR_RETURN(file_, owner_.files_.Create(path));
  ticket_ = ticket;
  dialling_ = true;
  owner_.host_.Dial(leader.host, leader.port, this);
  return Status::Ok();
}

// Whoever steps it next gets to know.
void SnapshotFetch::Fail(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
  Hangup();
  owner_.host_.WakeSoon();
}

void SnapshotFetch::OnConnected(PeerLink* link) {
  dialling_ = false;
  link_ = link;
  link_->Write(greeting_.Begin(owner_.options_, owner_.identity_, "bulk", ticket_));
}

void SnapshotFetch::OnClosed(std::string_view why) {
  link_ = nullptr;
  dialling_ = false;
  if (received_ < entry_.bytes) Fail("the copy ended too early: " + std::string(why));
}

void SnapshotFetch::OnBytes(std::string_view bytes) {
  owner_.stats_.link_bytes_in += bytes.size();
  heard_micros_ = owner_.clock_.MonotonicMicros();
  std::string rest;
  if (!greeted_) {
    const Result<bool> greeted = greeting_.Take(bytes, &rest);
    if (!greeted.ok()) return Fail(greeted.status().text());
    if (!*greeted) return;
    greeted_ = true;
    bytes = rest;
  }
  reader_.Add(bytes);
  Frame frame;
  while (link_ != nullptr) {
    const Result<bool> next = reader_.Next(&frame);
    if (!next.ok()) return Fail(next.status().text());
    if (!*next) break;
    if (frame.kind == FrameKind::kError) return Fail(WhatItSays(frame));
    TakeChunk(frame);
  }
  WriteSome();
  UpdateReading();
}

void SnapshotFetch::TakeChunk(const Frame& frame) {
  BodyReader body(frame.body);
  const uint64_t place = body.U64();
  const std::string_view bytes = body.Rest();
  if (!body.ok() || place != received_ || bytes.empty() || bytes.size() > entry_.bytes - place)
    return Fail("a piece of its snapshot is out of place");
  incoming_ += bytes;
  received_ += bytes.size();
}

void SnapshotFetch::WriteSome() {
  if (job_runs_ || incoming_.empty() || !failure_.empty()) return;
  auto job = std::make_unique<Job>();
  job->file = std::move(file_);
  job->place = written_;
  job->file_bytes = entry_.bytes;
  job->end_bytes = end_bytes_;
  job->bytes = std::exchange(incoming_, {});
  job_runs_ = true;
  Job* const raw = job.release();  // adopted by the second function, which always runs
  owner_.host_.RunInBackground(
      [raw] {
        std::string_view rest = raw->bytes;
        for (uint64_t place = raw->place; !rest.empty() && raw->status.ok();) {
          const SnapshotPart part = SnapshotPartAt(place, raw->file_bytes, raw->end_bytes);
          const std::string_view piece = rest.substr(0, part.bytes);
          raw->status = raw->file->WriteAt(part.offset, piece);
          raw->file->BeginWriteback(part.offset, piece.size());
          rest.remove_prefix(piece.size());
          place += piece.size();
        }
      },
      [raw, owner = &owner_, id = id_] {
        const std::unique_ptr<Job> self(raw);
        SnapshotFetch* const fetch = owner->FetchById(id);
        if (fetch != nullptr) fetch->EndWrite(raw);
      });
}

void SnapshotFetch::EndWrite(Job* job) {
  job_runs_ = false;
  if (!job->status.ok()) return Fail(job->status.text());
  file_ = std::move(job->file);
  written_ += job->bytes.size();
  intake_.Add(job->bytes);
  added_ += job->bytes.size();
  load_waits_ = true;
  WriteSome();
  UpdateReading();
  owner_.host_.WakeSoon();
}

Result<bool> SnapshotFetch::Step(int64_t deadline_micros) {
  if (!failure_.empty()) return Status::Error(ErrorCode::kErr, failure_);
  if (!load_waits_) return false;
  Result<bool> more = intake_.Step(owner_.clock_, deadline_micros);
  if (!more.ok()) {
    // Who sends it may have a better one.
    if (more.status().code() == ErrorCode::kCorruption && link_ != nullptr)
      owner_.Send(link_, FrameKind::kError, more.status().text());
    return std::move(more).status();
  }
  load_waits_ = *more;
  if (!load_waits_) added_ = 0;
  if (intake_.done()) Hangup();
  UpdateReading();
  return load_waits_;
}

void SnapshotFetch::UpdateReading() {
  if (link_ == nullptr) return;
  // A part that only loads when it is whole does not hold up what it waits for.
  const size_t waiting = incoming_.size() + (load_waits_ || job_runs_ ? added_ : 0);
  const bool reads = waiting < kWaitingBytesMax;
  if (reads == reading_) return;
  reading_ = reads;
  link_->SetReading(reads);
}

size_t SnapshotFetch::memory_bytes() const {
  return incoming_.capacity() + intake_.memory_bytes() + reader_.memory_bytes();
}

}  // namespace cellar
