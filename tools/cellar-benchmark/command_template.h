// CommandTemplate: a command rendered once, with holes that are filled in for each request.
//
// The text is split into words as a shell would (spaces, '...' and "..."), rendered as a RESP array
// of bulk strings, and the holes are remembered by offset. Every hole has a fixed width, so that a
// request is one memcpy of the bytes and a few digits written over them: the client has to be
// cheaper than the server that it measures.
//
//   __key__        the key number, with as many digits as asked for (12)
//   __data__       random lower-case letters, as many as asked for; __data:N__: N of them
//   __rand:LO:HI__ a random number LO <= x <= HI, with as many digits as HI (zeros in front)
//   __seq__        a number that counts up from 1 in each thread, 10 digits beginning with 1
//   __now__        microseconds since the epoch, 16 digits
//   __now-N__      the same, N seconds ago
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "cellar/status.h"

namespace cellar::benchmark {

struct TemplateOptions {
  uint32_t key_digits{12};
  uint32_t data_bytes{12};
};

// What a request is filled in with.
struct RenderContext {
  Random* random{nullptr};
  uint64_t key{0};
  uint64_t sequence{0};
  int64_t now_micros{0};
};

class CommandTemplate {
 public:
  // kErr if `text` has no word, an open quote, or a hole that is not one of the above.
  static Result<CommandTemplate> Parse(std::string_view text, const TemplateOptions& options);

  // Appends one request to *out.
  void Render(const RenderContext& context, std::string* out) const;
  size_t bytes() const { return bytes_.size(); }

 private:
  enum class HoleKind : uint8_t { kKey, kData, kRand, kSequence, kNow };
  struct Hole {
    HoleKind kind;
    uint32_t offset;
    uint32_t width;
    uint64_t low;
    uint64_t span;
  };
  // Turns the holes of `word` into bytes of their width; notes them, with offsets within the word.
  static Status FillHoles(std::string_view word, const TemplateOptions& options,
                          std::string* rendered, std::vector<Hole>* holes);
  static Result<Hole> ParseHole(std::string_view name, const TemplateOptions& options);

  std::string bytes_;
  std::vector<Hole> holes_;
};

// Splits as described above. kErr for an open quote.
Result<std::vector<std::string>> SplitWords(std::string_view text);

}  // namespace cellar::benchmark
