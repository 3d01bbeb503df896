// See picture.h.
#include "cellar-heatmap/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cellar-heatmap/canvas.h"

namespace cellar::heatmap {
namespace {

constexpr int kPlotWidth{900};
constexpr int kPlotHeight{512};
constexpr int kLeft{160};
constexpr int kTop{44};
constexpr int kRight{110};
constexpr int kLineHeight{16};
constexpr int kAxisHeight{28};
constexpr int kTickGap{110};  // between two labels of time, at least
constexpr size_t kKeyChars{21};
constexpr size_t kHottest{5};
constexpr int kLegendSteps{64};

struct Layout {
  int cell_width;
  int cell_height;
  int width;  // of the plot
  int height;
  int total_width;
  int total_height;
};

Layout LayoutOf(const Grid& grid) {
  Layout layout{};
  layout.cell_width = std::max(1, kPlotWidth / static_cast<int>(grid.steps()));
  layout.cell_width = std::min(layout.cell_width, 60);
  layout.cell_height = std::max(2, kPlotHeight / static_cast<int>(grid.ranges()));
  layout.cell_height = std::min(layout.cell_height, 24);
  layout.width = layout.cell_width * static_cast<int>(grid.steps());
  layout.height = layout.cell_height * static_cast<int>(grid.ranges());
  const int body = std::max(layout.height, 160);
  layout.total_width = std::max(kLeft + layout.width + kRight, 640);
  layout.total_height = kTop + body + kAxisHeight + kLineHeight * (static_cast<int>(kHottest) + 2);
  return layout;
}

class Picture {
 public:
  Picture(const Grid& grid, Theme theme, Canvas* canvas)
      : grid_(grid),
        palette_(PaletteOf(theme)),
        canvas_(*canvas),
        layout_(LayoutOf(grid)),
        scale_(grid.min(), grid.max()) {}

  void Draw() {
    canvas_.Rectangle(0, 0, layout_.total_width, layout_.total_height, palette_.background);
    DrawTitle();
    DrawCells();
    DrawKeys();
    DrawTime();
    DrawLegend();
    DrawHottest();
  }

 private:
  void DrawTitle() {
    const int64_t end = grid_.from_s + grid_.step_s * static_cast<int64_t>(grid_.steps());
    canvas_.Text(kLeft, 20,
                 fmt::format("{} of {}, {} to {} UTC", grid_.metric, KeyText(grid_.table, 64),
                             TimeText(grid_.from_s, true), TimeText(end, true)),
                 palette_.text, Anchor::kBegin);
    const char* const unit = grid_.metric == "bytes" ? "bytes" : "rows";
    canvas_.Text(kLeft, 36,
                 fmt::format("{} {} in all, {} min a column", NumberText(grid_.total()), unit,
                             grid_.step_s / 60),
                 palette_.dim, Anchor::kBegin);
  }

  // Neighbours of one colour are one rectangle.
  void DrawCells() {
    canvas_.Rectangle(kLeft, kTop, layout_.width, layout_.height, palette_.nothing);
    for (size_t range = 0; range < grid_.ranges(); ++range) {
      size_t step = 0;
      while (step < grid_.steps()) {
        const uint64_t value = grid_.cells[step][range];
        size_t end = step + 1;
        const Colour colour = value == 0 ? palette_.nothing : ColourAt(scale_.LevelOf(value));
        while (end < grid_.steps() && ColourOf(end, range) == colour) ++end;
        if (value > 0) {
          canvas_.Rectangle(kLeft + static_cast<int>(step) * layout_.cell_width,
                            kTop + static_cast<int>(range) * layout_.cell_height,
                            static_cast<int>(end - step) * layout_.cell_width, layout_.cell_height,
                            colour);
        }
        step = end;
      }
    }
  }

  Colour ColourOf(size_t step, size_t range) const {
    const uint64_t value = grid_.cells[step][range];
    return value == 0 ? palette_.nothing : ColourAt(scale_.LevelOf(value));
  }

  void DrawKeys() {
    const int apart =
        std::max(1, (kCharHeight + 2 + layout_.cell_height - 1) / layout_.cell_height);
    for (int range = 0; range < static_cast<int>(grid_.ranges()); range += apart) {
      const int y = kTop + range * layout_.cell_height;
      canvas_.Rectangle(kLeft - 4, y, 4, 1, palette_.dim);
      canvas_.Text(kLeft - 7, y + kCharHeight - 1,
                   KeyText(grid_.keys[static_cast<size_t>(range)], kKeyChars), palette_.text,
                   Anchor::kEnd);
    }
  }

