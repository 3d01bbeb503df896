// See latency_report.h.
#include "commands/reports/latency_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace cellar {
namespace {

constexpr int kRows{4};

std::string AgeText(int64_t seconds) {
  if (seconds < 60) return fmt::format("{}s", seconds);
  if (seconds < 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 86'400) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / 86'400);
}

struct Figures {
  int64_t low{0};
  int64_t high{0};
  double mean{0};
  double deviation{0};  // mean absolute
};

Figures FiguresOf(const LatencyMonitor::Event& event) {
  Figures figures{.low = event.samples.front().millis, .high = event.samples.front().millis};
  const auto count = static_cast<double>(event.samples.size());
  for (const auto& sample : event.samples) {
    figures.low = std::min(figures.low, sample.millis);
    figures.high = std::max(figures.high, sample.millis);
    figures.mean += static_cast<double>(sample.millis) / count;
  }
  for (const auto& sample : event.samples) {
    const double distance = static_cast<double>(sample.millis) - figures.mean;
    figures.deviation += (distance < 0 ? -distance : distance) / count;
  }
  return figures;
}

}  // namespace

std::string LatencyGraph(std::string_view name, const LatencyMonitor::Event& event, int64_t now_s) {
  const Figures figures = FiguresOf(event);
  std::string out = fmt::format("{} - high {} ms, low {} ms (all time high {} ms)\n", name,
                                figures.high, figures.low, event.worst_millis);
  out.append(80, '-').append(1, '\n');
  const int64_t span = std::max<int64_t>(figures.high - figures.low, 1);
  std::vector<std::string> ages;
  size_t age_rows = 0;
  for (const auto& sample : event.samples) {
    ages.push_back(AgeText(std::max<int64_t>(now_s - sample.unix_s, 0)));
    age_rows = std::max(age_rows, ages.back().size());
  }
  for (int row = kRows - 1; row >= 0; --row) {
    for (const auto& sample : event.samples) {
      // Three steps of height in each row of characters.
      const int64_t height = (sample.millis - figures.low) * (3 * kRows - 1) / span - 3 * row;
      out += height < 0 ? ' ' : height == 0 ? '_' : height == 1 ? 'o' : height == 2 ? '#' : '|';
    }
    out += '\n';
  }
  out += '\n';
  for (size_t row = 0; row < age_rows; ++row) {
    for (const std::string& age : ages) out += row < age.size() ? age[row] : ' ';
    out += '\n';
  }
  return out;
}

std::string LatencyAdvice(const LatencyMonitor& monitor, int64_t threshold_millis) {
  if (threshold_millis == 0) {
    return "Latency monitoring is off. `CONFIG SET latency-monitor-threshold 100` records what "
           "takes longer than 100 ms; try again after a while.\n";
  }
  if (monitor.events().empty()) {
    return fmt::format("Nothing has taken longer than {} ms since monitoring began.\n",
                       threshold_millis);
  }
  std::string out = "What was slow:\n\n";
  int number = 1;
  for (const auto& [name, event] : monitor.events()) {
    const Figures figures = FiguresOf(event);
    out += fmt::format(
        "{}. {}: {} latency {} (average {:.0f} ms, mean deviation {:.0f} ms). "
        "Worst all time event {} ms.\n",
        number++, name, event.samples.size(), event.samples.size() == 1 ? "spike" : "spikes",
        figures.mean, figures.deviation, event.worst_millis);
  }
  out +=
      "\nSLOWLOG GET names the commands. Also check for swapped-out memory, a busy neighbour on "
      "the machine, and transactions with very many commands (EXEC runs without a pause).\n";
  return out;
}

}  // namespace cellar
