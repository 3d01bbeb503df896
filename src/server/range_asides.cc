// See range_asides.h.
#include "server/range_asides.h"

#include <fmt/format.h>

#include <utility>

#include "base/os/log.h"
#include "commands/session/services.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

constexpr size_t kStepBytes{2 << 20};  // of rows, in a turn

}  // namespace

void RangeAsides::Begin(const std::vector<Settlement::Aside>& ranges) {
  Stop();
  ranges_.assign(ranges.begin(), ranges.end());
}

void RangeAsides::Stop() {
  ranges_.clear();
  if (file_ != nullptr && writes_) host_.services().readers.Abandon(std::move(file_));
  file_.reset();
  writes_ = false;
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

Result<bool> RangeAsides::Step() {
  while (!ranges_.empty()) {
    ASSIGN_OR_RETURN(const bool goes_on, StepFile());
    if (goes_on) return true;
    file_.reset();
    writes_ = false;
    ranges_.pop_front();
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
    file_ = std::make_unique<RangeFile>(
        FileSystem::Posix(),
        SnapshotTask{.directory = services.config.dir,
                     .number = 1,
                     .lsn = {1, 1},
                     .created_micros = static_cast<uint64_t>(host_.clock().WallMicros()),
                     .commit_micros = host_.clock().WallMicros(),
                     .members = {},
                     .salvaged_from = {},
                     .name = name_},
        *table, range);
  }
  ASSIGN_OR_RETURN(const bool more, file_->Copy(kStepBytes));
  if (more) return true;
  if (file_->cells() == 0) return false;
  writes_ = true;
  services.readers.Start(file_.get(), 1);
  return true;
}

}  // namespace cellar
