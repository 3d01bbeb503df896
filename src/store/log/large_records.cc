// See large_records.h.
#include "store/log/large_records.h"

#include <algorithm>

#include "base/assert.h"
#include "store/format/manifest.h"

namespace cellar {
namespace {

// Who has asked for a record comes back for it in the next turn, or never.
constexpr uint32_t kPassedOverMax{64};

}  // namespace

LargeRecords::Held* LargeRecords::Find(uint64_t segment, uint64_t offset, size_t bytes) {
  const auto found = std::find_if(held_.begin(), held_.end(), [&](const auto& held) {
    return held->segment == segment && held->offset == offset && held->size == bytes;
  });
  return found == held_.end() ? nullptr : found->get();
}

void LargeRecords::Drop(const Held* held) {
  if (held == loading_) loading_ = nullptr;
  std::erase_if(held_, [held](const auto& each) { return each.get() == held; });
}

void LargeRecords::DropUnused() {
  std::erase_if(held_, [this](const auto& held) {
    if (held.get() == loading_ || held->pins > 0) return false;
    return held->taken || ++held->passed_over > kPassedOverMax;
  });
}

Result<bool> LargeRecords::Load(Held* held) {
  const size_t wanted = std::min(kSliceBytes, held->size - held->loaded);
  ASSIGN_OR_RETURN(const size_t got, held->file->ReadAt(held->offset + held->loaded, wanted,
                                                        held->bytes.get() + held->loaded));
  const Status none = Status::Error(ErrorCode::kCorruption, "no record");
  if (got != wanted) return none;
  held->loaded += got;
  if (held->loaded < held->size) return false;
  held->file.reset();
  if (!ReadRecordAlone({held->bytes.get(), held->size}, 0, LogPosition{}, &held->record))
    return none;
  return true;
}

Result<LargeRecords::Found> LargeRecords::Get(uint64_t segment, uint64_t offset, size_t bytes,
                                              LogRecord* record) {
  CELLAR_ASSERT(bytes >= kBytesMin);
  Held* held = Find(segment, offset, bytes);
  if (held == nullptr && loading_ == nullptr) {
    DropUnused();
    size_t pinned = 0;
    for (const auto& each : held_) pinned += each->size;
    if (pinned > 0 && pinned + bytes > kPinnedBytesMax) {
      wants_room_ = true;
      return Found::kLater;
    }
    const std::string path = JoinPath(directory_, FormatFileName(StoreFileKind::kSegment, segment));
    auto made = std::make_unique<Held>();
    ASSIGN_OR_RETURN(made->file, files_.OpenForReading(path));
    made->segment = segment;
    made->offset = offset;
    made->size = bytes;
    made->bytes = std::make_unique_for_overwrite<char[]>(bytes);
    held = loading_ = made.get();
    held_.push_back(std::move(made));
  }
  if (loading_ != nullptr) {
    Held* const at = loading_;
    const Result<bool> whole = Load(at);
    if (!whole.ok()) {
      Drop(at);
      if (at != held) return Found::kLater;
      if (whole.status().code() != ErrorCode::kCorruption) return whole.status();
      return Found::kNone;
    }
    if (*whole) loading_ = nullptr;
    if (at == held ? !*whole : held == nullptr) return Found::kLater;
  }
  held->taken = true;
  held->passed_over = 0;
  *record = held->record;
  return Found::kRecord;
}

void LargeRecords::Pin(std::string_view payload) {
  for (const auto& held : held_) {
    if (held->record.payload.data() == payload.data()) ++held->pins;
  }
}

void LargeRecords::Unpin(std::string_view payload) {
  for (const auto& held : held_) {
    if (held->record.payload.data() != payload.data()) continue;
    CELLAR_ASSERT(held->pins > 0);
    --held->pins;
  }
}

size_t LargeRecords::memory_bytes() const {
  size_t bytes = 0;
  for (const auto& held : held_) bytes += held->size;
  return bytes;
}

}  // namespace cellar
