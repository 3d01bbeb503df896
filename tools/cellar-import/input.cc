// See input.h.
#include "cellar-import/input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.h"

namespace cellar::importer {
namespace {

constexpr size_t kReadBytesMin{256 * 1024};
// A record that is longer is no record: most likely a quote that is never closed.
constexpr size_t kWindowBytesMax{1024 * 1024 * 1024};

Status SystemError(const std::string& path) {
  return Status::Error(ErrorCode::kIo, path + ": " + std::strerror(errno));
}

}  // namespace

Result<Input> Input::Open(const std::string& path) {
  Input input;
  input.path_ = path;
  input.descriptor_ = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (input.descriptor_ < 0) return SystemError(path);
  struct stat status {};
  if (fstat(input.descriptor_, &status) != 0) return SystemError(path);
  if (S_ISDIR(status.st_mode)) return Status::Error(ErrorCode::kIo, path + ": is a directory");
  if (S_ISREG(status.st_mode)) input.bytes_total_ = static_cast<uint64_t>(status.st_size);
  return input;
}

Input Input::FromText(std::string text, size_t chunk_bytes) {
  Input input;
  input.path_ = "text";
  input.bytes_total_ = text.size();
  input.chunk_bytes_ = std::max<size_t>(chunk_bytes, 1);
  input.text_ = std::move(text);
  return input;
}

Input::Input(Input&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)),
      begin_(other.begin_),
      offset_(other.offset_),
      bytes_total_(other.bytes_total_),
      at_end_(other.at_end_),
      text_(std::move(other.text_)),
      chunk_bytes_(other.chunk_bytes_) {}

Input::~Input() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<bool> Input::Fill() {
  if (at_end_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  if (buffer_.size() >= kWindowBytesMax) {
    return Status::Error(ErrorCode::kTooLarge, path_ + ": a record of more than 1 GiB");
  }
  if (chunk_bytes_ > 0) {
    const size_t bytes{std::min(chunk_bytes_, text_.size())};
    buffer_.append(text_, 0, bytes);
    text_.erase(0, bytes);
    at_end_ = bytes == 0;
    return !at_end_;
  }
  const size_t bytes_used{buffer_.size()};
  const size_t bytes_wanted{std::max(kReadBytesMin, bytes_used)};
  buffer_.resize(bytes_used + bytes_wanted);
  ssize_t bytes_read{0};
  do {
    bytes_read = read(descriptor_, buffer_.data() + bytes_used, bytes_wanted);
  } while (bytes_read < 0 && errno == EINTR);
  buffer_.resize(bytes_used + static_cast<size_t>(std::max<ssize_t>(bytes_read, 0)));
  if (bytes_read < 0) return SystemError(path_);
  at_end_ = bytes_read == 0;
  return !at_end_;
}

Status Input::CheckIsText() const {
  CELLAR_ASSERT(offset_ == 0);
  struct Magic {
    std::string_view bytes;
    std::string_view format;
    std::string_view program;  // that writes the text to its output
  };
  constexpr Magic kMagics[] = {{"\x1f\x8b", "gzip", "zcat"},
                               {"\x28\xb5\x2f\xfd", "zstd", "zstdcat"},
                               {{"\xfd"
                                 "7zXZ\0",
                                 6},
                                "xz",
                                "xzcat"},
                               {"BZh", "bzip2", "bzcat"},
                               {"PK\x03\x04", "zip", "unzip -p"}};
  for (const Magic& magic : kMagics) {
    if (!View().starts_with(magic.bytes)) continue;
    const std::string name = path_ == "-" ? "the input" : path_;
    return Status::Error(ErrorCode::kErr, name + " is compressed (" + std::string(magic.format) +
                                              "): " + std::string(magic.program) + " " +
                                              (path_ == "-" ? "FILE" : path_) +
                                              " | cellar-import TABLE - ...");
  }
  return Status::Ok();
}

void Input::Consume(size_t bytes) {
  CELLAR_ASSERT(bytes <= buffer_.size() - begin_);
  begin_ += bytes;
  offset_ += bytes;
}

Status Input::SkipTo(uint64_t offset) {
  CELLAR_ASSERT(offset >= offset_);
  if (bytes_total_ > 0 && offset > bytes_total_) {
    return Status::Error(ErrorCode::kErr, path_ + ": is shorter than it was");
  }
  const uint64_t in_window{std::min<uint64_t>(View().size(), offset - offset_)};
  Consume(in_window);
  if (offset_ == offset) return Status::Ok();
  if (descriptor_ >= 0 && bytes_total_ > 0 &&
      lseek(descriptor_, static_cast<off_t>(offset), SEEK_SET) >= 0) {
    buffer_.clear();
    begin_ = 0;
    offset_ = offset;
    return Status::Ok();
  }
  while (offset_ < offset) {
    ASSIGN_OR_RETURN(const bool more, Fill());
    if (!more) return Status::Error(ErrorCode::kErr, path_ + ": is shorter than it was");
    Consume(std::min<uint64_t>(View().size(), offset - offset_));
  }
  return Status::Ok();
}

}  // namespace cellar::importer
