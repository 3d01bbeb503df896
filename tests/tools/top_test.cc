// What cellar-top shows, from what a server said twice.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cellar-top/sample.h"
#include "cellar-top/screen.h"

namespace top_test {

using namespace cellar::top;  // NOLINT(google-build-using-namespace)
namespace client = cellar::client;

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

client::SetState MakeSet(uint64_t number, const char* state, const char* leader) {
  client::SetState set;
  set.number = number;
  set.state = state;
  set.leader = leader;
  set.tablets = 3;
  set.bytes = 2048;
  set.catalog = 5;
  set.members.resize(3);
  for (client::SetMember& member : set.members) member.state = "online";
  return set;
}

TEST_CASE("sets of a cluster are shown, those that need somebody first", "[top]") {
  Sample now = MakeSample(2, "");
  const Sample before = MakeSample(1, "");
  CHECK(!Has(Text(Lines(before, now, {})), "LEADER"));
  for (uint64_t i = 0; i < 9; ++i) now.sets.push_back(MakeSet(i, "ok", "h:1"));
  now.sets[7].members[1].state = "down";
  now.sets[8] = MakeSet(8, "no-leader", "");
  now.spreads = {{"0/t", 5, {{0, 3}, {12, 2}}}};
  const std::vector<Line> lines = Lines(before, now, {});
  const std::string text = Text(lines);
  INFO(text);
  CHECK(Has(text, "7     ok         h:1                       2 of 3        3     2.0K        5"));
  CHECK(Has(text, "8     no-leader  nobody                    3 of 3        3     2.0K        5"));
  CHECK(text.find("\n8 ") < text.find("\n0 "));
  CHECK(Has(text, "and 3 more"));
  CHECK(Has(text, "0/t                           5  0: 3, 12: 2"));
  size_t alarms = 0;
  for (const Line& line : lines) {
    CHECK(line.text.size() <= 80);
    alarms += line.kind == LineKind::kAlarm && Has(line.text, "of 3") ? 1 : 0;
  }
  CHECK(alarms == 2);
  now.sets[7].members[1].host = "10.0.0.1";
  now.sets[7].members[1].kind = "witness";
  const std::string all = Text(Lines(before, now, {.server = "", .shows_cluster = true}));
  INFO(all);
  CHECK(Has(all, "7     10.0.0.1:0                  witness   down"));
  CHECK(!Has(all, "and 3 more"));
  CHECK(!Has(all, "COMMAND"));
  CHECK(Has(Text(Lines(before, before, {.server = "", .shows_cluster = true})), "of no cluster"));
}

TEST_CASE("moments over all sets, their backup and feeds are shown", "[top]") {
  const Sample before = MakeSample(1, "");
  Sample now = MakeSample(1000, "");
  now.sets.push_back(MakeSet(0, "ok", "h:1"));
  const auto text = [&](bool shows_cluster) {
    const std::vector<Line> lines =
        Lines(before, now, {.server = "", .shows_cluster = shows_cluster});
    std::string all;
    for (const Line& line : lines) {
      CHECK(line.text.size() <= 80);
      all += (line.kind == LineKind::kAlarm ? "! " : "") + line.text + "\n";
    }
    return all;
  };
  CHECK(!Has(text(true), "cut "));  // of one set they are nothing
  now.sets.push_back(MakeSet(1, "ok", "h:2"));
  CHECK(Has(text(false), "\ncut      none, none by itself"));
  now.cut_interval_s = 10;
  CHECK(Has(text(false), "! cut      none, one every 10 s"));
  now.cuts = {{17, 1'995'000'000, "restore point", "good"}, {16, 5, "snapshot", "bad"}};
  CHECK(Has(text(false), "\ncut      17, restore point, 0m 05s ago; one every 10 s\n"));
  CHECK(Has(text(true), "\ncut      17, restore point, 0m 05s ago; one every 10 s\n"));
  now.cuts.insert(now.cuts.begin(), {18, 1'999'000'000, "backup", "bad"});
  CHECK(Has(text(false), "! cut      17, restore point, 0m 05s ago; one every 10 s; 1 BAD since"));
  now.cuts = {{17, 1'900'000'000, "restore point", "good"}};
  CHECK(Has(text(false), "! cut      17, restore point, 1m 40s ago"));
  now.cuts[0].unix_micros = 2'000'400'000;  // by another clock
  CHECK(Has(text(false), "\ncut      17, restore point, now; one every 10 s\n"));
  now.backup = client::BackupState{};
  CHECK(!Has(text(false), "backup"));
  now.backup = {"snapshotting", "", 1940, 0, 0, {{0, "snapshotting"}, {1, "incrementing"}}};
  CHECK(Has(text(false),
            "\nbackup   snapshotting, begun 1m 00s ago, 1 set incrementing, 1 set snap"));
  now.backup->folder = "/backups";
  CHECK(Has(text(false),
            "\nbackup   snapshotting, begun 1m 00s ago in /backups, 1 set incrementing"));
  now.backup = {"failed", "set 1: no room", 1940, 0, 0, {{0, "failed"}}};
  CHECK(Has(text(false), "! backup   failed, begun 1m 00s ago: set 1: no room"));
  now.backup = {"sealed", "", 1940, 1999, 21, {{0, "sealed"}, {1, "sealed"}}};
  CHECK(Has(text(true), "\nbackup   sealed, cut 21, 0m 01s ago\n"));
  now.feeds = {{.name = "own", .groups = 1, .bytes = 5},
               {.name = "log", .groups = 2, .bytes = 4096, .home = 1, .resolved_ms = 1'999'900},
               {.name = "late", .resolved_ms = 1'900'000, .held_back_by = 1, .held_back_s = 100},
               {.name = "away", .held_back_by = 7}};
  const std::string all = text(true);
  INFO(all);
  CHECK(!Has(all, "own"));
  CHECK(Has(all, "\nlog, set 1                           2     4.0K          now  \n"));
  CHECK(
      Has(all, "! late                                 0       0B   1m 40s ago  set 1 for 1m 40s"));
  CHECK(Has(all, "! away                                 0       0B            -  set 7, away"));
  CHECK(Has(text(false), "! feed     late: 0 groups, 0B kept, held back by set 1 for 1m 40s"));
}

TEST_CASE("what a hostile server says stays in its line", "[top]") {
  Sample now =
      MakeSample(2, "role:\x1b[2Jmaster\r\ncmdstat_\x07:calls=9,usec=x\r\ntable_:rows=\r\n:\r\n=");
  now.slow.push_back({1, 5, "CGET \x1b]0;title\x07 " + std::string(500, 'x'), "c"});
  now.sets.push_back(MakeSet(0, "\x1b[2J", std::string(300, '\x07').c_str()));
  now.sets.push_back(now.sets.back());
  now.spreads.push_back({"t\x1b", 3, {}});
  now.cuts.push_back({UINT64_MAX, INT64_MIN, "\x1b[2J", "good"});
  now.backup = {"\x1b", std::string(300, '\x07'), 1, 0, 0, {{0, "\x1b"}, {1, "\n"}}};
  now.feeds.push_back({.name = "\x1b", .resolved_ms = INT64_MIN, .held_back_by = UINT64_MAX});
  now.ranges.push_back({"t\n", std::string("\0\x1b", 2), "", 5, 6});
  const Sample before = MakeSample(1, "");
  for (const size_t columns : {20, 21, 80, 200}) {
    View view;
    view.columns = columns;
    view.shows_cluster = columns == 21;
    for (const Line& line : Lines(before, now, view)) {
      CHECK(line.text.size() <= columns);
      for (const char c : line.text) CHECK((c >= ' ' && c <= '~'));
    }
  }
}

}  // namespace top_test
