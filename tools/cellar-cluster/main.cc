// cellar-cluster: plans, starts and looks after a cluster of several sets.
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "cellar-cluster/backup.h"
#include "cellar-cluster/folder.h"
#include "cellar-cluster/options.h"
#include "cellar-cluster/plan.h"
#include "cellar-cluster/report.h"
#include "cellar-cluster/start.h"
#include "cellar-cluster/status.h"
#include "client/cluster_state.h"
#include "client/connection.h"
#include "client/program.h"

namespace cellar::cluster_tool {
namespace {

constexpr uint64_t kVotersUsual{3};
constexpr uint64_t kTabletsUsual{1000};
constexpr uint64_t kEventsUsual{20};

int Fail(const std::string& text) {
  (void)std::fprintf(stderr, "cellar-cluster: %s\n", text.c_str());
  return 1;
}

int Print(const std::string& text) {
  const bool done = std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
  return done ? 0 : Fail("the standard output takes no more");
}

int RunPlan(const Options& options) {
  PlanRequest request{.machines = {},
                      .sets = options.sets.value_or(options.words.size()),
                      .voters = options.voters.value_or(kVotersUsual),
                      .port = options.port.value_or(6479)};
  for (const std::string& word : options.words) {
    Result<Machine> machine = ParseMachine(word);
    if (!machine.ok()) return Fail(machine.status().text());
    request.machines.push_back(*std::move(machine));
  }
  const Result<Plan> plan = MakePlan(request);
  if (!plan.ok()) return Fail(plan.status().text());
  const std::string& password = options.connection.password;
  std::vector<std::string> configurations;
  std::vector<std::string> written;
  for (const auto& set : plan->sets) {
    for (const PlannedNode& node : set) {
      NodeFiles files;
      files.directory = options.systemd ? "/var/lib/cellar/" + node.Name() : node.Name();
      configurations.push_back(ConfigOf(*plan, node, files, password, options.lines));
      if (options.write_to.empty()) continue;
      written.push_back(options.write_to + "/" + node.machine.host + "/" + node.Name() + ".conf");
      const Status status = WriteFile(written.back(), configurations.back());
      if (!status.ok()) return Fail(status.text());
    }
  }
  const std::vector<std::string> warnings = WarningsOf(*plan, !password.empty());
  return Print(options.json ? PlanJson(*plan, warnings, configurations)
                            : PlanText(*plan, warnings, written, options.systemd));
}

// The nodes that may be asked: the one of the command line, or those of the folder.
Result<std::vector<client::ConnectionOptions>> NodesToAsk(const Options& options) {
  std::vector<client::ConnectionOptions> nodes;
  if (!options.is_directory_given) return std::vector{options.connection};
  const Folder folder(options.directory);
  ASSIGN_OR_RETURN(const std::optional<ClusterNote> note, folder.Read());
  if (!note)
    return Status::Error(ErrorCode::kErr, folder.path() + " is the folder of no cluster (--dir)");
  for (const auto& set : PlanOf(*note).sets) {
    for (const PlannedNode& node : set) {
      client::ConnectionOptions to = options.connection;
      to.host = node.machine.host;
      to.port = node.port;
      nodes.push_back(to);
    }
  }
  return nodes;
}

// Seconds: a node that stands still is told from one that answers; what it shows may take longer.
constexpr int kPatience{3};
constexpr int kShowPatience{60};

// Ok: it answers, whatever it says.
Status CheckAnswers(client::ConnectionOptions node) {
  node.connect_seconds = kPatience;
  node.reply_seconds = kPatience;
  ASSIGN_OR_RETURN(client::Connection connection, client::Connection::Open(node));
  return connection.Call({"PING"}).status();
}

int Show(const Options& options, client::Connection* connection,
         const client::ConnectionOptions& node) {
  if (options.action == Action::kMap) {
    const uint64_t shown = options.count == 0 ? kTabletsUsual : options.count;
    const std::string table = options.words.empty() ? "" : options.words.front();
    const Result<client::TabletMap> map = client::ReadTablets(connection, table, shown + 1);
    if (!map.ok()) return Fail(map.status().text());
    return Print(options.json ? MapJson(*map, shown) : MapText(*map, shown));
  }
  if (options.action == Action::kEvents) {
    const Result<std::vector<client::ClusterEvent>> events =
        client::ReadEvents(connection, options.count == 0 ? kEventsUsual : options.count);
    if (!events.ok()) return Fail(events.status().text());
    return Print(options.json ? EventsJson(*events) : EventsText(*events));
  }
  const Result<ClusterStatus> status = ReadStatus(connection, node);
  if (!status.ok()) return Fail(status.status().text());
  const std::vector<std::string> faults = FaultsOf(*status);
  const int printed =
      Print(options.json ? StatusJson(*status, faults) : StatusText(*status, faults));
  return faults.empty() ? printed : 1;
}

int Main(int argc, char** argv) {
  int status{0};
  const std::optional<Options> options = ParseOptions(argc, argv, &status);
  if (!options) return status;
  const volatile bool* const stopped = client::CatchStopSignals();
  if (options->action == Action::kPlan) return RunPlan(*options);
  if (options->action == Action::kStart) return StartCluster(*options, stopped);
  if (options->action == Action::kStop) return StopCluster(*options, stopped);
  if (options->action == Action::kRecover) return RecoverCluster(*options, stopped);
  const Result<std::vector<client::ConnectionOptions>> nodes = NodesToAsk(*options);
  if (!nodes.ok()) return Fail(nodes.status().text());
  std::string refusal;
  for (client::ConnectionOptions node : *nodes) {
    if (const Status answers = CheckAnswers(node); !answers.ok()) {
      if (refusal.empty()) refusal = answers.text();
      continue;
    }
    if (options->action != Action::kBackup) node.reply_seconds = kShowPatience;
    Result<client::Connection> connection = client::Connection::Open(node);
    if (connection.ok() && options->action == Action::kBackup)
      return MakeBackup(*options, &*connection, stopped);
    if (connection.ok()) return Show(*options, &*connection, node);
    if (refusal.empty()) refusal = connection.status().text();
  }
  return Fail(nodes->size() == 1 ? refusal
                                 : "none of the cluster's nodes answers; the first: " + refusal);
}

}  // namespace
}  // namespace cellar::cluster_tool

int main(int argc, char** argv) { return cellar::cluster_tool::Main(argc, argv); }
