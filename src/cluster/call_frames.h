// What two nodes say to each other on a command link (`PEER ... command`): the bodies of its frames
// (replica/links/frame.h).
//
// The node that a client is connected to is the entry, the one that carries its command out the
// owner. A link has one direction: the entry has dialled, and calls; the owner answers. On it each
// client of the entry that has something to be passed on has a channel, which is what a connection
// is elsewhere: its calls are carried out one after the other, in a session of their own with the
// user's rights, and answered in that order. So order, long reads, WATCH and blocking reads need no
// rules of their own, and a client that does not read holds nobody else up.
//
//   kind      from   body, of each as many as there are
//   kChannel  entry  opens a channel, or says that its client has become another one: number v,
//                    user, keyspace, address of the client (length-prefixed each), RESP version u8
//             owner  its session has another keyspace from here on: channel v, keyspace
//                    (length-prefixed)
//   kCall     entry  channel v, number of the call v, flags u8, text (length-prefixed)
//   kReply    owner  channel v, number of the first call that is answered v, how many are v; LSN
//                    that the replies depend on: epoch v, seq v; all their bytes (length-prefixed)
//   kMore     owner  channel v, number of the call v, a part of its reply (length-prefixed)
//   kMoved    owner  channel v, number of a call v, how u8: that call and those behind it were not
//                    carried out and never will be. 0: the owner leads no more, or ends the channel;
//                    1: likewise, and of those before it that have not been answered nobody can say
//                    what becomes of them; 2: that call concerns what another set has
//   kCancel   entry  channel v: the client has left, or goes elsewhere
//   kCredit   entry  channel v, bytes v: so much of the replies has been taken
//   kWrote    owner  what calls with kCallTells have written: channel v; told v: a commit time, up
//                    to which that is all; how many v, of each the commit times of its first and
//                    of its last step v. Ahead of the reply, which may tell of no more
//   kUnblock  entry  channel v, number of a call v, how u8: 0 as if its time were over, 1 with an
//                    error; goes on waiting no longer (CLIENT UNBLOCK)
//             owner  channel v, number of the call v, done u8: 0 if it does not wait
//   kAlive    entry  nothing: does the owner go on, though it answers no call?
//             owner  nothing: it does
//   kBegin    entry  channel v, number of a call v: its client sends no more, and only writing to it
//                    tells whether it is there. If that call runs, and it is known how its reply
//                    begins, the first byte comes ahead, as a kMore
//
// An older owner sends no kWrote, and takes no kUnblock, kAlive or kBegin: that it does, it says
// when it is greeted (kCallFeatures).
//
// v: Varint64. Calls of a channel are numbered from 1. The text of a call: how many commands v, of
// each how many words v, the words (length-prefixed). Of several commands only the last one is
// answered (MULTI, what was queued, EXEC).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/equal_bytes.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "cluster/written_steps.h"
#include "replica/links/frame.h"

namespace cellar {

enum CallFlags : uint8_t {
  kCallWrites = 1u << 0,
  kCallMute = 1u << 1,   // CLIENT REPLY: its reply is not wanted
  kCallTells = 1u << 2,  // what it writes is to be told (kWrote)
  kCallHere = 1u << 3,  // it is about the node itself, which carries it out though it leads nothing
};

// So much of the replies of a channel may be on the way or waiting at the entry.
inline constexpr size_t kChannelWindowBytes{1 << 20};

// What the ends of a link know beside what all of them do: bits.
inline constexpr uint64_t kCallUnblocks{1};
inline constexpr uint64_t kCallNeighbours{2};  // it understands where the owner says it is
inline constexpr uint64_t kCallLives{4};       // it answers kAlive
inline constexpr uint64_t kCallBegins{8};      // it takes kBegin
inline constexpr uint64_t kCallFeatures{kCallUnblocks | kCallNeighbours | kCallLives | kCallBegins};

enum class MovedHow : uint8_t { kOwner = 0, kLost = 1, kOtherSet = 2 };

enum class UnblockHow : uint8_t { kTimeout = 0, kError = 1 };

// On whose behalf a channel's calls are carried out.
struct CallIdentityView {
  std::string_view user{"default"};
  std::string_view keyspace{"0"};
  std::string_view address{};
  uint8_t version{2};  // of RESP
};
struct CallIdentity {
  std::string user{"default"};
  std::string keyspace{"0"};
  std::string address{};
  uint8_t version{2};

