// See report.h. All latencies are shown in microseconds.
#include "report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace cellar::benchmark {
namespace {

double Micros(uint64_t ns) { return static_cast<double>(ns) * 1e-3; }

double PerSecond(uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
}

// Microseconds of `seconds` for each of `count`; -1 if either is unknown.
double MicrosEach(double seconds, uint64_t count) {
  return seconds < 0 || count == 0 ? -1.0 : seconds * 1e6 / static_cast<double>(count);
}

nlohmann::json LatencyJson(const Histogram& histogram) {
  return {{"count", histogram.count()},
          {"mean", histogram.mean_ns() * 1e-3},
          {"p50", Micros(histogram.ValueAt(0.5))},
          {"p90", Micros(histogram.ValueAt(0.9))},
          {"p99", Micros(histogram.ValueAt(0.99))},
          {"p99.9", Micros(histogram.ValueAt(0.999))},
          {"p99.99", Micros(histogram.ValueAt(0.9999))},
          {"max", Micros(histogram.max_ns())}};
}

std::string LatencyRow(const std::string& name, const Histogram& histogram) {
  return fmt::format("  {:<20} {:>10} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f}\n",
                     name, histogram.count(), histogram.mean_ns() * 1e-3,
                     Micros(histogram.ValueAt(0.5)), Micros(histogram.ValueAt(0.9)),
                     Micros(histogram.ValueAt(0.99)), Micros(histogram.ValueAt(0.999)),
                     Micros(histogram.max_ns()));
}

}  // namespace

std::string PhaseTable(const std::string& title, const PhaseResult& result) {
  std::string table = fmt::format("{}: {:.0f} operations/s, {:.0f} commands/s for {:.1f} s\n",
                                  title, PerSecond(result.operations, result.seconds),
                                  PerSecond(result.commands, result.seconds), result.seconds);
  if (result.server_cpu_seconds >= 0) {
    table += fmt::format("  server CPU {:.3f} us per command\n",
                         MicrosEach(result.server_cpu_seconds, result.commands));
  }
  table += fmt::format("  client CPU {:.3f} us per command; {:.1f} MB sent, {:.1f} MB received\n",
                       MicrosEach(result.client_cpu_seconds, result.commands),
                       static_cast<double>(result.bytes_sent) * 1e-6,
                       static_cast<double>(result.bytes_received) * 1e-6);
  table += fmt::format("  {:<20} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "latency, us",
                       "count", "mean", "p50", "p90", "p99", "p99.9", "max");
  for (const auto& [name, histogram] : result.by_operation) table += LatencyRow(name, histogram);
  if (result.by_operation.size() > 1) table += LatencyRow("all", result.all);
  if (result.errors > 0) table += fmt::format("  {} errors\n", result.errors);
  return table;
}

std::string PhaseJson(const std::string& title, const PhaseOptions& options,
                      const PhaseResult& result) {
  nlohmann::json json = {
      {"workload", title},
      {"threads", options.threads},
      {"connections", options.connections},
      {"pipeline", options.pipeline},
      {"rate", options.rate_per_second},
      {"keys", options.key_count},
      {"seconds", result.seconds},
      {"operations", result.operations},
      {"commands", result.commands},
      {"errors", result.errors},
      {"first_error", result.first_error},
      {"nulls", result.nulls},
      {"bytes_sent", result.bytes_sent},
      {"bytes_received", result.bytes_received},
      {"operations_per_second", PerSecond(result.operations, result.seconds)},
      {"commands_per_second", PerSecond(result.commands, result.seconds)},
      {"server_cpu_us_per_command", MicrosEach(result.server_cpu_seconds, result.commands)},
      {"client_cpu_us_per_command", MicrosEach(result.client_cpu_seconds, result.commands)},
      {"latency_us", LatencyJson(result.all)},
  };
  for (const auto& [name, histogram] : result.by_operation) {
    json["latency_us_by_operation"][name] = LatencyJson(histogram);
  }
  json["per_second"] = nlohmann::json::array();
  for (const PhaseSecond& second : result.per_second) {
    json["per_second"].push_back({{"seconds", second.seconds},
                                  {"operations", second.operations},
                                  {"p99_us", Micros(second.p99_ns)}});
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ScanTable(const ScanResult& result) {
  std::string table = fmt::format("scan: {} times in {:.1f} s, {:.0f} values/s\n", result.scans,
                                  result.seconds, PerSecond(result.values, result.seconds));
  if (result.server_cpu_seconds >= 0) {
    table += fmt::format("  server CPU {:.4f} us per value\n",
                         MicrosEach(result.server_cpu_seconds, result.values));
  }
  table += LatencyRow("page, us", result.page_latency);
  return table;
}

std::string ScanJson(const ScanResult& result) {
  const nlohmann::json json = {{"workload", "scan"},
                               {"seconds", result.seconds},
                               {"scans", result.scans},
                               {"pages", result.pages},
                               {"values", result.values},
                               {"first_error", result.first_error},
                               {"server_cpu_seconds", result.server_cpu_seconds},
                               {"latency_us", LatencyJson(result.page_latency)}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cellar::benchmark
