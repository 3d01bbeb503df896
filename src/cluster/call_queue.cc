// See call_queue.h.
#include "cluster/call_queue.h"

#include <algorithm>

#include "base/assert.h"
#include "base/free_string.h"
#include "cluster/call_frames.h"

namespace cellar {

void CallQueue::Begin(uint64_t channel) {
  CELLAR_ASSERT(calls_.empty());
  CELLAR_ASSERT(!begun_);
  channel_ = channel;
  first_ = 1;
  moved_ = 0;
}

CallQueue::Added CallQueue::Add(bool writes) {
  CELLAR_ASSERT(channel_ != 0);
  CELLAR_ASSERT(!moved());
  CELLAR_ASSERT(texts_.size() > begin_of_new_);
  const std::string_view text = std::string_view(texts_).substr(begin_of_new_);
  calls_.push_back({text.size(), writes});
  begin_of_new_ = texts_.size();
  return {first_ + calls_.size() - 1, text};
}

void CallQueue::Pop() {
  texts_begin_ += calls_.front().bytes;
  calls_.pop_front();
  ++first_;
  begun_ = false;
  if (calls_.empty()) {
    if (texts_.capacity() > kMoveBytes) {
      FreeString(&texts_);
    } else {
      texts_.clear();
    }
    texts_begin_ = begin_of_new_ = 0;
  } else if (texts_begin_ > kMoveBytes) {
    texts_.erase(0, texts_begin_);
    begin_of_new_ -= texts_begin_;
    texts_begin_ = 0;
  }
}

Status CallQueue::Answer(uint64_t first, uint64_t count) {
  if (first != first_ || count > calls_.size() || (moved() && first + count > moved_))
    return Status::Error(ErrorCode::kCorruption, "an answer to a call that is not its turn");
  for (uint64_t i = 0; i < count; ++i) Pop();
  return Status::Ok();
}

Status CallQueue::Begun(uint64_t number) {
  if (number != first_ || calls_.empty() || (moved() && number >= moved_))
    return Status::Error(ErrorCode::kCorruption, "a part of a reply that is not its turn");
  begun_ = true;
  return Status::Ok();
}

Status CallQueue::Moved(uint64_t number) {
  if (moved() || number < first_ || number > first_ + calls_.size())
    return Status::Error(ErrorCode::kCorruption, "calls have moved that there are not");
  moved_ = number;
  return Status::Ok();
}

CallFate CallQueue::Fate() const {
  if (calls_.empty()) return CallFate::kNothing;
  // Of what has moved nothing was done.
  const size_t sent = moved() ? static_cast<size_t>(moved_ - first_) : calls_.size();
  const bool unknown =
      begun_ || std::any_of(calls_.begin(), calls_.begin() + static_cast<std::ptrdiff_t>(sent),
                            [](const Entry& call) { return call.writes; });
  return unknown ? CallFate::kUnknown : CallFate::kAskAgain;
}

std::string CallQueue::TakeBack() {
  std::string requests;
  size_t at = texts_begin_;
  for (const Entry& call : calls_) {
    AppendRequest(std::string_view(texts_).substr(at, call.bytes), &requests);
    at += call.bytes;
  }
  Drop();
  return requests;
}

void CallQueue::Drop() {
  calls_.clear();
  FreeString(&texts_);
  texts_begin_ = begin_of_new_ = 0;
  begun_ = false;
  End();
}

}  // namespace cellar
