// See hyperloglog.h.
#include "engine/keys/hyperloglog.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {
namespace {

constexpr uint32_t kIndexBits{14};
constexpr uint32_t kRankBits{64 - kIndexBits};
static_assert(kHllRegisters == size_t{1} << kIndexBits && kHllRankMax == kRankBits + 1);
constexpr uint64_t kSeed{0xadc83b19};  // Redis'
constexpr std::string_view kMagic{"HYLL"};
constexpr size_t kEncodingAt{4};
constexpr size_t kStaleAt{15};
constexpr char kStale{static_cast<char>(0x80)};
constexpr char kDense{0};
constexpr char kSparse{1};
constexpr uint32_t kShortZerosMax{64};
constexpr uint32_t kValueRunMax{4};
constexpr uint8_t kSparseRankMax{32};
// A state with so few runs of values is merged register by register.
constexpr size_t kFewBytes{kHllHeaderBytes + 24};

// Austin Appleby's MurmurHash64A, of the bytes as little-endian words.
uint64_t Murmur64A(std::string_view input) {
  constexpr uint64_t kMultiplier{0xc6a4a7935bd1e995};
  constexpr int kShift{47};
  uint64_t hash = kSeed ^ (input.size() * kMultiplier);
  const auto mix = [](uint64_t word) {
    word *= kMultiplier;
    word ^= word >> kShift;
    return word * kMultiplier;
  };
  for (; input.size() >= 8; input.remove_prefix(8)) {
    hash ^= mix(LoadLittleEndian<uint64_t>(input.data()));
    hash *= kMultiplier;
  }
  if (!input.empty()) {
    uint64_t rest = 0;
    for (size_t i = input.size(); i-- > 0;) rest = rest << 8 | static_cast<uint8_t>(input[i]);
    hash = (hash ^ rest) * kMultiplier;
  }
  hash ^= hash >> kShift;
  hash *= kMultiplier;
  return hash ^ hash >> kShift;
}

bool IsDense(std::string_view state) { return state[kEncodingAt] == kDense; }

void PutHeader(char encoding, std::string* state) {
  state->assign(kHllHeaderBytes, '\0');
  std::memcpy(state->data(), kMagic.data(), kMagic.size());
  (*state)[kEncodingAt] = encoding;
  (*state)[kStaleAt] = kStale;
}

struct Run {
  uint8_t value{0};
  uint32_t registers{0};
};

// The run at the front of *from. False if it is cut short.
bool TakeRun(std::string_view* from, Run* run) {
  const auto first = static_cast<uint8_t>((*from)[0]);
  size_t bytes = 1;
  if ((first & 0x80) != 0) {
    run->value = static_cast<uint8_t>((first >> 2 & 31) + 1);
    run->registers = (first & 3u) + 1;
  } else if ((first & 0x40) == 0) {
    *run = {0, (first & 63u) + 1};
  } else {
    if (from->size() < 2) return false;
    *run = {0, ((first & 63u) << 8 | static_cast<uint8_t>((*from)[1])) + 1};
    bytes = 2;
  }
  from->remove_prefix(bytes);
  return true;
}

// Writes runs in canonical form; those of one value that come one behind the other are one.
class RunWriter {
 public:
  explicit RunWriter(std::string* to) : to_(to) {}
  void Add(uint8_t value, uint32_t registers) {
    if (registers == 0) return;
    if (value != run_.value) Flush();
    run_.value = value;
    run_.registers += registers;
  }
  void Flush() {
    uint32_t left = run_.registers;
    run_.registers = 0;
    if (left == 0) return;
    if (run_.value == 0) {
      CELLAR_ASSERT(left <= kHllRegisters);
      if (left > kShortZerosMax) {
        to_->push_back(static_cast<char>(0x40 | (left - 1) >> 8));
        to_->push_back(static_cast<char>((left - 1) & 0xff));
      } else {
        to_->push_back(static_cast<char>(left - 1));
      }
      return;
    }
    CELLAR_ASSERT(run_.value <= kSparseRankMax);
    while (left > 0) {
      const uint32_t taken = std::min(left, kValueRunMax);
      to_->push_back(static_cast<char>(0x80U | (run_.value - 1U) << 2 | (taken - 1U)));
      left -= taken;
    }
  }

