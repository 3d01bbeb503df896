// LargeIntake: large requests of several clients are executed in as many rounds of the loop, so
// that the others, and the heartbeats of a replica set, have their part between: timers, then
// reading.
//
//   round 1   A's 25 MB        B's and C's stand whole in their pending input, and are held over
//   round 2   B's 25 MB
//   round 3   C's 25 MB
//
// A round has two turns, one behind its reading and one behind its timers; a large request has one
// of them. An EXEC is as large as what has been queued for it.
//
// To take in 25 MB costs about 65 ms, most of it for pages of fresh memory: five clients that send
// as much at once would hold the loop for longer than a set waits for its leader.
//
// In the order in which they came. A connection that is held over is not read. It belongs to the
// loop's thread; connections are borrowed.
#pragma once

#include <cstddef>
#include <vector>

namespace cellar {

class Connection;

class LargeIntake {
 public:
  // A request from here on is large.
  static constexpr size_t kLargeBytes{256 * 1024};
  // Of large requests in a round; a first one of any size.
  static constexpr size_t kTurnBytes{4 << 20};

  // May the connection execute requests of so many bytes in this round? If not, it is held over.
  bool Admits(Connection* connection, size_t bytes) {
    return bytes < kLargeBytes || AdmitsLarge(connection, bytes);
  }
  bool holds_some() const { return !held_.empty(); }
  // Those that are held over go on, as far as the round has room for them.
  void Resume();
  // The timers of a round have been called.
  void BeginRound() { taken_bytes_ = 0; }
  // The connection is being closed.
  void Forget(Connection* connection);

 private:
  bool AdmitsLarge(Connection* connection, size_t bytes);
  bool IsFull(size_t bytes) const { return taken_bytes_ > 0 && taken_bytes_ + bytes > kTurnBytes; }

  size_t taken_bytes_{0};
  std::vector<Connection*> held_;
  std::vector<Connection*> resumed_;  // by Resume; null: done, or forgotten
  bool resuming_{false};
};

}  // namespace cellar
