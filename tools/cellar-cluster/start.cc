// See start.h.
#include "cellar-cluster/start.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cellar-cluster/folder.h"
#include "cellar-cluster/node_process.h"
#include "cellar-cluster/plan.h"
#include "cellar-cluster/status.h"
#include "client/cluster_state.h"
#include "client/info_fields.h"
#include "client/reply_fields.h"

namespace cellar::cluster_tool {
namespace {

using client::SetState;
using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::milliseconds(50);
constexpr auto kTellPause = std::chrono::seconds(5);  // between two lines about one wait
constexpr uint64_t kSetsUsual{3};

Status Refuse(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

// What a cluster that is begun anew is.
ClusterNote UsualNote(const Options& options) {
  return {.sets = options.sets.value_or(kSetsUsual),
          .voters = options.voters.value_or(1),
          .host = options.host.value_or("127.0.0.1"),
          .port = options.port.value_or(6479),
          .systemd = options.systemd,
          .id = ""};
}

// Whether the command line agrees with what the folder has; takes more sets over.
Status Merge(const Options& options, const Folder& folder, ClusterNote* note) {
  const auto differs = [&](const std::string& what) {
    return Refuse(folder.path() + " is the folder of a cluster with " + what +
                  ", and that stays: name another folder with --dir");
  };
  if (options.voters && *options.voters != note->voters)
    return differs(fmt::format("--voters {}", note->voters));
  if (options.port && *options.port != note->port)
    return differs(fmt::format("--port {}", note->port));
  if (options.host && *options.host != note->host) return differs("--host " + note->host);
  if (options.systemd && !note->systemd) return differs("nodes of its own, no units");
  if (options.sets && *options.sets < note->sets) {
    return Refuse(
        fmt::format("{} has {} sets, and start takes none away", folder.path(), note->sets));
  }
  note->sets = options.sets.value_or(note->sets);
  return Status::Ok();
}

Status CheckUnused(const Folder& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder.path(), error)) return Status::Ok();
  if (!std::filesystem::is_directory(folder.path(), error))
    return Refuse(folder.path() + " is no folder");
  if (std::filesystem::is_empty(folder.path(), error) && !error) return Status::Ok();
  return Refuse(folder.path() +
                (error ? " cannot be read"
                       : " holds other things, and no cluster of this program's making: name "
                         "another folder with --dir"));
}

// Whether clients get in at all: without a password they do from this machine's own addresses.
Status CheckProtection(const Options& options, const ClusterNote& note) {
  const bool is_opened =
      std::any_of(options.lines.begin(), options.lines.end(), [](const auto& line) {
        return line.starts_with("protected-mode ") || line.starts_with("requirepass ");
      });
  if (IsLoopback(note.host) || !options.connection.password.empty() || is_opened)
    return Status::Ok();
  return Refuse("at " + note.host +
                " nodes take nobody without a password: name one (--auth-file), or --option "
                "\"protected-mode no\"");
}

class Starter {
 public:
  Starter(const Options& options, const volatile bool* stopped)
      : options_(options), stopped_(stopped), folder_(options.directory) {}

  Status Run() {
    RETURN_IF_ERROR(Prepare());
    Say(fmt::format("{} {} of {} {} in {}", note_.sets, note_.sets == 1 ? "set" : "sets",
                    note_.voters, note_.voters == 1 ? "node" : "nodes", folder_.path()));
    RETURN_IF_ERROR(BeginSet(0));
    RETURN_IF_ERROR(WaitFor("CLUSTER INIT of set 0", [this] { return TryFound(); }));
    RETURN_IF_ERROR(folder_.Write(note_));
    for (size_t set = 1; set < nodes_.size(); ++set) RETURN_IF_ERROR(BeginSet(set));
    for (size_t set = 1; set < nodes_.size(); ++set) {
      RETURN_IF_ERROR(
          WaitFor(fmt::format("set {} in the cluster", set), [&] { return TryJoin(set); }));
    }
    return WaitUntilKnown();
  }

  // A node that answers.
  client::ConnectionOptions Address(const PlannedNode& node) const {
    client::ConnectionOptions to = options_.connection;
    to.host = node.machine.host;
    to.port = node.port;
    to.connect_seconds = 3;
    to.reply_seconds = 5;
    return to;
  }
  const PlannedNode& first() const { return nodes_.front().front().node(); }