 private:
  std::string* to_;
  Run run_;
};

const uint8_t* Packed(std::string_view state) {
  return reinterpret_cast<const uint8_t*>(state.data()) + kHllHeaderBytes;
}

uint8_t PackedRegister(const uint8_t* packed, uint32_t index) {
  const size_t bit = size_t{index} * 6;
  const uint32_t low = packed[bit / 8];
  const uint32_t high = bit % 8 > 2 ? packed[bit / 8 + 1] : 0u;
  return static_cast<uint8_t>((low | high << 8) >> (bit % 8) & 63);
}

void SetPackedRegister(uint8_t* packed, uint32_t index, uint8_t value) {
  const size_t bit = size_t{index} * 6;
  const uint32_t shift = bit % 8;
  uint8_t& low = packed[bit / 8];
  low = static_cast<uint8_t>((low & ~(63u << shift)) | static_cast<uint32_t>(value) << shift);
  if (shift <= 2) return;
  uint8_t& high = packed[bit / 8 + 1];
  high = static_cast<uint8_t>((high & ~(63u >> (8 - shift))) | value >> (8 - shift));
}

// Four registers are three bytes.
void Unpack(const uint8_t* packed, uint8_t* registers) {
  for (size_t i = 0; i < kHllRegisters; i += 4, packed += 3) {
    const uint32_t bits =
        packed[0] | static_cast<uint32_t>(packed[1]) << 8 | static_cast<uint32_t>(packed[2]) << 16;
    for (size_t j = 0; j < 4; ++j) registers[i + j] = static_cast<uint8_t>(bits >> (6 * j) & 63);
  }
}

// False if the runs do not come to all registers, no more and no less.
bool ReadRuns(std::string_view runs, uint8_t* registers) {
  size_t at = 0;
  while (!runs.empty()) {
    Run run;
    if (!TakeRun(&runs, &run) || run.registers > kHllRegisters - at) return false;
    std::memset(registers + at, run.value, run.registers);
    at += run.registers;
  }
  return at == kHllRegisters;
}

using Histogram = std::array<uint32_t, 64>;

double Sigma(double x) {
  if (x == 1.0) return std::numeric_limits<double>::infinity();
  double factor = 1;
  double sum = x;
  for (double before = -1; before != sum; factor += factor) {
    x *= x;
    before = sum;
    sum += x * factor;
  }
  return sum;
}

double Tau(double x) {
  if (x == 0.0 || x == 1.0) return 0.0;
  double factor = 1;
  double sum = 1 - x;
  for (double before = -1; before != sum;) {
    x = std::sqrt(x);
    before = sum;
    factor *= 0.5;
    sum -= std::pow(1 - x, 2) * factor;
  }
  return sum / 3;
}

uint64_t EstimateOf(const Histogram& histogram) {
  constexpr double kAlphaInfinity{0.721347520444481703680};  // 1 / (2 ln 2)
  constexpr auto kCount = static_cast<double>(kHllRegisters);
  double sum = kCount * Tau((kCount - histogram[kHllRankMax]) / kCount);
  for (uint32_t rank = kRankBits; rank >= 1; --rank) {
    sum += histogram[rank];
    sum *= 0.5;
  }
  sum += kCount * Sigma(histogram[0] / kCount);
  return static_cast<uint64_t>(std::llround(kAlphaInfinity * kCount * kCount / sum));
}

// Where one register of a sparse state changes: all but the runs beside it stays as it is. `rank`
// is above the register's value and not above kSparseRankMax.
void AddToRuns(std::string_view state, HllInput input, std::string* merged) {
  const std::string_view runs = state.substr(kHllHeaderBytes);
  // Runs of one value stand one behind the other where there are more than 4: what begins at
  // `same`. `before` is where the one before those begins.
  size_t before = 0;
  size_t same = 0;
  uint8_t same_value = 0xff;
  uint32_t first = 0;  // register of the run at hand
  std::string_view rest = runs;
  Run run;
  for (;;) {
    const size_t at = runs.size() - rest.size();
    const bool taken = TakeRun(&rest, &run);
    CELLAR_ASSERT(taken);
    if (run.value != same_value) {
      before = same_value == 0xff ? 0 : same;
      same = at;
      same_value = run.value;
    }
    if (input.index < first + run.registers) break;
    first += run.registers;
  }
  merged->assign(state.substr(0, kHllHeaderBytes + before));
  RunWriter writer(merged);
  std::string_view front = runs.substr(before, runs.size() - rest.size() - before);
  Run again;
  while (TakeRun(&front, &again) && !front.empty()) writer.Add(again.value, again.registers);
  CELLAR_ASSERT(again.registers == run.registers);
  writer.Add(run.value, input.index - first);
  writer.Add(input.rank, 1);
  writer.Add(run.value, first + run.registers - input.index - 1);
  // Up to the end of the runs of the value that follows.
  uint8_t following = run.value;
  bool changed = false;
  while (!rest.empty()) {
    std::string_view behind = rest;
    (void)TakeRun(&behind, &again);
    if (again.value != following) {
      if (changed) break;
      changed = true;
      following = again.value;
    }
    writer.Add(again.value, again.registers);
    rest = behind;
  }
  writer.Flush();
  merged->append(rest);
}

}  // namespace

