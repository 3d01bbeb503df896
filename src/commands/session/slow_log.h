// SlowLog and LatencyMonitor: what took long.
//
// The slow log keeps the last commands that worked longer than slowlog-log-slower-than, with their
// arguments cut short. The latency monitor keeps, for each kind of event, its worst time of each
// second, at most 160 of them. Both are bounded; neither sees a command that was fast.
//
// They answer different questions. A command that gives way to others while it works (task.h) has
// all its slices added up in the slow log, which tells where the time goes; the latency monitor
// gets each slice by itself, since it tells how long others had to wait.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "commands/arguments/arguments.h"

namespace cellar {

struct Session;

struct SlowLogEntry {
  int64_t id;
  int64_t unix_s;
  int64_t micros;
  std::vector<std::string> words;
  std::string address;
  std::string client_name;
};

class SlowLog {
 public:
  static constexpr size_t kWordsMax{32};
  static constexpr size_t kWordBytesMax{128};

  void Add(const Session& session, Arguments args, int64_t unix_s, int64_t micros,
           size_t entries_max);
  void Trim(size_t entries_max);
  void Reset() { entries_.clear(); }
  const std::deque<SlowLogEntry>& entries() const { return entries_; }  // newest first

 private:
  std::deque<SlowLogEntry> entries_;
  int64_t next_id_{0};
};

// Words of a command cut to what a log may keep.
std::vector<std::string> ShortenedWords(Arguments args);

class LatencyMonitor {
 public:
  static constexpr size_t kSamplesMax{160};
  struct Sample {
    int64_t unix_s;
    int64_t millis;
  };
  struct Event {
    std::deque<Sample> samples;  // oldest first
    int64_t worst_millis{0};
  };

  void Add(std::string_view event, int64_t unix_s, int64_t millis);
  // Forgets one event; false if there was none.
  bool Reset(std::string_view event);
  size_t ResetAll();
  const std::map<std::string, Event, std::less<>>& events() const { return events_; }

 private:
  std::map<std::string, Event, std::less<>> events_;
};

}  // namespace cellar
