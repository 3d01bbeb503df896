// See report.h.
#include "cellar-import/report.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/hash.h"

namespace cellar::importer {
namespace {

using nlohmann::json;

constexpr size_t kErrorsShownMax{10};
constexpr size_t kErrorBytesMax{500};
constexpr int64_t kBarMicros{100'000};
constexpr int64_t kLineMicros{5'000'000};
constexpr int64_t kMicrosPerSecond{1'000'000};
constexpr size_t kBarCells{24};

Status SystemError(const std::string& path) {
  return Status::Error(ErrorCode::kIo, path + ": " + std::strerror(errno));
}

// "1:02:03" or "2:03".
std::string FormatSeconds(uint64_t seconds) {
  const auto two_digits = [](uint64_t n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  const std::string tail{two_digits(seconds % 60)};
  if (seconds < 3600) return std::to_string(seconds / 60) + ":" + tail;
  return std::to_string(seconds / 3600) + ":" + two_digits(seconds / 60 % 60) + ":" + tail;
}

uint64_t PerSecond(uint64_t count, int64_t micros) {
  return micros <= 0 ? 0
                     : static_cast<uint64_t>(static_cast<double>(count) * kMicrosPerSecond /
                                             static_cast<double>(micros));
}

}  // namespace

Result<ImportState> LoadState(const std::string& path) {
  ImportState state;
  std::ifstream file(path);
  if (!file) {
    if (access(path.c_str(), F_OK) == 0) return SystemError(path);
    return state;
  }
  std::stringstream text;
  text << file.rdbuf();
  const json object = json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  const Status bad = Status::Error(ErrorCode::kErr, path + ": is not the state file of an import");
  if (!object.is_object()) return bad;
  for (const char* name : {"offset", "line", "rows", "cells", "errors"}) {
    if (!object.contains(name) || !object[name].is_number_unsigned()) return bad;
  }
  for (const char* name : {"table", "fingerprint"}) {
    if (!object.contains(name) || !object[name].is_string()) return bad;
  }
  state.table = object["table"].get<std::string>();
  state.fingerprint = object["fingerprint"].get<std::string>();
  state.offset = object["offset"].get<uint64_t>();
  state.line = object["line"].get<uint64_t>();
  state.rows = object["rows"].get<uint64_t>();
  state.cells = object["cells"].get<uint64_t>();
  state.errors = object["errors"].get<uint64_t>();
  if (object.contains("cursor") && object["cursor"].is_string()) {
    state.cursor = object["cursor"].get<std::string>();
  }
  if (object.contains("timestamp") && object["timestamp"].is_number_integer()) {
    state.timestamp_micros = object["timestamp"].get<int64_t>();
  }
  return state;
}

Status SaveState(const std::string& path, const ImportState& state) {
  json object{{"table", state.table},   {"fingerprint", state.fingerprint},
              {"offset", state.offset}, {"line", state.line},
              {"rows", state.rows},     {"cells", state.cells},
              {"errors", state.errors}};
  if (!state.cursor.empty()) object["cursor"] = state.cursor;
  if (state.timestamp_micros != 0) object["timestamp"] = state.timestamp_micros;
  const std::string text{object.dump() + "\n"};
  const std::string beside{path + ".tmp"};
  const int descriptor{open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
  if (descriptor < 0) return SystemError(beside);
  const bool is_written{write(descriptor, text.data(), text.size()) ==
                            static_cast<ssize_t>(text.size()) &&
                        fsync(descriptor) == 0};
  const Status failure = is_written ? Status::Ok() : SystemError(beside);
  close(descriptor);
  RETURN_IF_ERROR(failure);
  if (rename(beside.c_str(), path.c_str()) != 0) return SystemError(path);
  return Status::Ok();
}

std::string Fingerprint(std::string_view bytes) {
  std::ostringstream text;
  text << std::hex << Hash64(bytes);
  return text.str();
}

Result<ErrorReport> ErrorReport::Open(const std::string& path, bool append) {
  ErrorReport report;
  report.path_ = path;
  if (path.empty()) return report;
  report.file_.reset(fopen(path.c_str(), append ? "ae" : "we"));
  if (report.file_ == nullptr) return SystemError(path);
  return report;
}

void ErrorReport::Add(uint64_t line, std::string_view error) {
  ++count_;
  std::string text{error.substr(0, kErrorBytesMax)};
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  if (file_ != nullptr) fprintf(file_.get(), "%" PRIu64 "\t%s\n", line, text.c_str());
  if (first_.size() < kErrorsShownMax) {
    first_.push_back(unit_ + " " + std::to_string(line) + ": " + text);
  }
}

std::string ErrorReport::Summary() const {
  std::string text;
  for (const std::string& error : first_) text += error + "\n";
  if (count_ > first_.size()) {
    text += "and " + GroupDigits(count_ - first_.size()) + " more";
    text += path_.empty() ? " (--errors FILE has all)\n" : " (all are in " + path_ + ")\n";
  }
  return text;
}

Status ErrorReport::Flush() {
  if (file_ == nullptr) return Status::Ok();
  if (fflush(file_.get()) != 0 || ferror(file_.get()) != 0) return SystemError(path_);
  return Status::Ok();
}

Progress::Progress(Style style, FILE* out, uint64_t bytes_total, ImportState begin,
                   int64_t now_micros)
    : style_(style),
      out_(out),
      bytes_total_(bytes_total),
      begin_(std::move(begin)),
      begin_micros_(now_micros),
      next_micros_(now_micros + (style == Style::kBar ? kBarMicros : kLineMicros)) {}

void Progress::Update(const ImportState& state, int64_t now_micros) {
  if (style_ == Style::kNone || now_micros < next_micros_) return;
  if (style_ == Style::kLines) {
    next_micros_ = now_micros + kLineMicros;
    fprintf(out_, "%s\n", Line(state, now_micros).c_str());
    return;
  }
  next_micros_ = now_micros + kBarMicros;
  winsize size{};
  const size_t columns{ioctl(fileno(out_), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col
                                                                                      : size_t{80}};
  fprintf(out_, "\r%s\x1b[K", Bar(state, now_micros, columns).c_str());
  fflush(out_);
}

void Progress::Finish(const ImportState& state, int64_t now_micros) {
  if (style_ != Style::kBar) return;
  next_micros_ = now_micros;
  Update(state, now_micros);
  fprintf(out_, "\n");
}

std::string Progress::Line(const ImportState& state, int64_t now_micros) const {
  const int64_t elapsed_micros{now_micros - begin_micros_};
  const uint64_t bytes_done{state.offset - std::min(state.offset, begin_.offset)};
  std::string text;
  if (bytes_total_ > 0) {
    const double done{static_cast<double>(state.offset) / static_cast<double>(bytes_total_)};
    text += std::to_string(static_cast<int>(done * 100)) + "%  ";
  }
  text += GroupDigits(state.rows) + " rows  ";
  text += GroupDigits(PerSecond(state.rows - begin_.rows, elapsed_micros)) + " rows/s";
  if (bytes_total_ >= state.offset && bytes_total_ > 0 && bytes_done > 0) {
    const double micros_left{static_cast<double>(elapsed_micros) *
                             static_cast<double>(bytes_total_ - state.offset) /
                             static_cast<double>(bytes_done)};
    text += "  " +
            FormatSeconds(static_cast<uint64_t>(std::llround(micros_left / kMicrosPerSecond))) +
            " left";
  }
  if (state.errors > 0) text += "  " + GroupDigits(state.errors) + " refused";
  return text;
}

std::string Progress::Bar(const ImportState& state, int64_t now_micros, size_t columns) const {
  std::string text;
  if (bytes_total_ > 0) {
    const size_t filled{std::min<size_t>(
        kBarCells,
        static_cast<size_t>(static_cast<double>(kBarCells) * static_cast<double>(state.offset) /
                            static_cast<double>(bytes_total_)))};
    text = "[" + std::string(filled, '#') + std::string(kBarCells - filled, '.') + "] ";
  }
  text += Line(state, now_micros);
  if (columns > 0 && text.size() >= columns) text.resize(columns - 1);
  return text;
}

std::string GroupDigits(uint64_t number) {
  std::string text{std::to_string(number)};
  for (size_t at{text.size()}; at > 3;) {
    at -= 3;
    text.insert(at, ",");
  }
  return text;
}

}  // namespace cellar::importer
