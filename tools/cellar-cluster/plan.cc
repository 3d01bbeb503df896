// See plan.h.
#include "cellar-cluster/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text/quote.h"

namespace cellar::cluster_tool {
namespace {

constexpr int kPortMax{65535};

bool IsHostCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '-' || c == ':' || c == '_';
}

bool IsAddress(std::string_view host) {
  return std::all_of(host.begin(), host.end(),
                     [](char c) {
                       return (c >= '0' && c <= '9') || c == '.' || c == ':' ||
                              (c >= 'a' && c <= 'f');
                     }) &&
         host.find_first_of(".:") != std::string_view::npos;
}

// "has 2 of its 3 nodes", "each have all their nodes".
std::string PartText(size_t part, size_t whole, bool is_several) {
  const char* const whose = is_several ? "their" : "its";
  return (is_several ? "each have " : "has ") +
         (part == whole ? fmt::format("all {}", whose)
                        : fmt::format("{} of {} {}", part, whose, whole)) +
         " nodes";
}

std::string NodesText(size_t count) {
  return count == 1 ? std::string("one node") : fmt::format("{} nodes", count);
}

// "set 0", "sets 0, 1 and 2", "sets 0, 1, 2 and 12 more".
std::string SetsText(const std::vector<size_t>& sets) {
  constexpr size_t kNamed{3};
  std::string text = sets.size() == 1 ? "set " : "sets ";
  const size_t named = sets.size() > kNamed + 1 ? kNamed : sets.size();
  for (size_t i = 0; i < named; ++i) {
    const bool is_last = i + 1 == sets.size();
    text += fmt::format("{}{}", i == 0 ? "" : is_last ? " and " : ", ", sets[i]);
  }
  if (named < sets.size()) text += fmt::format(" and {} more", sets.size() - named);
  return text;
}

// How many nodes of a set lie in one place, by the name of the place; places without one are none.
template <typename PlaceOf>
std::map<std::string, size_t> Shared(const std::vector<PlannedNode>& nodes, PlaceOf place_of) {
  std::map<std::string, size_t> counts;
  for (const PlannedNode& node : nodes) {
    if (const std::string place = place_of(node.machine); !place.empty()) ++counts[place];
  }
  return counts;
}

// Of places that hold several members of a set: what is lost with them. Sets to which the same is
// to be said share a sentence.
template <typename PlaceOf>
void WarnOfPlaces(const Plan& plan, const char* kind, PlaceOf place_of,
                  std::vector<std::string>* warnings) {
  std::map<std::tuple<std::string, size_t, size_t>, std::vector<size_t>> told;
  for (size_t set = 0; set < plan.sets.size(); ++set) {
    const std::vector<PlannedNode>& nodes = plan.sets[set];
    if (nodes.size() < 2) continue;
    for (const auto& [place, count] : Shared(nodes, place_of)) {
      if (count > 1) told[{place, count, nodes.size()}].push_back(set);
    }
  }
  for (const auto& [what, sets] : told) {
    const auto& [place, count, whole] = what;
    const bool is_stopped = whole - count < whole / 2 + 1;
    const char* const after =
        is_stopped ? "without it no write is taken there" : "they are lost together";
    warnings->push_back(fmt::format("{} {} {} {}: {}", SetsText(sets),
                                    PartText(count, whole, sets.size() > 1), kind, place, after));
  }
}

}  // namespace

std::string PlannedNode::Name() const { return fmt::format("set-{}-{}", set, port); }

std::string Plan::AddressesOf(size_t set) const {
  std::string text;
  for (const PlannedNode& node : sets[set]) text += (text.empty() ? "" : " ") + node.Address();
  return text;
}

bool IsLoopback(std::string_view host) {
  return host.starts_with("127.") || host == "::1" || host == "localhost";
}

Result<Machine> ParseMachine(std::string_view word) {
  const size_t at = word.find('@');
  Machine machine{std::string(word.substr(0, at)),
                  at == std::string_view::npos ? "" : std::string(word.substr(at + 1))};
  const auto refuse = [&](const char* why) {
    return Status::Error(ErrorCode::kErr, Quote(word) + " is no machine: " + why);
  };
  if (machine.host.empty() ||
      !std::all_of(machine.host.begin(), machine.host.end(), IsHostCharacter)) {
    return refuse("HOST, or HOST@ZONE");
  }
  if (machine.host.find(':') != std::string::npos && !IsAddress(machine.host))
    return refuse("the port goes with --port, and is that of its first node");
  if (std::count(machine.host.begin(), machine.host.end(), ':') == 1)
    return refuse("the port goes with --port, and is that of its first node");
  if (machine.host == "0.0.0.0" || machine.host == "::")
    return refuse("it has to be an address at which others reach it");
  if (at != std::string_view::npos && machine.zone.empty()) return refuse("a zone has a name");
  return machine;
}

