// Walking over fronts against a std::map.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "btree/btree.h"
#include "btree/front_visitor.h"

namespace cursor_fronts_test {

using cellar::BTree;
using cellar::BTreeCursor;
using cellar::FrontStep;
using cellar::Random;
using What = FrontStep::What;
using Map = std::map<std::string, std::string>;

// What ends with a zero byte and has none inside: none is the beginning of another one.
std::string Word(Random& random, size_t letters, size_t bytes_max) {
  std::string word;
  for (uint64_t left = random.Below(bytes_max + 1); left > 0; --left)
    word += static_cast<char>('a' + random.Below(letters));
  word += '\0';
  return word;
}

size_t FrontBytes(std::string_view key) { return key.find('\0') + 1; }

// Asks for tails at random, and holds what it is told against the map.
class Visitor final : public cellar::FrontVisitor {
 public:
  Visitor(const Map& map, const std::vector<std::string>& tails, Random& random)
      : map_(map), tails_(tails), random_(random) {}

  FrontStep BeginFront(std::string_view key, size_t shared, size_t* front_bytes) override {
    REQUIRE(expected_ != map_.end());
    REQUIRE(key == expected_->first);
    const size_t bytes = FrontBytes(key);
    REQUIRE(key.substr(0, shared) == std::string_view(front_).substr(0, shared));
    REQUIRE(shared < bytes);
    if (random_.OneIn(20)) return {What::kStop, {}};
    *front_bytes = bytes;
    front_ = key.substr(0, bytes);
    std::string behind = front_;
    behind.back() = '\1';
    expected_ = map_.lower_bound(behind);
    next_tail_ = 0;
    ++told_;
    return Ask();
  }
  FrontStep Found(std::string_view value, size_t key_bytes) override {
    const auto found = map_.lower_bound(front_ + asked_);
    REQUIRE(found != map_.end());
    REQUIRE(found->first.starts_with(front_ + asked_));
    REQUIRE(value == found->second);
    REQUIRE(key_bytes == found->first.size());
    ++told_;
    stopped_at_ = found->first;
    if (random_.OneIn(20)) return {What::kStop, {}};
    return Ask();
  }
  FrontStep Missed() override {
    const auto found = map_.lower_bound(front_ + asked_);
    REQUIRE((found == map_.end() || !found->first.starts_with(front_ + asked_)));
    ++told_;
    return Ask();
  }
  FrontStep Ask() {
    next_tail_ += random_.Below(3);
    if (next_tail_ >= tails_.size() || random_.OneIn(6)) return {};
    asked_ = tails_[next_tail_++];
    return {What::kSeek, tails_[next_tail_ - 1]};
  }

  // Begins at the first key that is not below `key`.
  std::string Begin(std::string_view key) {
    expected_ = map_.lower_bound(std::string(key));
    front_.clear();
    return expected_ == map_.end() ? std::string() : expected_->first;
  }
  bool at_end() const { return expected_ == map_.end(); }
  // Has it stopped in a front, and not before one?
  std::optional<std::string> TakeStop() { return std::exchange(stopped_at_, std::nullopt); }
  size_t front_bytes() const { return front_.size(); }
  void ForgetStop() { stopped_at_.reset(); }
  uint64_t told() const { return told_; }
  const std::string& expected() const { return expected_->first; }

 private:
  const Map& map_;
  const std::vector<std::string>& tails_;
  Random& random_;
  Map::const_iterator expected_;  // the first key of the next front
  std::string front_;
  std::string asked_;
  size_t next_tail_{0};
  std::optional<std::string> stopped_at_;
  uint64_t told_{0};
};

void Walk(BTreeCursor& cursor, const Map& map, const std::vector<std::string>& tails,
          Random& random, uint64_t* told) {
  Visitor visitor(map, tails, random);
  const std::string from = random.OneIn(3) ? Word(random, 3, 4) : std::string();
  const std::string first = visitor.Begin(from);
  cursor.Seek(from);
  REQUIRE(cursor.valid() == !first.empty());
  size_t front_bytes = 0;
  FrontStep step;
  while (cursor.valid()) {
    visitor.ForgetStop();
    cursor.WalkFronts(front_bytes, step, &visitor);
    if (!cursor.valid()) break;
    // It has stopped where a front begins, or at what was found.
    const std::optional<std::string> found = visitor.TakeStop();
    if (found.has_value() && cursor.key() == *found) {
      REQUIRE(cursor.value() == map.at(*found));
      front_bytes = visitor.front_bytes();
      step = visitor.Ask();
    } else {
      REQUIRE(cursor.key() == visitor.expected());
      REQUIRE(cursor.value() == map.at(std::string(cursor.key())));
      front_bytes = 0;
    }
    // Any other movement goes on from there.
    if (!random.OneIn(4)) continue;
    cursor.Next();
    const auto behind = map.upper_bound(
        found.has_value() && front_bytes > 0 ? *found : std::string(visitor.expected()));
    REQUIRE(cursor.valid() == (behind != map.end()));
    if (!cursor.valid()) break;
    REQUIRE(cursor.key() == behind->first);
    const std::string front(cursor.key().substr(0, FrontBytes(cursor.key())));
    cursor.Leave(front.size());
    std::string after = front;
    after.back() = '\1';
    const std::string next_front = visitor.Begin(after);
    REQUIRE(cursor.valid() == !next_front.empty());
    if (!cursor.valid()) break;
    REQUIRE(cursor.key() == next_front);
    front_bytes = 0;
  }
  *told += visitor.told();
}

TEST_CASE("a walk over fronts tells of each front and tail what a map has", "[btree]") {
  uint64_t told = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    INFO("seed " << seed);
    BTree tree;
    Map map;
    std::vector<std::string> tails;
    for (uint64_t left = 1 + random.Below(12); left > 0; --left)
      tails.push_back(Word(random, 2, 5));
    std::sort(tails.begin(), tails.end());
    tails.erase(std::unique(tails.begin(), tails.end()), tails.end());
    const bool is_wide = random.OneIn(3);  // few fronts of many entries
    const std::string long_begin(random.OneIn(4) ? random.Below(300) : 0, 'l');
    const uint64_t entries = 1 + random.Below(random.OneIn(2) ? 60 : 6000);
    for (uint64_t left = entries; left > 0; --left) {
      std::string key = long_begin + (is_wide ? Word(random, 2, 2) : Word(random, 3, 7));
      // Some tails that nobody asks for.
      key += random.OneIn(4) ? Word(random, 3, 6) : tails[random.Below(tails.size())];
      for (uint64_t bytes = random.Below(is_wide ? 8 : 3); bytes > 0; --bytes)
        key += static_cast<char>(random.Below(3) == 0 ? 255 : random.Below(256));
      if (random.OneIn(200)) key.append(random.Below(100), 'x');
      const std::string value(random.OneIn(50) ? random.Below(2000) : random.Below(12), 'v');
      tree.Put(key, value + std::to_string(left));
      map[key] = value + std::to_string(left);
    }
    BTreeCursor live(tree);
    for (int turn = 0; turn < 6; ++turn) Walk(live, map, tails, random, &told);
    const Map then = map;
    auto snapshot = tree.TakeSnapshot();
    for (int i = 0; i < 50; ++i) tree.Put(Word(random, 3, 4), "new");
    {
      BTreeCursor past(snapshot);
      for (int turn = 0; turn < 6; ++turn) Walk(past, then, tails, random, &told);
    }
  }
  CHECK(told > 100'000);
}

}  // namespace cursor_fronts_test
