// See screen.h.
#include "cellar-top/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "client/figure_text.h"

namespace cellar::top {
namespace {

constexpr std::string_view kCommandPrefix{"cmdstat_"};
constexpr std::string_view kTablePrefix{"table_"};
constexpr size_t kSetsShown{6};

using client::BytesText;
using client::CountText;
using client::PrintableText;
using client::ShortText;
using client::SpanText;

uint64_t Part(const std::map<std::string, std::string>& parts, const char* name) {
  const auto found = parts.find(name);
  return found == parts.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

class Screen {
 public:
  Screen(const Sample& before, const Sample& now, const View& view)
      : before_(before), now_(now), view_(view) {
    const int64_t micros = now.monotonic_micros - before.monotonic_micros;
    seconds_ = std::max(0.001, static_cast<double>(micros) / 1e6);
    // Counters of a server that has started again since begin anew.
    same_run_ = now.Text("run_id") == before.Text("run_id");
  }

  std::vector<Line> Draw() {
    DrawServer();
    if (view_.shows_cluster) {
      DrawSets();
      DrawMoments();
      DrawTablets();
      DrawJobs();
      DrawSetsOfFeeds();
      DrawNodes();
      return std::move(lines_);
    }
    DrawMemory();
    DrawFiles();
    DrawReplication();
    DrawFeeds();
    DrawSets();
    DrawMoments();
    DrawCommands();
    DrawTables();
    DrawTablets();
    DrawJobs();
    DrawRanges();
    DrawSlow();
    return std::move(lines_);
  }

 private:
  // Whatever the server says, it does not move the cursor.
  void Add(LineKind kind, std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
    if (text.size() > view_.columns) text.resize(view_.columns);
    lines_.push_back({kind, std::move(text)});
  }
  void AddPlain(std::string text) { Add(LineKind::kPlain, std::move(text)); }
  void AddHead(std::string text) {
    Add(LineKind::kPlain, "");
    text.resize(std::max(text.size(), view_.columns), ' ');
    Add(LineKind::kHead, std::move(text));
  }

  double Rate(uint64_t before, uint64_t now) const {
    return !same_run_ || now < before ? 0 : static_cast<double>(now - before) / seconds_;
  }
  double RateOf(const std::string& field) const {
    return Rate(before_.Number(field), now_.Number(field));
  }

  void DrawServer() {
    Add(LineKind::kHead,
        fmt::format("cellar-top  {}  Cellar {}  up {}  {}", PrintableText(view_.server, 40),
                    now_.Text("cellar_version"), SpanText(now_.Number("uptime_in_seconds")),
                    now_.Text("role")));
    AddPlain(fmt::format("commands {}/s  in {}/s  out {}/s  clients {} of {}  blocked {}",
                         ShortText(RateOf("total_commands_processed")),
                         BytesText(static_cast<uint64_t>(RateOf("total_net_input_bytes"))),
                         BytesText(static_cast<uint64_t>(RateOf("total_net_output_bytes"))),
                         now_.Number("connected_clients"), now_.Number("maxclients"),
                         now_.Number("blocked_clients")));
    if (now_.Number("loading") != 0) Add(LineKind::kAlarm, "the server is loading its data");
  }

  void DrawMemory() {
    const uint64_t used = now_.Number("used_memory");
    const uint64_t max = now_.Number("maxmemory");
    const std::string limit =
        max == 0
            ? "no limit"
            : fmt::format("{} % of {}", used * 100 / std::max<uint64_t>(1, max), BytesText(max));
    const bool full = max > 0 && used > max / 10 * 9;
    Add(full ? LineKind::kAlarm : LineKind::kPlain,
        fmt::format("memory   {} used ({}), peak {}, resident {}, clients {}", BytesText(used),
                    limit, BytesText(now_.Number("used_memory_peak")),
                    BytesText(now_.Number("used_memory_rss")),
                    BytesText(now_.Number("mem_clients_normal"))));
  }

  void DrawFiles() {
    if (now_.Number("aof_enabled") == 0) {
      AddPlain("log      off");
    } else {
      const bool ok = now_.Text("aof_last_write_status") == "ok" &&
                      now_.Text("aof_last_bgrewrite_status") != "err";
      Add(ok ? LineKind::kPlain : LineKind::kAlarm,
          fmt::format("log      {}, {}, {}/s, delayed syncs {}",
                      ok ? "ok" : "WRITES FAIL: " + PrintableText(now_.Text("aof_last_error"), 60),
                      BytesText(now_.Number("aof_current_size")),
                      BytesText(static_cast<uint64_t>(RateOf("master_repl_bytes"))),
                      now_.Number("aof_delayed_fsync")));
    }
    const bool saved = now_.Text("rdb_last_bgsave_status") != "err";
    const uint64_t at = now_.Number("rdb_last_save_time");
    const auto unix_s = static_cast<uint64_t>(std::max<int64_t>(0, now_.unix_s));
    Add(saved ? LineKind::kPlain : LineKind::kAlarm,
        fmt::format("snapshot {}{}, {} changes since {} ago", saved ? "ok" : "FAILED",
                    now_.Number("rdb_bgsave_in_progress") != 0 ? ", one is being written" : "",
                    CountText(now_.Number("rdb_changes_since_last_save")),
                    SpanText(unix_s > at ? unix_s - at : 0)));
  }

  void DrawReplication() {
    if (now_.Text("role") == "slave") {
      const bool up = now_.Text("master_link_status") == "up";
      return Add(
          up ? LineKind::kPlain : LineKind::kAlarm,
          fmt::format("follows  {}:{}, link {}, last word {} s ago", now_.Text("master_host"),
                      now_.Text("master_port"), now_.Text("master_link_status"),
                      now_.Text("master_last_io_seconds_ago")));
    }
    const uint64_t followers = now_.Number("connected_slaves");
    for (uint64_t i = 0; i < std::min<uint64_t>(followers, 4); ++i) {
      AddPlain(fmt::format("follower {}", now_.Text(fmt::format("slave{}", i))));
    }
  }

  void DrawFeeds() {
    for (size_t i = 0; i < std::min<size_t>(now_.feeds.size(), 4); ++i) {
      const Feed& feed = now_.feeds[i];
      const bool is_held = feed.held_back_by.has_value();
      Add(is_held ? LineKind::kAlarm : LineKind::kPlain,
          fmt::format("feed     {}: {} groups, {} kept, {}", PrintableText(feed.name, 24),
                      feed.groups, BytesText(feed.bytes),
                      is_held ? "held back by " + HolderText(feed)
                              : fmt::format("newest entry {} ms old", feed.lag_ms)));
    }
  }
  static std::string HolderText(const Feed& feed) {
    return fmt::format("set {}{}", *feed.held_back_by,
                       feed.held_back_s ? " for " + SpanText(*feed.held_back_s) : ", away");
  }
  void DrawSetsOfFeeds() {
    std::vector<const Feed*> feeds;
    for (const Feed& feed : now_.feeds)
      if (feed.resolved_ms || feed.held_back_by) feeds.push_back(&feed);
    if (feeds.empty()) return;
    AddHead(fmt::format("{:<30}{:>8}{:>9}{:>13}  {}", "FEED, ALL NODES", "GROUPS", "KEPT",
                        "SHOWN UP TO", "HELD BACK BY"));
    for (const Feed* const feed : feeds) {
      const int64_t ms = now_.unix_s * 1000 - feed->resolved_ms.value_or(0);
      const auto behind_s = static_cast<uint64_t>(std::max<int64_t>(0, ms / 1000));
      Add(feed->held_back_by ? LineKind::kAlarm : LineKind::kPlain,
          fmt::format("{:<30}{:>8}{:>9}{:>13}  {}", NameOf(*feed), feed->groups,
                      BytesText(feed->bytes), !feed->resolved_ms ? "-" : AgoText(behind_s),
                      feed->held_back_by ? HolderText(*feed) : ""));
    }
  }
  static std::string NameOf(const Feed& feed) {
    return PrintableText(feed.name, 18) +
           (feed.home ? fmt::format(", set {}", *feed.home) : std::string());
  }
  static std::string AgoText(uint64_t seconds) {
    return seconds == 0 ? "now" : SpanText(seconds) + " ago";
  }
  std::string AgoText(int64_t unix_s) const {
    return AgoText(static_cast<uint64_t>(std::max<int64_t>(0, now_.unix_s - unix_s)));
  }

  // The last moment of all sets that is one, and a backup that goes on or has ended.
  void DrawMoments() {
    if (now_.sets.size() < 2) return;
    Add(LineKind::kPlain, "");
    DrawCuts();
    DrawBackup();
  }
  void DrawCuts() {
    const std::string every = now_.cut_interval_s == 0
                                  ? "none by itself"
                                  : fmt::format("one every {} s", now_.cut_interval_s);
    const auto good = std::find_if(now_.cuts.begin(), now_.cuts.end(),
                                   [](const client::CutState& cut) { return cut.state == "good"; });
    if (good == now_.cuts.end())
      return Add(now_.cut_interval_s == 0 ? LineKind::kPlain : LineKind::kAlarm,
                 fmt::format("cut      none, {}", every));
    const int64_t at_s = good->unix_micros / 1'000'000;
    constexpr uint64_t kRoundsLate{3};
    const bool is_late =
        now_.cut_interval_s > 0 &&
        now_.unix_s - at_s > static_cast<int64_t>(kRoundsLate * now_.cut_interval_s + kRoundsLate);
    const auto bad = std::count_if(now_.cuts.begin(), good,
                                   [](const client::CutState& cut) { return cut.state == "bad"; });
    Add(is_late || bad > 0 ? LineKind::kAlarm : LineKind::kPlain,
        fmt::format("cut      {}, {}, {}; {}{}", good->cut, PrintableText(good->purpose, 16),
                    AgoText(at_s), every, bad == 0 ? "" : fmt::format("; {} BAD since", bad)));
  }
  void DrawBackup() {
    if (!now_.backup || now_.backup->start_unix_s == 0) return;
    const client::BackupState& backup = *now_.backup;
    std::string text = "backup   " + PrintableText(backup.state, 16);
    if (backup.end_unix_s != 0)
      text += fmt::format(", cut {}, {}", backup.cut, AgoText(backup.end_unix_s));
    else
      text += fmt::format(", begun {}", AgoText(backup.start_unix_s));
    if (!backup.folder.empty()) text += " in " + PrintableText(backup.folder, 40);
    std::map<std::string, size_t> counts;
    for (const auto& [set, state] : backup.of_set) ++counts[state];
    if (counts.size() > 1)
      for (const auto& [state, count] : counts)
        text += fmt::format(", {} {}", count == 1 ? "1 set" : fmt::format("{} sets", count),
                            PrintableText(state, 16));
    if (!backup.error.empty()) text += ": " + PrintableText(backup.error, 200);
    Add(backup.error.empty() ? LineKind::kPlain : LineKind::kAlarm, std::move(text));
  }

  static size_t NodesUp(const client::SetState& set) {
    return static_cast<size_t>(
        std::count_if(set.members.begin(), set.members.end(),
                      [](const client::SetMember& member) { return member.state != "down"; }));
  }
  static bool IsWell(const client::SetState& set) {
    return (set.state == "ok" || set.state == "empty") && NodesUp(set) == set.members.size();
  }

  // Sets that need somebody come first.
  void DrawSets() {
    if (now_.sets.empty()) return;
    std::vector<client::SetState> sets = now_.sets;
    std::stable_partition(sets.begin(), sets.end(),
                          [](const client::SetState& set) { return !IsWell(set); });
    AddHead(fmt::format("{:<6}{:<11}{:<23}{:>9}{:>9}{:>9}{:>9}", "SET", "STATE", "LEADER",
                        "NODES UP", "TABLETS", "MEMORY", "CATALOG"));
    const size_t shown = view_.shows_cluster ? sets.size() : std::min(sets.size(), kSetsShown);
    for (size_t i = 0; i < shown; ++i) {
      const client::SetState& set = sets[i];
      Add(IsWell(set) ? LineKind::kPlain : LineKind::kAlarm,
          fmt::format("{:<6}{:<11}{:<23}{:>9}{:>9}{:>9}{:>9}",
                      set.number ? std::to_string(*set.number) : "-", PrintableText(set.state, 10),
                      set.leader.empty() ? "nobody" : PrintableText(set.leader, 22),
                      fmt::format("{} of {}", NodesUp(set), set.members.size()),
                      CountText(set.tablets), BytesText(set.bytes), set.catalog));
    }
    if (shown < sets.size()) AddPlain(fmt::format("and {} more", sets.size() - shown));
  }

  void DrawNodes() {
    if (now_.sets.empty()) return AddPlain("this server is of no cluster");
    AddHead(fmt::format("{:<6}{:<28}{:<10}{:<11}{}", "SET", "NODE", "KIND", "STATE", "VERSION"));
    for (const client::SetState& set : now_.sets) {
      for (const client::SetMember& member : set.members) {
        Add(member.state == "down" ? LineKind::kAlarm : LineKind::kPlain,
            fmt::format("{:<6}{:<28}{:<10}{:<11}{}", set.number ? std::to_string(*set.number) : "-",
                        PrintableText(member.Address(), 27), PrintableText(member.kind, 9),
                        PrintableText(member.state, 10), PrintableText(member.version, 12)));
      }
    }
  }

  void DrawTablets() {
    if (now_.spreads.empty()) return;
    AddHead(fmt::format("{:<22}{:>9}  {}", "TABLE, ALL NODES", "TABLETS",
                        now_.has_more_tablets ? "ON SETS (of the first 2000 tablets)" : "ON SETS"));
    const size_t shown = std::min(now_.spreads.size(), view_.tables_max);
    for (size_t i = 0; i < shown; ++i) {
      const TabletSpread& spread = now_.spreads[i];
      std::string sets;
      for (const auto& [set, count] : spread.of_set)
        sets += fmt::format("{}{}: {}", sets.empty() ? "" : ", ", set, CountText(count));
      AddPlain(fmt::format("{:<22}{:>9}  {}", PrintableText(spread.table, 21),
                           CountText(spread.tablets), sets));
    }
    if (shown < now_.spreads.size())
      AddPlain(fmt::format("and {} more", now_.spreads.size() - shown));
  }

  void DrawJobs() {
    if (now_.jobs.empty()) return;
    AddHead(fmt::format("{:>8}  {:<22}{:>6}{:>6}  {:<10}{:>10}{:>10}{:>9}  {}", "JOB", "TABLE",
                        "FROM", "TO", "STATE", "COPIED", "OF", "SECONDS", "WHY IT WAITS"));
    const size_t shown = std::min(now_.jobs.size(), view_.tables_max);
    for (size_t i = 0; i < shown; ++i) {
      const client::JobState& job = now_.jobs[i];
      AddPlain(fmt::format(
          "{:>8}  {:<22}{:>6}{:>6}  {:<10}{:>10}{:>10}{:>9}  {}", job.job,
          PrintableText(job.table, 21), job.from, job.to, PrintableText(job.state, 9),
          BytesText(job.copied), job.bytes ? BytesText(*job.bytes) : std::string(),
          std::max<int64_t>(0, now_.unix_s - job.started_ms / 1000), PrintableText(job.error, 60)));
    }
    if (shown < now_.jobs.size()) AddPlain(fmt::format("and {} more", now_.jobs.size() - shown));
  }

  struct CommandRow {
    std::string name;
    double calls;    // a second
    double percent;  // of one core
    double micros;   // a call
    double failed;
    std::string p99;
  };

  void DrawCommands() {
    std::vector<CommandRow> rows;
    for (const auto& [field, value] : now_.info) {
      if (!field.starts_with(kCommandPrefix)) continue;
      const auto now = Parts(value);
      const auto before = Parts(before_.Text(field));
      CommandRow row;
      row.name = field.substr(kCommandPrefix.size());
      row.calls = Rate(Part(before, "calls"), Part(now, "calls"));
      if (row.calls == 0) continue;
      const double micros = Rate(Part(before, "usec"), Part(now, "usec"));
      row.percent = micros / 1e4;
      row.micros = micros / row.calls;
      row.failed = Rate(Part(before, "failed_calls") + Part(before, "rejected_calls"),
                        Part(now, "failed_calls") + Part(now, "rejected_calls"));
      const auto latency = Parts(now_.Text("latency_percentiles_usec_" + row.name));
      const auto p99 = latency.find("p99");
      row.p99 = p99 == latency.end() ? "-" : p99->second;
      rows.push_back(std::move(row));
    }
    std::stable_sort(rows.begin(), rows.end(), [this](const CommandRow& a, const CommandRow& b) {
      switch (view_.order) {
        case Order::kTime:
          return a.percent > b.percent;
        case Order::kCalls:
          return a.calls > b.calls;
        case Order::kName:
          break;
      }
      return a.name < b.name;
    });
    AddHead(fmt::format("{:<24}{:>10}{:>9}{:>11}{:>11}{:>10}", "COMMAND", "CALLS/S", "CPU %",
                        "USEC/CALL", "P99 USEC", "FAILED/S"));
    if (rows.empty()) AddPlain("(none)");
    if (rows.size() > view_.commands_max) rows.resize(view_.commands_max);
    for (const CommandRow& row : rows) {
      AddPlain(fmt::format("{:<24}{:>10}{:>9.1f}{:>11.2f}{:>11}{:>10}", PrintableText(row.name, 23),
                           ShortText(row.calls), row.percent, row.micros, row.p99,
                           row.failed == 0 ? "0" : ShortText(row.failed)));
    }
  }

  void DrawTables() {
    struct TableRow {
      std::string name;
      std::map<std::string, std::string> parts;
      double reads;
      double writes;
    };
    std::vector<TableRow> rows;
    for (const auto& [field, value] : now_.info) {
      if (!field.starts_with(kTablePrefix)) continue;
      TableRow row{field.substr(kTablePrefix.size()), Parts(value), 0, 0};
      const auto before = Parts(before_.Text(field));
      row.reads = Rate(Part(before, "reads"), Part(row.parts, "reads"));
      row.writes = Rate(Part(before, "writes"), Part(row.parts, "writes"));
      rows.push_back(std::move(row));
    }
    if (rows.empty()) return;
    std::stable_sort(rows.begin(), rows.end(), [](const TableRow& a, const TableRow& b) {
      const double heat_a = a.reads + a.writes;
      const double heat_b = b.reads + b.writes;
      if (heat_a != heat_b) return heat_a > heat_b;
      return Part(a.parts, "bytes") > Part(b.parts, "bytes");
    });
    const size_t hidden = rows.size() - std::min(rows.size(), view_.tables_max);
    AddHead(fmt::format("{:<22}{:>9}{:>9}{:>9}{:>10}{:>10}  {}",
                        now_.sets.empty() ? "TABLE" : "TABLE, THIS NODE", "ROWS", "CELLS", "MEMORY",
                        "READS/S", "WRITES/S", "INDEXES"));
    rows.resize(rows.size() - hidden);
    for (const TableRow& row : rows) {
      const uint64_t failed = Part(row.parts, "indexes_failed");
      const std::string indexes = fmt::format(
          "{}{}{}", Part(row.parts, "indexes"),
          Part(row.parts, "indexes_building") > 0 ? " building" : "", failed > 0 ? " FAILED" : "");
      Add(failed > 0 ? LineKind::kAlarm : LineKind::kPlain,
          fmt::format("{:<22}{:>9}{:>9}{:>9}{:>10}{:>10}  {}", PrintableText(row.name, 21),
                      CountText(Part(row.parts, "rows")), CountText(Part(row.parts, "cells")),
                      BytesText(Part(row.parts, "bytes")), ShortText(row.reads),
                      ShortText(row.writes), indexes));
    }
    if (hidden > 0) AddPlain(fmt::format("and {} more", hidden));
  }

  void DrawRanges() {
    if (now_.ranges.empty()) return;
    AddHead(fmt::format("{:<30}{:>10}{:>10}  {}", "HOTTEST RANGES, 5 MIN", "READS", "WRITES",
                        "FROM, TO"));
    const size_t room = view_.columns > 54 ? (view_.columns - 54) / 2 : 0;
    for (const WarmRange& range : now_.ranges) {
      AddPlain(fmt::format("{:<30}{:>10}{:>10}  {} - {}", PrintableText(range.table, 29),
                           CountText(range.reads), CountText(range.writes),
                           PrintableText(range.first, room),
                           range.end.empty() ? "" : PrintableText(range.end, room)));
    }
  }

  void DrawSlow() {
    if (now_.slow.empty()) return;
    AddHead(fmt::format("{:<12}{:>10}  {}", "SLOW LOG", "MS", "COMMAND"));
    for (const SlowCommand& slow : now_.slow) {
      const auto ago = static_cast<uint64_t>(std::max<int64_t>(0, now_.unix_s - slow.unix_s));
      AddPlain(fmt::format("{:<12}{:>10.1f}  {}", SpanText(ago) + " ago",
                           static_cast<double>(slow.micros) / 1000,
                           PrintableText(slow.text, view_.columns > 24 ? view_.columns - 24 : 0)));
    }
  }

  const Sample& before_;
  const Sample& now_;
  const View& view_;
  double seconds_{1};
  bool same_run_{true};
  std::vector<Line> lines_;
};

}  // namespace

std::vector<Line> Lines(const Sample& before, const Sample& now, const View& view) {
  return Screen(before, now, view).Draw();
}

}  // namespace cellar::top
