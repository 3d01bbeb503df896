// The pictures of cellar-heatmap: to the byte, and the colours one after the other.
#include <png.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/hash.h"
#include "cellar-heatmap/font.h"
#include "cellar-heatmap/heat.h"
#include "cellar-heatmap/picture.h"

namespace heatmap_test {

using namespace cellar::heatmap;  // NOLINT(google-build-using-namespace)

// A diagonal, a line that is always hot, and a moment when all are.
Grid MakeGrid() {
  Grid grid;
  grid.table = "planes <&> \"x\"";
  grid.metric = "reads";
  grid.from_s = 1'795'403'460;
  grid.step_s = 60;
  for (size_t i = 0; i < 16; ++i) grid.keys.push_back(i == 0 ? "-" : "key" + std::to_string(i));
  grid.keys[5] = std::string("bin\0\xff<b>", 8);
  for (size_t step = 0; step < 30; ++step) {
    std::vector<uint64_t>& cells = grid.cells.emplace_back(16);
    cells[step / 2] += 64 * (step + 1);
    cells[10] += 100'000;
    if (step == 20) {
      for (uint64_t& cell : cells) cell += 5000;
    }
  }
  return grid;
}

// Compares with the file, or writes it if CELLAR_GOLDEN is set.
void CheckGolden(const std::string& name, const std::string& bytes) {
  const std::string path = "tests/tools/heatmap/" + name;
  if (std::getenv("CELLAR_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  std::stringstream text;
  text << file.rdbuf();
  CHECK((text.str() == bytes));  // a difference is looked at in the file
}

TEST_CASE("the picture is what it was, to the byte", "[heatmap]") {
  const Grid grid = MakeGrid();
  CheckGolden("light.svg", Svg(grid, Theme::kLight));
  CheckGolden("dark.svg", Svg(grid, Theme::kDark));
  CheckGolden("plain80.txt", TerminalText(grid, 80, 24, Colours::kNone, Theme::kDark));
  CheckGolden("colour80.txt", TerminalText(grid, 80, 24, Colours::k256, Theme::kDark));
  CheckGolden("true200.txt", TerminalText(grid, 200, 50, Colours::kTrue, Theme::kLight));
}

TEST_CASE("the PNG is what it was, to the point", "[heatmap]") {
  const cellar::Result<std::string> file = Png(MakeGrid(), Theme::kDark);
  REQUIRE(file.ok());
  // How libpng packs the points may change, the points may not.
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&image, file->data(), file->size()) != 0);
  image.format = PNG_FORMAT_RGB;
  std::string points(PNG_IMAGE_SIZE(image), '\0');
  REQUIRE(png_image_finish_read(&image, nullptr, points.data(), 0, nullptr) != 0);
  CheckGolden("dark.png.hash", std::to_string(image.width) + " " + std::to_string(image.height) +
                                   " " + std::to_string(cellar::Hash64(points)) + "\n");
}

TEST_CASE("names cannot leave their place in an SVG", "[heatmap]") {
  const std::string svg = Svg(MakeGrid(), Theme::kLight);
  CHECK(svg.find("<b>") == std::string::npos);
  CHECK(svg.find("planes &lt;&amp;&gt; \"x\"") != std::string::npos);
  CHECK(svg.find('\0') == std::string::npos);
}

TEST_CASE("each colour is lighter than the one before", "[heatmap]") {
  double last = 0;
  for (int i = 0; i <= 200; ++i) {
    const double lightness = Lightness(ColourAt(i / 200.0));
    CHECK(lightness > last);
    last = lightness;
  }
  // Blue against yellow, which all tell apart: the ends differ in both.
  CHECK(ColourAt(0).blue > ColourAt(1).blue);
  CHECK(ColourAt(1).red > ColourAt(0).red + 150);
}

TEST_CASE("the scale is a logarithm from the least to the most", "[heatmap]") {
  const Scale scale(64, 6'400'000);
  CHECK(scale.LevelOf(64) == 0);
  CHECK(scale.LevelOf(6'400'000) == 1);
  CHECK(scale.LevelOf(20'239) == Approx(0.5).epsilon(0.001));
  CHECK(scale.ValueAt(0) == 64);
  CHECK(scale.ValueAt(1) == 6'400'000);
  CHECK(Scale(7, 7).LevelOf(7) == 1);
}

TEST_CASE("pictures of nothing, of one cell, and of very many", "[heatmap]") {
  Grid grid = MakeGrid();
  grid.cells.assign(1, std::vector<uint64_t>(1));
  grid.keys = {"-"};
  for (const uint64_t value : {0, 1, 1'000'000'000}) {
    grid.cells[0][0] = value;
    CHECK(Svg(grid, Theme::kDark).ends_with("</svg>\n"));
    CHECK(Png(grid, Theme::kDark).ok());
    CHECK_FALSE(TerminalText(grid, 80, 24, Colours::kTrue, Theme::kDark).empty());
  }
  grid.keys.assign(256, "k");
  grid.cells.assign(1440, std::vector<uint64_t>(256, 9));
  for (const size_t columns : {26, 80, 200}) {
    const std::string text = TerminalText(grid, columns, 24, Colours::kNone, Theme::kDark);
    std::istringstream lines(text);
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) CHECK(line.size() <= columns);
    CHECK(count <= 24);
  }
  CHECK(Svg(grid, Theme::kLight).size() < 100'000);  // one colour is one rectangle
}

TEST_CASE("glyphs differ from one another", "[heatmap]") {
  std::set<Glyph> seen;
  for (char c = ' '; c < '~'; ++c) CHECK(seen.insert(GlyphOf(c)).second);
  CHECK(GlyphOf('\x7f') == GlyphOf('\xff'));
}

TEST_CASE("numbers, times and keys for people", "[heatmap]") {
  CHECK(NumberText(0) == "0");
  CHECK(NumberText(999) == "999");
  CHECK(NumberText(1000) == "1.0k");
  CHECK(NumberText(123'456) == "123k");
  CHECK(NumberText(99'960'000) == "100M");
  CHECK(NumberText(UINT64_MAX) == "18E");
  CHECK(TimeText(1'795'403'460, true) == "23 Nov 03:11");
  CHECK(TimeText(59, false) == "00:00");
  CHECK(KeyText(std::string("a\0b\xff", 4), 20) == "a\\x00b\\xff");
  CHECK(KeyText("a long key that does not fit", 10) == "a long k..");
}

}  // namespace heatmap_test
