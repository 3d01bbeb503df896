// See pipeline.h.
#include "cellar-import/pipeline.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "cellar/clock.h"
#include "client/command_words.h"

namespace cellar::importer {
namespace {

constexpr useconds_t kReconnectPauseMicros{100'000};
constexpr int64_t kMicrosPerSecond{1'000'000};
constexpr size_t kSpareBytesMax{4096};  // of one unit that is kept for its memory

// Errors that the next row would meet too.
bool IsFatal(std::string_view error) {
  constexpr std::array<std::string_view, 11> kCodes{
      "NOAUTH",  "NOPERM",   "NOTABLE",   "NOKEYSPACE",          "LOADING",  "OOM",
      "MISCONF", "READONLY", "EXECABORT", "ERR unknown command", "WRONGPASS"};
  return std::any_of(kCodes.begin(), kCodes.end(),
                     [error](std::string_view code) { return error.starts_with(code); });
}

Status Fatal(std::string_view error) {
  std::string text = "the server refuses more commands: " + std::string(error);
  if (error.starts_with("NOTABLE")) text += "; --create-table creates it";
  return Status::Error(ErrorCode::kErr, std::move(text));
}

}  // namespace

Pipeline::Pipeline(PipelineOptions options, client::ConnectionOptions connection_options,
                   client::Connection* connection, Listener* listener)
    : options_(std::move(options)),
      connection_options_(std::move(connection_options)),
      connection_(connection),
      listener_(listener) {
  CELLAR_ASSERT(options_.units_max > 0);
  CELLAR_ASSERT(options_.rows_per_batch > 0);
}

Status Pipeline::Add(const Row& row, const RowRef& ref) {
  if (options_.create_families) {
    for (const Cell& cell : row.cells) {
      if (known_families_.contains(cell.FamilyName())) continue;
      RETURN_IF_ERROR(CloseBatch());
      known_families_.insert(cell.FamilyName());
      Unit unit;
      std::vector<std::string_view> words{"FAMILY", "ADD", options_.command.table,
                                          cell.FamilyName()};
      if (const auto found = options_.family_options.find(cell.FamilyName());
          found != options_.family_options.end()) {
        words.insert(words.end(), found->second.begin(), found->second.end());
      }
      client::AppendCommand(words, &unit.bytes);
      unit.replies_expected = 1;
      unit.is_family = true;
      RETURN_IF_ERROR(Push(std::move(unit)));
    }
  }
  if (options_.rows_per_batch > 1 && batch_.rows.empty())
    client::AppendCommand({"MULTI"}, &batch_.bytes);
  UnitRow entry{ref, 0, {}};
  entry.commands = AppendRow(options_.command, row, &batch_.bytes);
  batch_.replies_expected += entry.commands;
  batch_.rows.push_back(std::move(entry));
  if (batch_.rows.size() >= options_.rows_per_batch ||
      batch_.bytes.size() >= options_.bytes_max / 4) {
    return CloseBatch();
  }
  return Status::Ok();
}

Status Pipeline::AddRefused(const RowRef& ref, std::string error) {
  RETURN_IF_ERROR(CloseBatch());
  Unit unit;
  unit.rows.push_back({ref, 0, std::move(error)});
  return Push(std::move(unit));
}

Status Pipeline::Flush() {
  RETURN_IF_ERROR(CloseBatch());
  return DrainTo(0, 0);
}

Pipeline::Unit Pipeline::NewUnit() {
  if (spare_.empty()) return {};
  Unit unit = std::move(spare_.back());
  spare_.pop_back();
  unit.bytes.clear();
  unit.rows.clear();
  unit.replies_expected = 0;
  unit.replies_seen = 0;
  unit.is_batch = false;
  unit.is_family = false;
  return unit;
}

Status Pipeline::CloseBatch() {
  if (batch_.rows.empty()) return Status::Ok();
  if (options_.rows_per_batch > 1) {
    client::AppendCommand({"EXEC"}, &batch_.bytes);
    batch_.replies_expected += 2;
    batch_.is_batch = true;
  }
  return Push(std::exchange(batch_, NewUnit()));
}

Status Pipeline::Push(Unit unit) {
  if (in_flight_.size() >= options_.units_max || in_flight_bytes_ >= options_.bytes_max) {
    RETURN_IF_ERROR(DrainTo(options_.units_max / 2, options_.bytes_max / 2));
  }
  in_flight_bytes_ += unit.bytes.size();
  in_flight_.push_back(std::move(unit));
  const std::string& bytes = in_flight_.back().bytes;
  if (bytes.empty()) {
    Finish();
    return Status::Ok();
  }
  unsent_ += bytes;
  return Status::Ok();
}

Result<client::Reply> Pipeline::Read() {
  if (!unsent_.empty()) {
    RETURN_IF_ERROR(connection_->Send(unsent_));
    unsent_.clear();
  }
  return connection_->Read();
}

Status Pipeline::DrainTo(size_t units, size_t bytes) {
  while (in_flight_.size() > units || in_flight_bytes_ > bytes) {
    Finish();
    if (in_flight_.empty()) break;
    Result<client::Reply> reply = Read();
    if (!reply.ok()) {
      RETURN_IF_ERROR(Reconnect(reply.status()));
      continue;
    }
    RETURN_IF_ERROR(Take(**reply));
  }
  return Status::Ok();
}

Status Pipeline::Take(const redisReply& reply) {
  CELLAR_ASSERT(!in_flight_.empty());
  Unit& unit = in_flight_.front();
  const std::string_view error{client::ErrorText(reply)};
  ++unit.replies_seen;
  CELLAR_ASSERT(unit.replies_seen <= unit.replies_expected);
  if (unit.is_family) {
    if (!error.empty() && !error.starts_with("BUSYKEY")) return Fatal(error);
  } else if (unit.is_batch) {
    if (!error.empty()) return Fatal(error);
    if (unit.replies_seen == unit.replies_expected) RETURN_IF_ERROR(TakeExec(reply, &unit));
  } else if (!error.empty()) {
    if (IsFatal(error)) return Fatal(error);
    if (unit.rows.front().error.empty()) unit.rows.front().error = error;
  }
  Finish();
  return Status::Ok();
}

Status Pipeline::TakeExec(const redisReply& reply, Unit* unit) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements + 2 != unit->replies_expected) {
    return Fatal("EXEC was not answered by the results of the commands");
  }
  size_t element{0};
  for (UnitRow& row : unit->rows) {
    for (uint32_t command{0}; command < row.commands; ++command) {
      const std::string_view error{client::ErrorText(*reply.element[element++])};
      if (error.empty()) continue;
      if (IsFatal(error)) return Fatal(error);
      if (row.error.empty()) row.error = error;
    }
  }
  return Status::Ok();
}

