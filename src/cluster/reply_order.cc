// See reply_order.h.
#include "cluster/reply_order.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace cellar {

void ReplyOrder::Begin(const CallClient* owner, size_t calls) {
  CELLAR_ASSERT(empty());
  for (; calls > 0; --calls) Add(owner);
}

void ReplyOrder::Add(const CallClient* owner) {
  CELLAR_ASSERT(!has_back());
  places_.push_back({{}, 0, State::kAsked});
  Join(owner, first_ + places_.size() - 1);
}

void ReplyOrder::Keep(std::string_view reply, Lsn gate) {
  CELLAR_ASSERT(!empty());
  CELLAR_ASSERT(!has_back());
  kept_bytes_ += reply.size();
  if (gate != Lsn{}) {
    gate_ = gated_++ == 0 ? gate : std::max(gate_, gate);
  }
  places_.push_back({std::string(reply), 0, State::kAnswered, gate});
}

ReplyOrder::Lane* ReplyOrder::Find(const CallClient* owner) {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(),
                                  [owner](const Lane& lane) { return lane.owner == owner; });
  return found == lanes_.end() ? nullptr : &*found;
}

bool ReplyOrder::IsInFront(const CallClient* owner) const {
  return std::any_of(lanes_.begin(), lanes_.end(), [&](const Lane& lane) {
    return lane.owner == owner && lane.oldest == first_;
  });
}

void ReplyOrder::Join(const CallClient* owner, uint64_t number) {
  Lane* const lane = Find(owner);
  if (lane == nullptr) {
    lanes_.push_back({owner, number, number, {}});
    return;
  }
  CELLAR_ASSERT(lane->newest < number);
  At(lane->newest).next = number;
  lane->newest = number;
}

bool ReplyOrder::Leave(Lane* lane) {
  const uint64_t next = At(lane->oldest).next;
  lane->oldest = next;
  lane->scanner.Begin();
  if (next != 0) return false;
  lanes_.erase(lanes_.begin() + (lane - lanes_.data()));
  return true;
}

bool ReplyOrder::Answer(const CallClient* owner, std::string_view bytes, size_t calls,
                        const Emit& emit) {
  Lane* const lane = Find(owner);
  if (lane == nullptr) return false;
  if (calls == 0) {
    if (lane->scanner.Take(bytes) < bytes.size() || lane->scanner.failed()) return false;
    Take(lane->oldest, bytes, false, emit);
    return true;
  }
  for (; calls > 0; --calls) {
    const size_t reply_bytes = lane->scanner.Take(bytes);
    if (!lane->scanner.done() || lane->scanner.failed()) return false;
    const uint64_t number = lane->oldest;
    if (Leave(lane) && calls > 1) return false;
    Take(number, bytes.substr(0, reply_bytes), true, emit);
    bytes.remove_prefix(reply_bytes);
  }
  return bytes.empty();
}

void ReplyOrder::Take(uint64_t number, std::string_view bytes, bool whole, const Emit& emit) {
  if (number != first_) {
    Place& place = At(number);
    place.text.append(bytes);
    kept_bytes_ += bytes.size();
    if (whole) place.state = State::kAnswered;
    return;
  }
  // What came of it before has left.
  emit(bytes, whole, {});
  if (!whole) return;
  places_.pop_front();
  ++first_;
  EmitReady(emit);
}

// What is ready from the front on, and of the first that is not what has come.
void ReplyOrder::EmitReady(const Emit& emit) {
  while (!places_.empty() && places_.front().state != State::kBack) {
    const std::string text = std::exchange(places_.front().text, {});
    const bool whole = places_.front().state == State::kAnswered;
    const Lsn gate = places_.front().gate;
    kept_bytes_ -= text.size();
    if (gate != Lsn{}) --gated_;
    if (whole || !text.empty()) emit(text, whole, gate);
    if (!whole) return;
    places_.pop_front();
    ++first_;
  }
}

bool ReplyOrder::GiveBack(const CallClient* owner, std::string_view requests) {
  Lane* const lane = Find(owner);
  if (lane == nullptr) return requests.empty();
  back_from_ = has_back() ? std::min(back_from_, lane->oldest) : lane->oldest;
  for (uint64_t number = lane->oldest; number != 0;) {
    Place& place = At(number);
    ReplyScanner scanner;  // a request is an array
    const size_t bytes = scanner.Take(requests);
    if (!scanner.done() || scanner.failed()) return false;
    kept_bytes_ = kept_bytes_ - place.text.size() + bytes;
    place.text = requests.substr(0, bytes);
    place.state = State::kBack;
    ++backs_;
    requests.remove_prefix(bytes);
    number = std::exchange(place.next, 0);
  }
  lanes_.erase(lanes_.begin() + (lane - lanes_.data()));
  return requests.empty();
}

uint64_t ReplyOrder::FirstBack() const {
  CELLAR_ASSERT(has_back());
  back_from_ = std::max(back_from_, first_);
  while (At(back_from_).state != State::kBack) ++back_from_;
  return back_from_;
}

std::string_view ReplyOrder::back() const { return At(FirstBack()).text; }

void ReplyOrder::AskedAgain(const CallClient* owner) {
  const uint64_t number = FirstBack();
  Place& place = At(number);
  kept_bytes_ -= place.text.size();
  place.text.clear();
  place.state = State::kAsked;
  --backs_;
  Join(owner, number);
}

void ReplyOrder::Refuse(std::string_view reply, const Emit& emit) {
  Place& place = At(FirstBack());
  kept_bytes_ = kept_bytes_ - place.text.size() + reply.size();
  place.text = reply;
  place.state = State::kAnswered;
  --backs_;
  EmitReady(emit);
}

void ReplyOrder::Clear() {
  places_.clear();
  lanes_.clear();
  backs_ = kept_bytes_ = gated_ = 0;
}

}  // namespace cellar
