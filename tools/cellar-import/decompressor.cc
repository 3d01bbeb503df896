// See decompressor.h.
#include "cellar-import/decompressor.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace cellar::importer {
namespace {

constexpr std::string_view kGzipMagic{"\x1f\x8b"};
constexpr std::string_view kZstdMagic{"\x28\xb5\x2f\xfd"};
constexpr int kGzipWindow{15 + 16};   // zlib: with gzip's head and checksum
constexpr int kZstdWindowLogMax{27};  // 128 MiB of memory, what zstd itself takes without --long
constexpr size_t kPieceBytesMax{1 << 30};  // zlib counts in 32 bits

Status Damaged(const std::string& format, const std::string& what) {
  return Status::Error(ErrorCode::kErr, "its " + format + " data is damaged: " + what);
}

class Gunzip final : public Decompressor {
 public:
  Gunzip() {
    const int status = inflateInit2(&stream_, kGzipWindow);
    CELLAR_ASSERT(status == Z_OK);  // else there is no memory
  }
  ~Gunzip() override { (void)inflateEnd(&stream_); }
  Gunzip(const Gunzip&) = delete;
  Gunzip& operator=(const Gunzip&) = delete;

  Status Decode(std::string_view* packed, size_t bytes_max, std::string* out) override {
    if (member_ended_) RETURN_IF_ERROR(BeginMember(packed));
    if (member_ended_) return Status::Ok();
    const size_t before = out->size();
    const size_t given = std::min(packed->size(), kPieceBytesMax);
    const size_t room = std::min(bytes_max, kPieceBytesMax);
    out->resize(before + room);
    // zlib does not write there.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed->data()));
    stream_.avail_in = static_cast<uInt>(given);
    stream_.next_out = reinterpret_cast<Bytef*>(out->data() + before);
    stream_.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    out->resize(before + room - stream_.avail_out);
    packed->remove_prefix(given - stream_.avail_in);
    member_ended_ = status == Z_STREAM_END;
    if (status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR) return Status::Ok();
    return Damaged(name(), stream_.msg != nullptr ? stream_.msg : "it cannot be unpacked");
  }

  bool is_whole() const override { return member_ended_; }
  const char* name() const override { return "gzip"; }

 private:
  // Zeros behind a member fill a tape's block; anything else must be another member.
  Status BeginMember(std::string_view* packed) {
    packed->remove_prefix(std::min(packed->find_first_not_of('\0'), packed->size()));
    if (packed->empty()) return Status::Ok();
    if (packed->front() != kGzipMagic.front()) {
      return Damaged(name(), "something else stands behind its end");
    }
    const int status = inflateReset(&stream_);
    CELLAR_ASSERT(status == Z_OK);
    member_ended_ = false;
    return Status::Ok();
  }

  z_stream stream_{};
  bool member_ended_{false};
};

class Unzstd final : public Decompressor {
 public:
  Unzstd() : context_(ZSTD_createDCtx()) {
    CELLAR_ASSERT(context_ != nullptr);
    (void)ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kZstdWindowLogMax);
  }

  Status Decode(std::string_view* packed, size_t bytes_max, std::string* out) override {
    if (packed->empty() && frame_ended_) return Status::Ok();
    const size_t before = out->size();
    out->resize(before + bytes_max);
    ZSTD_inBuffer in{packed->data(), packed->size(), 0};
    ZSTD_outBuffer to{out->data() + before, bytes_max, 0};
    const size_t wanted = ZSTD_decompressStream(context_.get(), &to, &in);
    out->resize(before + to.pos);
    packed->remove_prefix(in.pos);
    if (ZSTD_isError(wanted) != 0) return Damaged(name(), ZSTD_getErrorName(wanted));
    frame_ended_ = wanted == 0;
    return Status::Ok();
  }

  bool is_whole() const override { return frame_ended_; }
  const char* name() const override { return "zstd"; }

 private:
  struct ContextDeleter {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, ContextDeleter> context_;
  bool frame_ended_{false};
};

}  // namespace

std::unique_ptr<Decompressor> Decompressor::For(std::string_view bytes) {
  if (bytes.starts_with(kGzipMagic)) return std::make_unique<Gunzip>();
  if (bytes.starts_with(kZstdMagic)) return std::make_unique<Unzstd>();
  return nullptr;
}

}  // namespace cellar::importer
