// See canvas.h. No script, no style sheet, no font of its own: any viewer shows it.
#include <fmt/format.h>

#include "cellar-heatmap/canvas.h"

namespace cellar::heatmap {
namespace {

std::string Name(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

}  // namespace

SvgCanvas::SvgCanvas(int width, int height) {
  text_ = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" font-family=\"monospace\" font-size=\"11\" shape-rendering=\"crispEdges\">\n",
      width, height);
}

void SvgCanvas::Rectangle(int x, int y, int width, int height, Colour colour) {
  text_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x, y,
                       width, height, Name(colour));
}

void SvgCanvas::Text(int x, int y, std::string_view text, Colour colour, Anchor anchor) {
  if (text.empty()) return;
  static constexpr const char* kAnchors[]{"start", "middle", "end"};
  text_ += fmt::format(
      "<text x=\"{}\" y=\"{}\" fill=\"{}\" text-anchor=\"{}\" xml:space=\"preserve\">{}</text>\n",
      x, y - 2, Name(colour), kAnchors[static_cast<size_t>(anchor)], Escaped(text));
}

std::string SvgCanvas::Finish() { return text_ + "</svg>\n"; }

}  // namespace cellar::heatmap
