// RequestShapes: what recent requests looked like, so that those that look the same need not be
// taken apart header by header.
//
//   *5\r\n$4\r\nCPUT\r\n$1\r\nt\r\n$18\r\nplane#000000000001\r\n$10\r\nmeta:miles\r\n$12\r\n...
//   |------ 16 bytes ------|  |----|           |-----|                  |-----|         |
//                   these bytes are compared; where they are the same the arguments lie as before
//
// Clients send the same command with arguments of the same sizes again and again. A request that is
// like one before is taken apart with a comparison for each argument, where reading its header takes
// four times as much, and its command needs no look-up. Whatever differs is left to the parser, which
// then tells what it has found (Note).
//
// One for all connections of a server: their clients are mostly the same program. What it knows is
// never wrong, only useless: a request is compared in every byte that says how long something is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/coding.h"
#include "base/inline.h"
#include "commands/parsed_command.h"

namespace cellar {

class RequestShapes {
 public:
  // Takes the request at the front of `input` apart, if all of it is there and it is like the last
  // one that was noted with its name. Returns its size; 0 if not, and *command is then unspecified
  // but for `rest`, which is the caller's.
  [[nodiscard]] CELLAR_INLINE size_t Take(std::string_view input, ParsedCommand* command) const;
  // The request at the front of `input`, `bytes` long, is `command`. It is remembered when the one
  // before with this name was as long: so those whose sizes change from one to the next cost nothing
  // but this look.
  void Note(std::string_view input, size_t bytes, const ParsedCommand& command);

  // Requests of more arguments, or of longer names, are not remembered: their first header, and the
  // name, would not stand where a word is compared.
  static constexpr size_t kArgumentsMax{9};
  static constexpr size_t kNameBytesMax{8};

 private:
  static constexpr size_t kWord{sizeof(uint64_t)};
  static constexpr size_t kStartBytes{2 * kWord};  // "*5\r\n$4\r\n", and of the name what there is
  static constexpr unsigned kSlotBits{3};

  // An argument behind the name. The word that ends with its header is compared.
  struct Argument {
    uint64_t header;
    uint64_t header_mask;  // the header's bytes
    uint32_t begin;        // where it stands in the request
    uint32_t bytes;
  };
  struct Shape {
    uint64_t start{0};
    uint64_t name{0};
    uint64_t name_mask{0};
    uint32_t bytes{0};  // of the request; 0: none is known
    uint32_t last_bytes{0};
    uint32_t name_bytes{0};
    uint32_t count{0};  // of arguments, the name included
    CommandEntry* entry{nullptr};
    std::array<Argument, kArgumentsMax - 1> arguments;
  };

  static uint64_t Word(const char* at) { return LoadLittleEndian<uint64_t>(at); }
  // By the first four bytes of the name, which no other command has (mostly).
  static size_t SlotOf(const char* request) {
    constexpr uint32_t kMultiplier{0x9E3779B1};  // Knuth's: 2^32 by the golden ratio
    return LoadLittleEndian<uint32_t>(request + kWord) * kMultiplier >> (32 - kSlotBits);
  }

  std::array<Shape, size_t{1} << kSlotBits> shapes_;
};

size_t RequestShapes::Take(std::string_view input, ParsedCommand* command) const {
  if (input.size() < kStartBytes) [[unlikely]]
    return 0;
  const char* const request = input.data();
  const Shape& shape = shapes_[SlotOf(request)];
  const uint64_t differs =
      (Word(request) ^ shape.start) | ((Word(request + kWord) ^ shape.name) & shape.name_mask);
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
