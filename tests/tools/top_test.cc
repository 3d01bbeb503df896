// What cellar-top shows, from what a server said twice.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cellar-top/sample.h"
#include "cellar-top/screen.h"

namespace top_test {

using namespace cellar::top;  // NOLINT(google-build-using-namespace)

Sample MakeSample(int64_t second, const std::string& info) {
  Sample sample;
  sample.monotonic_micros = second * 1'000'000;
  sample.unix_s = 1000 + second;
  sample.info = InfoFields(info);
  return sample;
}

std::string Text(const std::vector<Line>& lines) {
  std::string text;
  for (const Line& line : lines) text += line.text + "\n";
  return text;
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("rates are those between two looks", "[top]") {
  const Sample before = MakeSample(
      10,
      "run_id:a\r\ntotal_commands_processed:1000\r\n# Commandstats\r\n"
      "cmdstat_cget:calls=100,usec=200,failed_calls=0,rejected_calls=0\r\n"
      "table_0/t:rows=5,cells=6,bytes=7,reads=0,writes=10,indexes=2,indexes_failed=1\r\n");
  const Sample now = MakeSample(
      12,
      "run_id:a\r\ntotal_commands_processed:5000\r\n"
      "cmdstat_cget:calls=2100,usec=6200,failed_calls=20,rejected_calls=0\r\n"
      "cmdstat_ping:calls=5,usec=1\r\n"
      "table_0/t:rows=5,cells=6,bytes=7,reads=64000,writes=10,indexes=2,indexes_failed=1\r\n");
  View view;
  const std::vector<Line> lines = Lines(before, now, view);
  const std::string text = Text(lines);
  INFO(text);
  CHECK(Has(text, "commands 2.0k/s"));
  CHECK(Has(text, "cget                          1.0k      0.3       3.00          -        10"));
  CHECK(
      Has(text, "0/t                           5        6       7B     32.0k       0.0  2 FAILED"));
  bool alarm = false;
  for (const Line& line : lines) {
    CHECK(line.text.size() <= 80);
    alarm = alarm || (line.kind == LineKind::kAlarm && Has(line.text, "FAILED"));
  }
  CHECK(alarm);
  // Another run of the server counts anew.
  const Sample again = MakeSample(14, "run_id:b\r\ntotal_commands_processed:50\r\n");
  CHECK(Has(Text(Lines(now, again, view)), "commands 0.0/s"));
}

TEST_CASE("what a hostile server says stays in its line", "[top]") {
  Sample now =
      MakeSample(2, "role:\x1b[2Jmaster\r\ncmdstat_\x07:calls=9,usec=x\r\ntable_:rows=\r\n:\r\n=");
  now.slow.push_back({1, 5, "CGET \x1b]0;title\x07 " + std::string(500, 'x'), "c"});
  now.ranges.push_back({"t\n", std::string("\0\x1b", 2), "", 5, 6});
  const Sample before = MakeSample(1, "");
  for (const size_t columns : {20, 80, 200}) {
    View view;
    view.columns = columns;
    for (const Line& line : Lines(before, now, view)) {
      CHECK(line.text.size() <= columns);
      for (const char c : line.text) CHECK((c >= ' ' && c <= '~'));
    }
  }
}

}  // namespace top_test