 private:
  void Say(const std::string& text) const {
    if (options_.quiet || options_.json) return;
    (void)std::printf("%s\n", text.c_str());
    (void)std::fflush(stdout);
  }

  Status Prepare() {
    ASSIGN_OR_RETURN(const std::optional<ClusterNote> found, folder_.Read());
    note_ = found ? *found : UsualNote(options_);
    if (found) {
      RETURN_IF_ERROR(Merge(options_, folder_, &note_));
    } else {
      ASSIGN_OR_RETURN(const Machine machine, ParseMachine(note_.host));
      if (!machine.zone.empty()) return Refuse("--host " + note_.host + ": no zone here");
      RETURN_IF_ERROR(CheckProtection(options_, note_));
      if (!note_.systemd) RETURN_IF_ERROR(CheckUnused(folder_));
    }
    ASSIGN_OR_RETURN(plan_, MakePlan({.machines = {{note_.host, ""}},
                                      .sets = note_.sets,
                                      .voters = note_.voters,
                                      .port = note_.port}));
    program_ = options_.program.empty() ? ServerProgram() : options_.program;
    bool is_any_new = false;
    for (const auto& set : plan_.sets) {
      std::vector<NodeProcess>& processes = nodes_.emplace_back();
      for (const PlannedNode& node : set) {
        const NodeProcess& process = processes.emplace_back(folder_, node, note_.systemd);
        is_any_new = is_any_new || !folder_.HasConfig(node, note_.systemd);
        if (!process.IsRunning()) RETURN_IF_ERROR(process.CheckPort());
      }
    }
    if (!options_.lines.empty() && !is_any_new) {
      return Refuse("--option is for nodes that are new: change " +
                    folder_.ConfigPath(plan_.sets[0][0], note_.systemd) + " and the others");
    }
    RETURN_IF_ERROR(folder_.Lock());
    return folder_.Write(note_);
  }

  Status BeginSet(size_t set) {
    size_t begun = 0;
    std::string addresses;
    for (NodeProcess& process : nodes_[set]) {
      if (process.IsRunning()) continue;
      const PlannedNode& node = process.node();
      if (!folder_.HasConfig(node, note_.systemd)) {
        RETURN_IF_ERROR(
            folder_.WriteConfig(node, note_.systemd,
                                ConfigOf(plan_, node, folder_.FilesOf(node, note_.systemd),
                                         options_.connection.password, options_.lines)));
      }
      RETURN_IF_ERROR(process.Begin(program_));
      ++begun;
      addresses += " " + node.Address();
    }
    Say(begun == 0
            ? fmt::format("set {}: stands already", set)
            : fmt::format("set {}: {} of {} begun:{}", set, begun, nodes_[set].size(), addresses));
    return Status::Ok();
  }

