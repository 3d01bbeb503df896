// A heat map as a picture: time goes right, keys go down, the colours are those of scale.h. Beside
// it the legend, below it the hottest ranges.
//
//   title
//   key    +-----------------------------+  legend
//   key    |          cells              |
//   key    +-----------------------------+
//             time         time
//   hottest ranges
#pragma once

#include <string>

#include "cellar-heatmap/heat.h"
#include "cellar-heatmap/scale.h"
#include "cellar/status.h"

namespace cellar::heatmap {

std::string Svg(const Grid& grid, Theme theme);
Result<std::string> Png(const Grid& grid, Theme theme);

enum class Colours : uint8_t { kNone, k256, kTrue };
// For a terminal of so many columns and lines; with `kNone` plain characters tell how much.
std::string TerminalText(const Grid& grid, size_t columns, size_t lines, Colours colours,
                         Theme theme);

}  // namespace cellar::heatmap
