// The two ends of a command link: what a socket brings goes into the state machines of src/cluster,
// and what they say goes out once a turn. See command_links.h.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "cluster/entry_link.h"
#include "cluster/owner_link.h"
#include "replica/greeting.h"
#include "server/command_links.h"
#include "server/neighbour.h"

namespace cellar {

// Dialled by this node, which calls on it.
class CommandLinks::EntryEnd final : public PeerHandler {
  static constexpr int64_t kNearPatienceMicros{1'000'000};

 public:
  // `set_id`: of which set it must be; 0: the own one.
  EntryEnd(CommandLinks& links, uint64_t node, NodeAddress address, uint64_t set_id)
      : links_(links), node_(node), set_id_(set_id), address_(std::move(address)) {}
  ~EntryEnd() override { Drop(); }

  void Begin() { Dial(); }
  uint64_t node() const { return node_; }
  bool is_own() const { return set_id_ == 0; }
  uint64_t set_id() const { return set_id_; }
  int64_t dialled_micros() const { return dialled_micros_; }
  bool stands() const { return greeted_ && link_ != nullptr; }
  bool dead() const { return dead_; }
  bool unblocks() const { return (greeting_.features() & kCallUnblocks) != 0; }
  bool begins() const { return (greeting_.features() & kCallBegins) != 0; }
  EntryLink& entry() { return entry_; }
  // Without what the link's connection and the clients' calls hold.
  size_t memory_bytes() const {
    return sizeof(*this) + entry_.memory_bytes() + reader_.memory_bytes();
  }
  // That the socket has not taken yet.
  size_t waiting_bytes() const { return link_ == nullptr ? 0 : link_->waiting_bytes(); }
  // `leader`: who leads its set, 0: nobody is known to. Who has led is given up when it has had the
  // time to say what is to be said.
  void OnTick(uint64_t leader, bool stood_still) {
    if (dead_) return;
    // Who listens at the unix socket may never answer.
    const bool waits = is_near_ && !greeted_;
    if (waits && links_.now() - dialled_micros_ >= kNearPatienceMicros)
      return DialFarAway("no answer");
    const bool asks = stands() && (greeting_.features() & kCallLives) != 0 && !stood_still;
    if (!entry_.OwnerLives(links_.now(), asks)) return Lose("it is silent");
    if (leader == node_) {
      leads_ = true;
      left_micros_ = 0;
    }
    if (!leads_ || leader == node_ || (leader == 0 && !is_own())) return;
    if (left_micros_ == 0) left_micros_ = links_.now();
    const bool rests = stands() && entry_.calls() == 0;
    const int64_t patience = links_.host_.services().config.cluster_wait * 1000;
    if (rests || links_.now() - left_micros_ >= patience) Fail("it leads no more");
  }
  // Nothing has been passed on for so long, nor is anybody's channel kept.
  bool IsIdle(int64_t now_micros) const {
    return stands() && entry_.channels() == 0 &&
           now_micros - used_micros_ >=
               links_.host_.services().config.cluster_link_idle * 1'000'000;
  }
  void OnTurn() {
    if (!stands()) return;
    entry_.OnTurn();
    if (entry_.frames().empty()) return;
    used_micros_ = links_.now();
    link_->Write(entry_.frames().Take(links_.Head()));
  }
  void Fail(std::string_view why) {
    if (dead_) return;
    Log(LogSeverity::kVerbose, fmt::format("Command link to {:016x}: {}", node_, why));
    Drop();
    dead_ = true;
    entry_.OnLost();
  }