  // Until `holds` is true, says no, or time is up: then `what` has not come about.
  Status WaitFor(const std::string& what, const std::function<Result<bool>()>& holds) {
    const auto end = Clock::now() + std::chrono::seconds(options_.wait_s);
    auto told = Clock::now() + kTellPause;
    for (;;) {
      ASSIGN_OR_RETURN(const bool held, holds());
      if (held) return Status::Ok();
      for (auto& set : nodes_) {
        for (NodeProcess& process : set) RETURN_IF_ERROR(process.CheckAlive());
      }
      if (*stopped_) return Refuse("broken off; what was begun runs on (cellar-cluster stop)");
      if (Clock::now() > told) {
        Say(fmt::format("waiting for {}{}{}", what, last_trouble_.empty() ? "" : ": ",
                        last_trouble_));
        told = Clock::now() + kTellPause;
      }
      if (Clock::now() > end) {
        return Refuse(fmt::format("waited {} s in vain for {}{}{}", options_.wait_s, what,
                                  last_trouble_.empty() ? "" : ": ", last_trouble_));
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  // A connection to the leader of a set; nothing: nobody leads, or it does not answer yet.
  Result<std::optional<client::Connection>> Leader(size_t set) {
    for (const NodeProcess& process : nodes_[set]) {
      Result<client::Connection> connection = client::Connection::Open(Address(process.node()));
      if (!connection.ok()) {
        const std::string& text = connection.status().text();
        last_trouble_ = text;
        const bool is_final = text.find("NOAUTH") != std::string::npos ||
                              text.find("WRONGPASS") != std::string::npos ||
                              text.find("ERR AUTH") != std::string::npos;
        if (is_final) return Refuse(text + " (--auth-file names the password)");
        continue;
      }
      const Result<client::Reply> info = connection->Call({"INFO", "replication"});
      if (!info.ok()) continue;
      auto fields = client::InfoFields(client::TextOf(**info));
      if (fields["replica_state"] == "leader") return std::optional(*std::move(connection));
    }
    return std::optional<client::Connection>();
  }

  Status WaitForLeader(size_t set, std::optional<client::Connection>* leader) {
    return WaitFor(fmt::format("a leader of set {}", set), [&]() -> Result<bool> {
      ASSIGN_OR_RETURN(*leader, Leader(set));
      return leader->has_value();
    });
  }

  // Whether set 0 is a cluster, whose id goes into the note; asks it to become one if not.
  Result<bool> TryFound() {
    std::optional<client::Connection> leader;
    RETURN_IF_ERROR(WaitForLeader(0, &leader));
    ASSIGN_OR_RETURN(const std::vector<SetState> sets, client::ReadSets(&*leader));
    if (sets.empty()) {
      ASSIGN_OR_RETURN(const client::Reply reply, leader->Call({"CLUSTER", "INIT"}));
      last_trouble_ = client::ErrorText(*reply);
      if (last_trouble_.empty() || last_trouble_.starts_with("TRYAGAIN")) return false;
      return Refuse("CLUSTER INIT: " + last_trouble_);
    }
    if (sets.front().number != uint64_t{0} || NumberAt(sets, first().port) != uint64_t{0})
      return Refuse(first().Address() + " is a node of another cluster");
    const std::string& id = sets.front().id;
    if (!note_.id.empty() && note_.id != id) {
      return Refuse(
          fmt::format("{} is the folder of another cluster: its set 0 was {}, and {} is {}",
                      folder_.path(), note_.id, first().Address(), id));
    }
    note_.id = id;
    return true;
  }

  // The number of the set that has a member at this port of this machine; nothing: none is known.
  std::optional<uint64_t> NumberAt(const std::vector<SetState>& sets, int port) const {
    for (const SetState& set : sets) {
      for (const client::SetMember& member : set.members) {
        if (member.port == port && member.host == note_.host) return set.number;
      }
    }
    return std::nullopt;
  }

  // Whether the set is in the cluster, with its number; has it taken in if not.
  Result<bool> TryJoin(size_t set) {
    std::optional<client::Connection> leader;
    RETURN_IF_ERROR(WaitForLeader(set, &leader));
    ASSIGN_OR_RETURN(const std::vector<SetState> sets, client::ReadSets(&*leader));
    const PlannedNode& node = nodes_[set].front().node();
    if (!sets.empty()) {
      // A node that has just begun knows of its own set alone.
      const std::optional<uint64_t> number = NumberAt(sets, node.port);
      const auto first_set = std::find_if(sets.begin(), sets.end(), [](const SetState& each) {
        return each.number == uint64_t{0};
      });
      last_trouble_ = node.Address() + " knows of no director yet";
      if (first_set == sets.end() || !number) return false;
      if (first_set->id == note_.id && *number == set) return true;
      return Refuse(node.Address() + " is a node of another cluster, or of another set");
    }
    std::optional<client::Connection> director;
    RETURN_IF_ERROR(WaitForLeader(0, &director));
    ASSIGN_OR_RETURN(const client::Reply reply,
                     director->Call({"CLUSTER", "ADMIT", node.Address()}));
    last_trouble_ = client::ErrorText(*reply);
    if (last_trouble_.empty()) Say(fmt::format("set {}: admitted", set));
    const bool is_early = last_trouble_.empty() || last_trouble_.starts_with("TRYAGAIN") ||
                          last_trouble_.find("no set at") != std::string::npos;
    if (is_early) return false;
    return Refuse(fmt::format("set {} is not taken in: {}", set, last_trouble_));
  }

  // Whether a node knows of all sets, who leads them, and that its own is whole.
  Result<bool> KnowsAll(const PlannedNode& node) const {
    ASSIGN_OR_RETURN(client::Connection connection, client::Connection::Open(Address(node)));
    ASSIGN_OR_RETURN(const std::vector<SetState> sets, client::ReadSets(&connection));
    const auto there = std::count_if(sets.begin(), sets.end(), [](const SetState& each) {
      return each.number && !each.leader.empty() && (each.state == "ok" || each.state == "empty");
    });
    const auto own = std::find_if(sets.begin(), sets.end(),
                                  [&](const SetState& each) { return each.number == node.set; });
    if (static_cast<size_t>(there) < nodes_.size() || own == sets.end()) return false;
    return std::all_of(
        own->members.begin(), own->members.end(), [](const client::SetMember& member) {
          return member.state == "leader" || member.state == "online" || member.state == "behind";
        });
  }

  Status WaitUntilKnown() {
    last_trouble_.clear();
    return WaitFor("all nodes to know all sets", [&]() -> Result<bool> {
      for (const auto& set : plan_.sets) {
        for (const PlannedNode& node : set) {
          const Result<bool> knows = KnowsAll(node);
          if (!knows.ok() || !*knows) return false;
        }
      }
      return true;
    });
  }

  const Options& options_;
  const volatile bool* stopped_;
  const Folder folder_;
  ClusterNote note_;
  Plan plan_;
  std::string program_;
  std::vector<std::vector<NodeProcess>> nodes_;  // of each set
  std::string last_trouble_;                     // why the step that is waited for is not done yet
};

int Fail(const Status& status) {
  (void)std::fprintf(stderr, "cellar-cluster: %s\n", status.text().c_str());
  return 1;
}

}  // namespace

int StartCluster(const Options& options, const volatile bool* stopped) {
  Starter starter(options, stopped);
  if (const Status status = starter.Run(); !status.ok()) return Fail(status);
  const client::ConnectionOptions first = starter.Address(starter.first());
  Result<client::Connection> connection = client::Connection::Open(first);
  if (!connection.ok()) return Fail(connection.status());
  const Result<ClusterStatus> status = ReadStatus(&*connection, first);
  if (!status.ok()) return Fail(status.status());
  const std::vector<std::string> faults = FaultsOf(*status);
  if (!options.quiet) {
    const std::string text =
        options.json ? StatusJson(*status, faults) : StatusText(*status, faults);
    (void)std::fputs(text.c_str(), stdout);
  }
  return faults.empty() ? 0 : 1;
}

int StopCluster(const Options& options, const volatile bool* stopped) {
  const Folder folder(options.directory);
  const Result<std::optional<ClusterNote>> note = folder.Read();
  if (!note.ok()) return Fail(note.status());
  if (!*note) return Fail(Refuse(folder.path() + " is the folder of no cluster (--dir)"));
  if (const Status status = folder.Lock(); !status.ok()) return Fail(status);
  const Plan plan = PlanOf(**note);
  std::vector<NodeProcess> running;
  for (const auto& set : plan.sets) {
    for (const PlannedNode& node : set) {
      NodeProcess process(folder, node, (*note)->systemd);
      if (process.IsRunning()) running.push_back(process);
    }
  }
  const size_t count = running.size();
  for (const NodeProcess& process : running) {
    if (const Status status = process.Tell(); !status.ok()) return Fail(status);
  }
  const auto end = Clock::now() + std::chrono::seconds(options.wait_s);
  while (true) {
    std::erase_if(running, [](const NodeProcess& process) { return !process.IsRunning(); });
    if (running.empty() || Clock::now() > end || *stopped) break;
    std::this_thread::sleep_for(kPause);
  }
  if (!running.empty()) {
    return Fail(
        Refuse(fmt::format("{} has been told to end and goes on", running.front().node().Name())));
  }
  if (!options.quiet) {
    (void)std::printf(count == 0 ? "nothing runs\n" : "%zu %s stopped; the data stays in %s\n",
                      count, count == 1 ? "node" : "nodes",
                      (*note)->systemd ? "/var/lib/cellar" : folder.path().c_str());
  }
  return 0;
}

}  // namespace cellar::cluster_tool
