// See remote_asks.h.
#include "server/remote_asks.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "cluster/lost_rows.h"
#include "commands/config/config.h"
#include "commands/session/services.h"
#include "commands/session/session.h"

namespace cellar {

class RemoteAsks::AskedCall final : public CallClient {
 public:
  enum class For : uint8_t { kOwner, kOthers };
  // `flags`: of the call. `waits`: for whom it may wait.
  AskedCall(Host& host, const Session& session, uint64_t target, std::string text, uint8_t flags,
            For waits = For::kOwner)
      : host_(host),
        identity_{session.user_name, session.keyspace, session.address,
                  static_cast<uint8_t>(session.version == RespVersion::k3 ? 3 : 2)},
        target_(target),
        text_(std::move(text)),
        flags_(flags),
        waits_for_others_(waits == For::kOthers) {}

  // The number of a set, or a node.
  uint64_t target() const { return target_; }
  const std::string& text() const { return text_; }
  bool is_for_node() const { return (flags_ & kCallHere) != 0; }
  Answer& answer() { return answer_; }
  bool is_pending() const { return answer_.state == State::kPending; }
  bool waits() const { return is_pending() && !sent_; }
  size_t memory_bytes() const {
    return sizeof(*this) + text_.capacity() + answer_.bytes.capacity() + calls().memory_bytes();
  }
  // It has waited for a link for so long; 0: it is new, or was answered.
  int64_t since_micros{0};

  void Send(EntryLink* link) {
    CELLAR_ASSERT(waits());
    link->Begin(this, identity_.view())->append(text_);
    link->Pass(this, flags_);
    sent_ = true;
    sent_micros_ = host_.clock().MonotonicMicros();
    other_set_ = false;
  }
  void End(State state, std::string bytes) {
    CELLAR_ASSERT(is_pending());
    answer_.state = state;
    answer_.bytes = std::move(bytes);
    host_.WakeTasks();
  }

  // --- CallClient
  void OnReply(std::string_view bytes, size_t calls, Lsn) override {
    answer_.bytes.append(bytes);
    if (calls > 0) End(State::kAnswered, std::move(answer_.bytes));
  }
  void OnOtherSet() override { other_set_ = true; }
  void OnMoved(std::string) override {
    if (!is_pending()) return;
    if (other_set_) return End(State::kMoved, {});
    Again();
  }
  void OnUnknown() override {
    if (!is_pending()) return;
    if ((flags_ & kCallWrites) != 0) return End(State::kUnknown, {});
    Again();
  }
  // The asker looks at what it has been answered, and forgets what is too much.
  bool TakesMore() const override { return true; }
  bool WaitsForOthers() const override { return waits_for_others_; }

 private:
  void Again() {
    answer_.bytes.clear();
    sent_ = false;
    // What was carried out for a while before it got lost has all its time again.
    const int64_t now = host_.clock().MonotonicMicros();
    const bool ran = now - sent_micros_ >= host_.services().config.cluster_wait * 500;
    if (since_micros == 0 || ran) since_micros = now;
  }

  Host& host_;
  const CallIdentity identity_;
  const uint64_t target_;
  const std::string text_;
  const uint8_t flags_;
  const bool waits_for_others_;
  bool sent_{false};
  int64_t sent_micros_{0};
  bool other_set_{false};
  Answer answer_;
};

RemoteAsks::RemoteAsks(Host& host, FindLink find_link, FindNodeLink find_node_link,
                       LateText late_text)
    : host_(host),
      find_link_(std::move(find_link)),
      find_node_link_(std::move(find_node_link)),
      late_text_(std::move(late_text)) {}

RemoteAsks::~RemoteAsks() = default;

uint64_t RemoteAsks::Ask(const Session& session, uint64_t set, std::string text, bool writes) {
  const auto flags = static_cast<uint8_t>(writes ? kCallWrites : 0);
  return Add(std::make_unique<AskedCall>(host_, session, set, std::move(text), flags));
}

uint64_t RemoteAsks::AskToWait(const Session& session, uint64_t set, std::string text) {
  return Add(std::make_unique<AskedCall>(host_, session, set, std::move(text), 0,
                                         AskedCall::For::kOthers));
}

uint64_t RemoteAsks::AskNode(const Session& session, uint64_t node, std::string text) {
  const auto flags = static_cast<uint8_t>(kCallWrites | kCallHere);
  return Add(std::make_unique<AskedCall>(host_, session, node, std::move(text), flags));
}

uint64_t RemoteAsks::Add(std::unique_ptr<AskedCall> call) {
  AskedCall* const asked = call.get();
  CELLAR_ASSERT(CheckCall(asked->text()).ok());
  calls_.emplace(++last_ticket_, std::move(call));
  Try(asked);
  return last_ticket_;
}

RemoteCalls::Answer& RemoteAsks::AnswerTo(uint64_t ticket) {
  const auto found = calls_.find(ticket);
  CELLAR_ASSERT(found != calls_.end());
  return found->second->answer();
}

void RemoteAsks::Forget(uint64_t ticket) {
  const size_t forgotten = calls_.erase(ticket);
  CELLAR_ASSERT(forgotten == 1);
}

void RemoteAsks::Try(AskedCall* call) {
  const int64_t now = host_.clock().MonotonicMicros();
  const int64_t patience_micros = host_.services().config.cluster_wait * 1000;
  // Who leads may send it back again and again: that ends, too.
  const bool late = call->since_micros != 0 && now - call->since_micros >= patience_micros;
  // Nobody comes to have it while it waits.
  if (!call->is_for_node() && IsLost(call->target()))
    return call->End(State::kFailed, late_text_(call->target()));
  if (late && call->is_for_node()) return call->End(State::kFailed, {});
  if (late) return call->End(State::kFailed, late_text_(call->target()));
  EntryLink* const link =
      call->is_for_node() ? find_node_link_(call->target()) : find_link_(call->target());
  if (link != nullptr && link->MakeRoom(*call)) return call->Send(link);
  if (call->since_micros == 0) call->since_micros = now;
}

void RemoteAsks::OnTurn() {
  for (const auto& [ticket, call] : calls_) {
    if (call->waits()) Try(call.get());
    const bool rests = !call->is_pending() && call->link() != nullptr;
    if (rests) call->link()->Leave(call.get());
  }
}

bool RemoteAsks::waits() const {
  return std::any_of(calls_.begin(), calls_.end(),
                     [](const auto& call) { return call.second->waits(); });
}

size_t RemoteAsks::memory_bytes() const {
  size_t bytes = 0;
  for (const auto& [ticket, call] : calls_) bytes += call->memory_bytes();
  return bytes;
}

}  // namespace cellar