Result<Plan> MakePlan(const PlanRequest& request) {
  const size_t count = request.machines.size();
  std::set<std::string> hosts;
  for (const Machine& machine : request.machines) {
    if (!hosts.insert(machine.host).second)
      return Status::Error(ErrorCode::kErr, "machine " + machine.host + " is there twice");
  }
  if (count == 0) return Status::Error(ErrorCode::kErr, "a plan needs machines");
  std::vector<size_t> used(count, 0);
  Plan plan;
  for (uint64_t set = 0; set < request.sets; ++set) {
    std::vector<PlannedNode>& nodes = plan.sets.emplace_back();
    std::vector<size_t> of_set(count, 0);
    std::map<std::string, size_t> of_zone;
    for (uint64_t voter = 0; voter < request.voters; ++voter) {
      const auto cost = [&](size_t i) {
        const std::string& zone = request.machines[i].zone;
        return std::tuple(of_set[i], zone.empty() ? size_t{0} : of_zone[zone], used[i],
                          (i + count - set % count) % count);
      };
      size_t best = 0;
      for (size_t i = 1; i < count; ++i) {
        if (cost(i) < cost(best)) best = i;
      }
      const Machine& machine = request.machines[best];
      const auto port = static_cast<int64_t>(request.port) + static_cast<int64_t>(used[best]);
      if (port > kPortMax) {
        return Status::Error(ErrorCode::kErr,
                             fmt::format("machine {} has no port left above {}: begin lower",
                                         machine.host, kPortMax));
      }
      nodes.push_back({set, machine, static_cast<int>(port)});
      ++used[best];
      ++of_set[best];
      if (!machine.zone.empty()) ++of_zone[machine.zone];
    }
  }
  return plan;
}

std::vector<std::string> WarningsOf(const Plan& plan, bool has_password) {
  std::vector<std::string> warnings;
  const size_t voters = plan.sets.front().size();
  if (voters == 1) warnings.emplace_back("a set of one node: with its disk its rows are lost");
  if (voters == 2) warnings.emplace_back("a set of 2 nodes takes no write while either is down");
  if (voters > 2 && voters % 2 == 0) {
    warnings.push_back(fmt::format("a set of {} nodes survives no more losses than one of {}",
                                   voters, voters - 1));
  }
  WarnOfPlaces(
      plan, "on machine", [](const Machine& machine) { return machine.host; }, &warnings);
  WarnOfPlaces(
      plan, "in zone", [](const Machine& machine) { return machine.zone; }, &warnings);
  std::map<std::string, size_t> nodes;
  std::set<bool> zoned;
  bool is_apart = false;
  std::string loopback;
  for (const auto& set : plan.sets) {
    for (const PlannedNode& node : set) {
      ++nodes[node.machine.host];
      zoned.insert(node.machine.zone.empty());
      if (IsLoopback(node.machine.host))
        loopback = node.machine.host;
      else
        is_apart = true;
    }
  }
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(nodes.begin(), nodes.end(), by_count);
  if (most->second > least->second) {
    warnings.push_back(fmt::format("{} has {}, {} {}: the load is not even", most->first,
                                   NodesText(most->second), least->first, least->second));
  }
  if (zoned.size() == 2) warnings.emplace_back("some machines have a zone, and some have none");
  if (is_apart && !loopback.empty()) warnings.push_back("no other machine reaches " + loopback);
  if (is_apart && !has_password) {
    warnings.emplace_back(
        "no password: nodes of other machines are refused, as are clients (--auth-file)");
  }
  return warnings;
}

std::string ConfigOf(const Plan& plan, const PlannedNode& node, const NodeFiles& files,
                     const std::string& password, const std::vector<std::string>& lines) {
  const std::string& host = node.machine.host;
  std::string text = fmt::format("# A node of set {} of a cluster of {} sets: cellar-cluster(7).\n",
                                 node.set, plan.sets.size());
  const auto add = [&](const std::string& line) { text += line + "\n"; };
  if (host == "localhost") {
    add("bind 127.0.0.1 -::1");
  } else if (IsLoopback(host)) {
    add("bind " + host);
  } else {
    add(IsAddress(host) ? "bind " + host + " 127.0.0.1" : "bind *");
  }
  add(fmt::format("port {}", node.port));
  add("cluster-nodes " + plan.AddressesOf(node.set));
  // A set that stands is asked by those that want to join; set 0 by nobody else.
  if (node.set > 0) add("cluster-join " + plan.AddressesOf(0));
  if (!files.directory.empty()) add("dir " + QuoteWord(files.directory));
  add("create-dir yes");
  if (!files.logfile.empty()) add("logfile " + QuoteWord(files.logfile));
  if (!files.pidfile.empty()) add("pidfile " + QuoteWord(files.pidfile));
  if (!password.empty()) {
    add("requirepass " + QuoteWord(password));
    add("masterauth " + QuoteWord(password));
  }
  for (const std::string& line : lines) add(line);
  return text;
}

}  // namespace cellar::cluster_tool
