// AddNote: the notes of a read over several sets, each of which tells of its own rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cellar {

// Adds a set's note, unless it is there already; one that counts cells or rows ("holds text in 2
// cells", "leaves out 1 row") becomes a sum. What a read has met, which is cells, stands behind
// what was known before it, whichever set is the first to answer. O(notes)
void AddNote(std::string_view note, std::vector<std::string>* notes);

}  // namespace cellar
