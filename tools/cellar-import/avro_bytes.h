// The bytes of an Avro container file as its decoder takes them: those between blocks as they stand
// in the file, those of a block inflated if its codec says so.
//
// What is held does not follow from lengths that the file claims: bytes are handed on as they
// come, and a block is inflated a piece at a time. Every error says where: a byte of the file, and
// in a block that is inflated the byte behind inflating.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar-import/input.h"
#include "cellar/status.h"

namespace cellar::importer {

class AvroBytes {
 public:
  // `input` must outlive this. `path` is what errors call it.
  AvroBytes(Input* input, std::string path) : input_(input), path_(std::move(path)) {}
  ~AvroBytes();
  AvroBytes(const AvroBytes&) = delete;
  AvroBytes& operator=(const AvroBytes&) = delete;

  // REQUIRES: not in a block.
  Result<bool> AtEnd();
  // The next `bytes` bytes of the file are a block's. REQUIRES: not in a block.
  Status BeginBlock(uint64_t bytes, bool deflated);
  // An error unless all of the block was read.
  Status EndBlock();

  Result<int64_t> ReadLong();
  // Appends `bytes` bytes.
  Status Read(uint64_t bytes, std::string* out);
  Status Skip(uint64_t bytes);

  // An error that names the file and the place.
  Status Error(const std::string& text) const;

 private:
  // What there is to take, without reading on.
  std::string_view Window() const;
  void Take(size_t bytes);
  // Makes Window() not empty; an error at the end of the block or file.
  Status Refill();
  Status Inflate();

  Input* input_;
  std::string path_;
  bool in_block_{false};
  bool deflated_{false};
  uint64_t block_offset_{0};  // in the file
  uint64_t block_left_{0};    // bytes of the file
  z_stream stream_{};
  bool has_stream_{false};
  bool stream_ended_{false};
  std::string inflated_;
  size_t inflated_at_{0};
  uint64_t inflated_bytes_{0};  // taken in this block
};

}  // namespace cellar::importer
