// See sample.h.
#include "cellar-top/sample.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "client/reply_fields.h"

namespace cellar::top {
namespace {

constexpr size_t kTablesWarm{3};  // whose ranges are looked at
constexpr size_t kRangesShown{8};
constexpr size_t kSlowShown{5};
constexpr const char* kSlowAsked{"25"};  // some are left out
constexpr int64_t kRangeMinutes{5};
constexpr uint64_t kTabletsAsked{2000};
constexpr uint64_t kCutsAsked{10};
constexpr std::string_view kTablePrefix{"table_"};

using client::FieldOf;
using client::IsList;
using client::TextOf;

// The address that the server knows this connection by: "id=3 addr=127.0.0.1:5312 ..."; empty if it
// does not say.
std::string OwnAddress(const redisReply& client_info) {
  constexpr std::string_view kMark{" addr="};
  const std::string_view text = TextOf(client_info);
  const size_t mark = text.find(kMark);
  if (mark == std::string_view::npos) return {};
  const std::string_view behind = text.substr(mark + kMark.size());
  return std::string(behind.substr(0, behind.find(' ')));
}

// Without what this connection has asked itself, such as the first FEED INFO, which counts.
void ReadSlow(const redisReply& reply, const std::string& own_address, Sample* sample) {
  for (size_t i = 0; IsList(reply) && i < reply.elements; ++i) {
    const redisReply& entry = *reply.element[i];
    if (entry.elements < 5 || sample->slow.size() == kSlowShown) continue;
    if (!own_address.empty() && TextOf(*entry.element[4]) == own_address) continue;
    SlowCommand& slow = sample->slow.emplace_back();
    slow.unix_s = entry.element[1]->integer;
    slow.micros = entry.element[2]->integer;
    for (size_t k = 0; k < entry.element[3]->elements; ++k) {
      if (k > 0) slow.text += ' ';
      slow.text += TextOf(*entry.element[3]->element[k]).substr(0, 80);
    }
    slow.client = TextOf(*entry.element[4]);
  }
}

void ReadRanges(const std::string& table, const redisReply& heat, Sample* sample) {
  const redisReply* const keys = FieldOf(heat, "keys");
  const redisReply* const reads = FieldOf(heat, "reads");
  const redisReply* const writes = FieldOf(heat, "writes");
  if (keys == nullptr || reads == nullptr || writes == nullptr) return;
  const auto sum = [&](const redisReply& steps, size_t range) {
    uint64_t total = 0;
    for (size_t i = 0; i < steps.elements; ++i) {
      if (range < steps.element[i]->elements) {
        total += static_cast<uint64_t>(steps.element[i]->element[range]->integer);
      }
    }
    return total;
  };
  for (size_t i = 0; i < keys->elements; ++i) {
    WarmRange range{table, std::string(TextOf(*keys->element[i])), "", sum(*reads, i),
                    sum(*writes, i)};
    if (i + 1 < keys->elements) range.end = TextOf(*keys->element[i + 1]);
    if (range.reads + range.writes > 0) sample->ranges.push_back(std::move(range));
  }
}

// The tables with the most accesses, by INFO's word.
std::vector<std::string> WarmTables(const Sample& sample) {
  std::vector<std::pair<uint64_t, std::string>> tables;
  for (const auto& [name, value] : sample.info) {
    if (!name.starts_with(kTablePrefix)) continue;
    const auto parts = Parts(value);
    const auto number = [&parts](const char* part) {
      const auto found = parts.find(part);
      return found == parts.end() ? 0ULL : std::strtoull(found->second.c_str(), nullptr, 10);
    };
    const uint64_t heat = number("reads") + number("writes");
    if (heat > 0) tables.emplace_back(heat, name.substr(kTablePrefix.size()));
  }
  std::sort(tables.rbegin(), tables.rend());
  if (tables.size() > kTablesWarm) tables.resize(kTablesWarm);
  std::vector<std::string> names;
  names.reserve(tables.size());
  for (auto& [heat, name] : tables) names.push_back(std::move(name));
  return names;
}

Status ReadHeat(client::Connection* connection, Sample* sample) {
  const std::string from = std::to_string((sample->unix_s - kRangeMinutes * 60) * 1'000'000);
  for (const std::string& table : WarmTables(*sample)) {
    ASSIGN_OR_RETURN(const client::Reply heat,
                     connection->Call({"HEAT", table, "FROM", from, "RANGES", "32"}));
    if (IsList(*heat)) ReadRanges(table, *heat, sample);
  }
  std::stable_sort(sample->ranges.begin(), sample->ranges.end(),
                   [](const WarmRange& a, const WarmRange& b) {
                     return a.reads + a.writes > b.reads + b.writes;
                   });
  if (sample->ranges.size() > kRangesShown) sample->ranges.resize(kRangesShown);
  return Status::Ok();
}

// A refusal leaves out what was asked; only a connection that is lost ends the look.
Status LostOrLeftOut(const Status& status) {
  return status.code() == ErrorCode::kIo ? status : Status::Ok();
}

// Whose entries come of several sets.
void ReadSetsOfFeed(const redisReply& info, Feed* feed) {
  const auto number = [&info](const char* name) -> std::optional<uint64_t> {
    const redisReply* const field = FieldOf(info, name);
    if (field == nullptr || field->type != REDIS_REPLY_INTEGER || field->integer < 0)
      return std::nullopt;
    return static_cast<uint64_t>(field->integer);
  };
  if (FieldOf(info, "held-back-by") == nullptr) return;
  feed->home = number("home");
  feed->held_back_by = number("held-back-by");
  feed->held_back_s = number("held-back-s");
  if (const std::optional<uint64_t> resolved = number("resolved-ms"); resolved)
    feed->resolved_ms = static_cast<int64_t>(*resolved);
}

// Servers without feeds answer with an error.
Status ReadFeeds(client::Connection* connection, Sample* sample) {
  ASSIGN_OR_RETURN(const client::Reply names, connection->Call({"FEED", "LIST"}));
  for (size_t i = 0; IsList(*names) && i < names->elements; ++i) {
    const std::string name(TextOf(*names->element[i]));
    ASSIGN_OR_RETURN(const client::Reply info, connection->Call({"FEED", "INFO", name}));
    if (!IsList(*info)) continue;
    Feed& feed = sample->feeds.emplace_back();
    feed.name = name;
    ReadSetsOfFeed(*info, &feed);
    if (const redisReply* bytes = FieldOf(*info, "bytes"); bytes != nullptr) {
      feed.bytes = static_cast<uint64_t>(bytes->integer);
    }
    if (const redisReply* groups = FieldOf(*info, "groups"); groups != nullptr) {
      feed.groups = IsList(*groups) ? groups->elements : static_cast<uint64_t>(groups->integer);
    }
    if (const redisReply* last = FieldOf(*info, "last"); last != nullptr) {
      const int64_t last_ms = std::strtoll(std::string(TextOf(*last)).c_str(), nullptr, 10);
      feed.lag_ms = last_ms == 0 ? 0 : std::max<int64_t>(0, sample->unix_s * 1000 - last_ms);
    }
  }
  return Status::Ok();
}

// Moments over all sets, and the backup of them.
Status ReadCuts(client::Connection* connection, Sample* sample) {
  Result<std::vector<client::CutState>> cuts = client::ReadCuts(connection, kCutsAsked);
  if (!cuts.ok()) return LostOrLeftOut(cuts.status());
  sample->cuts = *std::move(cuts);
  const Result<uint64_t> interval = client::ReadCutInterval(connection);
  if (interval.ok())
    sample->cut_interval_s = *interval;
  else
    RETURN_IF_ERROR(LostOrLeftOut(interval.status()));
  // A set without a leader would have everybody wait.
  const bool all_lead =
      std::all_of(sample->sets.begin(), sample->sets.end(),
                  [](const client::SetState& set) { return !set.leader.empty(); });
  if (!all_lead) return Status::Ok();
  Result<client::BackupState> backup = client::ReadBackup(connection);
  if (!backup.ok()) return LostOrLeftOut(backup.status());
  sample->backup = *std::move(backup);
  return Status::Ok();
}

// What the node knows of its cluster. Whoever may not ask sees none of it.
Status ReadCluster(client::Connection* connection, Sample* sample) {
  Result<std::vector<client::SetState>> sets = client::ReadSets(connection);
  if (!sets.ok()) return LostOrLeftOut(sets.status());
  sample->sets = *std::move(sets);
  const Result<client::TabletMap> map = client::ReadTablets(connection, "", kTabletsAsked);
  if (!map.ok()) return LostOrLeftOut(map.status());
  sample->has_more_tablets = map->tablets.size() == kTabletsAsked;
  std::map<std::string, TabletSpread> spreads;
  for (const client::TabletState& tablet : map->tablets) {
    TabletSpread& spread = spreads[tablet.table];
    spread.table = tablet.table;
    ++spread.tablets;
    ++spread.of_set[tablet.set];
  }
  for (auto& [table, spread] : spreads) {
    if (spread.tablets > 1) sample->spreads.push_back(std::move(spread));
  }
  std::stable_sort(
      sample->spreads.begin(), sample->spreads.end(),
      [](const TabletSpread& a, const TabletSpread& b) { return a.tablets > b.tablets; });
  if (sample->sets.size() < 2) return Status::Ok();
  Result<std::vector<client::JobState>> jobs = client::ReadJobs(connection);
  if (!jobs.ok()) return LostOrLeftOut(jobs.status());
  std::erase_if(*jobs, [](const client::JobState& job) { return job.ended(); });
  sample->jobs = *std::move(jobs);
  return ReadCuts(connection, sample);
}

}  // namespace

uint64_t Sample::Number(const std::string& field) const {
  const auto found = info.find(field);
  return found == info.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

std::string Sample::Text(const std::string& field) const {
  const auto found = info.find(field);
  return found == info.end() ? "" : found->second;
}

Result<Sample> Take(client::Connection* connection) {
  Sample sample;
  ASSIGN_OR_RETURN(const client::Reply info, connection->Call({"INFO", "everything"}));
  if (const std::string_view error = client::ErrorText(*info); !error.empty()) {
    return Status::Error(ErrorCode::kErr, std::string(error));
  }
  sample.info = InfoFields(TextOf(*info));
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  sample.monotonic_micros = std::chrono::duration_cast<std::chrono::microseconds>(since).count();
  ASSIGN_OR_RETURN(const client::Reply time, connection->Call({"TIME"}));
  if (IsList(*time) && time->elements == 2) {
    sample.unix_s = std::strtoll(std::string(TextOf(*time->element[0])).c_str(), nullptr, 10);
  }
  ASSIGN_OR_RETURN(const client::Reply slow, connection->Call({"SLOWLOG", "GET", kSlowAsked}));
  ASSIGN_OR_RETURN(const client::Reply own, connection->Call({"CLIENT", "INFO"}));
  ReadSlow(*slow, OwnAddress(*own), &sample);
  RETURN_IF_ERROR(ReadHeat(connection, &sample));
  RETURN_IF_ERROR(ReadFeeds(connection, &sample));
  if (sample.info.contains("cluster_sets")) RETURN_IF_ERROR(ReadCluster(connection, &sample));
  return sample;
}

}  // namespace cellar::top
