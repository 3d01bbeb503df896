// FreeString: what assigning an empty string looks like and is not.
//
// libstdc++ keeps the memory of a string that is assigned a short one, even if that is moved there:
// `text = {}` empties it and gives nothing back.
#pragma once

#include <string>

namespace cellar {

// Empties *text and gives back its memory. O(1) and a call of the allocator.
inline void FreeString(std::string* text) { std::string().swap(*text); }

}  // namespace cellar
