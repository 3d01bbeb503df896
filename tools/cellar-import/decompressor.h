// What gzip and zstd have packed, unpacked a piece at a time. Several members or frames behind each
// other are one text, as for zcat and zstdcat.
//
// A file that was cut looks like a shorter one until its end is looked for: whoever has no more
// bytes to give must ask is_whole(). Checksums are compared where the data has them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar::importer {

class Decompressor {
 public:
  // Of the format whose magic number stands at the beginning of `bytes`; nothing if it is neither.
  static std::unique_ptr<Decompressor> For(std::string_view bytes);
  virtual ~Decompressor() = default;

  // Takes bytes off the front of *packed and appends at most `bytes_max` of what they say. What is
  // left of an earlier call comes also from an empty *packed. ERR if the data is damaged.
  virtual Status Decode(std::string_view* packed, size_t bytes_max, std::string* out) = 0;
  // Nothing is missing if no more bytes follow.
  virtual bool is_whole() const = 0;
  // "gzip" or "zstd".
  virtual const char* name() const = 0;
};

}  // namespace cellar::importer
