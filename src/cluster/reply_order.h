// ReplyOrder: what a client is answered whose commands several owners carry out beside one another,
// in the order of its commands. Plain data and rules; no link, no session.
//
//   asked       1 A | 2 B | 3 A | 4 B
//   A: 1, 3     1 leaves, 3 is kept
//   B: 2        2 and 3 leave
//   B moved: 4  keeps its place, and is asked again
//
// What this node has carried out itself meanwhile is kept in its place, too (Keep).
//
// A command may only be asked of another owner than one before it if nothing says that the two
// concern the same row; that is for who asks to know (commands/cluster/route_window.h). What is
// asked again goes in its order, when nothing else is under way, and nothing new goes before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/lsn.h"
#include "resp/reply_scanner.h"

namespace cellar {

class CallClient;

class ReplyOrder {
 public:
  // Bytes for the client: a reply to its end, or a part of the one in front. They may be told once
  // `gate` is released (Keep).
  using Emit = std::function<void(std::string_view bytes, bool whole, Lsn gate)>;

  // Whether anything is to be answered in an order.
  bool empty() const { return places_.empty(); }
  // So many calls have been under way, all of that owner, of which no reply has begun. REQUIRES:
  // empty().
  void Begin(const CallClient* owner, size_t calls);
  // A call of that owner behind all others.
  void Add(const CallClient* owner);
  // The reply to a command behind all others, which depends on `gate`. REQUIRES: !empty().
  void Keep(std::string_view reply, Lsn gate);

  // The replies to so many of the owner's oldest calls; 0: a part of the reply to the oldest one.
  // False: that is something else, and what comes further is worth nothing.
  [[nodiscard]] bool Answer(const CallClient* owner, std::string_view bytes, size_t calls,
                            const Emit& emit);
  // The owner has carried out nothing of what it has not answered: these requests in RESP.
  // Likewise.
  [[nodiscard]] bool GiveBack(const CallClient* owner, std::string_view requests);

  // Whose reply leaves next: that owner's.
  bool IsInFront(const CallClient* owner) const;
  // Owners are to answer something.
  bool pending() const { return !lanes_.empty(); }
  // Something is to be asked again.
  bool has_back() const { return backs_ > 0; }
  // The oldest of that. REQUIRES: has_back().
  std::string_view back() const;
  // It was asked of that owner. REQUIRES: has_back(); what is pending was asked since.
  void AskedAgain(const CallClient* owner);
  // This is its reply.
  void Refuse(std::string_view reply, const Emit& emit);

  void Clear();
  // Replies that wait for others, and requests. O(1).
  size_t kept_bytes() const { return kept_bytes_; }
  // The newest record that a reply depends on that was put here by Keep, and has not left. O(1).
  Lsn gate() const { return gated_ == 0 ? Lsn{} : gate_; }
  size_t memory_bytes() const { return kept_bytes_ + places_.size() * sizeof(Place); }

 private:
  enum class State : uint8_t { kAsked, kAnswered, kBack };
  struct Place {
    std::string text;  // of the reply so far; kBack: the request
    uint64_t next;     // call of the same owner; 0: none
    State state;
    Lsn gate{};
  };
  // Of one owner, in the order in which it answers.
  struct Lane {
    const CallClient* owner;
    uint64_t oldest;
    uint64_t newest;
    ReplyScanner scanner;
  };
  Lane* Find(const CallClient* owner);
  // REQUIRES: has_back().
  uint64_t FirstBack() const;
  const Place& At(uint64_t number) const { return places_[static_cast<size_t>(number - first_)]; }
  Place& At(uint64_t number) { return places_[static_cast<size_t>(number - first_)]; }
  void Join(const CallClient* owner, uint64_t number);
  // The lane's oldest call is behind it. True: there is none any more, and the lane is gone.
  bool Leave(Lane* lane);
  void Take(uint64_t number, std::string_view bytes, bool whole, const Emit& emit);
  void EmitReady(const Emit& emit);

  uint64_t first_{1};  // number of the place in front
  std::deque<Place> places_;
  std::vector<Lane> lanes_;
  size_t backs_{0};
  mutable uint64_t back_from_{0};  // none is before that one
  size_t kept_bytes_{0};
  size_t gated_{0};  // places with a gate
  Lsn gate_{};       // the newest of those
};

}  // namespace cellar
