// See note_sum.h.
#include "commands/replies/note_sum.h"

#include <algorithm>
#include <cstdint>

#include "base/text/number.h"

namespace cellar {
namespace {

// A note that counts cells: what stands before their number and behind it; `cells` 0: it is none.
struct CellNote {
  std::string_view front;
  std::string_view back;
  uint64_t cells{0};
};

CellNote Split(std::string_view note) {
  constexpr std::string_view kBefore{" text in "};
  constexpr std::string_view kBehind{" cell"};
  const size_t before = note.rfind(kBefore);
  if (before == std::string_view::npos) return {};
  const size_t begin = before + kBefore.size();
  const size_t end = note.find(' ', begin);
  CellNote split;
  if (end == std::string_view::npos || !note.substr(end).starts_with(kBehind) ||
      ParseUint64(note.substr(begin, end - begin), &split.cells) != NumberError::kNone)
    return {};
  split.front = note.substr(0, begin);
  split.back = note.substr(end + kBehind.size());
  if (split.back.starts_with('s')) split.back.remove_prefix(1);
  return split;
}

}  // namespace

void AddNote(std::string_view note, std::vector<std::string>* notes) {
  const CellNote added = Split(note);
  for (std::string& known : *notes) {
    if (added.cells == 0) {
      if (known == note) return;
      continue;
    }
    const CellNote old = Split(known);
    if (old.cells == 0 || old.front != added.front || old.back != added.back) continue;
    known = std::string(old.front) + FormatUint64(old.cells + added.cells) + " cells" +
            std::string(old.back);
    return;
  }
  notes->emplace_back(note);
}

}  // namespace cellar
