// TrackedSets: for the clients of this node that track (commands/session/tracking.h): what the
// other sets of its cluster change. Its own set's log tells of that set's.
//
//   Tracking <- names -- TrackedSets --CLUSTER CHANGED epoch number--> who leads each other set
//                                    <-- epoch, next, missed, names -- when there are some, or after
//                                                                      a second
//
// While any client tracks, each set is asked all the time. What cannot be known for a while (a link
// or a leader is lost, names are missed, a set is new or gone) is told as everything, to all who
// track: prefixes do not say what is kept, and rows may have moved since they were read. A reply
// with rows of another set is kept by its client if all sets have told without a gap since before
// it was asked for; else it is told everything behind it. What has changed between the read and its
// reply may be told before the reply: then it is told behind it once more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "commands/session/remote_calls.h"
#include "commands/session/tracking.h"

namespace cellar {

struct CommandContext;

class TrackedSets {
 public:
  // Where a read begins.
  struct Mark {
    uint64_t generation{0};  // of the time for which all sets have told without a gap; 0: none
    uint64_t told{0};        // names
  };

  // Once a turn; O(1) while nobody tracks. `asker`: on whose behalf nodes ask each other.
  void OnTurn(Host& host, const Session& asker);
  Mark Now() const { return {is_whole_ ? generation_ : 0, told_}; }
  // A reply with these names, which was read of other sets since `mark`, is complete. Nothing
  // happens if the session does not track.
  void EndRead(Host& host, Session& session, const Mark& mark,
               const std::vector<Tracking::ReadName>& names);
  size_t memory_bytes() const;

 private:
  static constexpr size_t kRecentMax{1024};
  static constexpr size_t kRecentBytesMax{256 << 10};
  struct Part {
    uint64_t ticket{0};  // 0: nothing is being asked
    uint64_t leader{0};  // the node that was known to lead when it was asked
    bool tells{false};   // without a gap since `epoch`, `next` were told
    std::string epoch{};
    uint64_t next{0};
    int64_t heard_micros{0};  // monotonic
    int64_t retry_micros{0};
  };

  void Clear(Host& host);
  void Forget(Host& host, Part* part) const;
  void Ask(Host& host, const Session& asker, uint64_t set, uint64_t leader, Part* part) const;
  void Take(Host& host, Part* part, int64_t now);
  void Lose(Host& host, Part* part, int64_t now);
  // Whatever clients keep may have changed.
  void Gap(Host& host);
  void Tell(Host& host, std::span<const std::string_view> names);
  bool HasChanged(uint64_t since, std::string_view name) const;

  std::map<uint64_t, Part> parts_;  // by set
  bool is_whole_{false};            // each of them tells
  uint64_t generation_{1};
  uint64_t told_{0};
  std::deque<std::string> recent_;  // the last ones of these
  size_t recent_bytes_{0};
};

// Whether these words of a call between nodes are CLUSTER CHANGED.
bool IsChangedCall(std::span<const std::string_view> words);
// CLUSTER CHANGED epoch number: of another node. Replies the epoch, the number behind the names,
// whether some were missed, and the names.
void CmdClusterChanged(CommandContext& ctx);

}  // namespace cellar
