// See heat.h.
#include "cellar-heatmap/heat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string_view>

namespace cellar::heatmap {
namespace {

Status NoHeat() { return Status::Error(ErrorCode::kErr, "the server's answer is not HEAT's"); }

const redisReply* Field(const redisReply& reply, std::string_view name) {
  for (size_t i = 0; i + 1 < reply.elements; i += 2) {
    const redisReply& key = *reply.element[i];
    if (key.type == REDIS_REPLY_STRING && std::string_view(key.str, key.len) == name) {
      return reply.element[i + 1];
    }
  }
  return nullptr;
}

}  // namespace

uint64_t Grid::max() const {
  uint64_t most = 0;
  for (const auto& step : cells) {
    for (const uint64_t cell : step) most = std::max(most, cell);
  }
  return most;
}

uint64_t Grid::min() const {
  uint64_t least = UINT64_MAX;
  for (const auto& step : cells) {
    for (const uint64_t cell : step) least = cell == 0 ? least : std::min(least, cell);
  }
  return least == UINT64_MAX ? 1 : least;
}

uint64_t Grid::total() const {
  uint64_t sum = 0;
  for (const auto& step : cells) {
    for (const uint64_t cell : step) sum += cell;
  }
  return sum;
}

std::vector<HotRange> Hottest(const Grid& grid, size_t count) {
  std::vector<HotRange> ranges;
  const auto total = static_cast<double>(grid.total());
  for (size_t i = 0; i < grid.ranges(); ++i) {
    uint64_t amount = 0;
    for (const auto& step : grid.cells) amount += step[i];
    if (amount == 0) continue;
    ranges.push_back({grid.keys[i], i + 1 < grid.ranges() ? grid.keys[i + 1] : "", amount,
                      static_cast<double>(amount) / total});
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [](const HotRange& a, const HotRange& b) { return a.amount > b.amount; });
  if (ranges.size() > count) ranges.resize(count);
  return ranges;
}

Result<Grid> Read(const redisReply& reply, const std::string& metric) {
  if (reply.type != REDIS_REPLY_ARRAY) return NoHeat();
  const redisReply* const table = Field(reply, "table");
  const redisReply* const from = Field(reply, "from");
  const redisReply* const step = Field(reply, "step");
  const redisReply* const keys = Field(reply, "keys");
  const redisReply* const cells = Field(reply, metric);
  if (table == nullptr || from == nullptr || step == nullptr || keys == nullptr ||
      cells == nullptr || from->type != REDIS_REPLY_INTEGER || step->type != REDIS_REPLY_INTEGER ||
      keys->elements == 0) {
    return NoHeat();
  }
  Grid grid;
  grid.table.assign(table->str, table->len);
  grid.metric = metric;
  grid.from_s = from->integer;
  grid.step_s = std::max<int64_t>(1, step->integer);
  for (size_t i = 0; i < keys->elements; ++i) {
    grid.keys.emplace_back(keys->element[i]->str, keys->element[i]->len);
  }
  for (size_t i = 0; i < cells->elements; ++i) {
    const redisReply& row = *cells->element[i];
    if (row.elements != grid.keys.size()) return NoHeat();
    std::vector<uint64_t>& to = grid.cells.emplace_back();
    for (size_t k = 0; k < row.elements; ++k) {
      to.push_back(static_cast<uint64_t>(std::max<int64_t>(0, row.element[k]->integer)));
    }
  }
  if (grid.cells.empty()) return NoHeat();
  return grid;
}

Result<Grid> Ask(client::Connection* connection, const Question& question) {
  const std::string ranges = std::to_string(question.ranges);
  std::vector<std::string> words{"HEAT", question.table, "STEP", question.step, "RANGES", ranges};
  if (!question.from.empty()) words.insert(words.end(), {"FROM", question.from});
  if (!question.to.empty()) words.insert(words.end(), {"TO", question.to});
  std::string request = fmt::format("*{}\r\n", words.size());
  for (const std::string& word : words) {
    request += fmt::format("${}\r\n{}\r\n", word.size(), word);
  }
  RETURN_IF_ERROR(connection->Append(request));
  ASSIGN_OR_RETURN(const client::Reply reply, connection->Read());
  const std::string_view error = client::ErrorText(*reply);
  if (!error.empty()) return Status::Error(ErrorCode::kErr, std::string(error));
  return Read(*reply, question.metric);
}

std::string TimeText(int64_t unix_s, bool with_day) {
  const auto time = static_cast<time_t>(unix_s);
  std::tm parts{};
  (void)gmtime_r(&time, &parts);
  constexpr std::array<const char*, 12> kMonths{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::string clock = fmt::format("{:02}:{:02}", parts.tm_hour, parts.tm_min);
  if (!with_day) return clock;
  return fmt::format("{} {} {}", parts.tm_mday, kMonths[static_cast<size_t>(parts.tm_mon)], clock);
}

std::string NumberText(uint64_t number) {
  if (number < 1000) return std::to_string(number);
  auto value = static_cast<double>(number) / 1000;
  for (const char unit : {'k', 'M', 'G', 'T', 'P'}) {
    if (value < 99.95) return fmt::format("{:.1f}{}", value, unit);
    if (value < 999.5) return fmt::format("{:.0f}{}", value, unit);
    value /= 1000;
  }
  return fmt::format("{:.0f}E", value);
}

std::string KeyText(const std::string& key, size_t width) {
  std::string text;
  for (const char c : key) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      text.push_back(c);
    } else {
      text += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    if (text.size() > width) break;
  }
  if (text.size() <= width) return text;
  text.resize(width > 2 ? width - 2 : 0);
  return text + "..";
}

}  // namespace cellar::heatmap
