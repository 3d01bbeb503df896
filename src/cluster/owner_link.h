// OwnerLink: the answering end of a command link: a channel for each client of the other node, its
// calls carried out in order, their replies on the way back as far as they may be told and the
// client takes them.
//
//   kCall -> Channel -> CallServant::Execute ... Released -> kReply
//
// What a call may do is asked when its turn comes: a node that leads no more carries nothing out,
// and says from where on (kMoved). No sockets: frames go in and out. What carries calls out is the
// server's (a Session), or a test's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cellar/lsn.h"
#include "cellar/status.h"
#include "cluster/call_frames.h"
#include "replica/links/frame.h"

namespace cellar {

// Who carries out the calls of one channel.
class CallServant {
 public:
  virtual ~CallServant() = default;
  // On whose behalf, from now on.
  virtual void Become(const CallIdentity& identity) = 0;
  enum class Readiness : uint8_t {
    kNow,
    kLater,     // asked again at the end of each turn
    kNever,     // this node is the owner no more
    kOtherSet,  // it is not the owner of what this call concerns
  };
  virtual Readiness MayExecute(std::string_view text, uint8_t flags) = 0;
  // Carries a call out, or begins to (running). False: it must wait, and nothing was done.
  virtual bool Execute(std::string_view text, uint8_t flags) = 0;
  virtual bool running() const = 0;
  // Ends what runs, if that only waits for others and has done nothing.
  virtual bool EndIfWaiting() = 0;
  // All bytes of replies that were ever made.
  virtual uint64_t made_bytes() const = 0;
  // Of what is not sent yet, the front that may be told.
  virtual std::string_view Released() = 0;
  virtual void Sent(size_t bytes) = 0;
  // What the replies made so far depend on.
  virtual Lsn depends_on() const = 0;
  // What calls with kCallTells have written since this was asked last, as far as it may be told:
  // ascending, and all of it up to *told_micros. False: there was no such call.
  virtual bool TakeWritten(int64_t* told_micros, std::vector<WrittenSteps>* steps) {
    (void)told_micros;
    (void)steps;
    return false;
  }
  // Ends the waiting of what runs. False: it does not wait.
  virtual bool Unblock(UnblockHow how) {
    (void)how;
    return false;
  }
  // Makes the first byte of what runs replies, if it is known and was not made yet.
  virtual void BeginReply() {}
  // That its session is in; empty: the one that it was told of.
  virtual std::string_view keyspace() const { return {}; }
  // It has been ended: nothing more is answered.
  virtual bool ended() const = 0;
};

class CallServants {
 public:
  virtual ~CallServants() = default;
  virtual std::unique_ptr<CallServant> MakeServant(const CallIdentity& identity) = 0;
  // Calls that are about to be carried out one behind the other, as far as they may be. Nothing
  // happens but that what they will read may be fetched. LookedAhead: those were all.
  virtual void LookAhead(const CallServant& servant, std::string_view text) {
    (void)servant;
    (void)text;
  }
  virtual void LookedAhead() {}
};

class OwnerLink {
 public:
  explicit OwnerLink(CallServants& servants) : servants_(servants) {}
  OwnerLink(const OwnerLink&) = delete;
  OwnerLink& operator=(const OwnerLink&) = delete;

  // kCorruption: the link must be closed.
  Status OnFrame(const Frame& frame);
  // At the end of a turn: calls that waited, replies that may leave.
  void OnTurn();
  // This node is the owner no more.
  void OnOwnerNoMore();

  CallFrames& frames() { return frames_; }
  size_t channels() const { return channels_.size(); }
  // That came, so far.
  uint64_t calls() const { return calls_; }
  // Without the servants. O(channels and calls that wait).
  size_t memory_bytes() const;

 private:
  // An entry keeps to less (EntryLink::kChannelsMax); those of older versions have as many as they
  // have clients.
  static constexpr size_t kChannelsMax{128 << 10};
  // A part of a reply goes ahead when it is so long.
  static constexpr size_t kPartBytes{64 << 10};
  // So many calls are looked at together.
  static constexpr size_t kAheadMax{32};
  struct Queued {
    uint8_t flags;
    std::string text;
  };
  struct Channel {
    uint64_t number{0};
    std::unique_ptr<CallServant> servant;  // null: moved
    std::deque<Queued> queue;
    std::deque<uint64_t> ends;  // of executed calls: where their replies end, of made_bytes
    uint64_t received{0};       // number of the last call that came
    uint64_t executed{0};       // ... that was carried out, or has begun to
    uint64_t answered{0};       // ... that was answered
    uint64_t sent_bytes{0};
    std::string keyspace;  // that both ends know of
    size_t window{kChannelWindowBytes};
    bool running{false};
    bool active{false};
    bool leaves{false};  // for another set, once all that was executed is answered
    bool begins{false};  // what there is of the reply goes ahead, however little
  };

  Status OnChannels(CallBodyReader body);
  Status OnCalls(CallBodyReader body);
  Status OnCancels(CallBodyReader body);
  Status OnCredits(CallBodyReader body);
  Status OnUnblocks(CallBodyReader body);
  Status OnBegins(CallBodyReader body);
  Channel* Find(uint64_t number);
  // Looks at the next calls; how many they are.
  size_t LookAhead(CallBodyReader* ahead);
  // Carries the call out if it may be now. False: it waits.
  bool Try(Channel* channel, std::string_view text, uint8_t flags);
  void NoteEnd(Channel* channel);
  void Pump(Channel* channel);
  void Answer(Channel* channel);
  void TellWritten(const Channel& channel);
  void Move(Channel* channel, MovedHow how);
  void MoveIfDue(Channel* channel);
  void Activate(Channel* channel);
  static bool Rests(const Channel& channel);

  CallServants& servants_;
  CallFrames frames_;
  uint64_t calls_{0};
  std::vector<WrittenSteps> written_;  // of one channel
  std::unordered_map<uint64_t, std::unique_ptr<Channel>> channels_;
  std::vector<Channel*> active_;
};

}  // namespace cellar
