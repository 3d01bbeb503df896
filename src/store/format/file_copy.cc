// See file_copy.h.
#include "store/format/file_copy.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/object_store.h"

namespace cellar {
namespace {

// As much as is synced at once: more would hold up the syncs of the log.
constexpr uint64_t kPieceBytes{1 << 20};

Status WriteCopy(FileSystem& files, ReadableFile* source, const std::string& path, uint64_t bytes) {
  ASSIGN_OR_RETURN(auto file, files.Create(path));
  if (IsObjectPath(path)) RETURN_IF_ERROR(file->Allocate(0, bytes));
  std::string piece(static_cast<size_t>(std::min(bytes, kPieceBytes)), '\0');
  for (uint64_t offset = 0; offset < bytes;) {
    const auto wanted = static_cast<size_t>(std::min(bytes - offset, kPieceBytes));
    ASSIGN_OR_RETURN(const size_t n, source->ReadAt(offset, wanted, piece.data()));
    if (n < wanted) return Status::Error(ErrorCode::kIo, "the file has become shorter");
    RETURN_IF_ERROR(file->WriteAt(offset, std::string_view(piece).substr(0, n)));
    RETURN_IF_ERROR(file->Sync());
    file->DropCache(offset, n);
    offset += n;
  }
  return file->Close();
}

}  // namespace

Status LinkOrCopy(FileSystem& files, const std::string& from, const std::string& to,
                  uint64_t bytes) {
  ASSIGN_OR_RETURN(auto source, files.OpenForReading(from));
  ASSIGN_OR_RETURN(const uint64_t size, source->Size());
  if (size < bytes)
    return Status::Error(ErrorCode::kIo, from + " has " + std::to_string(size) + " bytes, not " +
                                             std::to_string(bytes));
  if (IsObjectPath(to)) return WriteCopy(files, source.get(), to, bytes);
  if (size == bytes && files.Link(from, to).ok()) return Status::Ok();
  const std::string temporary = to + ".tmp";
  ASSIGN_OR_RETURN(const bool is_left, files.Exists(temporary));
  if (is_left) RETURN_IF_ERROR(files.Remove(temporary));
  Status status = WriteCopy(files, source.get(), temporary, bytes);
  if (status.ok()) status = files.Rename(temporary, to);
  if (!status.ok()) (void)files.Remove(temporary);
  return status;
}

}  // namespace cellar