  // --- PeerHandler
  void OnConnected(PeerLink* link) override {
    dialling_ = false;
    link_ = link;
    link_->SetPatience(links_.host_.services().config.replica_election_timeout * 1300);
    link_->Write(links_.host_.replication().BeginGreeting(&greeting_, "command", kCallFeatures));
  }
  void OnBytes(std::string_view bytes) override {
    if (dead_) return;
    if (greeted_) return Read(bytes);
    std::string rest;
    const Result<bool> done = greeting_.Take(bytes, &rest);
    const bool greets = !done.ok() || *done;
    if (greets && is_near_ && (!done.ok() || !IsExpected()))
      return DialFarAway("another node is there");
    if (!done.ok()) {
      // One that has just begun does not know yet who belongs to its set, or to the cluster.
      if (IsYetToKnow(done.status().text())) return Lose(done.status().text());
      // An older version, or one that has been set up otherwise: it is not asked all the time.
      if (is_own()) {
        links_.refused_node_ = node_;
        links_.refused_micros_ = links_.now() + kRefusedMicros;
      }
      Log(LogSeverity::kNotice,
          fmt::format("Commands are not passed on to {:016x}: {}", node_, done.status().text()));
      return Lose(done.status().text());
    }
    if (!*done) return;
    if (!IsExpected()) return Lose("another node is there");
    if (IsNeighbour()) {
      Drop();
      is_near_ = true;
      return Dial();
    }
    greeted_ = true;
    used_micros_ = links_.now();
    if (is_own()) links_.refused_node_ = 0;
    links_.WakeAll();
    if (!rest.empty()) Read(rest);
  }
  static bool IsYetToKnow(std::string_view refusal) {
    return refusal.find("LOADING") != refusal.npos ||
           refusal.find("PEER: no member of this replica set") != refusal.npos;
  }
  void OnDrained() override {}
  void OnClosed(std::string_view why) override {
    link_ = nullptr;
    dialling_ = false;
    if (is_near_ && !greeted_ && !dead_) return DialFarAway(why);
    Lose(why);
  }

 private:
  void Dial() {
    dialling_ = true;
    dialled_micros_ = links_.now();
    if (is_near_) return links_.dialler_.DialSocket(greeting_.neighbour().socket, this);
    links_.dialler_.Dial(address_.host, address_.port, this);
  }
  // It has said so over TCP.
  bool IsNeighbour() const {
    const Neighbour& other = greeting_.neighbour();
    if (is_near_ || is_far_ || other.socket.empty()) return false;
    return other.machine == NeighbourOf(links_.host_.services().config).machine;
  }
  // Its socket leads elsewhere, or nowhere.
  void DialFarAway(std::string_view why) {
    Log(LogSeverity::kVerbose,
        fmt::format("Command link to {:016x} by its unix socket: {}", node_, why));
    Drop();
    is_near_ = false;
    is_far_ = true;
    Dial();
  }
  void Read(std::string_view bytes) {
    reader_.Add(bytes);
    Frame frame;
    while (!dead_) {
      const Result<bool> next = reader_.Next(&frame);
      if (!next.ok()) return Lose(next.status().text());
      if (!*next) return;
      const uint64_t before = entry_.bounced();
      const uint64_t refusals = entry_.refusals();
      const Status taken = entry_.OnFrame(frame);
      links_.figures_.bounced += entry_.bounced() - before;
      if (!taken.ok()) return Lose(taken.text());
      if (entry_.refusals() != refusals) links_.targets_.Failed(node_, links_.now());
    }
  }
  bool IsExpected() const {
    return greeting_.node() == node_ && (set_id_ == 0 || greeting_.cluster() == set_id_);
  }
  // Another member of its set may be asked instead.
  void Lose(std::string_view why) {
    links_.targets_.Failed(node_, links_.now());
    Fail(why);
  }
  void Drop() {
    if (std::exchange(dialling_, false)) links_.dialler_.CancelDial(this);
    if (link_ != nullptr) link_->Close();
    link_ = nullptr;
    greeted_ = false;
  }

