// See status.h.
#include "cellar-cluster/status.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

#include "client/figure_text.h"
#include "client/info_fields.h"
#include "client/reply_fields.h"

namespace cellar::cluster_tool {
namespace {

using client::BytesText;
using client::SetMember;
using client::SetState;

constexpr size_t kAskedAtOnce{16};
constexpr int kPatienceSeconds{3};
constexpr size_t kFullPercent{90};
constexpr int64_t kLagMsMax{5000};  // less is nothing that anybody has to do something about

client::ConnectionOptions ToNode(client::ConnectionOptions options, const SetMember& member) {
  options.socket.clear();
  options.host = member.host;
  options.port = member.port;
  options.connect_seconds = kPatienceSeconds;
  options.reply_seconds = kPatienceSeconds;
  return options;
}

// Of sets the one that has the node at `address`.
std::optional<SetState> SetAt(const std::vector<SetState>& sets, const std::string& address) {
  for (const SetState& set : sets) {
    for (const SetMember& member : set.members) {
      if (member.Address() == address && set.number) return set;
    }
  }
  return std::nullopt;
}

// REPLICA LIST's figures, by "host:port". Who is not known to be behind is left out.
std::map<std::string, int64_t> LagsOf(const redisReply& members) {
  std::map<std::string, int64_t> lags;
  for (size_t i = 0; client::IsList(members) && i < members.elements; ++i) {
    const redisReply& member = *members.element[i];
    const int64_t lag = client::NumberField(member, "lag-ms");
    if (lag <= 0) continue;
    lags[client::TextField(member, "ip") + ":" +
         std::to_string(client::NumberField(member, "port"))] = lag;
  }
  return lags;
}

NodeState AskNode(const client::ConnectionOptions& options) {
  NodeState state;
  Result<client::Connection> connection = client::Connection::Open(options);
  if (!connection.ok()) {
    // "host:port: why"
    const std::string& text = connection.status().text();
    const size_t at = text.find(": ");
    state.refusal = at == std::string::npos ? text : text.substr(at + 2);
    return state;
  }
  const Result<client::Reply> info = connection->Call({"INFO", "everything"});
  if (!info.ok()) {
    state.refusal = info.status().text();
  } else if (!client::ErrorText(**info).empty()) {
    state.refusal = client::ErrorText(**info);
  } else {
    state.info = client::InfoFields(client::TextOf(**info));
    const Result<std::vector<SetState>> sets = client::ReadSets(&*connection);
    if (sets.ok()) state.own_set = SetAt(*sets, options.host + ":" + std::to_string(options.port));
    const Result<client::Reply> members = connection->Call({"REPLICA", "LIST"});
    if (members.ok()) state.lags_ms = LagsOf(**members);
  }
  return state;
}

void AskNodes(const client::ConnectionOptions& options, ClusterStatus* status) {
  std::vector<const SetMember*> members;
  for (const SetState& set : status->sets) {
    for (const SetMember& member : set.members) members.push_back(&member);
  }
  std::vector<NodeState> states(members.size());
  for (size_t begin = 0; begin < members.size(); begin += kAskedAtOnce) {
    std::vector<std::thread> threads;
    for (size_t i = begin; i < std::min(members.size(), begin + kAskedAtOnce); ++i) {
      threads.emplace_back([&, i] { states[i] = AskNode(ToNode(options, *members[i])); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  for (size_t i = 0; i < members.size(); ++i) {
    status->nodes[members[i]->Address()] = std::move(states[i]);
  }
}

// What the members of a set say of it, in place of what others had heard: its leader, or whoever
// answers. Its schema is what any of them has: the leader is told first.
void TakeOwnWord(SetState* set, const std::map<std::string, NodeState>& nodes) {
  std::optional<SetState> best;
  uint64_t catalog = set->catalog;
  for (const SetMember& member : set->members) {
    const auto found = nodes.find(member.Address());
    if (found == nodes.end() || !found->second.own_set) continue;
    const SetState& told = *found->second.own_set;
    catalog = std::max({catalog, told.catalog, found->second.Number("cluster_catalog")});
    if (told.id == set->id && (!best || told.leader == member.Address())) best = told;
  }
  if (best) *set = *std::move(best);
  set->catalog = catalog;
}

// Of those that wait the director alone tells.
void AddWaiting(const client::ConnectionOptions& options, ClusterStatus* status) {
  const auto first = std::find_if(status->sets.begin(), status->sets.end(),
                                  [](const SetState& set) { return set.number == uint64_t{0}; });
  if (first == status->sets.end()) return;
  const auto leader =
      std::find_if(first->members.begin(), first->members.end(),
                   [&](const SetMember& member) { return member.Address() == first->leader; });
  if (leader == first->members.end()) return;
  Result<client::Connection> director = client::Connection::Open(ToNode(options, *leader));
  if (!director.ok()) return;
  const Result<std::vector<SetState>> told = client::ReadSets(&*director);
  if (!told.ok()) return;
  for (const SetState& set : *told) {
    const bool is_known = std::any_of(status->sets.begin(), status->sets.end(),
                                      [&](const SetState& known) { return known.id == set.id; });
    if (!is_known) status->sets.push_back(set);
  }
}

// What a node is that is part of no cluster.
std::string NoClusterText(client::Connection* connection, const std::string& where) {
  const Result<client::Reply> config = connection->Call({"CONFIG", "GET", "cluster-join"});
  const std::string join = config.ok() ? client::TextField(**config, "cluster-join") : "";
  if (join.empty()) return where + " is of a set that is no cluster: CLUSTER INIT makes it one";
  return where + " is of a set that waits to be taken in: CLUSTER ADMIT " + where +
         " at a node of the cluster (it asks " + join + ")";
}

std::string NodeText(const SetMember& member, const NodeState& node) {
  const bool answers = node.refusal.empty();
  const std::string text = fmt::format(
      "  {:<22}{:<9}{:<10}", client::PrintableText(member.Address(), 21),
      client::PrintableText(member.kind, 8), answers ? client::PrintableText(member.state, 9) : "");
  if (!answers) return text + client::PrintableText(node.refusal, 60);
  return text + fmt::format("{:>8}  up {}", BytesText(node.Number("used_memory")),
                            client::SpanText(node.Number("uptime_in_seconds")));
}

void AddSetFaults(const SetState& set, std::vector<std::string>* faults) {
  if (set.state == "waiting") {
    faults->push_back(fmt::format("{} waits to be taken in: CLUSTER ADMIT {}", set.Name(),
                                  set.leader.empty() ? set.id : set.leader));
    return;
  }
  if (set.state == "no-leader" || set.leader.empty()) {
    faults->push_back(fmt::format("{} has no leader: nobody reads or writes its {} tablets",
                                  set.Name(), set.tablets));
  }
  if (set.maxmemory > 0 && set.bytes > set.maxmemory / 100 * kFullPercent) {
    faults->push_back(fmt::format("{} is nearly full: {} of {}", set.Name(), BytesText(set.bytes),
                                  BytesText(set.maxmemory)));
  }
}

void AddNodeFaults(const SetState& set, const SetMember& member, const ClusterStatus& status,
                   std::vector<std::string>* faults) {
  const std::string who = fmt::format("{} of {}", member.Address(), set.Name());
  const auto found = status.nodes.find(member.Address());
  const NodeState node = found == status.nodes.end() ? NodeState{} : found->second;
  if (!node.refusal.empty()) {
    faults->push_back(who + " does not answer: " + client::PrintableText(node.refusal, 200));
    return;
  }
  const auto leader = status.nodes.find(set.leader);
  const bool is_late = member.state == "behind";
  if (is_late && leader != status.nodes.end()) {
    const auto lag = leader->second.lags_ms.find(member.Address());
    if (lag != leader->second.lags_ms.end() && lag->second > kLagMsMax)
      faults->push_back(fmt::format("{} is {} s behind its leader", who, lag->second / 1000));
  }
  if (member.state != "leader" && member.state != "online" && !is_late)
    faults->push_back(who + " is " + client::PrintableText(member.state, 40));
  if (node.Text("aof_last_write_status") == "err") {
    faults->push_back(
        who + " takes no writes: " + client::PrintableText(node.Text("aof_last_error"), 200));
  }
  if (node.Text("rdb_last_bgsave_status") == "err")
    faults->push_back(who + " could not write its last snapshot");
}

void WriteNode(const SetMember& member, const ClusterStatus& status, JsonWriter* json) {
  const auto found = status.nodes.find(member.Address());
  json->BeginObject();
  json->Name("address").Text(member.Address());
  json->Name("id").Text(member.id);
  json->Name("kind").Text(member.kind);
  json->Name("state").Text(member.state);
  json->Name("version").Text(member.version);
  const bool answers = found != status.nodes.end() && found->second.refusal.empty();
  json->Name("answers").Flag(answers);
  if (answers) {
    json->Name("used_memory").Number(found->second.Number("used_memory"));
    json->Name("uptime_s").Number(found->second.Number("uptime_in_seconds"));
    json->Name("map_version").Number(found->second.Number("cluster_map_version"));
    json->Name("catalog").Number(found->second.Number("cluster_catalog"));
  } else if (found != status.nodes.end()) {
    json->Name("refusal").Text(found->second.refusal);
  }
  json->EndObject();
}

// What a user has no right to ask is not wrong.
bool IsForbidden(const std::string& refusal) { return refusal.starts_with("NOPERM"); }

}  // namespace

uint64_t NodeState::Number(const std::string& field) const {
  return std::strtoull(Text(field).c_str(), nullptr, 10);
}

std::string NodeState::Text(const std::string& field) const {
  const auto found = info.find(field);
  return found == info.end() ? std::string() : found->second;
}

Result<ClusterStatus> ReadStatus(client::Connection* connection,
                                 const client::ConnectionOptions& options) {
  const std::string where =
      options.socket.empty() ? options.host + ":" + std::to_string(options.port) : options.socket;
  Result<std::vector<SetState>> sets = client::ReadSets(connection);
  if (!sets.ok()) {
    const std::string& text = sets.status().text();
    if (text.find("cluster support disabled") == std::string::npos)
      return Status::Error(ErrorCode::kErr, where + ": " + text);
    return Status::Error(ErrorCode::kErr,
                         where + " is a server of its own, of no replica set (cluster-nodes)");
  }
  if (sets->empty()) return Status::Error(ErrorCode::kErr, NoClusterText(connection, where));
  ClusterStatus status;
  status.sets = *std::move(sets);
  AddWaiting(options, &status);
  AskNodes(options, &status);
  for (SetState& set : status.sets) TakeOwnWord(&set, status.nodes);
  const Result<std::vector<std::string>> faults = client::CheckMap(connection);
  if (faults.ok())
    status.map_faults = *faults;
  else
    status.map_refusal = faults.status().text();
  return status;
}

std::vector<std::string> FaultsOf(const ClusterStatus& status) {
  std::vector<std::string> faults;
  uint64_t newest = 0;
  std::set<std::string> versions;
  for (const SetState& set : status.sets) {
    if (set.state != "waiting") newest = std::max(newest, set.catalog);
  }
  for (const SetState& set : status.sets) {
    AddSetFaults(set, &faults);
    if (set.number && set.catalog < newest) {
      faults.push_back(
          fmt::format("{} has schema {} and not yet {}", set.Name(), set.catalog, newest));
    }
    for (const SetMember& member : set.members) {
      AddNodeFaults(set, member, status, &faults);
      if (!member.version.empty()) versions.insert(member.version);
    }
  }
  for (const std::string& fault : status.map_faults)
    faults.push_back("the map: " + client::PrintableText(fault, 300));
  if (!status.map_refusal.empty() && !IsForbidden(status.map_refusal)) {
    faults.push_back("the map could not be checked: " +
                     client::PrintableText(status.map_refusal, 200));
  }
  if (versions.size() > 1) {
    std::string text;
    for (const std::string& version : versions) text += (text.empty() ? "" : ", ") + version;
    faults.push_back("nodes have several versions: " + client::PrintableText(text, 100));
  }
  return faults;
}

std::string StatusText(const ClusterStatus& status, const std::vector<std::string>& faults) {
  std::string text;
  size_t nodes = 0;
  size_t sets = 0;
  for (const SetState& set : status.sets) {
    sets += set.number ? 1 : 0;
    nodes += set.number ? set.members.size() : 0;
  }
  text += fmt::format("{} {} with {} {}: {}\n", sets, sets == 1 ? "set" : "sets", nodes,
                      nodes == 1 ? "node" : "nodes", faults.empty() ? "all is well" : "see below");
  for (const SetState& set : status.sets) {
    const std::string room = set.maxmemory == 0 ? "" : " of " + BytesText(set.maxmemory);
    text +=
        fmt::format("{}  {}  {} {}, {}{}{}{}\n",
                    set.number ? fmt::format("set {}", *set.number) : std::string("a set"),
                    client::PrintableText(set.state, 20), set.tablets,
                    set.tablets == 1 ? "tablet" : "tablets", BytesText(set.bytes), room,
                    set.leader.empty() ? ", nobody leads"
                                       : ", " + client::PrintableText(set.leader, 40) + " leads",
                    set.number == uint64_t{0} && !set.leader.empty() ? " and directs" : "");
    for (const SetMember& member : set.members) {
      const auto found = status.nodes.find(member.Address());
      text += NodeText(member, found == status.nodes.end() ? NodeState{} : found->second) + "\n";
    }
  }
  if (IsForbidden(status.map_refusal)) text += "The map was not checked: this user may not.\n";
  if (!faults.empty()) text += "What is wrong:\n";
  for (const std::string& fault : faults) text += "  " + fault + "\n";
  return text;
}

std::string StatusJson(const ClusterStatus& status, const std::vector<std::string>& faults) {
  JsonWriter json;
  json.BeginObject();
  json.Name("sets").BeginList();
  for (const SetState& set : status.sets) {
    json.BeginObject();
    json.Name("set").Number(set.number);
    json.Name("id").Text(set.id);
    json.Name("state").Text(set.state);
    json.Name("leader").Text(set.leader);
    json.Name("tablets").Number(set.tablets);
    json.Name("bytes").Number(set.bytes);
    json.Name("maxmemory").Number(set.maxmemory);
    json.Name("catalog").Number(set.catalog);
    json.Name("nodes").BeginList();
    for (const SetMember& member : set.members) WriteNode(member, status, &json);
    json.EndList();
    json.EndObject();
  }
  json.EndList();
  json.Name("map_checked").Flag(status.map_refusal.empty());
  json.Name("wrong").BeginList();
  for (const std::string& fault : faults) json.Text(fault);
  json.EndList();
  json.EndObject();
  return json.Take();
}

}  // namespace cellar::cluster_tool
