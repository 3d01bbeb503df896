// See avro_bytes.h.
#include "cellar-import/avro_bytes.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar::importer {
namespace {

constexpr size_t kInflatedBytes{64 << 10};
constexpr int kRawDeflate{-15};
constexpr int kLongBytesMax{10};

}  // namespace

AvroBytes::~AvroBytes() {
  if (has_stream_) (void)inflateEnd(&stream_);
}

Status AvroBytes::Error(const std::string& text) const {
  std::string where = "byte " + std::to_string(input_->offset());
  if (in_block_ && deflated_) {
    where = "byte " + std::to_string(inflated_bytes_) + " of the block at byte " +
            std::to_string(block_offset_);
  }
  return Status::Error(ErrorCode::kErr, path_ + ": " + where + ": " + text);
}

Result<bool> AvroBytes::AtEnd() {
  CELLAR_ASSERT(!in_block_);
  if (!input_->View().empty()) return false;
  ASSIGN_OR_RETURN(const bool more, input_->Fill());
  return !more;
}

Status AvroBytes::BeginBlock(uint64_t bytes, bool deflated) {
  CELLAR_ASSERT(!in_block_);
  in_block_ = true;
  deflated_ = deflated;
  block_offset_ = input_->offset();
  block_left_ = bytes;
  inflated_.clear();
  inflated_at_ = 0;
  inflated_bytes_ = 0;
  stream_ended_ = false;
  if (!deflated) return Status::Ok();
  const int status = has_stream_ ? inflateReset(&stream_) : inflateInit2(&stream_, kRawDeflate);
  CELLAR_ASSERT(status == Z_OK);  // else there is no memory
  has_stream_ = true;
  return Status::Ok();
}

Status AvroBytes::EndBlock() {
  CELLAR_ASSERT(in_block_);
  if (deflated_ && Window().empty() && !stream_ended_) RETURN_IF_ERROR(Inflate());
  if (deflated_ && Window().empty()) {
    // Some writers leave a part of zlib's checksum behind what they deflate.
    deflated_ = false;
    RETURN_IF_ERROR(Skip(block_left_));
  }
  if (!Window().empty() || block_left_ > 0) {
    return Error("the block holds more than its records");
  }
  in_block_ = false;
  return Status::Ok();
}

std::string_view AvroBytes::Window() const {
  if (in_block_ && deflated_) return std::string_view(inflated_).substr(inflated_at_);
  const std::string_view view = input_->View();
  return in_block_ ? view.substr(0, block_left_) : view;
}

void AvroBytes::Take(size_t bytes) {
  if (in_block_ && deflated_) {
    inflated_at_ += bytes;
    inflated_bytes_ += bytes;
    return;
  }
  input_->Consume(bytes);
  if (in_block_) block_left_ -= bytes;
}

Status AvroBytes::Refill() {
  if (in_block_ && deflated_) {
    if (!stream_ended_) RETURN_IF_ERROR(Inflate());
    return Window().empty() ? Error("the block ends inside a record") : Status::Ok();
  }
  if (in_block_ && block_left_ == 0) return Error("the block ends inside a record");
  ASSIGN_OR_RETURN(const bool more, input_->Fill());
  return more ? Status::Ok() : Error("the file ends here, but more must follow");
}

// Until there is a byte, or the stream has ended. REQUIRES: Window() is empty.
Status AvroBytes::Inflate() {
  inflated_.resize(kInflatedBytes);
  inflated_at_ = 0;
  size_t filled{0};
  while (filled == 0 && !stream_ended_) {
    if (block_left_ > 0 && input_->View().empty()) {
      ASSIGN_OR_RETURN(const bool more, input_->Fill());
      if (!more) {
        inflated_.clear();
        return Error("the file ends inside this block");
      }
    }
    const std::string_view view = input_->View().substr(0, block_left_);
    const size_t given = std::min<size_t>(view.size(), 1 << 30);
    // zlib does not write there.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(view.data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(inflated_.data());
    stream_.avail_out = static_cast<uInt>(inflated_.size());
    const int status = inflate(&stream_, Z_NO_FLUSH);
    const size_t used = given - stream_.avail_in;
    filled = inflated_.size() - stream_.avail_out;
    input_->Consume(used);
    block_left_ -= used;
    stream_ended_ = status == Z_STREAM_END;
    const bool is_stuck = used == 0 && filled == 0 && !stream_ended_;
    if (is_stuck || (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)) {
      inflated_.clear();
      return Error("the block is not what deflate writes");
    }
  }
  inflated_.resize(filled);
  return Status::Ok();
}

Result<int64_t> AvroBytes::ReadLong() {
  uint64_t bits{0};
  for (int i{0}; i < kLongBytesMax; ++i) {
    if (Window().empty()) RETURN_IF_ERROR(Refill());
    const auto byte = static_cast<uint8_t>(Window().front());
    // Of the tenth only one bit is left.
    if (i == kLongBytesMax - 1 && byte > 1) break;
    Take(1);
    bits |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) return static_cast<int64_t>(bits >> 1 ^ (~(bits & 1) + 1));
  }
  return Error("a number of more than 64 bits");
}

Status AvroBytes::Read(uint64_t bytes, std::string* out) {
  while (bytes > 0) {
    if (Window().empty()) RETURN_IF_ERROR(Refill());
    const std::string_view piece = Window().substr(0, bytes);
    out->append(piece);
    Take(piece.size());
    bytes -= piece.size();
  }
  return Status::Ok();
}

Status AvroBytes::Skip(uint64_t bytes) {
  while (bytes > 0) {
    if (Window().empty()) RETURN_IF_ERROR(Refill());
    const size_t piece = Window().substr(0, bytes).size();
    Take(piece);
    bytes -= piece;
  }
  return Status::Ok();
}

}  // namespace cellar::importer
