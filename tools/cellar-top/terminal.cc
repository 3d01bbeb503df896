// See terminal.h.
#include "cellar-top/terminal.h"

#include <ncurses.h>

#include <algorithm>

namespace cellar::top {
namespace {

constexpr short kAlarmPair{1};

}  // namespace

Terminal::Terminal() {
  (void)initscr();
  (void)cbreak();
  (void)noecho();
  (void)keypad(stdscr, TRUE);
  (void)curs_set(0);
  if (has_colors()) {
    colours_ = start_color() == OK && use_default_colors() == OK &&
               init_pair(kAlarmPair, COLOR_RED, -1) == OK;
  }
}

Terminal::~Terminal() { (void)endwin(); }

size_t Terminal::columns() const { return static_cast<size_t>(std::max(20, COLS)); }

void Terminal::Show(const std::vector<Line>& lines, const std::string& message) {
  (void)erase();
  const int rows = LINES - (message.empty() ? 0 : 1);
  int row = 0;
  for (const Line& line : lines) {
    if (row >= rows) break;
    attr_t attributes = A_NORMAL;
    if (line.kind == LineKind::kHead) attributes = A_REVERSE;
    if (line.kind == LineKind::kAlarm) {
      attributes = A_BOLD | (colours_ ? COLOR_PAIR(kAlarmPair) : A_NORMAL);
    }
    (void)attron(static_cast<int>(attributes));
    (void)mvaddnstr(row, 0, line.text.c_str(), COLS);
    (void)attroff(static_cast<int>(attributes));
    ++row;
  }
  if (!message.empty()) {
    (void)attron(A_BOLD);
    (void)mvaddnstr(LINES - 1, 0, message.c_str(), COLS);
    (void)attroff(A_BOLD);
  }
  (void)refresh();
}

int Terminal::WaitKey(double seconds) {
  timeout(static_cast<int>(std::max(0.0, seconds) * 1000));
  const int key = getch();
  return key == ERR || key == KEY_RESIZE ? 0 : key;
}

}  // namespace cellar::top
