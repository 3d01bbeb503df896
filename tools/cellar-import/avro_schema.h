// The schema that an Avro file was written with, as far as its bytes must be found: what stands
// behind what, and what is skipped. Orders and defaults say nothing about that; a logical type says
// what the bytes mean.
//
// The schema comes from the file, so nothing in it is trusted: its size, depth and number of types
// are bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"

namespace cellar::importer {

enum class AvroType : uint8_t {
  kNull,
  kBoolean,
  kInt,
  kLong,
  kFloat,
  kDouble,
  kBytes,
  kString,
  kFixed,
  kEnum,
  kRecord,
  kArray,
  kMap,
  kUnion
};

// What a number, or bytes, stand for.
enum class AvroMeaning : uint8_t {
  kPlain,
  kMillis,  // since 1970, as kMicros and kDays
  kMicros,
  kDays,
  kDecimal,  // a big-endian integer, to be divided by 10^scale
  kUuid,
  kOther  // one that is not converted
};

struct AvroNode {
  struct Part {
    std::string name;  // of a record's field
    size_t node{0};
  };
  AvroType type{AvroType::kNull};
  // Fields of a record, branches of a union, the one kind of item of an array or map.
  std::vector<Part> parts;
  uint64_t fixed_bytes{0};
  AvroMeaning meaning{AvroMeaning::kPlain};
  std::string logical_type;  // the word for it
  uint32_t scale{0};         // of a decimal
  // No value of it takes any bytes: nothing bounds how many of them follow each other.
  bool is_empty{false};
};

class AvroSchema {
 public:
  // The text of `avro.schema`. A record may hold itself.
  static Result<AvroSchema> Parse(std::string_view text);

  const AvroNode& root() const { return nodes_[root_]; }
  const AvroNode& node(size_t index) const { return nodes_[index]; }

 private:
  friend class AvroSchemaParser;
  std::vector<AvroNode> nodes_;
  size_t root_{0};
};

}  // namespace cellar::importer
