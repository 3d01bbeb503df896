// See message_links.h.
#include "server/message_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "base/os/log.h"
#include "commands/config/config.h"
#include "commands/session/pubsub.h"
#include "commands/session/services.h"
#include "replica/greeting.h"
#include "replica/links/frame.h"
#include "replica/set_node.h"

namespace cellar {

// Dialled by this node, which speaks.
class MessageLinks::Out final : public PeerHandler {
 public:
  Out(MessageLinks& links, uint64_t node, std::string host, uint16_t port)
      : links_(links), node_(node), host_(std::move(host)), port_(port) {}
  ~Out() override { Drop(); }

  uint64_t node() const { return node_; }
  bool IsAt(const NodeAddress& at) const { return host_ == at.host && port_ == at.port; }
  void DialIfDue(int64_t now) {
    if (link_ != nullptr || dialling_ || now < redial_micros_) return;
    redial_micros_ = now + kRedialMicros;
    dialling_ = true;
    links_.dialler_.Dial(host_, port_, this);
  }
  void Add(bool shard, std::string_view channel, std::string_view message) {
    if (!greeted_) return;
    const size_t bytes = channel.size() + message.size();
    if (link_->waiting_bytes() + body_.size() + bytes > kWaitingBytesMax) return Overflow();
    full_ = false;
    if (body_.size() + bytes > kMessageBytesMax) Send();
    body_.push_back(shard ? '\1' : '\0');
    PutLengthPrefixed(&body_, channel);
    PutLengthPrefixed(&body_, message);
  }
  void Send() {
    if (!greeted_ || body_.empty()) return body_.clear();
    const Replication& replication = links_.host_.replication();
    link_->Write(EncodeFrame({.kind = FrameKind::kMessage,
                              .room = true,
                              .term = replication.term(),
                              .from = replication.node(),
                              .sent_micros = 0,
                              .echo_micros = 0},
                             body_));
    body_.clear();
  }

  // --- PeerHandler
  void OnConnected(PeerLink* link) override {
    dialling_ = false;
    link_ = link;
    link_->Write(links_.host_.replication().BeginGreeting(&greeting_, "message", 0));
  }
  void OnBytes(std::string_view bytes) override {
    if (greeted_) return Drop();  // it has nothing to say
    std::string rest;
    const Result<bool> done = greeting_.Take(bytes, &rest);
    if (!done.ok()) {
      // An older version is not asked all the time. One that loads, or has not joined yet, is.
      const bool is_older = done.status().text().find("no such purpose") != std::string::npos;
      if (is_older) redial_micros_ += 20 * kRedialMicros;
      Log(LogSeverity::kVerbose,
          fmt::format("Messages do not reach {}:{}: {}", host_, port_, done.status().text()));
      return Drop();
    }
    if (!*done) return;
    if (greeting_.node() != node_ || !rest.empty()) return Drop();
    greeted_ = true;
  }
  void OnDrained() override {}
  void OnClosed(std::string_view) override {
    link_ = nullptr;
    Drop();
  }

 private:
  void Overflow() {
    if (std::exchange(full_, true)) return;
    Log(LogSeverity::kWarning,
        fmt::format("{}:{} takes too few messages: some are not told there", host_, port_));
  }
  void Drop() {
    if (std::exchange(dialling_, false)) links_.dialler_.CancelDial(this);
    if (link_ != nullptr) link_->Close();
    link_ = nullptr;
    greeted_ = false;
    greeting_ = {};
    body_.clear();
  }

  MessageLinks& links_;
  const uint64_t node_;
  const std::string host_;
  const uint16_t port_;
  PeerLink* link_{nullptr};
  PeerGreeting greeting_;
  std::string body_;
  int64_t redial_micros_{0};
  bool dialling_{false};
  bool greeted_{false};
  bool full_{false};  // the last message was dropped
};

// The other's, which is heard.
class MessageLinks::In final : public PeerHandler {
 public:
  In(MessageLinks& links, PeerLink* link, uint64_t node)
      : links_(links), link_(link), node_(node) {}
  ~In() override {
    if (link_ != nullptr) link_->Close();
  }
  bool dead() const { return link_ == nullptr; }

  // --- PeerHandler
  void OnConnected(PeerLink*) override {}
  void OnBytes(std::string_view bytes) override {
    reader_.Add(bytes);
    Frame frame;
    while (link_ != nullptr) {
      const Result<bool> next = reader_.Next(&frame);
      if (next.ok() && !*next) return;
      if (!next.ok() || frame.from != node_ || !Take(frame.body)) {
        Log(LogSeverity::kWarning, fmt::format("Messages of {:016x} are none", node_));
        link_->Close();
        link_ = nullptr;
      }
    }
  }
  void OnDrained() override {}
  void OnClosed(std::string_view) override { link_ = nullptr; }

 private:
  bool Take(std::string_view body) {
    while (!body.empty()) {
      const bool shard = body[0] != '\0';
      body.remove_prefix(1);
      std::string_view channel;
      std::string_view message;
      if (!GetLengthPrefixed(&body, &channel) || !GetLengthPrefixed(&body, &message)) return false;
      (void)links_.host_.services().pubsub.Publish(
          links_.host_, shard ? ChannelKind::kShard : ChannelKind::kChannel, channel, message,
          Lsn{});
    }
    return true;
  }

  MessageLinks& links_;
  PeerLink* link_;
  const uint64_t node_;
  FrameReader reader_{FrameKind::kMessage};
};

MessageLinks::MessageLinks(Host& host, ReplicationHost& dialler) : host_(host), dialler_(dialler) {}

MessageLinks::~MessageLinks() = default;

bool MessageLinks::active() const {
  return host_.replication().set() != nullptr && host_.services().config.cluster_forward;
}

void MessageLinks::Publish(bool shard, std::string_view channel, std::string_view message) {
  if (!active() || channel.size() + message.size() > kMessageBytesMax) return;
  for (const auto& out : outs_) out->Add(shard, channel, message);
  published_ = true;
}

PeerHandler* MessageLinks::Accept(PeerLink* link, uint64_t node) {
  ins_.push_back(std::make_unique<In>(*this, link, node));
  return ins_.back().get();
}

void MessageLinks::OnTurn() {
  if (!std::exchange(published_, false)) return;
  for (const auto& out : outs_) out->Send();
}

std::map<uint64_t, NodeAddress> MessageLinks::Others() const {
  std::map<uint64_t, NodeAddress> others;
  for (const auto& [number, set] : host_.services().cluster_view.sets.sets())
    for (const ClusterMember& member : set.members)
      others[member.node] = {member.host, member.port};
  for (const SetMember& member : host_.replication().set()->set().members().list)
    others[member.id] = {member.host, member.port};
  others.erase(host_.replication().node());
  return others;
}

void MessageLinks::OnTick() {
  std::erase_if(ins_, [](const auto& in) { return in->dead(); });
  if (!active()) return outs_.clear();
  std::map<uint64_t, NodeAddress> others = Others();
  std::erase_if(outs_, [&others](const auto& out) {
    const auto found = others.find(out->node());
    return found == others.end() || !out->IsAt(found->second);
  });
  for (const auto& out : outs_) others.erase(out->node());
  for (const auto& [node, at] : others)
    outs_.push_back(std::make_unique<Out>(*this, node, at.host, at.port));
  const int64_t now = host_.clock().MonotonicMicros();
  for (const auto& out : outs_) out->DialIfDue(now);
}

}  // namespace cellar
