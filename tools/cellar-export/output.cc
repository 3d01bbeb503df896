// See output.h.
#include "cellar-export/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace cellar::exporter {
namespace {

Status Failed(const std::string& path, const char* call) {
  return Status::Error(ErrorCode::kIo, path + ": " + call + ": " + strerror(errno));
}

}  // namespace

Result<std::unique_ptr<Output>> Output::Open(const std::string& path, bool compress,
                                             uint64_t bytes_kept) {
  std::unique_ptr<Output> output(new Output());
  output->path_ = path == "-" ? "standard output" : path;
  output->bytes_ = bytes_kept;
  if (compress) output->context_.reset(ZSTD_createCCtx());
  if (path == "-") {
    output->descriptor_ = STDOUT_FILENO;
    return output;
  }
  output->descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (output->descriptor_ < 0) return Failed(path, "open");
  struct stat info {};
  if (fstat(output->descriptor_, &info) != 0) return Failed(path, "fstat");
  output->is_file_ = S_ISREG(info.st_mode);
  if (!output->is_file_) return output;
  if (std::cmp_less(info.st_size, bytes_kept)) {
    return Status::Error(ErrorCode::kErr,
                         path +
                             ": is shorter than the export's state says; remove the state to "
                             "start over");
  }
  if (ftruncate(output->descriptor_, static_cast<off_t>(bytes_kept)) != 0) {
    return Failed(path, "ftruncate");
  }
  if (lseek(output->descriptor_, 0, SEEK_END) < 0) return Failed(path, "lseek");
  return output;
}

Output::~Output() {
  if (descriptor_ > STDERR_FILENO) close(descriptor_);
}

Status Output::WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return Failed(path_, "write");
    }
    bytes.remove_prefix(static_cast<size_t>(written));
    bytes_ += static_cast<uint64_t>(written);
  }
  return Status::Ok();
}

Status Output::Compress(ZSTD_EndDirective end) {
  if (buffer_.empty() && !in_frame_) return Status::Ok();
  in_frame_ = end != ZSTD_e_end;
  ZSTD_inBuffer in{buffer_.data(), buffer_.size(), 0};
  compressed_.resize(ZSTD_CStreamOutSize());
  while (true) {
    ZSTD_outBuffer out{compressed_.data(), compressed_.size(), 0};
    const size_t left = ZSTD_compressStream2(context_.get(), &out, &in, end);
    if (ZSTD_isError(left) != 0) {
      return Status::Error(ErrorCode::kErr, std::string("zstd: ") + ZSTD_getErrorName(left));
    }
    RETURN_IF_ERROR(WriteAll({compressed_.data(), out.pos}));
    if (end == ZSTD_e_continue ? in.pos == in.size : left == 0) break;
  }
  buffer_.clear();
  return Status::Ok();
}

Status Output::Write() {
  if (context_ != nullptr) return Compress(ZSTD_e_continue);
  RETURN_IF_ERROR(WriteAll(buffer_));
  buffer_.clear();
  return Status::Ok();
}

Status Output::Mark(uint64_t* bytes) {
  RETURN_IF_ERROR(context_ != nullptr ? Compress(ZSTD_e_end) : Write());
  *bytes = bytes_;
  return Status::Ok();
}

Status Output::Keep(uint64_t* bytes) {
  RETURN_IF_ERROR(Mark(bytes));
  if (is_file_ && fsync(descriptor_) != 0) return Failed(path_, "fsync");
  return Status::Ok();
}

Status Output::Finish(uint64_t* bytes) {
  if (context_ != nullptr && bytes_ == 0) in_frame_ = true;  // a frame of nothing, not no frame
  return Keep(bytes);
}

}  // namespace cellar::exporter
