// See past.h.
#include "cellar-web/past.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <vector>

#include "client/json_text.h"

namespace cellar::web {
namespace {

constexpr int64_t kPointsMax{360};  // of a graph

enum class Kind : uint8_t { kGauge, kCounter };

constexpr struct Figure {
  std::string_view name;
  Kind kind;
  std::string_view field;   // of INFO
  std::string_view plus{};  // another one that is added
} kAll[]{
    {"commands", Kind::kCounter, "total_commands_processed"},
    {"memory", Kind::kGauge, "used_memory"},
    {"clients", Kind::kGauge, "connected_clients"},
    {"cpu", Kind::kCounter, "used_cpu_user", "used_cpu_sys"},
    {"input", Kind::kCounter, "total_net_input_bytes"},
    {"output", Kind::kCounter, "total_net_output_bytes"},
    {"errors", Kind::kCounter, "total_error_replies"},
    {"log", Kind::kGauge, "aof_current_size"},
};
static_assert(std::size(kAll) == Past::kFigures);

int64_t NowSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Of "name:value" in a line of its own.
std::optional<double> ValueOf(std::string_view info, std::string_view name) {
  for (size_t at = info.find(name); at != std::string_view::npos; at = info.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at != 0 && info[at - 1] != '\n') || end >= info.size() || info[end] != ':') continue;
    double value = 0;
    const auto parsed = std::from_chars(info.data() + end + 1, info.data() + info.size(), value);
    return parsed.ec == std::errc() ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> ValueOf(std::string_view info, const Figure& figure) {
  const auto value = ValueOf(info, figure.field);
  if (!value || figure.plus.empty()) return value;
  return *value + ValueOf(info, figure.plus).value_or(0);
}

// The mean of what is added.
class Mean {
 public:
  void Add(std::optional<double> value) {
    if (!value) return;
    sum_ += *value;
    ++count_;
  }
  std::string Text() const {
    return count_ == 0 ? "null" : fmt::format("{:.12g}", sum_ / static_cast<double>(count_));
  }

 private:
  double sum_{0};
  size_t count_{0};
};

}  // namespace

Past::Past(client::ConnectionOptions server)
    : server_(std::move(server)), thread_([this] { Run(); }) {}

Past::~Past() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wakes_.notify_one();
  thread_.join();
}

void Past::Run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    lock.unlock();
    TakeSample(NowSeconds());
    lock.lock();
    wakes_.wait_for(lock, std::chrono::seconds(kStepSeconds), [this] { return ends_; });
  }
}

Result<std::string> Past::AskInfo() {
  if (!connection_) {
    Result<client::Connection> made = client::Connection::Open(server_);
    if (!made.ok()) return made.status();
    connection_ = *std::move(made);
  }
  const Result<client::Reply> reply =
      connection_->Call({"INFO", "clients", "memory", "persistence", "stats", "cpu"});
  if (!reply.ok()) return reply.status();
  if (const auto error = client::ErrorText(**reply); !error.empty())
    return Status::Error(ErrorCode::kErr, std::string(error));
  return std::string((*reply)->str, (*reply)->len);
}

void Past::TakeSample(int64_t now_seconds) {
  const Result<std::string> info = AskInfo();
  if (!info.ok()) connection_.reset();
  Sample sample{now_seconds, {}};
  const double seconds = static_cast<double>(now_seconds - counted_seconds_);
  for (size_t i = 0; i < kFigures; ++i) {
    const Figure& figure = kAll[i];
    const auto value = info.ok() ? ValueOf(*info, figure) : std::nullopt;
    if (figure.kind == Kind::kGauge) {
      sample.of[i] = value;
      continue;
    }
    if (value && counted_[i] && *value >= *counted_[i] && seconds > 0) {
      sample.of[i] = (*value - *counted_[i]) / seconds;
    }
    counted_[i] = value;
  }
  counted_seconds_ = now_seconds;
  const std::lock_guard lock(mutex_);
  trouble_ = info.ok() ? std::string() : info.status().text();
  samples_.push_back(sample);
  if (samples_.size() > kSamplesMax) samples_.pop_front();
}

void Past::Tell(uint64_t hours, std::string* json) {
  const int64_t span = static_cast<int64_t>(hours) * 3600;
  const int64_t step = std::max(kStepSeconds, span / kPointsMax);
  const int64_t from = (NowSeconds() - span) / step * step;
  const auto points = static_cast<size_t>(span / step) + 1;
  std::vector<std::array<Mean, kFigures>> means(points);
  const std::lock_guard lock(mutex_);
  for (const Sample& sample : samples_) {
    const int64_t point = (sample.at_seconds - from) / step;
    if (sample.at_seconds < from || point >= static_cast<int64_t>(points)) continue;
    for (size_t i = 0; i < kFigures; ++i) {
      means[static_cast<size_t>(point)][i].Add(sample.of[i]);
    }
  }
  json->append(fmt::format(R"({{"from":{},"step":{},"trouble":)", from, step));
  if (trouble_.empty()) {
    json->append("null");
  } else {
    client::AppendJsonText(trouble_, json);
  }
  json->append(R"(,"figures":{)");
  for (size_t i = 0; i < kFigures; ++i) {
    json->append(fmt::format(R"({}"{}":[)", i == 0 ? "" : ",", kAll[i].name));
    for (size_t point = 0; point < points; ++point) {
      if (point > 0) json->push_back(',');
      json->append(means[point][i].Text());
    }
    json->push_back(']');
  }
  json->append("}}");
}

}  // namespace cellar::web
