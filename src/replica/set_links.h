// The two ends of a member's links. See set_node.h.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/os/log.h"
#include "replica/set_node.h"

namespace cellar {

// Dialled by this node, which alone speaks on it.
class SetNode::OutLink final : public PeerHandler {
 public:
  OutLink(SetNode& node, const Peer& peer) : node_(node), peer_(peer) {}
  ~OutLink() override { Close(); }

  void Close() {
    if (dialling_) node_.owner_.host_.CancelDial(this);
    dialling_ = false;
    if (link_ != nullptr) link_->Close();
    link_ = nullptr;
    greeted_ = false;
  }
  void DialIfDue() {
    const int64_t now = node_.now();
    if (dialling_ && now - dial_micros_ > node_.owner_.options_.election_micros) Close();
    if (dialling_ || link_ != nullptr) {
      // A reply to PEER that does not come is no link.
      if (link_ != nullptr && !greeted_ && now - dial_micros_ > 5 * kHelloMicros) Close();
      return;
    }
    dialling_ = true;
    dial_micros_ = now;
    node_.owner_.host_.Dial(peer_.address.host, peer_.address.port, this);
  }
  bool stands() const { return greeted_ && link_ != nullptr; }
  // Who was there the last time.
  uint64_t node() const { return greeting_.node(); }
  // Why there is no link.
  const std::string& why() const { return why_; }
  size_t waiting_bytes() const { return link_ == nullptr ? 0 : link_->waiting_bytes(); }
  void Write(std::string_view frame) {
    node_.owner_.stats_.link_bytes_out += frame.size();
    link_->Write(frame);
    if (frame.size() >= kLongFrameBytes) long_sent_ = true;
  }
  // A long frame is on its way, or has come there so lately that it may not have been answered.
  bool IsSendingLong() {
    if (link_ == nullptr || !long_sent_) return false;
    if (link_->unacknowledged_bytes() >= kLongFrameBytes / 4)
      long_until_micros_ = node_.now() + node_.owner_.options_.election_micros;
    return node_.now() < long_until_micros_;
  }

  void OnConnected(PeerLink* link) override {
    dialling_ = false;
    link_ = link;
    long_sent_ = false;
    long_until_micros_ = 0;
    link_->SetPatience(node_.owner_.options_.election_micros * 13 / 10);
    link_->Write(greeting_.Begin(node_.owner_.options_, node_.owner_.identity_, "member", 0));
  }
  void OnBytes(std::string_view bytes) override {
    if (greeted_) return Close();  // nothing else is said here
    std::string rest;
    const Result<bool> done = greeting_.Take(bytes, &rest);
    if (!done.ok()) {
      Tell(done.status().text());
      return Close();
    }
    if (!*done) return;
    greeted_ = true;
    failure_.clear();
    node_.Greet(this);
  }
  void OnDrained() override {}
  void OnClosed(std::string_view why) override {
    link_ = nullptr;
    why_ = why;
    if (std::exchange(greeted_, false)) Tell(why);
    dialling_ = false;
  }

 private:
  void Tell(std::string_view why) {
    why_ = why;
    if (failure_ == why) return;
    failure_ = why;
    Log(LogSeverity::kNotice, fmt::format("Member {}: {}", peer_.text, why));
  }

  SetNode& node_;
  const Peer& peer_;
  PeerLink* link_{nullptr};
  PeerGreeting greeting_;
  bool dialling_{false};
  bool greeted_{false};
  int64_t dial_micros_{0};
  bool long_sent_{false};  // by this link
  int64_t long_until_micros_{0};
  std::string failure_;  // as it was told last
  std::string why_;
};

// The other's.
class SetNode::InLink final : public PeerHandler {
 public:
  InLink(SetNode& owner, PeerLink* link, uint64_t cluster, uint64_t node)
      : owner_(owner), link_(link), cluster_(cluster), node_(node) {}
  ~InLink() override {
    if (link_ != nullptr) link_->Close();
  }
  uint64_t node() const { return node_; }
  uint64_t cluster() const { return cluster_; }
  bool stands() const { return link_ != nullptr; }
  void Fail(std::string_view why) {
    Log(LogSeverity::kWarning, fmt::format("Link of member {:016x}: {}", node_, why));
    Drop();
  }
  void Drop() {
    if (link_ != nullptr) link_->Close();
    link_ = nullptr;
  }

  void OnConnected(PeerLink*) override {}
  void OnBytes(std::string_view bytes) override {
    owner_.owner_.stats_.link_bytes_in += bytes.size();
    reader_.Add(bytes);
    Frame frame;
    while (link_ != nullptr) {
      const Result<bool> next = reader_.Next(&frame);
      if (!next.ok()) return Fail(next.status().text());
      if (!*next) break;
      if (frame.from != node_) return Fail("it speaks for another one");
      if (frame.kind == FrameKind::kHello) {
        owner_.OnHello(this, frame);
        has_greeted_ = true;
      } else {
        owner_.OnMemberFrame(this, frame);
      }
      arrived_bytes_ = 0;
    }
    if (link_ == nullptr) return;
    if (!has_greeted_ && reader_.waiting_bytes() > kStrangerBytesMax)
      return Fail("it says much before it greets");
    NoteArriving(bytes.size());
  }
  // A member greets at once.
  void OnTick() {
    if (!has_greeted_ && owner_.now() - begun_micros_ > kLearnedMicros) Drop();
  }
  void OnDrained() override {}
  void OnClosed(std::string_view) override { link_ = nullptr; }
  size_t memory_bytes() const { return reader_.memory_bytes(); }

 private:
  // Slower than that for each heartbeat, a frame is no sign of life: a set does not wait for ever.
  static constexpr size_t kArrivingBytesMin{16 << 10};
  // More than a greeting is kept of nobody who has not greeted: a frame may be of a gigabyte.
  static constexpr size_t kStrangerBytesMax{128 << 10};

  void NoteArriving(size_t bytes) {
    arrived_bytes_ += bytes;
    const int64_t now = owner_.now();
    if (arrived_bytes_ < kArrivingBytesMin || now < sign_micros_) return;
    const std::optional<FrameHead> head = reader_.Arriving();
    if (!head || head->from != node_) return;
    arrived_bytes_ = 0;
    sign_micros_ = now + owner_.owner_.options_.election_micros / 10;
    owner_.OnArriving(*this, *head);
  }

  SetNode& owner_;
  PeerLink* link_;
  // Bytes of the frame that is coming, since it was last a sign of life; when it may be one again.
  size_t arrived_bytes_{0};
  int64_t sign_micros_{0};
  const uint64_t cluster_;
  const uint64_t node_;
  const int64_t begun_micros_{owner_.now()};
  bool has_greeted_{false};
  FrameReader reader_{MakeSetFrameReader()};
};

}  // namespace cellar
