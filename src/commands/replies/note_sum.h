// AddNote: the notes of a read over several sets, each of which tells of its own rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cellar {

// Adds a set's note, unless it is there already. One that counts cells ("holds text in 2 cells")
// becomes a sum. O(notes)
void AddNote(std::string_view note, std::vector<std::string>* notes);

}  // namespace cellar
