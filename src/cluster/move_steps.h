// What two sets say to each other while a tablet moves from one to the other, and what set 0 says
// to the donor: each step is one call (call_frames.h) to who leads the set, each answer its reply,
// which leaves as every reply does once what it tells of is committed.
//
//   kJob     set 0 -> donor        the tablet is to move (again and again, until it has)
//   kBegin   donor -> recipient    what is there of it? Of nothing, or of an older attempt, begins
//   kPart    donor -> recipient    a part of the copy, or of what has changed since
//   kOwn     donor -> recipient    that was all: it is yours
//   kDrop    set 0 -> recipient    it does not come
//   kCancel  set 0 -> donor        it is not to move, if it has not been given yet
//   kSizes   set 0 -> any          how much do its tablets have? (balance_plan.h; with what
//                                  they take if the job is kSizesAndLoads)
//   kSplit   set 0 -> owner        the tablet is to be cut at a key
//   kMerge   set 0 -> owner        the tablet and the next one are to be one
//   kLead    set 0 -> any          that member is to lead (lead_plan.h; job: its node)
//   kReclaim set 0 -> donor        the recipient is lost for good: the tablet is yours as it was
//   kHolds   set 0 -> any          has it anything of a range? (cluster/adoption.h)
//
// and what they say while the home of a feed moves, whose number is then that of the job
// (server/feed_homes.h):
//
//   kGroups  new home -> old       the next group behind that name, or the first one
//   kArrived set 0 -> new home     have all come?
//
// A step may come twice, late, and from who leads no more: it is taken by what the set has logged
// (engine/state/tablet_moves.h), and answered by that.
//
//   step    kind u8, cluster u64, job v, floor v, then
//           kJob    move out, bytes a second v
//           kBegin  catalog v, move in, failures b: if there are any (EncodeIndexFailures)
//           kPart   from v, part, ops b
//           kOwn    from v, part, stamp v, next record number v
//           kSplit  move out, key b
//           kMerge  move out, end of the next one b
//           kHolds  move out
//           kGroups catalog v, from v, behind u8, name b
//           kArrived catalog v
//   answer  code u8, end u8, given u8, state b, bytes v, behind v, move in b, text b
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/state/tablet_moves.h"

namespace cellar {

// In place of a job, which kSizes has none of: before there were loads it was 1, and is not looked
// at by who knows of none.
inline constexpr uint64_t kSizesAndLoads{2};

struct MoveStep {
  enum class Kind : uint8_t {
    kJob = 0,
    kBegin = 1,
    kPart = 2,
    kOwn = 3,
    kDrop = 4,
    kCancel = 5,
    kSizes = 6,
    kSplit = 7,
    kGroups = 8,
    kArrived = 9,
    kReclaim = 10,
    kHolds = 11,
    kOwned = 12,
    kMerge = 13,
    kLead = 14
  };
  Kind kind{Kind::kJob};
  uint64_t cluster_id{0};
  uint64_t job{0};
  uint64_t floor{0};  // all jobs up to it have ended
  MoveOut out{};
  uint64_t rate{0};
  uint64_t catalog{0};  // kGroups, kArrived: the change that said that they move
  MoveIn in{};
  std::string failures{};  // kBegin: of indexes of the table
  uint64_t from{0};        // the donor; of kGroups the new home
  MovePart part{};
  std::string ops{};   // kSplit: the key; kMerge: where it ends then; kGroups: the name
  bool behind{false};  // kGroups: behind that name
  int64_t stamp{0};
  uint64_t record_next{0};
};

// Of a recipient that deletes what another attempt has left: it comes further with each answer.
inline constexpr std::string_view kPurgingText{"purging"};

struct MoveAnswer {
  enum class Code : uint8_t {
    kOk = 0,     // it goes on; `in` is what is there
    kWait = 1,   // not now: `text` says why. It is to be asked again
    kEnded = 2,  // `end`; of one that was refused, `text` says why
    kStale = 3,  // of an attempt that is not this one, or that cannot go on: `text` says why
  };
  Code code{Code::kOk};
  MoveEnd end{MoveEnd::kCancelled};
  // Of kJob: how far it is.
  bool given{false};
  std::string state{};
  uint64_t bytes{0};
  uint64_t behind{0};
  MoveIn in{};
  std::string text{};
};

void EncodeMoveStep(const MoveStep& step, std::string* to);
[[nodiscard]] bool DecodeMoveStep(std::string_view from, MoveStep* step);
void EncodeMoveAnswer(const MoveAnswer& answer, std::string* to);
[[nodiscard]] bool DecodeMoveAnswer(std::string_view from, MoveAnswer* answer);

}  // namespace cellar
