// The two codecs. Their working memory is the thread's: some 16 KiB for lz4, about a megabyte to
// pack and 160 KiB to unpack with zstd.
#include "engine/keys/compression.h"

#include <lz4.h>
#include <zstd.h>

#include <array>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/ascii.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr uint64_t kZstdBit{1};
// Of zstd's levels the default one: values are written once and read often.
constexpr int kZstdLevel{3};

struct ZstdContexts {
  ZSTD_CCtx* packs{nullptr};
  ZSTD_DCtx* unpacks{nullptr};

  ZstdContexts() = default;
  ZstdContexts(const ZstdContexts&) = delete;
  ZstdContexts& operator=(const ZstdContexts&) = delete;
  ~ZstdContexts() {
    ZSTD_freeCCtx(packs);
    ZSTD_freeDCtx(unpacks);
  }
};

ZSTD_CCtx* PackContext(ZstdContexts* contexts) {
  if (contexts->packs == nullptr) {
    contexts->packs = ZSTD_createCCtx();
    CELLAR_ASSERT(contexts->packs != nullptr);
    // The cell says how long the value is.
    (void)ZSTD_CCtx_setParameter(contexts->packs, ZSTD_c_compressionLevel, kZstdLevel);
    (void)ZSTD_CCtx_setParameter(contexts->packs, ZSTD_c_contentSizeFlag, 0);
  }
  return contexts->packs;
}

ZSTD_DCtx* UnpackContext(ZstdContexts* contexts) {
  if (contexts->unpacks == nullptr) {
    contexts->unpacks = ZSTD_createDCtx();
    CELLAR_ASSERT(contexts->unpacks != nullptr);
  }
  return contexts->unpacks;
}

ZstdContexts& ThreadContexts() {
  thread_local ZstdContexts contexts;
  return contexts;
}

// How many bytes `codec_bytes` of a codec's can at most stand for: lz4 gives 255 a byte, zstd a
// block of 128 KiB for each four.
uint64_t PlainBytesBound(bool zstd, uint64_t codec_bytes) {
  return zstd ? (codec_bytes / 4 + 1) * (128 << 10) : (codec_bytes + 1) * 255;
}

struct PackedParts {
  size_t plain_bytes{0};
  bool zstd{false};
  std::string_view made;
};

bool TakeApart(std::string_view packed, PackedParts* parts) {
  uint64_t head = 0;
  if (!GetVarint64(&packed, &head)) return false;
  parts->zstd = (head & kZstdBit) != 0;
  const uint64_t plain_bytes = head >> 1;
  if (plain_bytes < kPackedBytesMin || plain_bytes > kPlainBytesMax ||
      plain_bytes > PlainBytesBound(parts->zstd, packed.size()) || packed.size() >= plain_bytes) {
    return false;
  }
  parts->plain_bytes = plain_bytes;
  parts->made = packed;
  return true;
}

struct CompressionWord {
  std::string_view word;
  Compression compression;
};
constexpr std::array<CompressionWord, 3> kWords{
    {{"none", Compression::kNever}, {"lz4", Compression::kLz4}, {"zstd", Compression::kZstd}}};

}  // namespace

std::string_view CompressionName(Compression compression) {
  for (const CompressionWord& word : kWords)
    if (word.compression == compression) return word.word;
  return kWords[0].word;
}

Result<Compression> ParseCompression(std::string_view word) {
  for (const CompressionWord& known : kWords)
    if (EqualsIgnoreCase(word, known.word)) return known.compression;
  return Status::Error(ErrorCode::kErr,
                       "unknown compression " + Quote(word) + ", there are lz4, zstd and none");
}

char* PackBuffer::Room(size_t bytes) {
  if (bytes > capacity_ || (capacity_ > kPackBufferKeptBytes && bytes <= kPackBufferKeptBytes)) {
    Free();
    bytes_ = std::make_unique_for_overwrite<char[]>(bytes);
    capacity_ = bytes;
    held_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  return bytes_.get();
}

void PackBuffer::Free() {
  bytes_.reset();
  held_bytes_.fetch_sub(std::exchange(capacity_, 0), std::memory_order_relaxed);
}

size_t PlainBytesOf(std::string_view packed) {
  PackedParts parts;
  return TakeApart(packed, &parts) ? parts.plain_bytes : 0;
}

bool PlainValue::Unpack(std::string_view packed, std::string_view* plain) {
  if (!wanted_) {
    *plain = {};
    return true;
  }
  PackedParts parts;
  if (!TakeApart(packed, &parts)) return false;
  char* const to = buffer_.Room(parts.plain_bytes);
  size_t bytes = 0;
  if (parts.zstd) {
    bytes = ZSTD_decompressDCtx(UnpackContext(&ThreadContexts()), to, parts.plain_bytes,
                                parts.made.data(), parts.made.size());
    if (ZSTD_isError(bytes) != 0) return false;
  } else {
    const int got = LZ4_decompress_safe(parts.made.data(), to, static_cast<int>(parts.made.size()),
                                        static_cast<int>(parts.plain_bytes));
    if (got < 0) return false;
    bytes = static_cast<size_t>(got);
  }
  *plain = {to, bytes};
  return bytes == parts.plain_bytes;
}

std::optional<std::string_view> ValuePacker::Pack(Compression compression, std::string_view plain) {
  CELLAR_ASSERT(Packs(compression));
  CELLAR_ASSERT(plain.size() <= kPlainBytesMax);
  if (plain.size() < kPackedBytesMin) return std::nullopt;
  const bool zstd = compression == Compression::kZstd;
  const size_t packed_max = plain.size() - (plain.size() + 7) / 8;
  char* const begin = buffer_.Room(kVarint64BytesMax + packed_max);
  char* const made = EncodeVarint64(begin, plain.size() << 1 | (zstd ? kZstdBit : 0));
  const size_t made_max = packed_max - static_cast<size_t>(made - begin);
  size_t bytes = 0;
  if (zstd) {
    bytes =
        ZSTD_compress2(PackContext(&ThreadContexts()), made, made_max, plain.data(), plain.size());
    if (ZSTD_isError(bytes) != 0) return std::nullopt;  // it does not fit
  } else {
    bytes = static_cast<size_t>(LZ4_compress_default(
        plain.data(), made, static_cast<int>(plain.size()), static_cast<int>(made_max)));
    if (bytes == 0) return std::nullopt;
  }
  return std::string_view(begin, static_cast<size_t>(made - begin) + bytes);
}

}  // namespace cellar
