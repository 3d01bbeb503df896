// What a request looked like. See request_shapes.h.
#include "commands/dispatch/request_shapes.h"

#include "base/assert.h"

namespace cellar {

// A shape is taken from the second of two requests as long as each other: the first one only leaves
// its size. Where each argument's header begins follows from where the one before it ends, so the
// shape holds offsets alone, and the next request is compared against them wherever it lies.
void RequestShapes::Note(std::string_view input, size_t bytes, const ParsedCommand& command) {
  CELLAR_DEBUG_ASSERT(!command.args.empty());
  CELLAR_DEBUG_ASSERT(bytes <= input.size());
  const std::string_view name = command.args[0];
  if (input.size() < kStartBytes || name.data() != input.data() + kWord ||
      command.args.size() > kArgumentsMax || name.size() > kNameBytesMax || name.empty()) {
    return;
  }
  Shape& shape = shapes_[SlotOf(Word(name.data()))];
  if (shape.last_bytes != bytes) {
    shape.last_bytes = bytes;
    return;
  }
  shape.start = Word(input.data());
  shape.name_mask = UINT64_MAX >> 8 * (kNameBytesMax - name.size());
  shape.name = Word(name.data()) & shape.name_mask;
  shape.bytes = bytes;
  shape.name_bytes = static_cast<uint32_t>(name.size());
  shape.count = static_cast<uint32_t>(command.args.size());
  shape.entry = command.entry;
  const char* header = name.data() + name.size() + 2;
  for (size_t i = 1; i < command.args.size(); ++i) {
    const std::string_view argument = command.args[i];
    Argument& to = shape.arguments[i - 1];
    const auto header_bytes = static_cast<size_t>(argument.data() - header);
    CELLAR_ASSERT(header_bytes > 0 && header_bytes <= kWord);
    to.header_mask = UINT64_MAX << 8 * (kWord - header_bytes);
    to.header = Word(argument.data() - kWord) & to.header_mask;
    to.begin = static_cast<uint32_t>(argument.data() - input.data());
    to.bytes = static_cast<uint32_t>(argument.size());
    header = argument.data() + argument.size() + 2;
  }
  CELLAR_ASSERT(header == input.data() + bytes);  // where the next request begins
}

}  // namespace cellar
