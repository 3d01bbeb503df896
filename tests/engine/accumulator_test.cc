// What functions keep for a group: distinct values, quantiles, and that parts come to the whole.
#include "engine/aggregate/accumulator.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/aggregate/aggregate_plan.h"
#include "engine/keys/hyperloglog.h"

namespace accumulator_test {

using namespace cellar;

std::string Stored(ValueType type, std::string_view text) {
  std::string stored;
  REQUIRE(ParseValue(type, text, &stored).ok());
  return stored;
}

TEST_CASE("Counts by key are those of a map", "[aggregate]") {
  Random random(3);
  KeyCounts counts;
  std::map<int64_t, uint64_t> model;
  uint64_t total = 0;
  for (int i = 0; i < 20'000; ++i) {
    const int64_t key = static_cast<int64_t>(random.Below(3'000)) - 1'500;
    const uint64_t count = 1 + random.Below(5);
    counts.Add(key, count);
    model[key] += count;
    total += count;
  }
  REQUIRE(counts.total() == total);
  REQUIRE(counts.Sorted() == std::vector<std::pair<int64_t, uint64_t>>(model.begin(), model.end()));
  REQUIRE(counts.heap_bytes() > 0);
}

TEST_CASE("Up to 1,024 values are distinct exactly, more within some per cent", "[aggregate]") {
  DistinctValues values;
  REQUIRE(values.Count() == 0);
  for (int turn = 0; turn < 2; ++turn) {
    for (size_t i = 0; i < kDistinctExactMax; ++i) {
      values.AddValue(ValueType::kBytes, "v" + std::to_string(i));
    }
  }
  REQUIRE(values.Count() == kDistinctExactMax);
  for (size_t i = 0; i < 100'000; ++i) {
    values.AddValue(ValueType::kBytes, "v" + std::to_string(i));
  }
  REQUIRE(std::abs(static_cast<double>(values.Count()) - 100'000) < 4'000);
}

TEST_CASE("One number in several types is one value, with a fraction another", "[aggregate]") {
  DistinctValues values;
  for (const ValueType type : {ValueType::kI64, ValueType::kU8, ValueType::kI16, ValueType::kU64}) {
    values.AddValue(type, Stored(type, "5"));
  }
  REQUIRE(values.Count() == 1);
  values.AddValue(ValueType::kF64, Stored(ValueType::kF64, "5"));
  values.AddValue(ValueType::kF32, Stored(ValueType::kF32, "5"));
  REQUIRE(values.Count() == 2);
  values.AddValue(ValueType::kBytes, "5");
  values.AddValue(ValueType::kString, "5");
  REQUIRE(values.Count() == 3);
  values.AddValue(ValueType::kF64, Stored(ValueType::kF64, "0"));
  values.AddValue(ValueType::kF64, Stored(ValueType::kF64, "-0"));
  REQUIRE(values.Count() == 4);
}

TEST_CASE("States beside values: the union of them and the others' number", "[aggregate]") {
  DistinctValues values;
  values.AddState(HllStateOf(HllInputOf("a")));
  values.AddState(HllStateOf(HllInputOf("b")));
  values.AddState(HllStateOf(HllInputOf("a")));
  REQUIRE(values.Count() == 2);
  values.AddValue(ValueType::kBytes, "a");
  REQUIRE(values.Count() == 3);
}

TEST_CASE("Parts of any size come to the distinct values of the whole", "[aggregate]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    DistinctValues whole;
    std::array<DistinctValues, 3> parts;
    const uint64_t range = 1 + random.Below(4'000);
    for (int i = 0; i < 3'000; ++i) {
      const std::string value = std::to_string(random.Below(range));
      whole.AddValue(ValueType::kBytes, value);
      parts[random.Below(3)].AddValue(ValueType::kBytes, value);
    }
    parts[1].Add(parts[2]);
    parts[0].Add(parts[1]);
    REQUIRE(parts[0].Count() == whole.Count());
  }
}

// Of numbers, each so often, in the order in which they come.
QuantileCounts CountsOf(const std::vector<double>& numbers) {
  QuantileCounts counts;
  for (const double number : numbers) counts.Add(number);
  return counts;
}

TEST_CASE("Up to 1,024 different numbers are counted as they are, more in buckets", "[aggregate]") {
  Random random(17);
  const double edges[]{0,
                       -0.0,
                       3.7,
                       1000.5,
                       2001.25,
                       0x1p-1074,
                       -0x1p-1074,
                       1e308,
                       -1e308,
                       std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity(),
                       9007199254740993.0};
  for (int round = 0; round < 60; ++round) {
    const size_t different = round < 30
                                 ? 1 + random.Below(kQuantileExactMax)
                                 : kQuantileExactMax - 2 + random.Below(round < 50 ? 5 : 3000);
    std::map<double, uint64_t> model;
    while (model.size() < different) {
      const double number = random.OneIn(20)
                                ? edges[random.Below(std::size(edges))]
                                : std::ldexp(static_cast<double>(random.Next() >> 12),
                                             static_cast<int>(random.Below(100)) - 90) *
                                      (random.OneIn(2) ? 1 : -1);
      ++model[number];
    }
    std::vector<double> numbers;
    for (auto& [number, count] : model) {
      count = 1 + random.Below(3);
      numbers.insert(numbers.end(), count, number);
    }
    if (different > kQuantileExactMax) {
      std::map<double, uint64_t> buckets;
      for (const auto& [number, count] : model)
        buckets[QuantileValue(QuantileKey(number))] += count;
      model = std::move(buckets);
    }
    const std::vector<std::pair<double, uint64_t>> wanted(model.begin(), model.end());
    for (size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[random.Below(i)]);
    const QuantileCounts whole = CountsOf(numbers);
    INFO("round " << round << ", " << different << " different");
    REQUIRE(whole.total() == numbers.size());
    REQUIRE(whole.Sorted() == wanted);
    // Parts in any order, also by way of other nodes.
    const auto cut = static_cast<std::ptrdiff_t>(random.Below(numbers.size() + 1));
    QuantileCounts left = CountsOf({numbers.begin(), numbers.begin() + cut});
    const QuantileCounts right = CountsOf({numbers.begin() + cut, numbers.end()});
    std::string bytes;
    right.Encode(&bytes);
    bytes += "what follows";
    QuantileCounts told;
    std::string_view from = bytes;
    REQUIRE(told.Decode(&from));
    REQUIRE(from == "what follows");
    REQUIRE(told.Sorted() == right.Sorted());
    left.Add(told);
    REQUIRE(left.Sorted() == wanted);
    REQUIRE(left.total() == numbers.size());
    for (int i = 0; i < 20; ++i) {
      QuantileCounts cut_off;
      from = std::string_view(bytes).substr(0, random.Below(bytes.size() - 11));
      if (cut_off.Decode(&from)) REQUIRE(from.empty());
    }
  }
}

TEST_CASE("A quantile's bucket is within a hundredth of all in it", "[aggregate]") {
  for (int number = -127; number <= 127; ++number) {
    REQUIRE(QuantileValue(QuantileKey(number)) == number);
  }
  Random random(5);
  double before = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < 50'000; ++i) {
    const double fraction = 1 + static_cast<double>(random.Below(1 << 30)) / (1 << 30);
    const double value = std::ldexp(fraction, static_cast<int>(random.Below(600)) - 300) *
                         (random.OneIn(2) ? 1 : -1);
    INFO(value);
    const double shown = QuantileValue(QuantileKey(value));
    REQUIRE(std::abs(shown - value) <= std::abs(value) / 100);
    // Keys are in the order of the numbers.
    REQUIRE((QuantileKey(value) < QuantileKey(before)) <= (value < before));
    before = value;
  }
}

// One function over cells, whole and in parts, as the memory of groups has them.
class Kept {
 public:
  explicit Kept(const PlannedReduce& reduce) : reduce_(reduce) {
    bytes_.assign(AccumulatorBytes(reduce.function) / sizeof(uint64_t) + 1, 0);
    heap_ = BeginAccumulator(reduce_, data());
  }
  ~Kept() { EndAccumulator(reduce_, data()); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  char* data() { return reinterpret_cast<char*>(bytes_.data()); }
  template <typename T>
  const T& as() {
    return *reinterpret_cast<const T*>(bytes_.data());
  }
  void Add(const FoldCell& cell) { heap_ += AddToAccumulator(reduce_, cell, data(), &skipped_); }
  void Merge(Kept& other) { heap_ += MergeAccumulator(reduce_, other.data(), data()); }
  // As another node gets it.
  void MergeBytes(Kept& other) {
    std::string bytes;
    EncodeAccumulator(reduce_, other.data(), &bytes);
    for (size_t size = 0; size < bytes.size(); ++size) {
      Kept torn(reduce_);
      std::string_view from = std::string_view(bytes).substr(0, size);
      REQUIRE_FALSE(DecodeAccumulator(reduce_, &from, torn.data()));
    }
    Kept passed(reduce_);
    std::string_view from = bytes;
    REQUIRE(DecodeAccumulator(reduce_, &from, passed.data()));
    REQUIRE(from.empty());
    std::string again;
    EncodeAccumulator(reduce_, passed.data(), &again);
    REQUIRE(again == bytes);
    Merge(passed);
  }
  uint64_t skipped() const { return skipped_; }

 private:
  const PlannedReduce& reduce_;
  std::vector<uint64_t> bytes_;
  uint64_t skipped_{0};
  size_t heap_{0};
};

TEST_CASE("SUM, AVG, MIN, MAX and COUNT of parts are those of the whole", "[aggregate]") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    PlannedReduce sum;
    sum.function = Reduce::Function::kSum;
    PlannedReduce max;
    max.function = Reduce::Function::kMax;
    PlannedReduce count;
    count.function = Reduce::Function::kCount;
    Kept sums[3]{Kept(sum), Kept(sum), Kept(sum)};
    Kept maxima[3]{Kept(max), Kept(max), Kept(max)};
    Kept counts[3]{Kept(count), Kept(count), Kept(count)};
    int128_t integers = 0;
    int64_t largest = std::numeric_limits<int64_t>::min();
    uint64_t texts = 0;
    for (int i = 1; i <= 300; ++i) {
      FoldCell cell;
      cell.row = static_cast<uint64_t>(i);
      std::string stored;
      if (random.OneIn(10)) {
        stored = "no number";
        ++texts;
      } else {
        const auto number = static_cast<int64_t>(random.Next());
        cell.type = ValueType::kI64;
        stored = Stored(ValueType::kI64, std::to_string(number));
        integers += number;
        largest = std::max(largest, number);
      }
      cell.stored = stored;
      const size_t part = 1 + random.Below(2);
      sums[0].Add(cell);
      sums[part].Add(cell);
      if (cell.type == ValueType::kI64) maxima[part].Add(cell);
      counts[part].Add(cell);
    }
    REQUIRE(sums[0].skipped() == texts);
    sums[1].MergeBytes(sums[2]);
    maxima[1].MergeBytes(maxima[2]);
    counts[1].MergeBytes(counts[2]);
    REQUIRE(sums[0].as<SumAccumulator>().sum.integers() == integers);
    REQUIRE(sums[1].as<SumAccumulator>().sum.integers() == integers);
    const HeldValue& held = maxima[1].as<ExtremeAccumulator>().value;
    REQUIRE(LoadInteger(held.type(), held.stored()) == largest);
    REQUIRE(counts[1].as<CountAccumulator>().cells == 300);
  }
}

TEST_CASE("Spreads, growths and first and last values of parts are those of the whole",
          "[aggregate]") {
  constexpr Reduce::Function kFunctions[]{Reduce::Function::kVariance, Reduce::Function::kDelta,
                                          Reduce::Function::kFirst, Reduce::Function::kLast};
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const int64_t base = random.OneIn(2) ? 0 : int64_t{1} << 61;
    for (const Reduce::Function function : kFunctions) {
      PlannedReduce reduce;
      reduce.function = function;
      Kept kept[4]{Kept(reduce), Kept(reduce), Kept(reduce), Kept(reduce)};
      for (uint64_t row = 1; row <= 60; ++row) {  // a row is in one part, its versions fall in time
        const size_t part = 1 + random.Below(3);
        const std::string key = "row" + std::to_string(random.Below(1000));
        int64_t timestamp = static_cast<int64_t>(1'000 + random.Below(20));
        for (uint64_t versions = random.Below(5); versions > 0; --versions, timestamp -= 3) {
          const std::string stored = Stored(
              ValueType::kI64, std::to_string(base + static_cast<int64_t>(random.Below(100))));
          const CellPlace place{
              .row_key = key, .qualifier = {}, .timestamp_micros = timestamp, .column = row};
          const FoldCell cell{
              .type = ValueType::kI64, .stored = stored, .row = row, .place = &place};
          kept[0].Add(cell);
          kept[part].Add(cell);
        }
      }
      kept[1].Merge(kept[2]);
      kept[1].MergeBytes(kept[3]);
      if (function == Reduce::Function::kVariance) {
        const Spread& whole = *kept[0].as<SpreadAccumulator>().spread;
        const Spread& parts = *kept[1].as<SpreadAccumulator>().spread;
        REQUIRE(whole.count() == parts.count());
        REQUIRE(parts.Variance() == Approx(whole.Variance()).epsilon(1e-12));
        REQUIRE(whole.Variance() < 100 * 100);
      } else if (function == Reduce::Function::kDelta) {
        const Growth& whole = *kept[0].as<GrowthAccumulator>().growth;
        const Growth& parts = *kept[1].as<GrowthAccumulator>().growth;
        REQUIRE(whole.sum().integers() == parts.sum().integers());
        REQUIRE(whole.micros() == parts.micros());
      } else {
        const TimedValue& whole = *kept[0].as<TimedAccumulator>().value;
        const TimedValue& parts = *kept[1].as<TimedAccumulator>().value;
        REQUIRE(whole.stored() == parts.stored());
      }
    }
  }
}

TEST_CASE("MIN keeps a long value of its own", "[aggregate]") {
  PlannedReduce min;
  min.function = Reduce::Function::kMin;
  Kept kept(min);
  FoldCell cell;
  for (const char letter : {'c', 'a', 'b'}) {
    const std::string text(100, letter);
    cell.stored = text;
    kept.Add(cell);
  }
  REQUIRE(kept.as<ExtremeAccumulator>().value.stored() == std::string(100, 'a'));
}

TEST_CASE("A histogram counts from each bound on", "[aggregate]") {
  PlannedReduce histogram;
  histogram.function = Reduce::Function::kHistogram;
  for (const char* bound : {"0", "10", "20"})
    REQUIRE(histogram.bounds.Add(bound) == NumberBounds::Refusal::kNone);
  Kept kept(histogram);
  for (const char* text : {"-1", "0", "9", "10", "19", "20", "1000"}) {
    const std::string stored = Stored(ValueType::kI64, text);
    FoldCell cell;
    cell.type = ValueType::kI64;
    cell.stored = stored;
    kept.Add(cell);
  }
  const uint64_t* const counts = kept.as<HistogramAccumulator>().counts;
  REQUIRE(std::vector<uint64_t>(counts, counts + 4) == std::vector<uint64_t>{1, 2, 2, 2});
}

}  // namespace accumulator_test
