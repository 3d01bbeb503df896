// See work_memory.h.
#include "commands/session/work_memory.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {

WorkMemory::Lease& WorkMemory::Lease::operator=(Lease&& other) noexcept {
  if (part_ != nullptr) of_->GiveBack(part_.get());
  of_ = other.of_;
  part_ = std::move(other.part_);
  return *this;
}

WorkMemory::Lease::~Lease() {
  if (part_ != nullptr) of_->GiveBack(part_.get());
}

void WorkMemory::Lease::ShrinkTo(size_t bytes) {
  CELLAR_ASSERT(granted());
  if (part_ == nullptr || part_->bytes <= bytes) return;
  CELLAR_ASSERT(of_->TakenBy(*part_) >= part_->bytes);
  of_->TakenBy(*part_) -= part_->bytes - bytes;
  part_->bytes = bytes;
  of_->WakeGranted();
}

WorkMemory::~WorkMemory() {
  CELLAR_ASSERT(taken_bytes() == 0);
  CELLAR_ASSERT(waiting_.empty());
}

void WorkMemory::Configure(int64_t work_max, int64_t maxmemory) {
  const int64_t bound = maxmemory > 0 ? std::min(work_max, maxmemory / 4) : work_max;
  bound_ = static_cast<size_t>(std::max<int64_t>(bound, 1));
  WakeGranted();
}

bool WorkMemory::HasRoom(size_t bytes) const {
  return waiting_.empty() && Fits(std::min(bytes, bound_));
}

WorkMemory::Lease WorkMemory::Take(WorkKind kind, size_t bytes) {
  CELLAR_ASSERT(kind != WorkKind::kPage);  // they wait for nobody
  auto part = std::make_unique<Part>(Part{kind, std::min(bytes, bound_), false});
  waiting_.push_back(part.get());
  GrantWaiting();
  return Lease(this, std::move(part));
}

WorkMemory::Lease WorkMemory::TakeIfRoom(WorkKind kind, size_t bytes) {
  CELLAR_ASSERT(kind != WorkKind::kPage);
  if (bytes > bound_ || !HasRoom(bytes)) return {};
  return Grant(kind, bytes);
}

WorkMemory::Lease WorkMemory::TakeAtOnce(WorkKind kind, size_t bytes) {
  CELLAR_ASSERT(kind != WorkKind::kPage);
  return Grant(kind, bytes);
}

WorkMemory::Lease WorkMemory::TakePage(size_t bytes) {
  const size_t left = bound_ - std::min(bound_, taken_bytes(WorkKind::kPage));
  return Grant(WorkKind::kPage, std::min(bytes, std::max(left / 2, kPageBytesMin)));
}

WorkMemory::Lease WorkMemory::Grant(WorkKind kind, size_t bytes) {
  auto part = std::make_unique<Part>(Part{kind, bytes, true});
  TakenBy(*part) += bytes;
  return Lease(this, std::move(part));
}

void WorkMemory::GiveBack(Part* part) {
  if (part->granted) {
    CELLAR_ASSERT(TakenBy(*part) >= part->bytes);
    TakenBy(*part) -= part->bytes;
  } else {
    waiting_.remove(part);
  }
  WakeGranted();
}

void WorkMemory::GrantWaiting() {
  while (!waiting_.empty() && Fits(waiting_.front()->bytes)) {
    Part* const part = waiting_.front();
    waiting_.pop_front();
    part->granted = true;
    TakenBy(*part) += part->bytes;
  }
}

// They look again in the next turn.
void WorkMemory::WakeGranted() {
  const size_t waiting_before = waiting_.size();
  GrantWaiting();
  if (waiting_.size() < waiting_before && wake_) wake_();
}

}  // namespace cellar