HllInput HllInputOfHash(uint64_t hash) {
  const auto index = static_cast<uint32_t>(hash & (kHllRegisters - 1));
  const uint64_t rest = hash >> kIndexBits | uint64_t{1} << kRankBits;
  return {index, static_cast<uint8_t>(__builtin_ctzll(rest) + 1)};
}

HllInput HllInputOf(std::string_view input) { return HllInputOfHash(Murmur64A(input)); }

HllSketch::HllSketch(std::string_view state) {
  if (IsDense(state)) {
    Unpack(Packed(state), registers_.data());
    return;
  }
  const bool read = ReadRuns(state.substr(kHllHeaderBytes), registers_.data());
  CELLAR_ASSERT(read);
}

void HllSketch::Merge(const HllSketch& other) {
  for (size_t i = 0; i < kHllRegisters; ++i)
    registers_[i] = std::max(registers_[i], other.registers_[i]);
}

void HllSketch::Merge(std::string_view state) {
  if (IsDense(state)) return Merge(HllSketch(state));
  std::string_view runs = state.substr(kHllHeaderBytes);
  uint32_t at = 0;
  while (!runs.empty()) {
    Run run;
    const bool taken = TakeRun(&runs, &run);
    CELLAR_ASSERT(taken && run.registers <= kHllRegisters - at);
    for (uint32_t i = 0; run.value > 0 && i < run.registers; ++i) (void)Add({at + i, run.value});
    at += run.registers;
  }
}

uint64_t HllSketch::Estimate() const {
  // Four counters for each rank: neighbours are often equal, and an add waits for the one before.
  std::array<Histogram, 4> parts{};
  for (size_t i = 0; i < kHllRegisters; i += 4) {
    for (size_t j = 0; j < 4; ++j) ++parts[j][registers_[i + j]];
  }
  Histogram histogram{};
  for (const Histogram& part : parts) {
    for (size_t rank = 0; rank < histogram.size(); ++rank) histogram[rank] += part[rank];
  }
  return EstimateOf(histogram);
}

void HllSketch::EncodeTo(std::string* state) const {
  if (*std::max_element(registers_.begin(), registers_.end()) <= kSparseRankMax) {
    PutHeader(kSparse, state);
    RunWriter writer(state);
    size_t i = 0;
    while (i < kHllRegisters && state->size() <= kHllSparseBytesMax) {
      const size_t begin = i;
      while (i < kHllRegisters && registers_[i] == registers_[begin]) ++i;
      writer.Add(registers_[begin], static_cast<uint32_t>(i - begin));
    }
    writer.Flush();
    if (i == kHllRegisters && state->size() <= kHllSparseBytesMax) return;
  }
  PutHeader(kDense, state);
  state->reserve(kHllDenseBytes);
  for (size_t i = 0; i < kHllRegisters; i += 4) {
    uint32_t bits = 0;
    for (size_t j = 0; j < 4; ++j) bits |= static_cast<uint32_t>(registers_[i + j]) << (6 * j);
    for (int shift = 0; shift < 24; shift += 8) state->push_back(static_cast<char>(bits >> shift));
  }
  CELLAR_ASSERT(state->size() == kHllDenseBytes);
}

