// CommandReader: bytes of one connection to commands, a batch at a time (command_batch.h).
//
// Three ways, from the fastest to the one that takes everything: a request that looks like one
// before it (request_shapes.h), one with short headers that is all there, and any. It keeps how far
// a command has been read that is not all there yet; its bytes are the connection's.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "commands/catalog/command_table.h"
#include "commands/dispatch/request_shapes.h"
#include "resp/request_parser.h"
#include "server/connection/command_batch.h"

namespace cellar {

class CommandReader {
 public:
  // What all connections of a server share.
  struct Context {
    const CommandTable& commands;
    RequestShapes& shapes;
  };

  // Reads what stands whole at the front of `input`, at least one command if there is one; what is
  // incomplete is gone on with in the next call, which must see the same bytes with more behind
  // them. REQUIRES: neither is empty.
  CommandBatch Read(std::string_view input, const RequestParser::Limits& limits,
                    const Context& context, std::span<ParsedCommand> room);
  // What was read beyond the commands that were executed will be read again.
  void Forget();
  // The bytes of the incomplete command have moved.
  void Rebase(const char* old_begin, const char* new_begin) {
    // NOLINTNEXTLINE(clang-analyzer-cplusplus.InnerPointer): not read, only distances count.
    RequestParser::Rebase(old_begin, new_begin, &incomplete_args_);
  }
  // After RequestParser::Outcome::kError: without "-ERR ".
  const std::string& error() const { return parser_.error(); }
  size_t memory_bytes() const { return incomplete_args_.capacity() * sizeof(std::string_view); }

 private:
  RequestParser parser_;
  std::vector<std::string_view> incomplete_args_;  // of the command that is not all there
};

}  // namespace cellar
