// See canvas.h. Written by libpng; letters are those of font.h.
#include <png.h>

#include <algorithm>

#include "base/assert.h"
#include "cellar-heatmap/canvas.h"
#include "cellar-heatmap/font.h"

namespace cellar::heatmap {

PngCanvas::PngCanvas(int width, int height)
    : width_(width * kPixelsPerUnit),
      height_(height * kPixelsPerUnit),
      pixels_(static_cast<size_t>(width_) * static_cast<size_t>(height_) * 3) {}

void PngCanvas::Fill(int x, int y, int width, int height, Colour colour) {
  const int right = std::min(x + width, width_);
  const int bottom = std::min(y + height, height_);
  for (int row = std::max(y, 0); row < bottom; ++row) {
    for (int column = std::max(x, 0); column < right; ++column) {
      uint8_t* const pixel =
          pixels_.data() +
          (static_cast<size_t>(row) * static_cast<size_t>(width_) + static_cast<size_t>(column)) *
              3;
      pixel[0] = colour.red;
      pixel[1] = colour.green;
      pixel[2] = colour.blue;
    }
  }
}

void PngCanvas::Rectangle(int x, int y, int width, int height, Colour colour) {
  Fill(x * kPixelsPerUnit, y * kPixelsPerUnit, width * kPixelsPerUnit, height * kPixelsPerUnit,
       colour);
}

void PngCanvas::Text(int x, int y, std::string_view text, Colour colour, Anchor anchor) {
  const int width = static_cast<int>(text.size()) * kCharWidth;
  if (anchor == Anchor::kMiddle) x -= width / 2;
  if (anchor == Anchor::kEnd) x -= width;
  int left = x * kPixelsPerUnit + 2;
  const int top = (y - kCharHeight) * kPixelsPerUnit + 4;
  for (const char c : text) {
    const Glyph& glyph = GlyphOf(c);
    for (int row = 0; row < kGlyphRows; ++row) {
      for (int column = 0; column < kGlyphColumns; ++column) {
        if ((glyph[static_cast<size_t>(row)] >> (kGlyphColumns - 1 - column) & 1) == 0) continue;
        Fill(left + column * kPixelsPerUnit, top + row * kPixelsPerUnit, kPixelsPerUnit,
             kPixelsPerUnit, colour);
      }
    }
    left += kCharWidth * kPixelsPerUnit;
  }
}

Result<std::string> PngCanvas::Finish() const {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width_);
  image.height = static_cast<png_uint_32>(height_);
  image.format = PNG_FORMAT_RGB;
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t bytes = file.size();
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, pixels_.data(), 0, nullptr) == 0) {
    return Status::Error(ErrorCode::kErr, std::string("libpng: ") + image.message);
  }
  file.resize(bytes);
  return file;
}

}  // namespace cellar::heatmap
