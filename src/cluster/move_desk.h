// MoveDesk: what commands ask of this node's part in moves of tablets (server/tablet_mover.h
// implements it).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cellar {

struct TabletSize;

struct MoveProgress {
  std::string state{};  // of a job that goes on: ordered, purging, copying, tailing, giving, owning
  uint64_t bytes{0};    // sent
  uint64_t behind{0};   // of the donor's log, that is still to be looked through
  bool given{false};
  std::string why{};  // it does not go on now
};

struct MoveFigures {
  uint64_t done{0};  // at this node, as donor, since the start
  uint64_t cancelled{0};
  int64_t pause_micros_max{0};  // from giving a tablet away until the other set owned it
  int64_t given_micros{0};      // so long the oldest tablet that is given away is nobody's by now
  bool purges{false};           // rows that the set does not own are stored here, and go
};

class MoveDesk {
 public:
  virtual ~MoveDesk() = default;
  // Of a job whose donor's leader this node is; nothing: it is not.
  virtual std::optional<MoveProgress> DonorProgress(uint64_t job) const = 0;
  // At the director: of a job that has not ended, as the donor has told it last.
  virtual MoveProgress JobProgress(uint64_t job) const = 0;
  // At the director: it is to be cancelled; `why` is told of it.
  virtual void WantCancel(uint64_t job, std::string why) = 0;
  // Jobs have changed, or something that they wait for: they are looked at in this turn.
  virtual void Wake() = 0;
  // At the director: a set drains, or does so no more.
  virtual void OnSets() = 0;
  // At a donor: as the director says it.
  virtual void NoteRate(uint64_t bytes_per_second) = 0;
  // At the director: what the owner of the tablet that begins there has told of it, some seconds
  // ago; null: nothing. It dies with the turn.
  virtual const TabletSize* SizeOf(uint64_t table_id, std::string_view begin) const = 0;
  virtual MoveFigures figures() const = 0;
};

}  // namespace cellar
