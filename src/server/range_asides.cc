// See range_asides.h.
#include "server/range_asides.h"

#include <fmt/format.h>

#include <utility>

#include "base/os/log.h"
#include "commands/session/services.h"
#include "engine/table/row_split.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

constexpr size_t kPieceBytes{256 << 10};  // of rows, between looks at the clock

// Parts of the range that have about as many bytes each.
std::vector<Tablet> PartsOf(const Table& table, const Tablet& range, uint64_t part_bytes) {
  uint64_t bytes = 0;
  for (size_t group = 0; group < table.groups(); ++group)
    bytes += table.tree(group).payload_bytes();
  std::vector<Tablet> parts{range};
  for (const std::string& row : SplitRowKeys(table, bytes / part_bytes + 1)) {
    Tablet& last = parts.back();
    if (row <= last.begin || !last.Contains(row)) continue;
    parts.push_back({row, last.end, range.epoch});
    parts[parts.size() - 2].end = row;
  }
  return parts;
}

}  // namespace

void RangeAsides::Begin(const std::vector<Settlement::Aside>& ranges) {
  Stop();
  for (const auto& [table_id, range] : ranges) {
    const Table* const table = host_.store().TableById(table_id);
    if (table == nullptr) continue;
    for (Tablet& part : PartsOf(*table, range, kFileBytes))
      ranges_.push_back({table_id, std::move(part)});
  }
}

void RangeAsides::DropFile() {
  if (file_ != nullptr) file_->Cancel();
  if (writes_) host_.services().readers.Abandon(std::move(file_));
  file_.reset();
  writes_ = false;
}

void RangeAsides::Stop() {
  DropFile();
  ranges_.clear();
  why_.clear();
  retry_micros_ = 0;
}

Result<std::string> RangeAsides::FreeName(const std::string& name) const {
  constexpr std::string_view kEnd{".snapshot"};
  std::string free = name;
  for (int number = 2;; ++number) {
    ASSIGN_OR_RETURN(const bool is_there,
                     FileSystem::Posix().Exists(JoinPath(host_.services().config.dir, free)));
    if (!is_there) return free;
    free = fmt::format("{}-{}{}", name.substr(0, name.size() - kEnd.size()), number, kEnd);
  }
}

bool RangeAsides::Step() {
  const int64_t now = host_.clock().MonotonicMicros();
  if (now < retry_micros_) return true;
  while (!ranges_.empty()) {
    const Result<bool> goes_on = StepFile();
    if (!goes_on.ok()) {
      DropFile();
      retry_micros_ = now + kRetryMicros;
      if (std::exchange(why_, goes_on.status().text()) != goes_on.status().text()) {
        Log(LogSeverity::kWarning,
            "Rows that are others' by now cannot be set aside, which is tried again: " + why_);
      }
      return true;
    }
    if (!*goes_on) {
      DropFile();
      ranges_.pop_front();
    }
    if (writes_ || host_.clock().MonotonicMicros() - now >= kStepMicros) return true;
  }
  return false;
}

// False: this one is written, or there is nothing in it.
Result<bool> RangeAsides::StepFile() {
  Store& store = host_.store();
  Services& services = host_.services();
  const auto& [table_id, range] = ranges_.front();
  if (writes_) {
    if (!file_->done()) return true;
    writes_ = false;
    RETURN_IF_ERROR(file_->status());
    Log(LogSeverity::kWarning,
        fmt::format("{} cells that are others' by now are set aside in {}", file_->cells(), name_));
    return false;
  }
  if (file_ == nullptr) {
    Table* const table = store.TableById(table_id);
    if (table == nullptr) return false;
    ASSIGN_OR_RETURN(name_, FreeName(RangeFileName(table->keyspace(), table->name(),
                                                   TabletBoundText(*table, range.begin))));
    const int64_t now = host_.clock().WallMicros();
    file_ = std::make_unique<RangeFile>(FileSystem::Posix(),
                                        SnapshotTask{.directory = services.config.dir,
                                                     .number = 1,
                                                     .lsn = {1, 1},
                                                     .created_micros = static_cast<uint64_t>(now),
                                                     .commit_micros = now,
                                                     .members = {},
                                                     .salvaged_from = {},
                                                     .name = name_},
                                        *table, range);
  }
  ASSIGN_OR_RETURN(const bool more, file_->Copy(kPieceBytes));
  if (more) return true;
  if (file_->cells() == 0) return false;
  writes_ = true;
  services.readers.Start(file_.get(), 1);
  return true;
}

}  // namespace cellar