  CallIdentityView view() const { return {user, keyspace, address, version}; }
  bool Is(const CallIdentityView& other) const {
    return version == other.version && EqualBytes(user, other.user) &&
           EqualBytes(keyspace, other.keyspace) && EqualBytes(address, other.address);
  }
};

struct Call {
  uint64_t channel{0};
  uint64_t number{0};
  uint8_t flags{0};
  std::string_view text{};
};

struct CallReply {
  uint64_t channel{0};
  uint64_t first{0};
  uint64_t count{0};
  Lsn lsn{};
  std::string_view bytes{};
};

// One command; of several: PutCallCount first, then each.
void PutCallCount(uint64_t commands, std::string* text);
void PutCallWords(std::span<const std::string_view> words, std::string* text);
// The text of a call of one command.
std::string CallOf(std::span<const std::string_view> words);
// Takes a text apart; `visit` gets each command, and whether it is the last one. The views are of
// `text`. kCorruption: it is none; then some commands may have been visited, never the last.
Status VisitCall(std::string_view text,
                 const std::function<void(std::span<const std::string_view>, bool last)>& visit);
// The words of a text of one command, which are views of it. False: it is of several, or none, or
// has very many words.
bool ReadOneCommand(std::string_view text, std::vector<std::string_view>* words);
// The same as VisitCall without looking at the words.
Status CheckCall(std::string_view text);
// A text of one command as a request in RESP, appended. REQUIRES: it is one.
void AppendRequest(std::string_view text, std::string* request);

void PutChannel(uint64_t channel, const CallIdentityView& identity, std::string* body);
void PutKeyspace(uint64_t channel, std::string_view keyspace, std::string* body);
void PutCall(const Call& call, std::string* body);
void PutReply(const CallReply& reply, std::string* body);
void PutMore(uint64_t channel, uint64_t number, std::string_view bytes, std::string* body);
void PutMoved(uint64_t channel, uint64_t number, MovedHow how, std::string* body);
void PutCancel(uint64_t channel, std::string* body);
void PutCredit(uint64_t channel, uint64_t bytes, std::string* body);
void PutWrote(uint64_t channel, int64_t told_micros, std::span<const WrittenSteps> steps,
              std::string* body);
void PutUnblock(uint64_t channel, uint64_t number, UnblockHow how, std::string* body);
void PutUnblocked(uint64_t channel, uint64_t number, bool done, std::string* body);
void PutBegin(uint64_t channel, uint64_t number, std::string* body);

// Takes bodies apart. Each Next... takes one from the front; false: there is none, or what stands
// there is none; then ok() is false.
class CallBodyReader {
 public:
  explicit CallBodyReader(std::string_view body) : rest_(body) {}
  bool NextChannel(uint64_t* channel, CallIdentity* identity);
  bool NextKeyspace(uint64_t* channel, std::string_view* keyspace);
  bool NextCall(Call* call);
  bool NextReply(CallReply* reply);
  bool NextMore(uint64_t* channel, uint64_t* number, std::string_view* bytes);
  bool NextMoved(uint64_t* channel, uint64_t* number, MovedHow* how);
  bool NextCancel(uint64_t* channel);
  bool NextCredit(uint64_t* channel, uint64_t* bytes);
  bool NextWrote(uint64_t* channel, int64_t* told_micros, std::vector<WrittenSteps>* steps);
  bool NextUnblock(uint64_t* channel, uint64_t* number, UnblockHow* how);
  bool NextUnblocked(uint64_t* channel, uint64_t* number, bool* done);
  bool NextBegin(uint64_t* channel, uint64_t* number);
  bool ok() const { return ok_; }

 private:
  bool Number(uint64_t* value);
  bool Micros(int64_t* micros);
  bool Bytes(std::string_view* value);
  bool Byte(uint8_t* value);

  std::string_view rest_;
  bool ok_{true};
};

// Frames that are being filled, in the order of what is put into them; what one turn has to say
// leaves as one piece.
class CallFrames {
 public:
  // Where the body of a frame of that kind grows: to be appended to until the next call, no more.
  std::string& Body(FrameKind kind);
  bool empty() const { return frames_.empty(); }
  // All of it, with `head` as that of each frame but for the kind.
  std::string Take(const FrameHead& head);
  // Likewise, without a way on which bytes could be damaged: `take` gets each frame as it is, and
  // may have more to say here.
  template <typename TakeFrame>
  void Deliver(const TakeFrame& take);
  void Clear();
  size_t memory_bytes() const;

 private:
  // What Deliver keeps of its memory for the next turn.
  static constexpr size_t kKeptBytes{128 << 10};
  // A frame is closed behind so much.
  static constexpr size_t kFullBytes{256 << 10};
  struct Filled {
    FrameKind kind;
    size_t begin;  // of its head
  };

  std::vector<Filled> frames_;
  std::string bytes_;      // of all of them
  size_t taken_bytes_{0};  // as many as there were the last time
};

template <typename TakeFrame>
void CallFrames::Deliver(const TakeFrame& take) {
  const std::vector<Filled> frames = std::exchange(frames_, {});
  std::string bytes = std::exchange(bytes_, {});
  for (size_t i = 0; i < frames.size(); ++i) {
    const size_t begin = frames[i].begin + kFrameHeadBytes;
    const size_t end = i + 1 < frames.size() ? frames[i + 1].begin : bytes.size();
    Frame frame;
    frame.kind = frames[i].kind;
    frame.body = std::string_view(bytes).substr(begin, end - begin);
    take(frame);
  }
  if (!bytes_.empty() || bytes.capacity() > kKeptBytes) return;
  bytes.clear();
  bytes_ = std::move(bytes);
}

}  // namespace cellar
