// LogRetention: which snapshots and which closed segments of the log stay, and which go.
//
//   snapshots          1.snapshot          5.snapshot
//   segments    ...  2  3  4            6  7  8  9(open)
//                 |        |_ covered: 5.snapshot has what is in them. They stay while
//                 |           a snapshot that is kept is older,
//                 |           the last backlog_bytes of what is covered reach so far back,
//                 |           a follower is behind (SetRetainBehind), or
//                 |           a feed, an archive, a backup or a tablet on its way away still reads
//                 |           there (RetainFrom, PinFrom)
//                 |_ gone: what stays has no gap in it
//
// It says only what goes: LogWriter changes the manifest and removes the files.
//
// Threads: all may be called by any thread. What was set holds from the next Prune on.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "store/format/manifest.h"
#include "store/journal/journal.h"

namespace cellar {

class LogRetention {
 public:
  explicit LogRetention(uint32_t snapshots_kept) : snapshots_kept_(snapshots_kept) {}

  // Bytes of log that the newest snapshot covers and that stay all the same.
  void SetBacklog(uint64_t bytes) { backlog_bytes_.store(bytes, std::memory_order_relaxed); }
  // How many snapshots stay, and the log behind the oldest of them. REQUIRES: > 0.
  void SetSnapshotsKept(uint32_t count) { snapshots_kept_.store(count, std::memory_order_relaxed); }
  // Records after this number stay; UINT64_MAX: none for that.
  void SetRetainBehind(uint64_t seq) { retain_behind_.store(seq, std::memory_order_relaxed); }
  // This snapshot stays no longer than it is the newest one.
  void SetDamaged(uint64_t snapshot) { damaged_.store(snapshot, std::memory_order_relaxed); }
  // Segments from this number on stay; UINT64_MAX: none for that. True if fewer have to than
  // before.
  bool RetainFrom(uint64_t segment) { return Raise(&retain_from_, segment); }
  bool PinFrom(LogPin pin, uint64_t segment) {
    return Raise(&pins_[static_cast<size_t>(pin)], segment);
  }

  // With several snapshots a start may begin with an older one: the log leads on from each.
  bool keeps_snapshots() const { return snapshots_kept_.load(std::memory_order_relaxed) > 1; }

  // Takes out of *draft what does not stay, and appends the files' names to *names. REQUIRES: it
  // has a snapshot. O(segments).
  void Prune(Manifest* draft, std::vector<std::string>* names) const;

 private:
  static bool Raise(std::atomic<uint64_t>* number, uint64_t to) {
    return to > number->exchange(to, std::memory_order_relaxed);
  }
  // The first record that a start from a snapshot that stays may need is behind this.
  Lsn OldestNeeded(const Manifest& draft) const;
  uint64_t FirstWanted() const;

  std::atomic<uint64_t> backlog_bytes_{0};
  std::atomic<uint64_t> damaged_{UINT64_MAX};
  std::atomic<uint32_t> snapshots_kept_;
  std::atomic<uint64_t> retain_behind_{UINT64_MAX};
  std::atomic<uint64_t> retain_from_{UINT64_MAX};
  std::array<std::atomic<uint64_t>, kLogPins> pins_{UINT64_MAX, UINT64_MAX, UINT64_MAX};
};

}  // namespace cellar
