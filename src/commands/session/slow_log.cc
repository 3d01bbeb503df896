// See slow_log.h.
#include "commands/session/slow_log.h"

#include <algorithm>

#include "base/assert.h"
#include "commands/session/session.h"

namespace cellar {

std::vector<std::string> ShortenedWords(Arguments args) {
  std::vector<std::string> words;
  const size_t shown = std::min(args.size(), SlowLog::kWordsMax);
  for (size_t i = 0; i < shown; ++i) {
    // As in Redis the last place says how many words are missing, the one that it takes included.
    if (shown < args.size() && i + 1 == shown) {
      words.push_back("... (" + std::to_string(args.size() - shown + 1) + " more arguments)");
    } else if (args[i].size() > SlowLog::kWordBytesMax) {
      words.push_back(std::string(args[i].substr(0, SlowLog::kWordBytesMax)) + "... (" +
                      std::to_string(args[i].size() - SlowLog::kWordBytesMax) + " more bytes)");
    } else {
      words.emplace_back(args[i]);
    }
  }
  return words;
}

void SlowLog::Add(const Session& session, Arguments args, int64_t unix_s, int64_t micros,
                  size_t entries_max) {
  entries_.push_front({.id = next_id_++,
                       .unix_s = unix_s,
                       .micros = micros,
                       .words = ShortenedWords(args),
                       .address = session.address,
                       .client_name = session.name});
  Trim(entries_max);
}

void SlowLog::Trim(size_t entries_max) {
  while (entries_.size() > entries_max) entries_.pop_back();
}

void LatencyMonitor::Add(std::string_view event, int64_t unix_s, int64_t millis) {
  CELLAR_ASSERT(millis >= 0);
  auto found = events_.find(event);
  if (found == events_.end()) found = events_.emplace(event, Event{}).first;
  Event& entry = found->second;
  entry.worst_millis = std::max(entry.worst_millis, millis);
  // One sample a second, the worst one.
  if (!entry.samples.empty() && entry.samples.back().unix_s == unix_s) {
    entry.samples.back().millis = std::max(entry.samples.back().millis, millis);
    return;
  }
  entry.samples.push_back({unix_s, millis});
  if (entry.samples.size() > kSamplesMax) entry.samples.pop_front();
}

bool LatencyMonitor::Reset(std::string_view event) {
  const auto found = events_.find(event);
  if (found == events_.end()) return false;
  events_.erase(found);
  return true;
}

size_t LatencyMonitor::ResetAll() {
  const size_t count = events_.size();
  events_.clear();
  return count;
}

}  // namespace cellar
