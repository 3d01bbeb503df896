// The loop's own writes to the log: see tail_writer.h.
#include "store/journal/tail_writer.h"

#include <utility>

#include "base/assert.h"

namespace cellar {

void TailWriter::Open(WritableFile* file, uint64_t offset) {
  CELLAR_ASSERT(file != nullptr);
  CELLAR_ASSERT(!is_open());
  CELLAR_ASSERT(error_.ok());
  main_ = {file, offset};
}

void TailWriter::Close() {
  main_ = {};
  mirror_ = {};
}

void TailWriter::OpenMirror(WritableFile* file, uint64_t offset) {
  CELLAR_ASSERT(is_open());
  CELLAR_ASSERT(file != nullptr);
  CELLAR_ASSERT(file != main_.file);
  mirror_ = {file, offset};
}

void TailWriter::MoveToMirror() {
  CELLAR_ASSERT(is_open() || mirror_.file == nullptr);
  main_ = std::exchange(mirror_, {});
}

bool TailWriter::Write(std::string_view bytes) {
  CELLAR_ASSERT(!bytes.empty());
  if (!is_open() || bytes.size() > kTailWriteBytesMax) {
    Close();
    return false;
  }
  const int64_t begin = clock_.MonotonicMicros();
  Status status = WriteTo(&main_, bytes);
  if (status.ok() && mirror_.file != nullptr) status = WriteTo(&mirror_, bytes);
  if (!status.ok()) {
    error_ = std::move(status);
    Close();
    return false;
  }
  const int64_t end = clock_.MonotonicMicros();
  if (end - begin >= slow_micros_) {
    closed_until_micros_ = end + kSlowPauseMicros;
    Close();
  }
  return true;
}

Status TailWriter::TakeError() { return std::exchange(error_, Status::Ok()); }

Status TailWriter::WriteTo(Place* place, std::string_view bytes) {
  RETURN_IF_ERROR(place->file->WriteAt(place->offset, bytes));
  place->offset += bytes.size();
  return Status::Ok();
}

}  // namespace cellar
