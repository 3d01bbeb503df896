// See note_sum.h.
#include "commands/replies/note_sum.h"

#include <algorithm>
#include <cstdint>

#include "base/text/number.h"

namespace cellar {
namespace {

// A note with a number that is of the set's own rows: what stands before it and behind it.
struct CountNote {
  enum class Of : uint8_t { kNothing, kCells, kRows };
  Of of{Of::kNothing};
  std::string_view front;
  std::string_view back;
  uint64_t count{0};

  bool IsAlike(const CountNote& other) const {
    return of == other.of && front == other.front && back == other.back;
  }
};

// "... in 2 cells: ..."
bool SplitCells(std::string_view rest, CountNote* note) {
  if (!rest.starts_with(" cell")) return false;
  note->of = CountNote::Of::kCells;
  note->back = rest.substr(std::string_view(" cell").size());
  if (note->back.starts_with('s')) note->back.remove_prefix(1);
  return true;
}

// "... leaves out 1 row: its ...", "... 2 rows: their ..."
bool SplitRows(std::string_view rest, CountNote* note) {
  for (const std::string_view form : {" row: its ", " rows: their "}) {
    if (!rest.starts_with(form)) continue;
    note->of = CountNote::Of::kRows;
    note->back = rest.substr(form.size());
    return true;
  }
  return false;
}

CountNote Split(std::string_view note) {
  for (const std::string_view before : {" text in ", " leaves out "}) {
    const size_t at = note.rfind(before);
    if (at == std::string_view::npos) continue;
    const size_t begin = at + before.size();
    const size_t end = note.find(' ', begin);
    CountNote split;
    split.front = note.substr(0, begin);
    if (end == std::string_view::npos ||
        ParseUint64(note.substr(begin, end - begin), &split.count) != NumberError::kNone)
      continue;
    const std::string_view rest = note.substr(end);
    if (SplitCells(rest, &split) || SplitRows(rest, &split)) return split;
  }
  return {};
}

std::string Join(const CountNote& note, uint64_t count) {
  return std::string(note.front) + FormatUint64(count) +
         (note.of == CountNote::Of::kCells ? " cells" : " rows: their ") + std::string(note.back);
}

}  // namespace

void AddNote(std::string_view note, std::vector<std::string>* notes) {
  const CountNote added = Split(note);
  auto met = notes->end();  // the first of what a read has met
  for (auto known = notes->begin(); known != notes->end(); ++known) {
    const CountNote old = Split(*known);
    if (old.of == CountNote::Of::kCells && met == notes->end()) met = known;
    if (added.of == CountNote::Of::kNothing) {
      if (*known == note) return;
    } else if (old.IsAlike(added)) {
      *known = Join(old, old.count + added.count);
      return;
    }
  }
  (void)notes->emplace(added.of == CountNote::Of::kCells ? notes->end() : met, note);
}

}  // namespace cellar
