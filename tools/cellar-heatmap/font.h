// A font for pictures: 5 by 8 points a character, the last row for what hangs below the line.
#pragma once

#include <array>
#include <cstdint>

namespace cellar::heatmap {

inline constexpr int kGlyphColumns{5};
inline constexpr int kGlyphRows{8};
// A row each, from the top; bit 4 is the left point.
using Glyph = std::array<uint8_t, kGlyphRows>;

// A box for what is no printable ASCII.
const Glyph& GlyphOf(char c);

}  // namespace cellar::heatmap