// Tells of the units at the front that are complete.
void Pipeline::Finish() {
  while (!in_flight_.empty() &&
         in_flight_.front().replies_seen == in_flight_.front().replies_expected) {
    Unit& done = in_flight_.front();
    for (const UnitRow& row : done.rows) listener_->OnRow(row.ref, row.error);
    CELLAR_ASSERT(in_flight_bytes_ >= done.bytes.size());
    in_flight_bytes_ -= done.bytes.size();
    const bool is_small =
        done.bytes.capacity() + done.rows.capacity() * sizeof(UnitRow) <= kSpareBytesMax;
    if (is_small && spare_.size() < options_.units_max) spare_.push_back(std::move(done));
    in_flight_.pop_front();
  }
}

Status Pipeline::Reconnect(const Status& cause) {
  if (options_.reconnect_seconds == 0) return cause;
  const int64_t deadline_micros{Clock::System().MonotonicMicros() +
                                options_.reconnect_seconds * kMicrosPerSecond};
  while (true) {
    Result<client::Connection> opened = client::Connection::Open(connection_options_);
    if (opened.ok()) {
      *connection_ = *std::move(opened);
      break;
    }
    if (Clock::System().MonotonicMicros() > deadline_micros) return opened.status();
    usleep(kReconnectPauseMicros);
  }
  unsent_.clear();
  for (Unit& unit : in_flight_) {
    if (unit.bytes.empty()) continue;
    unit.replies_seen = 0;
    for (UnitRow& row : unit.rows) row.error.clear();
    unsent_ += unit.bytes;
  }
  return Status::Ok();
}

}  // namespace cellar::importer
