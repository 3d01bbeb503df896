// See scale.h.
#include "cellar-heatmap/scale.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace cellar::heatmap {
namespace {

constexpr std::array<Colour, 9> kStops{{{46, 15, 94},
                                        {66, 44, 132},
                                        {58, 80, 150},
                                        {42, 111, 152},
                                        {31, 141, 148},
                                        {47, 170, 128},
                                        {108, 196, 92},
                                        {178, 214, 58},
                                        {250, 230, 80}}};

constexpr Palette kDark{{18, 18, 22}, {34, 34, 40}, {226, 226, 230}, {130, 130, 140}};
constexpr Palette kLight{{255, 255, 255}, {232, 232, 236}, {24, 24, 28}, {120, 120, 128}};

uint8_t Between(uint8_t a, uint8_t b, double part) {
  return static_cast<uint8_t>(std::lround(a + (b - a) * part));
}

}  // namespace

Colour ColourAt(double level) {
  const double at = std::clamp(level, 0.0, 1.0) * (kStops.size() - 1);
  const size_t below = std::min(static_cast<size_t>(at), kStops.size() - 2);
  const double part = at - static_cast<double>(below);
  const Colour& a = kStops[below];
  const Colour& b = kStops[below + 1];
  return {Between(a.red, b.red, part), Between(a.green, b.green, part),
          Between(a.blue, b.blue, part)};
}

double Lightness(Colour colour) {
  const auto linear = [](uint8_t part) { return std::pow(part / 255.0, 2.2); };
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

double Scale::LevelOf(uint64_t value) const {
  if (max_ <= min_) return 1;
  const double level = std::log(static_cast<double>(value) / static_cast<double>(min_)) /
                       std::log(static_cast<double>(max_) / static_cast<double>(min_));
  return std::clamp(level, 0.0, 1.0);
}

uint64_t Scale::ValueAt(double level) const {
  return static_cast<uint64_t>(
      std::llround(static_cast<double>(min_) *
                   std::pow(static_cast<double>(max_) / static_cast<double>(min_), level)));
}

const Palette& PaletteOf(Theme theme) { return theme == Theme::kDark ? kDark : kLight; }

}  // namespace cellar::heatmap
