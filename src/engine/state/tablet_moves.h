// TabletMoves: the tablets of a set that are on their way to other sets, and those of others that
// are on their way here. Each is a job, whose number set 0 gives (SCALE-DESIGN 6):
//
//   donor      Begin -> Give -> Done            owned until Give; from then on nobody's until the
//              `-> Cancel   `-> Reclaim         recipient owns it, or is lost for good
//   recipient  Stage -> Clear -> Fill ... -> Own
//              `-> Cancel
//
// An attempt is one copy of the tablet: its parts are numbered, 0 says that nothing is left of
// others, and only the next one counts. Parts behind the copy carry the changes made meanwhile, and
// say up to which record of the donor's log (tail). A job that has ended here is remembered until
// set 0 has heard of its end at both sets (floor): no number at or below the floor ever begins.
//
// That is part of the set's state, and changes by mutations alone (table/mutation.h), each of which
// is checked here. Pure data: cluster/move_protocol.h says how sets go about it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cellar/lsn.h"
#include "engine/table/tablets.h"

namespace cellar {

inline constexpr size_t kMovesMax{64};  // of a set, each way

struct MoveOut {
  uint64_t table_id{0};
  Tablet tablet;   // as it is owned until it is given
  uint64_t to{0};  // the set
  bool given{false};
  friend bool operator==(const MoveOut&, const MoveOut&) = default;
};

// A record, and its commit time.
struct LogMark {
  Lsn lsn{};
  int64_t micros{0};
  friend bool operator==(const LogMark&, const LogMark&) = default;
};

struct MoveIn {
  uint64_t table_id{0};
  Tablet tablet;  // with the epoch that it gets here
  uint64_t from{0};
  uint64_t attempt{0};
  bool clear{false};  // nothing of another attempt is left
  uint64_t parts{0};  // of the attempt, that are here
  LogMark tail{};     // in the donor's log; none: the copy is not complete
  bool binds{false};  // one has been complete, this one or one before: it may have been given
  bool complete() const { return tail.lsn != Lsn{}; }
  friend bool operator==(const MoveIn&, const MoveIn&) = default;
};

enum class MoveEnd : uint8_t { kCancelled = 0, kMoved = 1 };

class TabletMoves {
 public:
  bool empty() const { return floor_ == 0 && out_.empty() && in_.empty() && ended_.empty(); }
  uint64_t floor() const { return floor_; }
  const std::map<uint64_t, MoveOut>& out() const { return out_; }
  const std::map<uint64_t, MoveIn>& in() const { return in_; }
  const std::map<uint64_t, MoveEnd>& ended() const { return ended_; }
  bool HasEnded(uint64_t job) const { return job <= floor_ || ended_.contains(job); }
  const MoveOut* FindOut(uint64_t job) const;
  const MoveIn* FindIn(uint64_t job) const;
  // The job that moves a part of that range of the table away, or here; 0: none does.
  uint64_t OutOf(uint64_t table_id, const Tablet& range) const;
  uint64_t InOf(uint64_t table_id, const Tablet& range) const;
  bool TouchesTable(uint64_t table_id) const;

  // --- changes; each is false, and nothing has changed, where it cannot be
  // At the donor. REQUIRES: the set owns the tablet.
  [[nodiscard]] bool Begin(uint64_t job, MoveOut move);
  [[nodiscard]] bool Give(uint64_t job);
  [[nodiscard]] bool Done(uint64_t job);
  // At either: not what is given, nor what has ended. One that is not known here ends, too, so that
  // it never begins.
  [[nodiscard]] bool Cancel(uint64_t job);
  // At the donor: what is given is its own again. That is no mutation of its own: it is part of a
  // state that is logged whole (kTablets).
  [[nodiscard]] bool Reclaim(uint64_t job);
  // At a set that has come back older: the job has ended so in what it has forgotten, or among
  // others. Likewise. False: it knows an end of it.
  [[nodiscard]] bool End(uint64_t job, MoveEnd end);
  // There, too: what has been given to it is still to come; what there is of it stays. Likewise.
  [[nodiscard]] bool Await(uint64_t job, const MoveIn& move);
  // At the recipient. REQUIRES: the set owns nothing of it.
  // The first attempt, or one behind the one that there is.
  [[nodiscard]] bool Stage(uint64_t job, MoveIn move);
  // Part 0: the range is empty.
  [[nodiscard]] bool Clear(uint64_t job, uint64_t attempt);
  [[nodiscard]] bool Fill(uint64_t job, uint64_t attempt, uint64_t part, const LogMark& tail);
  // The parts are all that there are.
  [[nodiscard]] bool Own(uint64_t job, uint64_t attempt, uint64_t parts);
  // At both. False too if one at or below it goes on.
  [[nodiscard]] bool Raise(uint64_t floor);
  // What was of a table that is gone goes with it: jobs are cancelled, what was given is done.
  void DropTable(uint64_t table_id);

  // v floor, v count { v job, move out }, v count { v job, move in }, v count { v job, end u8 }
  void Encode(std::string* to) const;
  [[nodiscard]] bool Decode(std::string_view* from);
  friend bool operator==(const TabletMoves&, const TabletMoves&) = default;

 private:
  uint64_t floor_{0};
  std::map<uint64_t, MoveOut> out_;
  std::map<uint64_t, MoveIn> in_;
  std::map<uint64_t, MoveEnd> ended_;
};

// Bodies of the mutations.
void EncodeMoveOut(const MoveOut& move, std::string* to);
[[nodiscard]] bool DecodeMoveOut(std::string_view* from, MoveOut* move);
void EncodeMoveIn(const MoveIn& move, std::string* to);
[[nodiscard]] bool DecodeMoveIn(std::string_view* from, MoveIn* move);

// Part `part` of an attempt; `tail` none: of the copy.
struct MovePart {
  uint64_t attempt{0};
  uint64_t part{0};
  LogMark tail{};
};
void EncodeMovePart(const MovePart& part, std::string* to);
[[nodiscard]] bool DecodeMovePart(std::string_view from, MovePart* part);

// `tablets` without `tablet`, which is one of them; with it. Null where it is not, or overlaps one.
Tablets::Pointer WithoutTablet(const Tablets& tablets, const Tablet& tablet);
Tablets::Pointer WithTablet(const Tablets& tablets, const Tablet& tablet);

}  // namespace cellar
