// Tablets against a list of keys, each with the epoch of its tablet.
#include "engine/table/tablets.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/random.h"

namespace tablets_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

constexpr char kFirst{'b'};
constexpr char kLast{'y'};

std::string Key(char c) { return std::string(1, c); }

// By key: where its tablet begins, and its epoch. What is not there is not owned.
using Model = std::map<char, std::pair<char, uint64_t>>;

std::vector<Tablet> Draw(Random* random) {
  std::vector<Tablet> tablets;
  std::string begin = random->Below(2) == 0 ? std::string() : Key(kFirst);
  char at = kFirst;
  while (at < kLast) {
    at = static_cast<char>(at + 1 + random->Below(6));
    std::string end = at >= kLast ? std::string() : Key(at);
    if (random->Below(3) > 0) tablets.push_back({begin, end, 1 + random->Below(4)});
    begin = end;
  }
  return tablets;
}

Model ModelOf(const std::vector<Tablet>& tablets) {
  Model model;
  for (const Tablet& tablet : tablets) {
    const char begin = tablet.begin.empty() ? 'a' : tablet.begin[0];
    for (char c = 'a'; c <= 'z'; ++c)
      if (tablet.Contains(Key(c))) model[c] = {begin, tablet.epoch};
  }
  return model;
}

void Check(const Tablets& tablets, const Model& model) {
  for (char c = 'a'; c <= 'z'; ++c) {
    const auto found = model.find(c);
    const Tablet* const tablet = tablets.Find(Key(c));
    REQUIRE(tablets.Owns(Key(c)) == (found != model.end()));
    REQUIRE((tablet != nullptr) == (found != model.end()));
    if (tablet == nullptr) continue;
    REQUIRE((tablet->begin.empty() ? 'a' : tablet->begin[0]) == found->second.first);
    REQUIRE(tablet->epoch == found->second.second);
  }
  std::string bytes;
  tablets.Encode(&bytes);
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    std::string_view part = std::string_view(bytes).substr(0, cut);
    REQUIRE(Tablets::Decode(&part) == nullptr);
  }
  bytes += "rest";
  std::string_view from = bytes;
  const Tablets::Pointer again = Tablets::Decode(&from);
  REQUIRE(again != nullptr);
  REQUIRE(from == "rest");
  REQUIRE(again->list() == tablets.list());
}

TEST_CASE("Tablets are split and merged as a list of keys is", "[tablets]") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const std::vector<Tablet> drawn = Draw(&random);
    Tablets::Pointer tablets = Tablets::Make(drawn);
    REQUIRE(tablets != nullptr);
    Model model = ModelOf(drawn);
    for (int i = 0; i < 40; ++i) {
      Check(*tablets, model);
      const char at = static_cast<char>('a' + random.Below(26));
      const auto own = model.find(at);
      if (random.Below(2) == 0) {
        const Tablets::Pointer split = tablets->Split(Key(at));
        // 'a' itself lies behind the front, which has no key.
        const Tablet* const tablet = tablets->Find(Key(at));
        const bool can = tablet != nullptr && tablet->begin != Key(at);
        REQUIRE((split != nullptr) == can);
        if (!can) continue;
        if (at == 'a') continue;  // the model knows no tablet in front of it
        const char begin = own->second.first;
        for (auto& [c, of] : model)
          if (c >= at && of.first == begin && tablet->Contains(Key(c))) of.first = at;
        tablets = split;
      } else {
        const Tablets::Pointer merged = tablets->Merge(Key(at));
        const Tablet* const tablet = tablets->Find(Key(at));
        const bool can = tablet != nullptr && !tablet->end.empty() &&
                         model.contains(tablet->end[0]) &&
                         model[tablet->end[0]].first == tablet->end[0];
        REQUIRE((merged != nullptr) == can);
        if (!can) continue;
        const auto [begin, epoch] = own->second;
        const auto next = model[tablet->end[0]];
        for (auto& [c, of] : model)
          if (of.first == begin || of.first == next.first)
            of = {begin, std::max(epoch, next.second)};
        tablets = merged;
      }
    }
  }
}

TEST_CASE("Tablets ascend, and none is empty or overlaps", "[tablets]") {
  REQUIRE(Tablets::Make({{"b", "a", 1}}) == nullptr);
  REQUIRE(Tablets::Make({{"b", "b", 1}}) == nullptr);
  REQUIRE(Tablets::Make({{"a", "c", 1}, {"b", "d", 1}}) == nullptr);
  REQUIRE(Tablets::Make({{"c", "d", 1}, {"a", "b", 1}}) == nullptr);
  REQUIRE(Tablets::Make({{"a", "", 1}, {"b", "", 1}}) == nullptr);
  REQUIRE(Tablets::Make({{"a", "b", 0}}) == nullptr);
  REQUIRE(Tablets::Make({{"", "", 1}})->owns_all());
  REQUIRE(Tablets::Make({{"", "b", 1}, {"b", "", 7}})->owns_all());
  REQUIRE_FALSE(Tablets::Make({{"", "b", 1}, {"c", "", 7}})->owns_all());
  REQUIRE_FALSE(Tablets::None()->owns_all());
  REQUIRE_FALSE(Tablets::None()->Owns("a"));
}

}  // namespace tablets_test
