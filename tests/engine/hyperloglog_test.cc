// HyperLogLog states: canonical whatever the way, what hostile ones come to. That estimates are
// those of PFCOUNT is shown beside a Redis, in tests/e2e/test_folds.py.
#include "engine/keys/hyperloglog.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/keys/value.h"

namespace hyperloglog_test {

using namespace cellar;

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text.push_back(kDigits[static_cast<uint8_t>(c) >> 4]);
    text.push_back(kDigits[static_cast<uint8_t>(c) & 15]);
  }
  return text;
}

TEST_CASE("Small states are the bytes that a Redis keeps", "[hll]") {
  // PFADD k; PFADD k a; PFADD k a b c: as GET shows them, the cached count marked as stale.
  REQUIRE(Hex(HllEmptyState()) ==
          "48594c4c010000000000000000000080"
          "7fff");
  const std::string one = HllStateOf(HllInputOf("a"));
  REQUIRE(one.size() <= 21);
  REQUIRE(HllEstimate(one) == 1);
  REQUIRE(HllEstimate(HllEmptyState()) == 0);
}

TEST_CASE("Inputs in any order, partition and tree of merges give one state", "[hll]") {
  const uint64_t seed = GENERATE(1, 2, 3, 4, 5, 6);
  INFO("seed " << seed);
  Random random(seed);
  const uint64_t inputs = uint64_t{1} << (2 * seed + 2);
  std::vector<std::string> parts(5, HllEmptyState());
  std::string all = HllEmptyState();
  HllSketch sketch;
  std::string scratch;
  for (uint64_t i = 0; i < inputs; ++i) {
    const HllInput input = HllInputOf(std::to_string(random.Next()));
    const uint8_t before = HllRegister(all, input.index);
    const bool changed = HllAdd(all, input, &scratch);
    REQUIRE(changed == (input.rank > before));
    REQUIRE(changed == sketch.Add(input));
    if (changed) all.swap(scratch);
    REQUIRE(HllRegister(all, input.index) == std::max(before, input.rank));
    std::string& part = parts[random.Next() % parts.size()];
    if (HllAdd(part, input, &scratch)) part.swap(scratch);
    if (i % 61 == 0 || i + 1 == inputs) {
      std::string encoded;
      sketch.EncodeTo(&encoded);
      REQUIRE(Hex(encoded) == Hex(all));
      REQUIRE(HllIsCanonical(all));
    }
  }
  std::string merged = HllEmptyState();
  for (const std::string& part : parts) {
    if (HllMerge(merged, part, &scratch)) merged.swap(scratch);
    REQUIRE_FALSE(HllMerge(merged, part, &scratch));
  }
  REQUIRE(merged == all);
  const auto estimate = static_cast<double>(HllEstimate(all));
  REQUIRE(estimate == static_cast<double>(sketch.Estimate()));
  REQUIRE(std::abs(estimate / static_cast<double>(inputs) - 1) < 0.04);
}

TEST_CASE("A state of few inputs is merged as they are added", "[hll]") {
  std::string many = HllEmptyState();
  std::string scratch;
  for (int i = 0; i < 3'000; ++i) {
    const HllInput input = HllInputOf("m" + std::to_string(i));
    std::string added = many;
    if (HllAdd(many, input, &scratch)) added = scratch;
    std::string merged = many;
    if (HllMerge(many, HllStateOf(input), &scratch)) merged = scratch;
    REQUIRE(added == merged);
    many = added;
  }
  std::string two = HllStateOf(HllInputOf("x"));
  if (HllAdd(two, HllInputOf("y"), &scratch)) two = scratch;
  std::string one_by_one = many;
  for (const char* input : {"x", "y"})
    if (HllAdd(one_by_one, HllInputOf(input), &scratch)) one_by_one = scratch;
  std::string at_once = many;
  if (HllMerge(many, two, &scratch)) at_once = scratch;
  REQUIRE(at_once == one_by_one);
}

TEST_CASE("A state that is none is refused, one in other words is put into ours", "[hll]") {
  std::string canonical;
  const std::string empty = HllEmptyState();
  for (size_t bytes = 0; bytes < empty.size(); ++bytes)
    REQUIRE_FALSE(HllCanonical(empty.substr(0, bytes), &canonical));
  REQUIRE_FALSE(HllCanonical(empty + '\0', &canonical));
  std::string state = empty;
  state[0] = 'h';
  REQUIRE_FALSE(HllCanonical(state, &canonical));
  state = empty;
  state[4] = 2;
  REQUIRE_FALSE(HllCanonical(state, &canonical));
  state = empty.substr(0, 16) + std::string(256, '\x3f');  // 256 runs of 64 zeros
  state[9] = 7;                                            // a cached count
  state[6] = 7;                                            // an unused byte
  REQUIRE(HllCanonical(state, &canonical));
  REQUIRE(canonical == empty);
  REQUIRE_FALSE(HllIsCanonical(state));
  std::string dense(kHllDenseBytes, '\0');
  dense.replace(0, 4, "HYLL");
  REQUIRE(HllCanonical(dense, &canonical));
  REQUIRE(canonical == empty);
  dense[16] = 51;
  REQUIRE(HllCanonical(dense, &canonical));
  REQUIRE(canonical.size() == kHllDenseBytes);
  REQUIRE(HllRegister(canonical, 0) == 51);
  dense[16] = 52;
  REQUIRE_FALSE(HllCanonical(dense, &canonical));
  REQUIRE_FALSE(HllCanonical(dense.substr(1), &canonical));
  REQUIRE_FALSE(HllCanonical(dense + '\0', &canonical));
}

TEST_CASE("Random bytes behind a header are a state or refused, never more", "[hll]") {
  const uint64_t seed = GENERATE(take(20, random(1, 1'000'000)));
  INFO("seed " << seed);
  Random random(seed);
  std::string canonical;
  for (int i = 0; i < 300; ++i) {
    std::string state = HllEmptyState().substr(0, 16);
    const size_t bytes = random.Next() % 200;
    for (size_t j = 0; j < bytes; ++j) state.push_back(static_cast<char>(random.Next()));
    if (!HllCanonical(state, &canonical)) continue;
    REQUIRE(HllIsCanonical(canonical));
    (void)HllEstimate(canonical);
  }
}

TEST_CASE("The type hll can be seen as a number and not be named", "[hll][value]") {
  REQUIRE_FALSE(ParseValueType("hll").ok());
  const std::string one = HllStateOf(HllInputOf("a"));
  REQUIRE(StoredValueIsValid(ValueType::kHll, one));
  REQUIRE_FALSE(StoredValueIsValid(ValueType::kHll, "HYLL"));
  REQUIRE(ValueText(ValueType::kHll, one) == "1");
  REQUIRE(ComparedLiteral("1").Holds(CompareOp::kEq, ValueType::kHll, one));
  REQUIRE(ComparedLiteral("1.5").Holds(CompareOp::kLt, ValueType::kHll, one));
}

}  // namespace hyperloglog_test
