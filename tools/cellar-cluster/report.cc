// See report.h.
#include "cellar-cluster/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include "cellar-cluster/json_writer.h"
#include "client/figure_text.h"

namespace cellar::cluster_tool {
namespace {

using client::PrintableText;
using client::TabletState;

// A key as far as a line has room for it; `none` where there is no bound.
std::string KeyText(const std::string& key, const char* none) {
  return key.empty() ? none : PrintableText(key, 22);
}

std::string FigureText(const std::optional<uint64_t>& figure, std::string (*text)(uint64_t)) {
  return figure ? text(*figure) : std::string("-");
}

std::string TimeText(int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return std::to_string(unix_ms);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", parts);
}

size_t ShownOf(size_t there, uint64_t shown) {
  return static_cast<size_t>(std::min<uint64_t>(there, shown));
}

}  // namespace

std::string MapText(const client::TabletMap& map, uint64_t shown) {
  std::string text = fmt::format("{:<24}{:<24}{:<24}{:>4}{:>9}{:>9}{:>7}  {}\n", "TABLE", "FROM",
                                 "BEFORE", "SET", "ROWS", "MEMORY", "LOAD", "STATE");
  const size_t count = ShownOf(map.tablets.size(), shown);
  for (size_t i = 0; i < count; ++i) {
    const TabletState& tablet = map.tablets[i];
    text += fmt::format(
        "{:<24}{:<24}{:<24}{:>4}{:>9}{:>9}{:>7}  {}\n", PrintableText(tablet.table, 23),
        KeyText(tablet.start, "(first)"), KeyText(tablet.end, "(last)"), tablet.set,
        FigureText(tablet.rows, client::CountText), FigureText(tablet.bytes, client::BytesText),
        tablet.load ? fmt::format("{} %", *tablet.load) : std::string("-"),
        PrintableText(tablet.state, 20));
  }
  text +=
      fmt::format("{} {}, map version {}\n", count, count == 1 ? "tablet" : "tablets", map.version);
  if (count < map.tablets.size()) text += "and more: --count\n";
  return text;
}

std::string MapJson(const client::TabletMap& map, uint64_t shown) {
  JsonWriter json;
  json.BeginObject();
  json.Name("version").Number(map.version);
  json.Name("more").Flag(map.tablets.size() > shown);
  json.Name("tablets").BeginList();
  for (size_t i = 0; i < ShownOf(map.tablets.size(), shown); ++i) {
    const TabletState& tablet = map.tablets[i];
    json.BeginObject();
    json.Name("table").Text(tablet.table);
    json.Name("start").Text(tablet.start);
    json.Name("end").Text(tablet.end);
    json.Name("set").Number(tablet.set);
    json.Name("epoch").Number(tablet.epoch);
    json.Name("rows").Number(tablet.rows);
    json.Name("bytes").Number(tablet.bytes);
    json.Name("load_percent").Number(tablet.load);
    json.Name("state").Text(tablet.state);
    json.EndObject();
  }
  json.EndList();
  json.EndObject();
  return json.Take();
}

std::string EventsText(const std::vector<client::ClusterEvent>& events) {
  std::string text;
  for (const client::ClusterEvent& event : events) {
    text += fmt::format("{}  {}  ({})\n", TimeText(event.unix_ms), PrintableText(event.what, 200),
                        PrintableText(event.why, 200));
  }
  return text;
}

std::string EventsJson(const std::vector<client::ClusterEvent>& events) {
  JsonWriter json;
  json.BeginList();
  for (const client::ClusterEvent& event : events) {
    json.BeginObject();
    json.Name("unix_ms").Number(static_cast<uint64_t>(std::max<int64_t>(0, event.unix_ms)));
    json.Name("what").Text(event.what);
    json.Name("why").Text(event.why);
    json.EndObject();
  }
  json.EndList();
  return json.Take();
}

std::string PlanText(const Plan& plan, const std::vector<std::string>& warnings,
                     const std::vector<std::string>& written, bool systemd) {
  std::string text;
  for (size_t set = 0; set < plan.sets.size(); ++set) {
    text += fmt::format("set {:<4}{}\n", set, plan.AddressesOf(set));
  }
  for (const std::string& warning : warnings) text += "Note: " + warning + ".\n";
  if (written.empty()) {
    text += "--write FOLDER writes a configuration file for each node.\n";
    return text;
  }
  for (const std::string& path : written) text += "wrote " + path + "\n";
  const PlannedNode& first = plan.sets.front().front();
  const std::string ask = fmt::format("redis-cli -h {} -p {}", first.machine.host, first.port);
  text += systemd ? "On each machine copy its files to /etc/cellar, and for each of them:\n"
                    "  systemctl enable --now cellar@" +
                        first.Name() + "\n"
                  : "On each machine start its nodes:\n  cellar " + first.Name() + ".conf\n";
  text += "Then, once:\n  " + ask + " CLUSTER INIT\n";
  for (size_t set = 1; set < plan.sets.size(); ++set) {
    text += fmt::format("  {} CLUSTER ADMIT {}\n", ask, plan.sets[set].front().Address());
  }
  return text;
}

std::string PlanJson(const Plan& plan, const std::vector<std::string>& warnings,
                     const std::vector<std::string>& configurations) {
  JsonWriter json;
  size_t next = 0;
  json.BeginObject();
  json.Name("nodes").BeginList();
  for (const auto& set : plan.sets) {
    for (const PlannedNode& node : set) {
      json.BeginObject();
      json.Name("set").Number(node.set);
      json.Name("host").Text(node.machine.host);
      json.Name("zone").Text(node.machine.zone);
      json.Name("port").Number(static_cast<uint64_t>(node.port));
      json.Name("name").Text(node.Name());
      json.Name("configuration").Text(configurations[next++]);
      json.EndObject();
    }
  }
  json.EndList();
  json.Name("notes").BeginList();
  for (const std::string& warning : warnings) json.Text(warning);
  json.EndList();
  json.EndObject();
  return json.Take();
}

}  // namespace cellar::cluster_tool