std::string HllEmptyState() {
  std::string state;
  HllSketch().EncodeTo(&state);
  return state;
}

std::string HllStateOf(HllInput input) {
  std::string state;
  const bool changed = HllAdd(HllEmptyState(), input, &state);
  CELLAR_ASSERT(changed);
  return state;
}

bool HllCanonical(std::string_view state, std::string* canonical) {
  if (state.size() < kHllHeaderBytes || !state.starts_with(kMagic)) return false;
  HllSketch sketch;
  if (IsDense(state)) {
    if (state.size() != kHllDenseBytes) return false;
    Unpack(Packed(state), sketch.registers_.data());
    if (std::any_of(sketch.registers_.begin(), sketch.registers_.end(),
                    [](uint8_t rank) { return rank > kHllRankMax; })) {
      return false;
    }
  } else if (state[kEncodingAt] != kSparse ||
             !ReadRuns(state.substr(kHllHeaderBytes), sketch.registers_.data())) {
    return false;
  }
  sketch.EncodeTo(canonical);
  return true;
}

bool HllIsCanonical(std::string_view state) {
  std::string canonical;
  return state.size() <= kHllDenseBytes && HllCanonical(state, &canonical) && canonical == state;
}

uint64_t HllEstimate(std::string_view state) {
  if (IsDense(state)) return HllSketch(state).Estimate();
  Histogram histogram{};
  std::string_view runs = state.substr(kHllHeaderBytes);
  while (!runs.empty()) {
    Run run;
    const bool taken = TakeRun(&runs, &run);
    CELLAR_ASSERT(taken);
    histogram[run.value] += run.registers;
  }
  return EstimateOf(histogram);
}

uint8_t HllRegister(std::string_view state, uint32_t index) {
  CELLAR_ASSERT(index < kHllRegisters);
  if (IsDense(state)) return PackedRegister(Packed(state), index);
  std::string_view runs = state.substr(kHllHeaderBytes);
  for (uint32_t at = 0;;) {
    Run run;
    const bool taken = !runs.empty() && TakeRun(&runs, &run);
    CELLAR_ASSERT(taken);
    at += run.registers;
    if (index < at) return run.value;
  }
}

bool HllAdd(std::string_view state, HllInput input, std::string* merged) {
  if (input.rank <= HllRegister(state, input.index)) return false;
  if (IsDense(state)) {
    merged->assign(state);
    SetPackedRegister(reinterpret_cast<uint8_t*>(merged->data()) + kHllHeaderBytes, input.index,
                      input.rank);
    return true;
  }
  if (input.rank <= kSparseRankMax) {
    AddToRuns(state, input, merged);
    if (merged->size() <= kHllSparseBytesMax) return true;
  }
  HllSketch sketch(state);
  (void)sketch.Add(input);
  sketch.EncodeTo(merged);
  return true;
}

bool HllMerge(std::string_view state, std::string_view other, std::string* merged) {
  if (other.size() > kFewBytes) {
    HllSketch sketch(state);
    sketch.Merge(other);
    std::string together;
    sketch.EncodeTo(&together);
    if (together == state) return false;
    merged->swap(together);
    return true;
  }
  bool changed = false;
  uint32_t at = 0;
  std::string_view runs = other.substr(kHllHeaderBytes);
  std::string before;
  while (!runs.empty()) {
    Run run;
    const bool taken = TakeRun(&runs, &run);
    CELLAR_ASSERT(taken);
    for (uint32_t i = 0; run.value > 0 && i < run.registers; ++i) {
      if (changed) before.swap(*merged);
      const std::string_view from = changed ? std::string_view(before) : state;
      if (HllAdd(from, {at + i, run.value}, merged)) {
        changed = true;
      } else if (changed) {
        before.swap(*merged);
      }
    }
    at += run.registers;
  }
  return changed;
}

}  // namespace cellar
