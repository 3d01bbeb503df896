// What nodes of a cluster say to each other: there and back, cut short, changed at random, and
// what none may say.
#include "cluster/cluster_frames.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/random.h"

namespace cluster_frames_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

ClusterSet OneSet() {
  ClusterSet set;
  set.number = 3;
  set.id = 0xfeed;
  set.leader = 7;
  set.members = {{.node = 7,
                  .host = "10.0.0.1",
                  .port = 6479,
                  .kind = "voter",
                  .state = "leader",
                  .version = "1.0.0"},
                 {.node = 8,
                  .host = "::1",
                  .port = 65535,
                  .kind = "standby",
                  .state = "online",
                  .version = ""}};
  set.catalog = UINT64_MAX;
  return set;
}

NodeReport OneReport() {
  NodeReport report;
  report.users = 77;
  report.zone = "north";
  report.machine = "m1";
  report.cluster_id = 42;
  report.leads = true;
  report.refusal = "table 0/t";
  report.set = OneSet();
  report.tells_tablets = true;
  report.tablets = std::string("\0\xff", 2);
  return report;
}

MapCache OneMap() {
  MapCache map;
  map.Begin(9, 2, 1);
  map.Add(1, "0/a", {.begin = "", .end = "m", .set = 0, .epoch = 1, .number = 1, .version = 5});
  map.Add(1, "0/a", {.begin = "m", .end = "", .set = 1, .epoch = 2, .number = 2, .version = 9});
  map.Add(2, "0/b", {.begin = "", .end = "", .set = 2, .epoch = 1, .number = 3, .version = 3});
  map.Sort();
  return map;
}

TEST_CASE("What a set says of a change, and of a cut, is read as it was said", "[cluster]") {
  for (const CutAnswer& answer : {CutAnswer{.number = 7}, CutAnswer{7, true, true, 1'000, 2'000},
                                  CutAnswer{7, true, false, 0, 0}}) {
    std::string bytes;
    EncodeCutAnswer(answer, &bytes);
    CutAnswer read;
    REQUIRE(DecodeCutAnswer(bytes, &read));
    CHECK(read.number == 7);
    CHECK(read.confirms == answer.confirms);
    CHECK(read.in_time == answer.in_time);
    CHECK(read.commit_micros == answer.commit_micros);
    CHECK_FALSE(DecodeCutAnswer(bytes + "x", &read));
  }
  CutAnswer read;
  CHECK_FALSE(DecodeCutAnswer("", &read));
  CHECK_FALSE(DecodeCutAnswer("\7\2\1", &read));
  CHECK_FALSE(DecodeCutAnswer("\7\1", &read));
  CHECK_FALSE(DecodeCutAnswer("\7\1\5", &read));
}

TEST_CASE("What a node reports is read as it was said", "[cluster]") {
  std::string bytes;
  EncodeReport(OneReport(), &bytes);
  NodeReport read;
  REQUIRE(DecodeReport(bytes, &read));
  CHECK(read.set == OneSet());
  CHECK(read.refusal == "table 0/t");
  CHECK(read.tablets == OneReport().tablets);
  CHECK(read.users == 77);
  CHECK(read.zone == "north");
  CHECK(read.machine == "m1");
  // u64, two words of 5 and 2 bytes, load, jobs: without these it is that of an older version.
  const size_t older = bytes.size() - (8 + 6 + 3 + 1 + 1);
  for (size_t size = 0; size < bytes.size(); ++size)
    CHECK(DecodeReport(bytes.substr(0, size), &read) == (size == older));
  SetDirectory sets;
  sets.Put(OneSet());
  bytes.clear();
  sets.Encode(&bytes);
  SetDirectory others;
  REQUIRE(others.Decode(bytes));
  CHECK(others.sets() == sets.sets());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ClusterSet known = OneSet();
    for (ClusterMember& member : known.members) member.zone = member.machine = {};
    known.load = known.jobs = 0;
    if (others.Decode(bytes.substr(0, size))) CHECK(*others.Find(known.number) == known);
  }
  bytes.clear();
  EncodeReport(OneReport(), &bytes);
  CHECK_FALSE(DecodeReport(bytes + "x", &read));
}

TEST_CASE("What is kept of a peer's words is short and plain", "[cluster]") {
  const auto reads = [](const NodeReport& report) {
    std::string bytes;
    EncodeReport(report, &bytes);
    NodeReport read;
    return DecodeReport(bytes, &read);
  };
  NodeReport report = OneReport();
  REQUIRE(reads(report));
  report.set.members[0].host = "10.0.0.1\r\n-ERR";
  CHECK_FALSE(reads(report));
  report.set.members[0].host = "/tmp/socket";
  CHECK_FALSE(reads(report));
  report = OneReport();
  report.set.members[1].version = std::string(65, 'v');
  CHECK_FALSE(reads(report));
  report = OneReport();
  report.refusal = std::string(4097, 'r');
  CHECK_FALSE(reads(report));
  report = OneReport();
  report.set.members.resize(1025, report.set.members[0]);
  CHECK_FALSE(reads(report));
}

TEST_CASE("An order is for a set that may be", "[cluster]") {
  for (const uint64_t set :
       {uint64_t{0}, uint64_t{1}, uint64_t{1023}, uint64_t{1024}, UINT64_MAX}) {
    std::string bytes;
    EncodeSchemaOrder({.cluster_id = 1, .set = set, .whole = true, .change = "c"}, &bytes);
    SchemaOrder read;
    CHECK(DecodeSchemaOrder(bytes, &read) == (set > 0 && set < 1024));
  }
}

TEST_CASE("News of a map make another node's the same", "[cluster]") {
  const MapCache map = OneMap();
  for (const uint64_t since : {uint64_t{0}, uint64_t{1}, uint64_t{4}, uint64_t{9}, uint64_t{77}}) {
    MapCache other = since > 2 && since <= 9 ? OneMap() : MapCache();
    std::string bytes;
    EncodeMapNews(map, since, &bytes);
    REQUIRE(TakeMapNews(bytes, &other));
    CHECK(other.version() == 9);
    CHECK(other.size() == 3);
    CHECK(other.FindTablet(1, "z")->set == 1);
    for (size_t size = 0; size < bytes.size(); ++size) {
      MapCache kept = OneMap();
      CHECK_FALSE(TakeMapNews(bytes.substr(0, size), &kept));
      CHECK(kept.tables() == OneMap().tables());
    }
  }
}

TEST_CASE("Bytes that nobody has said are read without harm", "[cluster]") {
  Random random(20261129);
  std::string report;
  EncodeReport(OneReport(), &report);
  std::string news;
  EncodeMapNews(OneMap(), 0, &news);
  SetDirectory directory;
  REQUIRE(directory.Put(OneSet()));
  std::string sets;
  directory.Encode(&sets);
  for (int i = 0; i < 100'000; ++i) {
    for (const std::string* whole : {&report, &news, &sets}) {
      std::string bytes = *whole;
      for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes)
        bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
      NodeReport read;
      MapCache map;
      SetDirectory other;
      SchemaOrder order;
      (void)DecodeReport(bytes, &read);
      (void)TakeMapNews(bytes, &map);
      (void)other.Decode(bytes);
      (void)DecodeSchemaOrder(bytes, &order);
    }
  }
}

}  // namespace cluster_frames_test
