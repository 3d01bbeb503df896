// EntryLink: the calling end of a command link: the clients of this node whose commands its owner
// carries out, a channel for each, and what becomes of their calls when the owner moves or is lost.
//
//   client's command -> Pass -> kCall ... kReply -> CallClient::OnReply -> client's output
//
// A client that does not read is not credited, so the owner stops at kChannelWindowBytes for it,
// and goes on with all others. No sockets: frames go in and out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cellar/lsn.h"
#include "cellar/status.h"
#include "cluster/call_frames.h"
#include "cluster/call_queue.h"
#include "replica/links/frame.h"

namespace cellar {

class EntryLink;

// A client some of whose commands are passed on. What the link tells it comes outside of commands,
// and must neither pass anything on nor end the client then and there.
class CallClient {
 public:
  CallClient() = default;
  CallClient(const CallClient&) = delete;
  CallClient& operator=(const CallClient&) = delete;
  virtual ~CallClient();

  // Bytes of what it is answered next: the replies to so many of its oldest calls, which depend on
  // `lsn`, or, with 0 of them, a part of one reply.
  virtual void OnReply(std::string_view bytes, size_t calls, Lsn lsn) = 0;
  // What it was asked last concerns what another set has; OnMoved comes, or OnUnknown.
  virtual void OnOtherSet() {}
  // The channel is gone, and what its session knew (watches). Nothing of the requests was done.
  virtual void OnMoved(std::string requests) = 0;
  // The channel is gone, and nobody knows what becomes of a call: the client must not be told
  // anything more.
  virtual void OnUnknown() = 0;
  // What it was answered last has put its session into another keyspace.
  virtual void OnKeyspace(std::string_view keyspace) { (void)keyspace; }
  // What its calls with kCallTells have written; nothing else up to `told_micros`.
  virtual void OnWrote(int64_t told_micros, std::span<const WrittenSteps> steps) {
    (void)told_micros;
    (void)steps;
  }
  // The answer to EntryLink::Unblock, of that call.
  virtual void OnUnblocked(uint64_t number, bool done) {
    (void)number;
    (void)done;
  }
  // It has taken most of what it was answered.
  virtual bool TakesMore() const = 0;
  // What was passed on last may wait for others, for ever.
  virtual bool WaitsForOthers() const { return false; }
  // Its channel must stay although nothing is under way.
  virtual bool KeepsChannel() const { return false; }

  const CallQueue& calls() const { return calls_; }
  // The link that its calls are on, or were last; null: none.
  EntryLink* link() const { return link_; }

 private:
  friend class EntryLink;
  CallQueue calls_;
  CallIdentity told_;     // to the owner
  std::string keyspace_;  // that its session is in behind what is under way; empty: as told
  EntryLink* link_{nullptr};
  size_t uncredited_{0};  // bytes of replies
  bool owed_{false};      // is in the link's list
  bool used_{true};       // since idle channels were closed last
};

class EntryLink {
 public:
  // A channel costs its owner a session. Beyond so many those go that are idle; if none is, no
  // other client gets one.
  static constexpr size_t kChannelsMax{16 << 10};
  // An owner that has said nothing for so long while calls wait is asked whether it lives, and is
  // given up later: its process stands still, or its loop does.
  static constexpr int64_t kQuietMicros{2'000'000};
  static constexpr int64_t kSilentMicros{10'000'000};

  EntryLink() = default;
  EntryLink(const EntryLink&) = delete;
  EntryLink& operator=(const EntryLink&) = delete;
  ~EntryLink();

  // Whether the client has a channel here or may get one, for which idle ones go if need be.
  bool MakeRoom(const CallClient& client);
  // Where the text of the client's next call is appended to (PutCallWords); then Pass. The client
  // has a channel from then on. REQUIRES: MayPass, and MakeRoom has said so.
  std::string* Begin(CallClient* client, const CallIdentityView& identity);
  void Pass(CallClient* client, uint8_t flags);
  // Asks the owner to end the waiting of its oldest call. Before that call's reply comes an answer,
  // if the owner has done it. REQUIRES: there is one, on this link; the owner knows kUnblock.
  void Unblock(CallClient* client, UnblockHow how);
  // Its oldest call's reply is to begin before there is more of it, if that may be; else nothing
  // comes of it. REQUIRES: there is one, on this link; the owner knows kBegin.
  void BeginReply(CallClient* client);
  // Whether that keeps the order: what is under way for the client is on this link, and has not
  // moved.
  bool MayPass(const CallClient& client) const {
    return client.calls_.empty() || (client.link_ == this && !client.calls_.moved());
  }
  // The client leaves: what is under way for it is nobody's.
  void Leave(CallClient* client);

  // kCorruption: the link must be closed (OnLost).
  Status OnFrame(const Frame& frame);
  // At the end of a turn: credits.
  void OnTurn();
  // Channels that were not used since the last time are closed.
  void CloseIdle() { CloseResting(Unused::kForLong); }
  // At each tick. False: the owner is silent for too long, and the link must be closed. `asks`: it
  // can be told from silence (kCallLives), and this node has not stood still itself.
  bool OwnerLives(int64_t now_micros, bool asks);
  // Nothing comes any more.
  void OnLost();

  CallFrames& frames() { return frames_; }
  size_t channels() const { return clients_.size(); }
  // Of calls that wait for an answer.
  size_t call_bytes() const { return call_bytes_; }
  // Clients that wait for an answer. O(channels).
  size_t calls() const;
  // Of these, those that wait for nobody but the owner.
  size_t calls_due() const;
  // Without what its clients keep (CallQueue::memory_bytes).
  size_t memory_bytes() const {
    return frames_.memory_bytes() + clients_.size() * kChannelBytes +
           owed_.capacity() * sizeof(void*);
  }
  // Of its clients' calls. O(channels).
  size_t call_memory_bytes() const;
  // Calls that the owner has sent back, so far.
  uint64_t bounced() const { return bounced_; }
  // How often it has said that it is the owner no more, so far.
  uint64_t refusals() const { return refusals_; }

 private:
  static constexpr size_t kChannelBytes{48};  // of a node of clients_, about
  CallClient* Find(uint64_t channel) const;
  void Forget(CallClient* client);
  enum class Unused : uint8_t { kNow, kForLong };
  void CloseResting(Unused unused);
  Status OnReplies(CallBodyReader body);
  Status OnMore(CallBodyReader body);
  Status OnKeyspaces(CallBodyReader body);
  Status OnMoves(CallBodyReader body);
  Status OnWritten(CallBodyReader body);
  Status OnUnblocks(CallBodyReader body);
  void TakeReply(CallClient* client, std::string_view bytes, size_t calls, Lsn lsn);
  // What has moved is given back if the time has come.
  void GiveBackIfDue(CallClient* client);
  void End(CallClient* client, CallFate fate);
  void Credit(CallClient* client);

  CallFrames frames_;
  uint64_t channel_next_{1};
  size_t call_bytes_{0};
  bool all_busy_{false};  // no channel was idle when room was needed, nor has one come to be since
  uint64_t bounced_{0};
  uint64_t refusals_{0};
  int64_t heard_micros_{0};  // as of a tick; 0: there was none yet
  bool heard_{false};        // since the last tick
  bool is_asked_{false};     // kAlive
  std::unordered_map<uint64_t, CallClient*> clients_;
  std::vector<CallClient*> owed_;
  std::vector<WrittenSteps> written_;  // of one client
};

}  // namespace cellar
