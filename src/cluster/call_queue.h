// CallQueue: what a client has had passed on and not been answered yet, at its entry. Plain data
// and rules; no link, no session.
//
//   Add ---> | 7 read | 8 write | 9 read | ---> Answer(7), Answer(8, 9) ...
//
// The texts of the calls are kept until they are answered: if their owner is lost, or is the owner
// no more, those that have surely done nothing are asked again, in their order.
//
//   what is not answered                    the owner is lost          the owner says kMoved
//   reads only, no reply has begun          asked again                asked again, once those
//   a write among them, or a reply begun    nobody can say: the        before it are answered
//                                           connection must end
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "cellar/lsn.h"
#include "cellar/status.h"

namespace cellar {

enum class CallFate : uint8_t {
  kNothing,   // nothing was under way
  kAskAgain,  // surely not done: TakeBack
  kUnknown,   // perhaps done
};

class CallQueue {
 public:
  // A new channel: calls are numbered from 1 again. REQUIRES: empty().
  void Begin(uint64_t channel);
  // Nobody owns what comes: no channel. REQUIRES: empty().
  void End() { Begin(0); }
  uint64_t channel() const { return channel_; }  // 0: none

  // The text of the next call is appended to this by the caller, then Add says that it is.
  std::string* text() { return &texts_; }
  struct Added {
    uint64_t number;
    std::string_view text;  // good until the next call of a non-const member
  };
  Added Add(bool writes);

  // An answer to `count` calls from `first` on. kCorruption: those are not what comes next.
  Status Answer(uint64_t first, uint64_t count);
  // A part of the reply of the oldest one.
  Status Begun(uint64_t number);
  // `number` and those behind it were not carried out, and never will be on this channel.
  Status Moved(uint64_t number);

  bool empty() const { return calls_.empty(); }
  // Number of the oldest one. REQUIRES: !empty().
  uint64_t first() const { return first_; }
  size_t size() const { return calls_.size(); }
  // Nothing may be added: it has moved.
  bool moved() const { return moved_ != 0; }
  // So many calls, of those that are left.
  size_t moved_calls() const {
    return moved() ? calls_.size() - static_cast<size_t>(moved_ - first_) : 0;
  }
  // A part of a reply has come.
  bool begun() const { return begun_; }
  // All that was carried out is answered.
  bool ready_to_ask_again() const { return moved_ != 0 && first_ >= moved_; }
  // If no answer comes any more.
  CallFate Fate() const;
  // All calls as requests in RESP; none is left, and there is no channel. REQUIRES: each is one
  // command.
  std::string TakeBack();
  void Drop();
  size_t bytes() const { return texts_.size() - texts_begin_; }
  size_t memory_bytes() const { return texts_.capacity() + calls_.size() * sizeof(Entry); }

 private:
  static constexpr size_t kMoveBytes{64 << 10};
  struct Entry {
    size_t bytes;
    bool writes;
  };
  void Pop();

  uint64_t channel_{0};
  uint64_t first_{1};  // number of the oldest one
  uint64_t moved_{0};  // 0: it has not
  bool begun_{false};
  size_t begin_of_new_{0};  // in texts_: where the call that is being added begins
  size_t texts_begin_{0};
  std::string texts_;
  std::deque<Entry> calls_;
};

}  // namespace cellar
