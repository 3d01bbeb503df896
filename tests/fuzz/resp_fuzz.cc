// The request parser gives the same commands and the same error however its input is cut, and those
// taken by the shape of the ones before are the same too.
//
// The first byte seeds the cuts, the rest is what a client sends.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/random.h"
#include "commands/dispatch/request_shapes.h"
#include "resp/request_parser.h"

namespace cellar {
namespace {

struct Parsed {
  std::vector<std::vector<std::string>> commands;
  std::string error;
  friend bool operator==(const Parsed&, const Parsed&) = default;
};

// Feeds `input` in pieces of at most `piece_max` bytes, as a connection does: what is not yet a
// whole command is kept in memory that moves.
Parsed Parse(std::string_view input, size_t piece_max, uint64_t seed) {
  Parsed parsed;
  Random random(seed);
  RequestParser parser;
  const RequestParser::Limits limits{.bulk_bytes_max = 1 << 20, .unauthenticated = false};
  std::vector<std::string_view> args;
  std::string pending;
  while (!input.empty() && parsed.error.empty()) {
    const size_t piece = piece_max >= input.size() ? input.size() : 1 + random.Below(piece_max);
    // A copy at another place each time: whoever still points to the old one is found out by ASan.
    std::string grown = pending + std::string(input.substr(0, piece));
    grown.reserve(64);  // no short string, whose bytes would move with the object
    input.remove_prefix(piece);
    RequestParser::Rebase(pending.data(), grown.data(), &args);
    pending = std::move(grown);
    std::string_view rest = pending;
    while (!rest.empty() && parsed.error.empty()) {
      const RequestParser::Outcome outcome = parser.Next(&rest, limits, &args);
      if (outcome == RequestParser::Outcome::kIncomplete) break;
      if (outcome == RequestParser::Outcome::kError) parsed.error = parser.error();
      if (outcome == RequestParser::Outcome::kCommand) {
        parsed.commands.emplace_back(args.begin(), args.end());
      }
    }
    std::string left(rest);
    left.reserve(64);
    if (parser.in_command()) RequestParser::Rebase(rest.data(), left.data(), &args);
    pending = std::move(left);
  }
  return parsed;
}

// Takes commands by the shape of those before, as a connection does: they are what the parser
// reads.
void CheckShapes(std::string_view input) {
  // Of its own size, so that ASan sees who reads behind it.
  const std::vector<char> bytes(input.begin(), input.end());
  std::string_view rest(bytes.data(), bytes.size());
  RequestShapes shapes;
  ParsedCommand command;
  std::vector<std::string_view> args;
  for (int round = 0; !rest.empty(); ++round) {
    RequestParser parser;
    const size_t parsed = parser.NextShort(rest, &args);
    const size_t taken = shapes.Take(rest, &command);
    if (taken > 0) {
      CELLAR_ASSERT(taken == parsed);
      CELLAR_ASSERT(command.args == args);
    }
    if (parsed == 0) return;
    command.args = args;
    shapes.Note(rest, parsed, command);
    if (round % 3 == 2) rest.remove_prefix(parsed);  // each one three times: then it is known
  }
}

}  // namespace
}  // namespace cellar

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are bytes.
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const cellar::Parsed whole = cellar::Parse(input, size, 1);
  CELLAR_ASSERT(cellar::Parse(input, 1, 1) == whole);
  CELLAR_ASSERT(cellar::Parse(input, 7, data[0]) == whole);
  cellar::CheckShapes(input);
  return 0;
}
