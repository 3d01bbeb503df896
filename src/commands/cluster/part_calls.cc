// See part_calls.h.
#include "commands/cluster/part_calls.h"

#include <fmt/format.h>

#include "cluster/call_frames.h"
#include "commands/cluster/reply_reader.h"
#include "commands/session/remote_calls.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

bool IsOfOneAway(const Status& failed) {
  return failed.code() == ErrorCode::kClusterDown || failed.code() == ErrorCode::kTryAgain ||
         failed.code() == ErrorCode::kLoading;
}

}  // namespace

std::string PartName(std::string_view feed, uint64_t set) {
  return fmt::format("{}@{}", feed, set);
}

void PartCalls::Ask(uint64_t key, uint64_t set, const std::vector<std::string_view>& words) {
  begun_ = true;
  calls_[key].ticket = host_.services().remote->Ask(session_, set, CallOf(words), false);
}

Result<bool> PartCalls::Take() { return Take(Failures::kEnd); }

Result<bool> PartCalls::TakeSome() { return Take(Failures::kAreLeftOut); }

Result<bool> PartCalls::Take(Failures failures) {
  RemoteCalls& remote = *host_.services().remote;
  bool all = true;
  for (auto& [key, call] : calls_) {
    if (!call.ticket) continue;
    const RemoteCalls::Answer& answer = remote.AnswerTo(*call.ticket);
    if (answer.state == RemoteCalls::State::kPending) {
      all = false;
      continue;
    }
    if (answer.state == RemoteCalls::State::kAnswered && !answer.bytes.starts_with('-')) {
      call.reply = answer.bytes;
    } else if (const Status failed = StatusOfLine(FailureOf(answer));
               failures == Failures::kEnd || !IsOfOneAway(failed)) {
      Forget();
      return failed;
    }
    remote.Forget(*call.ticket);
    call.ticket.reset();
  }
  return all;
}

const std::string* PartCalls::ReplyOf(uint64_t key) const {
  const auto found = calls_.find(key);
  return found == calls_.end() || !found->second.reply ? nullptr : &*found->second.reply;
}

void PartCalls::Forget() {
  for (const auto& [key, call] : calls_)
    if (call.ticket) host_.services().remote->Forget(*call.ticket);
  calls_.clear();
  begun_ = false;
}

size_t PartCalls::memory_bytes() const {
  size_t bytes = 0;
  for (const auto& [key, call] : calls_) bytes += call.reply ? call.reply->size() : 0;
  return bytes;
}

}  // namespace cellar
