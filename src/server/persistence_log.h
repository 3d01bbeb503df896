// PersistenceLog: what becomes of log and snapshots, told in the server's log. The journal knows it
// (JournalStats) and has nobody to tell; an operator who reads the log afterwards wants to see when
// writes began to be refused, why, and when they came back.
//
// It compares states, so it is looked at from a timer and costs nothing while nothing changes. A
// disk that is full one moment and not the next does not flood the log: of log and snapshots each
// at most one line in kPauseMicros, and the last state is told in the end.
#pragma once

#include <cstdint>
#include <string>

#include "store/journal/journal.h"

namespace cellar {

class PersistenceLog {
 public:
  static constexpr int64_t kPauseMicros{2'000'000};

  // Writes what has changed since the last call. `now_micros` is of a monotonic clock.
  void Look(const JournalStats& stats, int64_t now_micros);

 private:
  // What is wrong; empty while nothing is.
  struct Topic {
    std::string trouble;
    int64_t told_micros{-kPauseMicros};
  };
  // True if `trouble` is another state than the one told last, and may be told: then it is noted.
  static bool HasChanged(Topic* topic, const std::string& trouble, int64_t now_micros);

  Topic log_;
  Topic snapshot_;
  uint64_t saves_{0};
};

}  // namespace cellar