  void DrawTime() {
    const int y = kTop + layout_.height;
    const int apart = std::max(1, (kTickGap + layout_.cell_width - 1) / layout_.cell_width);
    const bool days = grid_.step_s * static_cast<int64_t>(grid_.steps()) > 86'400;
    for (int step = 0; step < static_cast<int>(grid_.steps()); step += apart) {
      const int x = kLeft + step * layout_.cell_width;
      canvas_.Rectangle(x, y, 1, 4, palette_.dim);
      canvas_.Text(x, y + 6 + kCharHeight, TimeText(grid_.from_s + step * grid_.step_s, days),
                   palette_.text, Anchor::kBegin);
    }
  }

  void DrawLegend() {
    const int x = kLeft + layout_.width + 16;
    const int step_height = 2;
    const int height = kLegendSteps * step_height;
    for (int i = 0; i < kLegendSteps; ++i) {
      const double level = 1 - static_cast<double>(i) / (kLegendSteps - 1);
      canvas_.Rectangle(x, kTop + i * step_height, 14, step_height, ColourAt(level));
    }
    if (grid_.max() == 0) return;
    for (const double level : {1.0, 0.75, 0.5, 0.25, 0.0}) {
      const int y = kTop + static_cast<int>((1 - level) * height);
      canvas_.Text(x + 20, y + kCharHeight / 2 + (level == 1.0 ? 4 : 0),
                   NumberText(scale_.ValueAt(level)), palette_.text, Anchor::kBegin);
    }
    canvas_.Rectangle(x, kTop + height + 8, 14, 10, palette_.nothing);
    canvas_.Text(x + 20, kTop + height + 8 + kCharHeight - 2, "none", palette_.text,
                 Anchor::kBegin);
  }

  void DrawHottest() {
    int y = kTop + std::max(layout_.height, 160) + kAxisHeight + kLineHeight;
    const std::vector<HotRange> ranges = Hottest(grid_, kHottest);
    canvas_.Text(16, y, ranges.empty() ? "nothing was counted" : "hottest ranges", palette_.dim,
                 Anchor::kBegin);
    for (const HotRange& range : ranges) {
      y += kLineHeight;
      canvas_.Text(16, y,
                   fmt::format("{:>5.1f} %  {:>6}  {} to {}", range.share * 100,
                               NumberText(range.amount), KeyText(range.first, 28),
                               range.end.empty() ? "the end" : KeyText(range.end, 28)),
                   palette_.text, Anchor::kBegin);
    }
  }

  const Grid& grid_;
  const Palette& palette_;
  Canvas& canvas_;
  Layout layout_;
  Scale scale_;
};

// --- terminal

constexpr size_t kTerminalKey{16};

std::string ColourCode(Colour colour, Colours colours, bool background) {
  const int kind = background ? 48 : 38;
  if (colours == Colours::kTrue) {
    return fmt::format("\x1b[{};2;{};{};{}m", kind, colour.red, colour.green, colour.blue);
  }
  // The cube of 6 x 6 x 6 behind the first 16.
  const auto part = [](uint8_t value) {
    return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
  };
  return fmt::format("\x1b[{};5;{}m", kind,
                     16 + 36 * part(colour.red) + 6 * part(colour.green) + part(colour.blue));
}

// So many steps are one column, so many ranges one row of points.
Grid Folded(const Grid& grid, size_t columns, size_t rows) {
  const size_t steps = (grid.steps() + columns - 1) / columns;
  const size_t ranges = (grid.ranges() + rows - 1) / rows;
  Grid folded = grid;
  folded.step_s = grid.step_s * static_cast<int64_t>(steps);
  folded.keys.clear();
  for (size_t i = 0; i < grid.ranges(); i += ranges) folded.keys.push_back(grid.keys[i]);
  folded.cells.assign((grid.steps() + steps - 1) / steps,
                      std::vector<uint64_t>(folded.keys.size()));
  for (size_t i = 0; i < grid.steps(); ++i) {
    for (size_t k = 0; k < grid.ranges(); ++k)
      folded.cells[i / steps][k / ranges] += grid.cells[i][k];
  }
  return folded;
}

class TerminalPicture {
 public:
  TerminalPicture(Grid grid, Colours colours, Theme theme)
      : grid_(std::move(grid)),
        colours_(colours),
        palette_(PaletteOf(theme)),
        scale_(grid_.min(), grid_.max()) {}

  std::string Draw(size_t columns) {
    const char* const unit = grid_.metric == "bytes" ? "bytes" : "rows";
    AddLine(fmt::format("{} of {}: {} {}", grid_.metric, KeyText(grid_.table, 40),
                        NumberText(grid_.total()), unit),
            columns);
    const size_t lines = colours_ == Colours::kNone ? 1 : 2;  // rows of points a line
    for (size_t range = 0; range < grid_.ranges(); range += lines) DrawLine(range);
    DrawTime(columns);
    DrawLegend(columns);
    for (const HotRange& range : Hottest(grid_, 5)) {
      AddLine(fmt::format("{:>5.1f} % {:>6}  {} to {}", range.share * 100, NumberText(range.amount),
                          KeyText(range.first, 24),
                          range.end.empty() ? "the end" : KeyText(range.end, 24)),
              columns);
    }
    return std::move(text_);
  }

