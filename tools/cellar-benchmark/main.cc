// cellar-benchmark: a load generator for Cellar and for Redis.
//
//   cellar-benchmark --workload ycsb-a --preload 1000000 --duration 30
//   cellar-benchmark --command "CGET t plane#__key__ meta:miles" --keys 1000000 --pipeline 16
//   cellar-benchmark --dialect redis --port 6379 --command "80:HGET p#__key__ miles"
//                    --command "20:HSET p#__key__ miles __data__" --rate 50000
//   cellar-benchmark --scan t --page-rows 1000
//
// Sequence: setup commands, preload (one command each key), the measured phase, the table.
// main() only reads the options; phase.h explains how load is made.
//
// An error reply of the measured phase does not end it: load that is refused (OOM, MISCONF) is
// worth measuring too. It shows at the end, in the table, on standard error and in the exit status.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>

#include "cellar/version.h"
#include "command_line.h"
#include "phase.h"
#include "report.h"
#include "scan.h"
#include "socket.h"
#include "workload.h"

namespace cellar::benchmark {
namespace {

// Exit statuses, also in --help; those of cellar-import where they mean the same.
constexpr int kExitAllAnswered{0};
constexpr int kExitRefused{1};
constexpr int kExitBroken{2};

// What a run says of error replies: empty if there was none.
using Refusal = std::string;

struct Options {
  PhaseOptions phase;
  ScanOptions scan;
  TemplateOptions templates;
  std::string workload;
  std::vector<std::string> commands;
  std::vector<std::string> setup;
  std::vector<std::string> load_commands;
  std::string dialect{"cellar"};
  std::string distribution;
  std::string json_path;
  uint64_t preload{0};
  uint32_t preload_pipeline{64};
  bool load_only{false};
  bool quiet{false};
};

void Declare(CLI::App* app, Options* options) {
  PhaseOptions& phase = options->phase;
  AddCommonFlags(app);
  // -h is the host, as it is for redis-benchmark and cellar-import.
  app->add_option("-h,--host", phase.host, "server")->capture_default_str();
  app->add_option("-p,--port", phase.port, "port")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app->add_option("-t,--threads", phase.threads, "threads")->check(CLI::Range(1, 256));
  app->add_option("-c,--connections", phase.connections, "connections, over all threads")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app->add_option("-P,--pipeline", phase.pipeline, "operations in flight on each connection")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app->add_option("--rate", phase.rate_per_second, "open loop: operations started each second");
  app->add_option("--expected-interval-us", phase.expected_interval_ns,
                  "closed loop: correct latencies for the requests that a slow one held back")
      ->transform([](const std::string& text) { return text + "000"; });
  app->add_option("-d,--duration", phase.seconds, "length of the measured phase in seconds");
  app->add_option("-n,--operations", phase.operations, "operations in the measured phase");
  app->add_option("--keys", phase.key_count, "number of keys (default: as preloaded)");
  app->add_option("--distribution", options->distribution,
                  "uniform, zipf, latest or sequence (default: the workload's)");
  app->add_option("--seed", phase.seed, "seed of the random numbers")->capture_default_str();
  app->add_option("--on-connect", phase.on_connect, "command that each connection sends first");
  app->add_option("--server-pid", phase.server_pid, "process whose CPU time is reported");
  app->add_option("-w,--workload", options->workload, "one of the workloads below");
  app->add_option("--command", options->commands, "[weight:]command, may be repeated");
  app->add_option("--setup", options->setup, "command sent once before the preload");
  app->add_option("--load-command", options->load_commands, "preload: command sent for each key");
  app->add_option("--preload", options->preload, "number of keys to load before measuring");
  app->add_option("--preload-pipeline", options->preload_pipeline, "pipeline depth of the preload");
  app->add_flag("--load-only", options->load_only, "stop after the preload");
  app->add_option("--dialect", options->dialect,
                  "server that the built-in workloads and --scan speak to")
      ->check(CLI::IsMember({"cellar", "redis"}));
  app->add_option("--key-digits", options->templates.key_digits, "width of __key__")
      ->check(CLI::Range(1, 20));
  app->add_option("--data-bytes", options->templates.data_bytes, "width of __data__");
  app->add_option("--scan", options->scan.table, "scan a table (redis: a sorted set) to its end");
  app->add_option("--scan-prefix", options->scan.key_prefix,
                  "redis: prefix of the keys, followed by digits");
  app->add_option("--scan-rows", options->scan.rows, "redis: number of rows");
  app->add_option("--scan-options", options->scan.cell_options, "cellar: options added to CSCAN");
  app->add_option("--page-rows", options->scan.page_rows, "rows in each page");
  app->add_option("--json", options->json_path, "write the results to this file ('-': print them)");
  app->add_flag("-q,--quiet", options->quiet, "no progress lines");
}

Result<Refusal> Send(const Options& options, const std::string& text) {
  ASSIGN_OR_RETURN(Socket socket, Socket::Connect(options.phase.host, options.phase.port));
  ASSIGN_OR_RETURN(const CommandTemplate command, CommandTemplate::Parse(text, options.templates));
  Random random(options.phase.seed);
  std::string request;
  RenderContext context;
  context.random = &random;
  command.Render(context, &request);
  ASSIGN_OR_RETURN(const std::string error, socket.Call(request, 1));
  if (error.empty() || error.starts_with("BUSYKEY")) return Refusal();
  return text + ": " + error;
}

Refusal RefusalOf(const char* phase, const PhaseResult& result) {
  if (result.errors == 0) return {};
  return std::string(phase) + std::to_string(result.errors) + " errors in " +
         std::to_string(result.commands) + " replies, the first: " + result.first_error;
}

Result<Refusal> Preload(const Workload& workload, const Options& options) {
  Workload load;
  Operation operation{"load", 1.0, true, {Step{workload.load, 1}}};
  load.operations.push_back(std::move(operation));
  PhaseOptions phase = options.phase;
  phase.rate_per_second = 0;
  phase.seconds = 0;
  phase.operations = options.preload;
  phase.pipeline = options.preload_pipeline;
  phase.keys = KeyDistributionKind::kUniform;
  phase.key_count = 1;
  phase.first_insert = 0;
  ASSIGN_OR_RETURN(const PhaseResult result, RunPhase(load, phase));
  if (!options.quiet) std::printf("%s", PhaseTable("preload", result).c_str());
  return RefusalOf("preload: ", result);
}

Status Finish(const Options& options, const std::string& table, const std::string& json) {
  if (options.json_path == "-") {
    std::printf("%s\n", json.c_str());
    return Status::Ok();
  }
  std::printf("%s", table.c_str());
  if (options.json_path.empty()) return Status::Ok();
  std::ofstream file(options.json_path);
  file << json << "\n";
  if (!file.flush()) return Status::Error(ErrorCode::kIo, "cannot write " + options.json_path);
  return Status::Ok();
}

Result<Workload> ChooseWorkload(const Options& options) {
  const Dialect dialect = options.dialect == "redis" ? Dialect::kRedis : Dialect::kCellar;
  Workload workload;
  if (!options.workload.empty()) {
    ASSIGN_OR_RETURN(workload, BuiltInWorkload(options.workload, dialect, options.templates));
  } else {
    ASSIGN_OR_RETURN(workload, CustomWorkload(options.commands, options.templates));
  }
  workload.setup.insert(workload.setup.end(), options.setup.begin(), options.setup.end());
  if (!options.load_commands.empty()) workload.load.clear();
  for (const std::string& text : options.load_commands) {
    ASSIGN_OR_RETURN(CommandTemplate command, CommandTemplate::Parse(text, options.templates));
    workload.load.push_back(std::move(command));
  }
  return workload;
}

Result<Refusal> Run(Options options) {
  PhaseOptions& phase = options.phase;
  phase.progress = !options.quiet;
  if (phase.key_count <= 1) phase.key_count = std::max<uint64_t>(1, options.preload);
  if (phase.seconds <= 0 && phase.operations == 0) phase.seconds = 10;
  ASSIGN_OR_RETURN(const Workload workload, ChooseWorkload(options));
  phase.keys = workload.keys;
  if (!options.distribution.empty()) {
    const auto kind = ParseKeyDistribution(options.distribution);
    if (!kind) return Status::Error(ErrorCode::kErr, "no distribution " + options.distribution);
    phase.keys = *kind;
  }
  for (const std::string& text : workload.setup) {
    ASSIGN_OR_RETURN(Refusal refusal, Send(options, text));
    if (!refusal.empty()) return refusal;
  }
  if (options.preload > 0) {
    if (workload.load.empty()) {
      return Status::Error(ErrorCode::kErr, "--preload needs --load-command or --workload");
    }
    ASSIGN_OR_RETURN(Refusal refusal, Preload(workload, options));
    if (!refusal.empty()) return refusal;
  }
  if (options.load_only) return Refusal();
  if (!options.scan.table.empty()) {
    options.scan.dialect = options.dialect == "redis" ? Dialect::kRedis : Dialect::kCellar;
    options.scan.key_digits = options.templates.key_digits;
    ASSIGN_OR_RETURN(const ScanResult result, RunScan(options.scan, phase));
    RETURN_IF_ERROR(Finish(options, ScanTable(result), ScanJson(result)));
    return result.first_error.empty() ? Refusal() : "scan: " + result.first_error;
  }
  if (workload.operations.empty()) {
    return Status::Error(ErrorCode::kErr, "nothing to do: --workload, --command or --scan");
  }
  phase.first_insert = phase.key_count;
  ASSIGN_OR_RETURN(const PhaseResult result, RunPhase(workload, phase));
  RETURN_IF_ERROR(
      Finish(options, PhaseTable(workload.name, result), PhaseJson(workload.name, phase, result)));
  return RefusalOf("", result);
}

}  // namespace
}  // namespace cellar::benchmark

int main(int argc, char** argv) {
  using namespace cellar::benchmark;  // NOLINT(google-build-using-namespace): the program's own
                                      // names
  Options options;
  CLI::App app{"Load generator for Cellar and Redis", "cellar-benchmark"};
  app.footer("Workloads:\n" + WorkloadHelp() +
             "\nPlaceholders of commands: __key__ __data__ __data:N__ __rand:LO:HI__ __seq__ "
             "__now__ __now-N__\nSteps of a command are separated by ' ; ', commands sent together "
             "by ' & '.\n\nExit status: 0 every command was answered, 1 some were refused (the "
             "first error is\nprinted), 2 wrong options, or the connection failed.");
  Declare(&app, &options);
  int status{kExitAllAnswered};
  if (!cellar::ReadCommandLine(&app, argc, argv, &status)) return status;
  const cellar::Result<Refusal> refusal = Run(options);
  if (refusal.ok() && refusal->empty()) return kExitAllAnswered;
  (void)std::fflush(stdout);
  std::fprintf(stderr, "cellar-benchmark: %s\n",
               refusal.ok() ? refusal->c_str() : refusal.status().text().c_str());
  return refusal.ok() ? kExitRefused : kExitBroken;
}
