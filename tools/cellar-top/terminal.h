// The screen of cellar-top in a terminal, by ncurses.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cellar-top/screen.h"

namespace cellar::top {

class Terminal {
 public:
  Terminal();
  ~Terminal();  // the terminal is as before
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  size_t columns() const;
  void Show(const std::vector<Line>& lines, const std::string& message);
  // Waits for a key at most so long; 0 if none came, or the window has another size.
  int WaitKey(double seconds);

 private:
  bool colours_{false};
};

}  // namespace cellar::top
