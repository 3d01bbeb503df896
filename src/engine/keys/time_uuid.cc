// See time_uuid.h.
#include "engine/keys/time_uuid.h"

#include <algorithm>
#include <random>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "base/text/number.h"
#include "base/text/time_text.h"
#include "engine/keys/value.h"

namespace cellar {
namespace {

// From 1582-10-15 to 1970-01-01.
constexpr uint64_t kTicks1970{0x01b21dd213814000};
constexpr uint64_t kTicksMax{(uint64_t{1} << 60) - 1};
constexpr uint64_t kTicksPerMicro{10};
static_assert(kTicks1970 + kTicksPerMicro * uint64_t{kTimeUuidMicrosMax} <= kTicksMax);

// | ticks, low 32 | ticks, next 16 | 1, ticks, high 12 | 10, clock sequence, node: 64 |
std::string TextOf(uint64_t ticks, uint64_t rest) {
  CELLAR_ASSERT(ticks <= kTicksMax);
  const uint64_t time = ticks << 32 | (ticks >> 16 & 0xffff0000) | uint64_t{1} << 12 | ticks >> 48;
  char bytes[kUuidBytes];
  for (size_t i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(time >> (56 - 8 * i));
    bytes[8 + i] = static_cast<char>(rest >> (56 - 8 * i));
  }
  std::string text;
  AppendUuidText({bytes, sizeof(bytes)}, &text);
  return text;
}

// A random node has the bit of a multicast address, which no network card has.
uint64_t DrawNode() {
  std::random_device device;
  const uint64_t bits = uint64_t{device()} << 32 | device();
  constexpr uint64_t kVariant{uint64_t{2} << 62};
  constexpr uint64_t kMulticast{uint64_t{1} << 40};
  return (bits & ~(uint64_t{3} << 62)) | kVariant | kMulticast;
}

// Replaces each timeuuid for which `expand` gives a text.
template <typename Expand>
bool ExpandComponents(const Order& order, std::string_view text, std::string* expanded,
                      Expand expand) {
  bool any = false;
  expanded->clear();
  std::string_view rest = text;
  for (size_t i = 0; i < order.components().size(); ++i) {
    const bool is_last = i + 1 == order.components().size();
    const size_t end = is_last ? std::string_view::npos : rest.find(order.delimiter());
    const std::string_view part = rest.substr(0, end);
    std::string replaced;
    if (order.components()[i].type == ComponentType::kTimeuuid && expand(part, &replaced)) {
      any = true;
      expanded->append(replaced);
    } else {
      expanded->append(part);
    }
    if (end == std::string_view::npos) break;
    expanded->push_back(order.delimiter());
    rest.remove_prefix(end + 1);
  }
  return any;
}

}  // namespace

std::string NewTimeUuid() {
  static const uint64_t kNode = DrawNode();
  static uint64_t last{0};
  const auto micros =
      static_cast<uint64_t>(std::clamp<int64_t>(NowOfTexts(), 0, kTimeUuidMicrosMax));
  last = std::clamp(kTicks1970 + kTicksPerMicro * micros, last + 1, kTicksMax);
  return TextOf(last, kNode);
}

std::string LeastTimeUuid(int64_t micros) {
  CELLAR_ASSERT(micros >= 0);
  CELLAR_ASSERT(micros <= kTimeUuidMicrosMax);
  return TextOf(kTicks1970 + kTicksPerMicro * static_cast<uint64_t>(micros), 0);
}

bool ExpandNow(const Order& order, std::string_view text, std::string* expanded) {
  return ExpandComponents(order, text, expanded, [](std::string_view part, std::string* to) {
    if (!EqualsIgnoreCase(part, "now")) return false;
    *to = NewTimeUuid();
    return true;
  });
}

bool ExpandTimes(const Order& order, std::string_view text, std::string* expanded) {
  return ExpandComponents(order, text, expanded, [](std::string_view part, std::string* to) {
    int64_t micros = 0;
    if (ParseInt64(part, &micros) != NumberError::kNone) {
      const Result<int64_t> time = ParseTimeText(part, TimeForm::kRfc3339);
      if (!time.ok()) return false;
      micros = *time;
    }
    if (micros < 0 || micros > kTimeUuidMicrosMax) return false;
    *to = LeastTimeUuid(micros);
    return true;
  });
}

}  // namespace cellar
