// ChangeNews: who asks again and again misses nothing without being told so.
#include "commands/session/change_news.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "catch2/catch.hpp"

namespace cellar {
namespace {

TEST_CASE("Changes are kept only while somebody asks", "[change_news]") {
  ChangeNews news;
  CHECK_FALSE(news.wanted());
  CHECK_FALSE(news.Knows("", 0));
  news.Ask(1'000'000, 3, "run");
  CHECK(news.wanted());
  const std::string epoch = news.epoch();
  const uint64_t begin = news.end();
  CHECK(news.Knows(epoch, begin));
  CHECK_FALSE(news.Knows(epoch, begin + 1));
  CHECK_FALSE(news.Knows("other", begin));
  news.Add("t:a");
  news.Add("t:a");  // nobody was told in between
  news.Add("t:b");
  REQUIRE(news.end() == begin + 2);
  CHECK(news.at(begin) == "t:a");
  news.NoteTold(news.end());
  news.Add("t:b");
  CHECK(news.end() == begin + 3);
  SECTION("until nobody has asked for a while") {
    news.OnTick(1'000'000 + ChangeNews::kAskedMicros);
    CHECK(news.wanted());
    news.OnTick(1'000'001 + ChangeNews::kAskedMicros);
    CHECK_FALSE(news.wanted());
    CHECK(news.memory_bytes() == 0);
    news.Ask(30'000'000, 3, "run");
    CHECK_FALSE(news.Knows(epoch, begin));
    CHECK_FALSE(news.Knows(epoch, news.end()));
  }
  SECTION("and while this node leads") {
    news.Ask(1'000'001, 3, "run");
    CHECK(news.Knows(epoch, begin));
    news.Ask(1'000'002, 5, "run");
    CHECK(news.wanted());
    CHECK_FALSE(news.Knows(epoch, begin + 3));
    CHECK(news.Knows(news.epoch(), news.end()));
  }
}

TEST_CASE("Who is too slow is told that some were missed", "[change_news]") {
  std::mt19937_64 random(20261130);
  ChangeNews news;
  news.Ask(1, 1, "run");
  const std::string epoch = news.epoch();
  struct Asker {
    uint64_t next;
    std::vector<std::string> names;
    bool missed{false};
  };
  std::vector<Asker> askers(3, Asker{news.end(), {}});
  std::vector<std::string> all;
  for (int step = 0; step < 20'000; ++step) {
    if (random() % 3 != 0) {
      const std::string name =
          "t:" + std::to_string(random() % 4) + std::string(random() % 40 == 0 ? 60'000 : 0, 'x');
      news.Add(name);
      all.push_back(name);
    }
    CHECK(news.memory_bytes() <= ChangeNews::kBytesMax + 70'000);
    const size_t who = random() % 2048;
    if (who >= askers.size()) continue;
    Asker& asker = askers[who];
    if (!news.Knows(epoch, asker.next)) {
      asker.missed = true;
      asker.names.clear();
      all.clear();
      news.NoteTold(news.end());
      for (Asker& other : askers) other = Asker{news.end(), {}, true};
      continue;
    }
    while (asker.next < news.end()) asker.names.push_back(news.at(asker.next++));
    news.NoteTold(asker.next);
  }
  CHECK(std::any_of(askers.begin(), askers.end(), [](const Asker& one) { return one.missed; }));
  // What was left out is what was the same as the one before.
  const auto without_runs = [](std::vector<std::string> names) {
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
  };
  for (Asker& asker : askers) {
    if (!news.Knows(epoch, asker.next)) continue;
    while (asker.next < news.end()) asker.names.push_back(news.at(asker.next++));
    CHECK(without_runs(asker.names) == without_runs(all));
  }
}

}  // namespace
}  // namespace cellar
