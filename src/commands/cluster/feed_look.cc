// See feed_look.h.
#include "commands/cluster/feed_look.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cluster/call_frames.h"
#include "commands/cluster/reply_reader.h"
#include "commands/session/remote_calls.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

constexpr int64_t kFailedMicros{25'000};

// What RESOLVED ... PAST replies: up to where all is told, and whether there is any.
bool ReadPast(const RemoteCalls::Answer& answer, FeedId* id, bool* has_more) {
  ReplyFields fields;
  std::string_view text;
  uint64_t more = 0;
  const bool is_reply =
      answer.state == RemoteCalls::State::kAnswered && ReadReplyFields(answer.bytes, &fields);
  if (!is_reply || fields.size() != 4 || !ReplyReader(fields[0].second).Bulk(&text) ||
      !ReadOwnId(text, id) || !ReplyReader(fields[3].second).Unsigned(&more))
    return false;
  *has_more = more != 0;
  return true;
}

}  // namespace

std::shared_ptr<FeedLook> FeedLook::Join(Host& host, const Session& session, uint64_t set,
                                         const std::string& name, const FeedId& past) {
  const std::string key = session.keyspace + '\n' + name;
  std::weak_ptr<FeedLook>& known = host.services().feed_looks[key];
  std::shared_ptr<FeedLook> look = known.lock();
  if (look == nullptr) {
    look = std::make_shared<FeedLook>(host, key, set, name, past);
    known = look;
  }
  return look;
}

FeedLook::FeedLook(Host& host, std::string key, uint64_t set, std::string name, const FeedId& past)
    : host_(host), key_(std::move(key)), set_(set), name_(std::move(name)), past_(past) {}

FeedLook::~FeedLook() {
  if (ticket_ != 0) host_.services().remote->Forget(ticket_);
  host_.services().feed_looks.erase(key_);
}

uint64_t FeedLook::News(const Session& session) {
  RemoteCalls& remote = *host_.services().remote;
  const int64_t now = host_.clock().MonotonicMicros();
  if (ticket_ != 0) {
    const RemoteCalls::Answer& answer = remote.AnswerTo(ticket_);
    if (answer.state == RemoteCalls::State::kPending) return news_;
    FeedId id;
    bool has_more = false;
    const bool is_known = ReadPast(answer, &id, &has_more);
    if (is_known)
      past_ = std::max(past_, id);
    else
      retry_micros_ = now + kFailedMicros;
    if (has_more || !is_known) ++news_;
    remote.Forget(std::exchange(ticket_, 0));
  }
  if (now < retry_micros_) return news_;
  const std::string past = past_.text();
  const std::string_view words[] = {"FEED", "RESOLVED", name_, "PAST", past};
  ticket_ = remote.AskToWait(session, set_, CallOf(words));
  return news_;
}

}  // namespace cellar
