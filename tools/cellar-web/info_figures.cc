// See info_figures.h.
#include "cellar-web/info_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "base/text/number.h"

namespace cellar::web {
namespace {

// What only grows while the server runs, besides all that begins with total_.
constexpr std::string_view kCounters[]{
    "acl_access_denied_auth",
    "acl_access_denied_channel",
    "acl_access_denied_cmd",
    "acl_access_denied_key",
    "aof_failures",
    "aof_rewrites",
    "aof_syncs",
    "cells_dead_on_arrival",
    "cells_in_future",
    "cells_not_in_micros",
    "client_output_buffer_limit_disconnections",
    "client_query_buffer_limit_disconnections",
    "eventloop_cycles",
    "eventloop_duration_cmd_sum",
    "eventloop_duration_sum",
    "evicted_clients",
    "keyspace_hits",
    "keyspace_misses",
    "rdb_saves",
    "reads_in_threads",
    "rejected_connections",
    "replica_diverged_total",
    "replica_full_syncs",
    "replica_partial_syncs",
    "sync_full",
    "sync_partial_err",
    "sync_partial_ok",
    "unexpected_error_replies",
    "used_cpu_sys",
    "used_cpu_user",
};
// Levels, although their names begin with total_.
constexpr std::string_view kLevels[]{"total_blocking_keys", "total_blocking_keys_on_nokey",
                                     "total_system_memory", "total_watched_keys"};
// Told better elsewhere, or for people.
constexpr std::string_view kLeftOut[]{"db", "latency_percentiles_usec_"};

constexpr std::string_view kHelp{"As in INFO."};
constexpr std::string_view kCommandLine{"cmdstat_"};
constexpr std::string_view kDurations{"cellar_command_duration_seconds"};
constexpr std::string_view kDurationsHelp{"How long calls of a command took."};
// Always the same bounds, so that rates of buckets can be taken: 1 us to 33 s.
constexpr int kBuckets{26};

bool IsNumber(std::string_view text) {
  if (text.empty()) return false;
  const bool digits = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == '.' || c == '-';
  });
  return digits && std::count(text.begin(), text.end(), '.') <= 1 && text.back() != '.' &&
         text.rfind('-') != text.size() - 1 &&
         (text.find('-') == 0 || text.find('-') == std::string_view::npos);
}

bool IsCounter(std::string_view name) {
  if (std::find(std::begin(kLevels), std::end(kLevels), name) != std::end(kLevels)) return false;
  return name.starts_with("total_") ||
         std::find(std::begin(kCounters), std::end(kCounters), name) != std::end(kCounters);
}

// The next line, without its end; false at the end of the text.
bool NextLine(std::string_view* text, std::string_view* line) {
  if (text->empty()) return false;
  const size_t end = text->find('\n');
  *line = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  if (line->ends_with('\r')) line->remove_suffix(1);
  return true;
}

// The value of `key` in "a=1,b=2"; empty if it is not there.
std::string_view FieldOf(std::string_view fields, std::string_view key) {
  while (!fields.empty()) {
    const size_t end = fields.find(',');
    const std::string_view field = fields.substr(0, end);
    if (field.size() > key.size() && field.starts_with(key) && field[key.size()] == '=') {
      return field.substr(key.size() + 1);
    }
    fields.remove_prefix(end == std::string_view::npos ? fields.size() : end + 1);
  }
  return {};
}

// Every number of "a=1,b=2" as prefix_a, prefix_b.
template <typename AddField>
void ForEachNumber(std::string_view fields, const AddField& add) {
  while (!fields.empty()) {
    const size_t end = fields.find(',');
    const std::string_view field = fields.substr(0, end);
    const size_t equals = field.find('=');
    if (equals != std::string_view::npos && IsNumber(field.substr(equals + 1))) {
      add(field.substr(0, equals), field.substr(equals + 1));
    }
    fields.remove_prefix(end == std::string_view::npos ? fields.size() : end + 1);
  }
}

std::string SecondsOfMicros(std::string_view micros) {
  uint64_t value = 0;
  return ParseUint64(micros, &value) == NumberError::kNone
             ? fmt::format("{}.{:06}", value / 1'000'000, value % 1'000'000)
             : std::string("0");
}

void AddCommand(std::string_view command, std::string_view fields, Exposition* out) {
  const auto add = [&](std::string_view name, std::string_view help, std::string_view value) {
    out->Add(name, MetricKind::kCounter, help, {{"command", command}}, value);
  };
  add("cellar_commands_total", "Calls of a command.", FieldOf(fields, "calls"));
  add("cellar_commands_rejected_total", "Calls that were refused before they began.",
      FieldOf(fields, "rejected_calls"));
  add("cellar_commands_failed_total", "Calls that ended with an error.",
      FieldOf(fields, "failed_calls"));
}

// Of each command that INFO tells of: the time that its calls took, in microseconds.
std::map<std::string_view, std::string_view> TimesOf(std::string_view info) {
  std::map<std::string_view, std::string_view> times;
  std::string_view line;
  while (NextLine(&info, &line)) {
    const size_t colon = line.find(':');
    if (!line.starts_with(kCommandLine) || colon == std::string_view::npos) continue;
    times[line.substr(kCommandLine.size(), colon - kCommandLine.size())] =
        FieldOf(line.substr(colon + 1), "usec");
  }
  return times;
}

void AddTable(std::string_view name, std::string_view fields, Exposition* out) {
  const auto [keyspace, table] = DivideName(name);
  ForEachNumber(fields, [&, k = keyspace, t = table](std::string_view key, std::string_view value) {
    const bool grows = key == "reads" || key == "writes" || key == "reclaimed";
    out->Add(fmt::format("cellar_table_{}{}", key, grows ? "_total" : ""),
             grows ? MetricKind::kCounter : MetricKind::kGauge,
             "Of a table, as in INFO tables; reads and writes are estimated from a sample.",
             {{"keyspace", k}, {"table", t}}, value);
  });
}

