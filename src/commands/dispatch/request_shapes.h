// RequestShapes: what recent requests looked like, so that those that look the same need not be
// taken apart header by header.
//
//   *5\r\n$4\r\nCPUT\r\n$1\r\nt\r\n$18\r\nplane#000000000001\r\n$10\r\nmeta:miles\r\n$12\r\n...
//   |--------------|    |----|     |-----|                      |-----|              |-----|
//           these bytes are compared; where they are the same the arguments lie as before
//
// Clients send the same command with arguments of the same sizes again and again. A request that is
// like one before is taken apart with a comparison for each argument, which takes half of what
// reading its header does, and its command needs no look-up. Whatever differs is left to the
// parser, and what that has found is noted.
//
// One for all connections of a server: their clients are mostly the same program. What it knows is
// never wrong, only useless: a request is compared in every byte that says how long something is.
// There are a few dozen slots; commands whose names fall into the same one displace each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/coding.h"
#include "base/inline.h"
#include "commands/session/parsed_command.h"

namespace cellar {

class RequestShapes {
 public:
  // Takes the request at the front of `input` apart, if all of it is there and it is like the last
  // one that is remembered in the slot of its name. Returns its size; 0 if not, and *command is
  // then unspecified but for `rest`, which is the caller's.
  [[nodiscard]] CELLAR_INLINE size_t Take(std::string_view input, ParsedCommand* command) const;
  // The request at the front of `input`, `bytes` long, is `command`. It is remembered if the one
  // before in its slot was as long: most of those whose sizes change from one to the next cost
  // nothing but this look. REQUIRES: RequestParser::NextShort has read it.
  void Note(std::string_view input, size_t bytes, const ParsedCommand& command);

  // Requests of more arguments, or of longer names, are not remembered: their first header, and the
  // name, would not stand where a word is compared.
  static constexpr size_t kArgumentsMax{9};
  static constexpr size_t kNameBytesMax{8};

 private:
  static constexpr size_t kWord{sizeof(uint64_t)};
  static constexpr size_t kStartBytes{2 * kWord};  // "*5\r\n$4\r\n", and the name or more
  static constexpr unsigned kSlotBits{5};
  static constexpr size_t kUnknown{SIZE_MAX};

  // An argument behind the name. The word that ends with its header is compared.
  struct Argument {
    uint64_t header{0};
    uint64_t header_mask{0};  // the header's bytes
    uint32_t begin{0};        // where it stands in the request
    uint32_t bytes{0};
  };
  struct Shape {
    uint64_t start{0};
    uint64_t name{0};
    uint64_t name_mask{0};
    size_t bytes{kUnknown};  // of the request; longer than any if none is known
    size_t last_bytes{0};    // of the one noted last, in whatever shape
    uint32_t name_bytes{0};
    uint32_t count{1};  // of arguments, the name included
    CommandEntry* entry{nullptr};
    std::array<Argument, kArgumentsMax - 1> arguments;
  };

  static uint64_t Word(const char* at) { return LoadLittleEndian<uint64_t>(at); }
  // By the first five bytes of the name, or what follows a shorter one and does not vary.
  static size_t SlotOf(uint64_t name) {
    constexpr uint64_t kMultiplier{0x9E3779B97F4A7C15};  // Knuth's: 2^64 by the golden ratio
    return (name << 8 * (kWord - 5)) * kMultiplier >> (64 - kSlotBits);
  }

  std::array<Shape, size_t{1} << kSlotBits> shapes_;
};

size_t RequestShapes::Take(std::string_view input, ParsedCommand* command) const {
  if (input.size() < kStartBytes) [[unlikely]]
    return 0;
  const char* const request = input.data();
  const uint64_t name = Word(request + kWord);
  const Shape& shape = shapes_[SlotOf(name)];
  const uint64_t differs = (Word(request) ^ shape.start) | ((name ^ shape.name) & shape.name_mask);
  if (differs != 0 || input.size() < shape.bytes) return 0;
  if (command->args.size() != shape.count) command->args.resize(shape.count);
  std::string_view* to = command->args.data();
  *to++ = {request + kWord, shape.name_bytes};
  const Argument* const end = shape.arguments.data() + (shape.count - 1);
  for (const Argument* of = shape.arguments.data(); of != end; ++of, ++to) {
    const char* const begin = request + of->begin;
    if (((Word(begin - kWord) ^ of->header) & of->header_mask) != 0) return 0;
    *to = {begin, of->bytes};
  }
  command->entry = shape.entry;
  return shape.bytes;
}

}  // namespace cellar
