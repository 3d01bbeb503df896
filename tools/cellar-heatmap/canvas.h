// Canvas: what a picture is drawn on: rectangles and text, in units of which the SVG has one a
// pixel and the PNG two. The origin is the upper left corner.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar-heatmap/scale.h"
#include "cellar/status.h"

namespace cellar::heatmap {

// A character's place; text stands on its lower edge.
inline constexpr int kCharWidth{7};
inline constexpr int kCharHeight{12};

enum class Anchor : uint8_t { kBegin, kMiddle, kEnd };

class Canvas {
 public:
  virtual ~Canvas() = default;
  virtual void Rectangle(int x, int y, int width, int height, Colour colour) = 0;
  // Of printable ASCII.
  virtual void Text(int x, int y, std::string_view text, Colour colour, Anchor anchor) = 0;
};

class SvgCanvas final : public Canvas {
 public:
  SvgCanvas(int width, int height);
  void Rectangle(int x, int y, int width, int height, Colour colour) override;
  void Text(int x, int y, std::string_view text, Colour colour, Anchor anchor) override;
  // The file.
  std::string Finish();

 private:
  std::string text_;
};

class PngCanvas final : public Canvas {
 public:
  PngCanvas(int width, int height);
  void Rectangle(int x, int y, int width, int height, Colour colour) override;
  void Text(int x, int y, std::string_view text, Colour colour, Anchor anchor) override;
  // The file.
  Result<std::string> Finish() const;

 private:
  static constexpr int kPixelsPerUnit{2};
  void Fill(int x, int y, int width, int height, Colour colour);

  int width_;  // in pixels
  int height_;
  std::vector<uint8_t> pixels_;  // three bytes each
};

}  // namespace cellar::heatmap
