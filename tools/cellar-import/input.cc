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
constexpr size_t kWindowBytesMax{Input::kRecordBytesMax + kReadBytesMin};
constexpr size_t kMagicBytesMax{6};
constexpr const char* kStandardInput{"standard input"};

Status SystemError(const std::string& path) {
  return Status::Error(ErrorCode::kIo, path + ": " + std::strerror(errno));
}

}  // namespace

Result<Input> Input::Open(const std::string& path) {
  Input input;
  input.path_ = path == "-" ? kStandardInput : path;
  input.descriptor_ = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (input.descriptor_ < 0) return SystemError(path);
  struct stat status {};
  if (fstat(input.descriptor_, &status) != 0) return SystemError(path);
  if (S_ISDIR(status.st_mode)) return Status::Error(ErrorCode::kIo, path + ": is a directory");
  if (S_ISREG(status.st_mode)) input.bytes_total_ = static_cast<uint64_t>(status.st_size);
  RETURN_IF_ERROR(input.Begin());
  return input;
}

Status Input::Begin() {
  while (packed_.size() < kMagicBytesMax) {
    ASSIGN_OR_RETURN(const bool more, ReadRaw(kReadBytesMin, &packed_));
    if (!more) break;
  }
  decompressor_ = Decompressor::For(packed_);
  if (decompressor_ != nullptr) {
    bytes_total_ = 0;
  } else {
    buffer_ = std::exchange(packed_, {});
  }
  return Status::Ok();
}

Input Input::FromText(std::string text, size_t chunk_bytes) {
  Input input;
  input.path_ = "text";
  input.bytes_total_ = text.size();
  input.chunk_bytes_ = std::max<size_t>(chunk_bytes, 1);
  input.text_ = std::move(text);
  return input;
}

Result<Input> Input::FromPacked(std::string bytes, size_t chunk_bytes) {
  Input input = FromText(std::move(bytes), chunk_bytes);
  RETURN_IF_ERROR(input.Begin());
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
      decompressor_(std::move(other.decompressor_)),
      packed_(std::move(other.packed_)),
      packed_at_(other.packed_at_),
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
    return Status::Error(ErrorCode::kTooLarge, path_ + ": a record of more than " +
                                                   std::to_string(kRecordBytesMax >> 20) +
                                                   " MiB; perhaps a quote that is never closed");
  }
  // A pipe gives little at a time.
  const size_t bytes_before{buffer_.size()};
  const size_t bytes_enough{bytes_before <= kReadBytesMin ? bytes_before + 1 : 2 * bytes_before};
  do {
    const size_t bytes_wanted{
        std::min(std::max(kReadBytesMin, bytes_before), kWindowBytesMax - buffer_.size())};
    ASSIGN_OR_RETURN(const bool more, decompressor_ != nullptr ? Unpack(bytes_wanted, &buffer_)
                                                               : ReadRaw(bytes_wanted, &buffer_));
    at_end_ = !more;
  } while (!at_end_ && buffer_.size() < std::min(bytes_enough, kWindowBytesMax));
  return buffer_.size() > bytes_before;
}

Result<bool> Input::ReadRaw(size_t bytes_max, std::string* out) {
  if (chunk_bytes_ > 0) {
    const size_t bytes{std::min(chunk_bytes_, text_.size())};
    out->append(text_, 0, bytes);
    text_.erase(0, bytes);
    return bytes > 0;
  }
  const size_t bytes_before{out->size()};
  out->resize(bytes_before + bytes_max);
  ssize_t bytes_read{0};
  do {
    bytes_read = read(descriptor_, out->data() + bytes_before, bytes_max);
  } while (bytes_read < 0 && errno == EINTR);
  out->resize(bytes_before + static_cast<size_t>(std::max<ssize_t>(bytes_read, 0)));
  if (bytes_read < 0) return SystemError(path_);
  return bytes_read > 0;
}

Result<bool> Input::Unpack(size_t bytes_max, std::string* out) {
  const size_t bytes_before{out->size()};
  while (true) {
    std::string_view packed{std::string_view(packed_).substr(packed_at_)};
    const Status decoded = decompressor_->Decode(&packed, bytes_max, out);
    packed_at_ = packed_.size() - packed.size();
    if (!decoded.ok()) return Status::Error(decoded.code(), path_ + ": " + decoded.text());
    if (out->size() > bytes_before) return true;
    if (!packed.empty()) continue;
    packed_.clear();
    packed_at_ = 0;
    ASSIGN_OR_RETURN(const bool more, ReadRaw(kReadBytesMin, &packed_));
    if (more) continue;
    if (decompressor_->is_whole()) return false;
    return Status::Error(ErrorCode::kErr,
                         path_ + ": is cut: its " + decompressor_->name() + " data has no end");
  }
}

Status Input::CheckIsText() const {
  CELLAR_ASSERT(offset_ == 0);
  struct Magic {
    std::string_view bytes;
    std::string_view format;
    std::string_view command;  // that unpacks it
  };
  constexpr Magic kMagics[] = {{{"\xfd"
                                 "7zXZ\0",
                                 6},
                                "xz",
                                "xz -dk"},
                               {"BZh", "bzip2", "bzip2 -dk"},
                               {"PK\x03\x04", "zip", "unzip"}};
  for (const Magic& magic : kMagics) {
    if (!View().starts_with(magic.bytes)) continue;
    // Not through a pipe, in which a file that is cut looks like a shorter one.
    return Status::Error(ErrorCode::kErr, path_ + " is compressed (" + std::string(magic.format) +
                                              "): unpack it first: " + std::string(magic.command) +
                                              " " + (path_ == kStandardInput ? "FILE" : path_));
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
  if (descriptor_ >= 0 && decompressor_ == nullptr && bytes_total_ > 0 &&
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
