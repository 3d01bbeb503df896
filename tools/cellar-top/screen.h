// What cellar-top shows, as lines of text: the same for a terminal and for --once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cellar-top/sample.h"

namespace cellar::top {

enum class LineKind : uint8_t { kPlain, kHead, kAlarm };

struct Line {
  LineKind kind;
  std::string text;  // printable ASCII, at most `columns` long
};

enum class Order : uint8_t { kTime, kCalls, kName };  // of commands

struct View {
  std::string server;
  size_t columns{80};
  size_t commands_max{10};
  size_t tables_max{8};
  Order order{Order::kTime};
  bool shows_cluster{false};  // its sets, tablets and nodes, all of them, in place of the rest
};

// Rates are those between the two moments.
std::vector<Line> Lines(const Sample& before, const Sample& now, const View& view);

}  // namespace cellar::top