// "slave0", "set12": the word before the number.
std::optional<std::string_view> NumberedWord(std::string_view name) {
  const size_t digits = name.find_first_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  const bool only = std::all_of(name.begin() + static_cast<ptrdiff_t>(digits), name.end(),
                                [](char c) { return c >= '0' && c <= '9'; });
  return only ? std::optional(name.substr(0, digits)) : std::nullopt;
}

void AddFields(std::string_view name, std::string_view fields, Exposition* out) {
  if (name.starts_with(kCommandLine)) {
    return AddCommand(name.substr(kCommandLine.size()), fields, out);
  }
  if (name.starts_with("table_")) return AddTable(name.substr(6), fields, out);
  if (name.starts_with("errorstat_")) {
    return out->Add("cellar_errors_total", MetricKind::kCounter, "Error replies by their code.",
                    {{"error", name.substr(10)}}, FieldOf(fields, "count"));
  }
  if (name.starts_with("keyspace_")) {
    return ForEachNumber(fields, [&](std::string_view key, std::string_view value) {
      out->Add(fmt::format("cellar_keyspace_{}", key), MetricKind::kGauge,
               "Of a keyspace, as in INFO.", {{"keyspace", name.substr(9)}}, value);
    });
  }
  const auto word = NumberedWord(name);
  if (!word) return;
  const std::string label =
      *word == "slave" ? fmt::format("{}:{}", FieldOf(fields, "ip"), FieldOf(fields, "port"))
                       : std::string(name.substr(word->size()));
  const std::string_view kind = *word == "slave" ? "replica" : *word;
  ForEachNumber(fields, [&](std::string_view key, std::string_view value) {
    if (key == "port") return;
    out->Add(fmt::format("cellar_{}_{}", kind, key), MetricKind::kGauge, kHelp, {{kind, label}},
             value);
  });
}

void AddField(std::string_view name, std::string_view value, Exposition* out) {
  const std::string full = fmt::format("cellar_{}", name);
  if (name == "role") {
    out->Add(full, MetricKind::kGauge, "1 for the role that it has.", {{"role", value}}, "1");
  } else if (name == "cellar_version") {
    out->Add("cellar_build_info", MetricKind::kGauge, "Which version answers.",
             {{"version", value}}, "1");
  } else if (name.ends_with("_status") && (value == "ok" || value == "err")) {
    out->Add(full, MetricKind::kGauge, "1: ok; 0: not.", {}, value == "ok" ? "1" : "0");
  } else if (IsNumber(value) && !name.ends_with("_build_id") && !name.ends_with("_sha1") &&
             !name.starts_with("master_replid") && name != "redis_version" &&
             name != "gcc_version") {
    out->Add(full, IsCounter(name) ? MetricKind::kCounter : MetricKind::kGauge, kHelp, {}, value);
  }
}

bool IsName(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace

std::pair<std::string_view, std::string_view> DivideName(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return {"0", name};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

void AddInfo(std::string_view info, Exposition* out, std::vector<ToldTable>* tables) {
  std::string_view line;
  while (NextLine(&info, &line)) {
    // A table's name may hold a colon, its figures do not.
    const size_t colon = line.starts_with("table_") ? line.rfind(':') : line.find(':');
    if (line.starts_with('#') || colon == std::string_view::npos) continue;
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = line.substr(colon + 1);
    if (std::any_of(std::begin(kLeftOut), std::end(kLeftOut),
                    [&](std::string_view word) { return name.starts_with(word); })) {
      continue;
    }
    if (value.find('=') != std::string_view::npos) {
      AddFields(name, value, out);
      if (tables != nullptr && name.starts_with("table_")) {
        tables->push_back(
            {.name = std::string(name.substr(6)), .has_indexes = FieldOf(value, "indexes") != "0"});
      }
    } else if (IsName(name)) {
      AddField(name, value, out);
    }
  }
}

void AddLatencies(const redisReply& histogram, std::string_view info, Exposition* out) {
  const std::map<std::string_view, std::string_view> times = TimesOf(info);
  const auto text = [](const redisReply& of) { return std::string_view(of.str, of.len); };
  for (size_t i = 0; i + 1 < histogram.elements; i += 2) {
    const redisReply& of = *histogram.element[i + 1];
    if (of.elements < 4 || of.element[1]->type != REDIS_REPLY_INTEGER) continue;
    const std::string_view command = text(*histogram.element[i]);
    const auto time = times.find(command);
    if (time == times.end()) continue;  // the statistics were reset in between
    const std::string calls = std::to_string(of.element[1]->integer);
    const redisReply& told = *of.element[3];  // bounds that were met, with the calls up to each
    const auto add = [&](std::string_view bound, std::string_view count) {
      out->Add(kDurations, MetricKind::kHistogram, kDurationsHelp,
               {{"command", command}, {"le", bound}}, count, "_bucket");
    };
    long long count = 0;
    size_t next = 0;
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      const long long micros = 1LL << bucket;
      while (next + 1 < told.elements && told.element[next]->integer <= micros) {
        count = told.element[next + 1]->integer;
        next += 2;
      }
      add(SecondsOfMicros(std::to_string(micros)), std::to_string(count));
    }
    add("+Inf", calls);
    out->Add(kDurations, MetricKind::kHistogram, kDurationsHelp, {{"command", command}},
             SecondsOfMicros(time->second), "_sum");
    out->Add(kDurations, MetricKind::kHistogram, kDurationsHelp, {{"command", command}}, calls,
             "_count");
  }
}

}  // namespace cellar::web