 private:
  void AddLine(std::string line, size_t columns) {
    if (line.size() > columns) line.resize(columns);
    text_ += line + "\n";
  }

  Colour ColourOf(size_t step, size_t range) const {
    if (range >= grid_.ranges()) return palette_.background;
    const uint64_t value = grid_.cells[step][range];
    return value == 0 ? palette_.nothing : ColourAt(scale_.LevelOf(value));
  }

  void DrawLine(size_t range) {
    text_ += fmt::format("{:>{}} ", KeyText(grid_.keys[range], kTerminalKey), kTerminalKey);
    std::string last;
    for (size_t step = 0; step < grid_.steps(); ++step) {
      if (colours_ == Colours::kNone) {
        text_.push_back(MarkOf(grid_.cells[step][range]));
        continue;
      }
      // The upper half of the character is one range, the lower half the next.
      const std::string codes = ColourCode(ColourOf(step, range), colours_, false) +
                                ColourCode(ColourOf(step, range + 1), colours_, true);
      if (codes != last) text_ += codes;
      last = codes;
      text_ += "\u2580";
    }
    text_ += colours_ == Colours::kNone ? "\n" : "\x1b[0m\n";
  }

  char MarkOf(uint64_t value) const {
    constexpr std::string_view kMarks{".:-=+*#%@"};
    if (value == 0) return ' ';
    return kMarks[static_cast<size_t>(
        std::lround(scale_.LevelOf(value) * static_cast<double>(kMarks.size() - 1)))];
  }

  void DrawTime(size_t columns) {
    constexpr size_t kApart{12};
    const bool days = grid_.step_s * static_cast<int64_t>(grid_.steps()) > 86'400;
    std::string line(kTerminalKey + 1, ' ');
    for (size_t step = 0; step < grid_.steps(); step += kApart + (days ? 4 : 0)) {
      line.resize(kTerminalKey + 1 + step, ' ');
      line += TimeText(grid_.from_s + static_cast<int64_t>(step) * grid_.step_s, days);
    }
    AddLine(std::move(line), columns);
  }

  void DrawLegend(size_t columns) {
    constexpr size_t kColumnsMin{60};
    constexpr int kMarks{16};
    const std::string begin = std::string(kTerminalKey + 1, ' ');
    if (grid_.max() == 0) return AddLine(begin + "nothing was counted", columns);
    const std::string most =
        fmt::format(" {}, {} min a column", NumberText(grid_.max()), grid_.step_s / 60);
    std::string marks;
    for (int i = 0; i < kMarks; ++i) {
      const double level = static_cast<double>(i) / (kMarks - 1);
      if (colours_ == Colours::kNone) {
        marks.push_back(MarkOf(std::max<uint64_t>(1, scale_.ValueAt(level))));
      } else {
        marks += ColourCode(ColourAt(level), colours_, true) + " ";
      }
    }
    if (colours_ == Colours::kNone) {
      return AddLine(begin + NumberText(grid_.min()) + " " + marks + most, columns);
    }
    if (columns < kColumnsMin) return;
    text_ += begin + NumberText(grid_.min()) + " " + marks + "\x1b[0m" + most + "\n";
  }

  Grid grid_;
  Colours colours_;
  const Palette& palette_;
  Scale scale_;
  std::string text_;
};

}  // namespace

std::string Svg(const Grid& grid, Theme theme) {
  const Layout layout = LayoutOf(grid);
  SvgCanvas canvas(layout.total_width, layout.total_height);
  Picture(grid, theme, &canvas).Draw();
  return canvas.Finish();
}

Result<std::string> Png(const Grid& grid, Theme theme) {
  const Layout layout = LayoutOf(grid);
  PngCanvas canvas(layout.total_width, layout.total_height);
  Picture(grid, theme, &canvas).Draw();
  return canvas.Finish();
}

std::string TerminalText(const Grid& grid, size_t columns, size_t lines, Colours colours,
                         Theme theme) {
  constexpr size_t kOtherLines{9};
  const size_t room = std::max<size_t>(columns, kTerminalKey + 9) - kTerminalKey - 1;
  const size_t rows = std::max<size_t>(lines, kOtherLines + 4) - kOtherLines;
  return TerminalPicture(Folded(grid, room, colours == Colours::kNone ? rows : 2 * rows), colours,
                         theme)
      .Draw(columns);
}

}  // namespace cellar::heatmap
