// Scale: from numbers to colours, on a log scale.
//
// The colours go from dark violet over blue and green to light yellow, and each is lighter than the
// one before it, so that they stay in order for those who do not tell red from green, and on paper.
// (The idea is that of viridis, by van der Walt and Smith; the table is our own.) What had nothing
// has a colour outside the scale.
#pragma once

#include <cstdint>

namespace cellar::heatmap {

struct Colour {
  uint8_t red;
  uint8_t green;
  uint8_t blue;
  friend bool operator==(const Colour&, const Colour&) = default;
};

enum class Theme : uint8_t { kDark, kLight };

// 0 to 1 of the scale.
Colour ColourAt(double level);
// Luminance as eyes see it, 0 to 1.
double Lightness(Colour colour);

class Scale {
 public:
  // From `min`, which is more than 0, to `max`.
  Scale(uint64_t min, uint64_t max) : min_(min), max_(max) {}
  // REQUIRES: value > 0.
  double LevelOf(uint64_t value) const;
  // The number at a level.
  uint64_t ValueAt(double level) const;

 private:
  uint64_t min_;
  uint64_t max_;
};

struct Palette {
  Colour background;
  Colour nothing;
  Colour text;
  Colour dim;  // of lines and what matters less
};
const Palette& PaletteOf(Theme theme);

}  // namespace cellar::heatmap