  CommandLinks& links_;
  const uint64_t node_;
  const uint64_t set_id_;
  const NodeAddress address_;
  PeerLink* link_{nullptr};
  PeerGreeting greeting_;
  int64_t dialled_micros_{0};
  int64_t used_micros_{0};  // when it was filled last
  bool dialling_{false};
  bool is_near_{false};  // by a unix socket
  bool is_far_{false};   // which was tried in vain
  bool greeted_{false};
  bool dead_{false};
  bool leads_{is_own()};    // or has led, as has been said since this link was dialled
  int64_t left_micros_{0};  // since then it does not; 0: it does
  EntryLink entry_;
  FrameReader reader_{FrameKind::kReply,   FrameKind::kMore,  FrameKind::kMoved,
                      FrameKind::kChannel, FrameKind::kWrote, FrameKind::kUnblock,
                      FrameKind::kAlive};
};

// The other's: it calls, and is answered.
class CommandLinks::OwnerEnd final : public PeerHandler {
 public:
  OwnerEnd(CommandLinks& links, PeerLink* link, uint64_t node, std::string from)
      : links_(links), link_(link), node_(node), from_(std::move(from)) {}
  ~OwnerEnd() override {
    if (link_ != nullptr) link_->Close();
  }
  bool dead() const { return link_ == nullptr; }
  // Without the servants, and what the link's connection holds.
  size_t memory_bytes() const {
    const size_t owner_bytes = owner_ == nullptr ? 0 : owner_->memory_bytes();
    return sizeof(*this) + owner_bytes + reader_.memory_bytes();
  }
  size_t waiting_bytes() const { return dead() ? 0 : link_->waiting_bytes(); }
  void OnTurn() {
    if (dead()) return;
    owner_->OnTurn();
    if (!owner_->frames().empty()) link_->Write(owner_->frames().Take(links_.Head()));
  }
  void OnOwnerNoMore() {
    if (!dead()) owner_->OnOwnerNoMore();
  }

  // --- PeerHandler
  void OnConnected(PeerLink*) override {}
  void OnBytes(std::string_view bytes) override {
    reader_.Add(bytes);
    Frame frame;
    while (link_ != nullptr) {
      const Result<bool> next = reader_.Next(&frame);
      if (!next.ok()) return Fail(next.status().text());
      if (!*next) return;
      if (frame.from != node_) return Fail("it speaks for another one");
      links_.caller_ = {node_, from_};
      const uint64_t before = owner_->calls();
      const Status taken = owner_->OnFrame(frame);
      links_.figures_.calls_in += owner_->calls() - before;
      if (!taken.ok()) return Fail(taken.text());
    }
  }
  void OnDrained() override {}
  void OnClosed(std::string_view) override {
    link_ = nullptr;
    owner_.reset();
  }

 private:
  void Fail(std::string_view why) {
    Log(LogSeverity::kWarning, fmt::format("Command link of {}: {}", from_, why));
    link_->Close();
    link_ = nullptr;
    owner_.reset();
  }

  CommandLinks& links_;
  PeerLink* link_;
  const uint64_t node_;
  const std::string from_;
  std::unique_ptr<OwnerLink> owner_{
      std::make_unique<OwnerLink>(static_cast<CallServants&>(links_))};
  FrameReader reader_{FrameKind::kCall,   FrameKind::kChannel, FrameKind::kCancel,
                      FrameKind::kCredit, FrameKind::kUnblock, FrameKind::kAlive,
                      FrameKind::kBegin};
};

// Both ends at once: what this node asks of itself, as the leader of its set, is carried out as
// what another node passes on.
class CommandLinks::LocalEnd {
 public:
  explicit LocalEnd(CommandLinks& links) : links_(links) {}

  EntryLink& entry() { return entry_; }
  size_t memory_bytes() const { return entry_.memory_bytes() + owner_.memory_bytes(); }
  // Something waits to be carried out, which needs a turn whose records go to the log.
  bool asks() { return !entry_.frames().empty(); }
  void Deliver() {
    links_.caller_ = {links_.host_.replication().node(), "here"};
    entry_.frames().Deliver([this](const Frame& frame) { MustTake(owner_.OnFrame(frame)); });
  }
  void OnTurn() {
    entry_.OnTurn();
    if (owner_.channels() == 0) return;
    owner_.OnTurn();
    owner_.frames().Deliver([this](const Frame& frame) { MustTake(entry_.OnFrame(frame)); });
  }
  // The entry hears of it at the end of the turn.
  void OnOwnerNoMore() { owner_.OnOwnerNoMore(); }

 private:
  // It is what this node has said.
  static void MustTake(const Status& taken) { CELLAR_ASSERT(taken.ok()); }

  CommandLinks& links_;
  EntryLink entry_;
  OwnerLink owner_{static_cast<CallServants&>(links_)};
};

}  // namespace cellar
