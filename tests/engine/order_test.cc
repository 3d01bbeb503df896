// Orders: a model that compares the components of keys as what they are (numbers, UUIDs as Java and
// Cassandra compare them, text as bytes) against memcmp of the encodings, over random orders and
// keys.
#include "engine/keys/order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "engine/keys/key_component.h"

namespace order_test {

using namespace cellar;

Order ParseOrder(std::string_view spec) {
  Result<Order> order = Order::Parse(spec);
  INFO(spec);
  REQUIRE(order.ok());
  return *std::move(order);
}

std::string Encoded(const Order& order, std::string_view text) {
  std::string encoded;
  const Status status = order.Encode(text, &encoded);
  INFO(status.ToString());
  REQUIRE(status.ok());
  return encoded;
}

std::string Decoded(const Order& order, std::string_view encoded) {
  std::string text;
  REQUIRE(order.Decode(encoded, &text));
  return text;
}

bool IsBadKey(const Order& order, std::string_view text) {
  std::string encoded;
  const Status status = order.Encode(text, &encoded);
  return !status.ok() && status.code() == ErrorCode::kBadKey;
}

TEST_CASE("Orders print canonically", "[order]") {
  REQUIRE(Order().spec() == "bytes");
  REQUIRE(Order().is_plain_bytes());
  REQUIRE(ParseOrder("utf8#utf8#-u64").spec() == "utf8#utf8#-u64");
  REQUIRE(ParseOrder("byte").spec() == "u8");
  REQUIRE(ParseOrder("timeuuid:bytes").delimiter() == ':');
  REQUIRE_FALSE(ParseOrder("-bytes").is_plain_bytes());
  REQUIRE(ParseOrder("recno").is_recno());
  for (const char delimiter : std::string("#/|:,;~.")) {
    const std::string spec = std::string("i64") + delimiter + "utf8";
    REQUIRE(ParseOrder(spec).spec() == spec);
  }
}

TEST_CASE("What is no order is refused", "[order]") {
  for (const char* spec : {"", "foo", "utf8#", "#utf8", "utf8##utf8", "utf8#i64|utf8", "utf8 utf8",
                           "--i64", "-", "i64.f64", "f32.utf8", "utf8%i64", "string", "recno#utf8",
                           "-recno", "utf8#recno", "utf8# i64"}) {
    INFO(spec);
    const Result<Order> order = Order::Parse(spec);
    REQUIRE_FALSE(order.ok());
    REQUIRE(order.status().code() == ErrorCode::kErr);
  }
  std::string many = "u8";
  for (size_t i = 1; i < kOrderComponentsMax; ++i) many += "#u8";
  REQUIRE(Order::Parse(many).ok());
  REQUIRE_FALSE(Order::Parse(many + "#u8").ok());
}

TEST_CASE("Keys come back in canonical text", "[order]") {
  REQUIRE(Decoded(ParseOrder("i64"), Encoded(ParseOrder("i64"), "007")) == "7");
  const Order composite = ParseOrder("utf8#utf8#-u64");
  REQUIRE(Decoded(composite, Encoded(composite, "a#b#042")) == "a#b#42");
  REQUIRE(Decoded(composite, Encoded(composite, "##0")) == "##0");
  const Order rest = ParseOrder("u8:bytes");
  REQUIRE(Decoded(rest, Encoded(rest, "7:a:b:c")) == "7:a:b:c");
  const Order floats = ParseOrder("f64");
  REQUIRE(Decoded(floats, Encoded(floats, "-0.0")) == "0");
  REQUIRE(Decoded(floats, Encoded(floats, "1.50")) == "1.5");
  const Order uuids = ParseOrder("-uuid");
  REQUIRE(Decoded(uuids, Encoded(uuids, "6BA7B810-9DAD-11D1-80B4-00C04FD430C8")) ==
          "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
  const Order bools = ParseOrder("bool");
  REQUIRE(Decoded(bools, Encoded(bools, "1")) == "true");
  const std::string binary("a\0b\0\0\xff\x01", 7);
  for (const char* spec : {"bytes", "-bytes"}) {
    const Order order = ParseOrder(spec);
    REQUIRE(Decoded(order, Encoded(order, binary)) == binary);
  }
}

TEST_CASE("The text of a key is a view of it where nothing in it had to be escaped", "[order]") {
  const Order plain = ParseOrder("bytes");
  for (const std::string& text : {std::string(), std::string("plane#1"), std::string("a\0b", 3),
                                  std::string("\0", 1), std::string(300, 'x')}) {
    const std::string encoded = Encoded(plain, text);
    std::string scratch = "old";
    const std::string_view shown = plain.TextOf(encoded, &scratch);
    REQUIRE(shown == text);
    REQUIRE((shown.data() == encoded.data()) == (text.find('\0') == std::string::npos));
    std::string memory(Order::EncodedBytesMax(text.size()), '?');
    char* end = memory.data();
    REQUIRE(plain.Encode(text, &end).ok());
    REQUIRE(std::string_view(memory.data(), end) == encoded);
    REQUIRE(plain.EncodedSize(encoded + "tail") == encoded.size());
  }
  const Order composite = ParseOrder("utf8#-u64");
  std::string scratch;
  REQUIRE(composite.TextOf(Encoded(composite, "a#07"), &scratch) == "a#7");
}

TEST_CASE("A key is encoded into memory as into a string", "[order]") {
  const std::string zeros(70, '\0');
  for (const auto& [spec, text] :
       std::vector<std::pair<const char*, std::string>>{{"bytes", zeros},
                                                        {"-bytes", zeros},
                                                        {"utf8#-u64", "a#7"},
                                                        {"u64|u64|u64", "1|2|3"},
                                                        {"bytes", "plane"},
                                                        {"u8", "x"},
                                                        {"utf8#u8", "a"}}) {
    const Order order = ParseOrder(spec);
    std::string expected;
    const Status status = order.Encode(text, &expected);
    std::string memory(Order::EncodedBytesMax(text.size()), '?');
    char* end = memory.data();
    REQUIRE(order.Encode(text, &end).ToString() == status.ToString());
    if (!status.ok()) expected.clear();
    REQUIRE(std::string_view(memory.data(), end) == expected);
  }
}

TEST_CASE("A key that does not fit names its component", "[order]") {
  const Order order = ParseOrder("utf8#utf8#-u64");
  std::string encoded;
  REQUIRE(order.Encode("a#b#x", &encoded).ToString() ==
          "BADKEY component 3 (-u64): 'x' is not an integer");
  REQUIRE(order.Encode("a#b", &encoded).text().find("component 3") != std::string::npos);
  REQUIRE(order.Encode("a#\xff#1", &encoded).text().find("component 2") != std::string::npos);
  REQUIRE(IsBadKey(order, ""));
  REQUIRE(IsBadKey(order, "a#b#"));
  REQUIRE(IsBadKey(order, "a#b#c#1"));
  REQUIRE(IsBadKey(order, "a#b#18446744073709551616"));
  REQUIRE(IsBadKey(ParseOrder("ascii"), "\x80"));
  REQUIRE(IsBadKey(ParseOrder("f64"), "nan"));
  REQUIRE(IsBadKey(ParseOrder("f64"), ""));
  REQUIRE(IsBadKey(ParseOrder("f32"), "1e39"));
  REQUIRE(IsBadKey(ParseOrder("u8"), "256"));
  REQUIRE(IsBadKey(ParseOrder("bool"), "maybe"));
  REQUIRE(IsBadKey(ParseOrder("recno"), "0"));
  REQUIRE(IsBadKey(ParseOrder("recno"), "9223372036854775808"));
  REQUIRE(IsBadKey(ParseOrder("timeuuid"), "6ba7b810-9dad-41d1-80b4-00c04fd430c8"));
  REQUIRE_FALSE(IsBadKey(ParseOrder("timeuuid"), "6ba7b810-9dad-11d1-80b4-00c04fd430c8"));
}

// --- A model of the logical order -------------------------------------------------------------

// Compares the texts of one component; `type` says how.
int CompareTexts(ComponentType type, const std::string& a, const std::string& b) {
  const auto sign = [](auto x, auto y) { return x < y ? -1 : (y < x ? 1 : 0); };
  switch (type) {
    case ComponentType::kBytes:
    case ComponentType::kAscii:
    case ComponentType::kUtf8: {
      const int order = std::memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
      return order != 0 ? order : sign(a.size(), b.size());
    }
    case ComponentType::kU64:
      return sign(std::stoull(a), std::stoull(b));
    case ComponentType::kF32:
      return sign(std::stof(a), std::stof(b));
    case ComponentType::kF64:
      return sign(std::stod(a), std::stod(b));
    case ComponentType::kBool:
      return sign(a == "true", b == "true");
    case ComponentType::kUuid:
    case ComponentType::kLuuid:
    case ComponentType::kTimeuuid:
      break;
    default:
      return sign(std::stoll(a), std::stoll(b));
  }
  const auto halves = [](const std::string& text) {
    std::string hex;
    for (const char c : text) {
      if (c != '-') hex.push_back(c);
    }
    return std::pair(std::stoull(hex.substr(0, 16), nullptr, 16),
                     std::stoull(hex.substr(16), nullptr, 16));
  };
  const auto [a_high, a_low] = halves(a);
  const auto [b_high, b_low] = halves(b);
  if (type == ComponentType::kLuuid) {  // java.util.UUID.compareTo
    const int high = sign(static_cast<int64_t>(a_high), static_cast<int64_t>(b_high));
    return high != 0 ? high : sign(static_cast<int64_t>(a_low), static_cast<int64_t>(b_low));
  }
  if (type == ComponentType::kTimeuuid) {  // RFC 4122: time_hi, time_mid, time_low
    const auto time = [](uint64_t high) {
      return (high & 0x0fff) << 48 | (high >> 16 & 0xffff) << 32 | high >> 32;
    };
    const int order = sign(time(a_high), time(b_high));
    return order != 0 ? order : sign(a_low, b_low);
  }
  const int high = sign(a_high, b_high);
  return high != 0 ? high : sign(a_low, b_low);
}

std::string RandomText(Random* random, ComponentType type, char delimiter, bool is_last) {
  std::string text;
  for (uint64_t n = random->Below(5); n > 0; --n) {
    char c =
        "\0\x01\x7f"
        "ab#z"[random->Below(7)];
    if (type == ComponentType::kBytes && random->OneIn(3)) {
      c = "\xff\xfe\x80\xf0"[random->Below(4)];
    }
    if (c == delimiter && !is_last) c = 'q';
    text.push_back(c);
  }
  return text;
}

std::string RandomUuid(Random* random, bool version_1) {
  // Few different bytes, so that comparisons go deep.
  const char* const digits[] = {"00", "01", "7f", "80", "ff"};
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text.push_back('-');
    std::string byte = digits[random->OneIn(3) ? random->Below(5) : 0];
    if (i == 6 && version_1) byte[0] = '1';
    text += byte;
  }
  return text;
}

std::string RandomComponent(Random* random, ComponentType type, char delimiter, bool is_last) {
  const auto integer = [&](int bits, bool is_signed) {
    uint64_t raw = random->Next() >> random->Below(64);
    if (random->OneIn(3)) raw = random->Below(4);
    if (random->OneIn(6)) raw = UINT64_MAX;
    if (bits < 64) raw &= (uint64_t{1} << bits) - 1;
    if (!is_signed) return std::to_string(raw);
    const auto shifted = static_cast<int64_t>(raw << (64 - bits));
    return std::to_string(shifted >> (64 - bits));
  };
  switch (type) {
    case ComponentType::kU8:
      return integer(8, false);
    case ComponentType::kU16:
      return integer(16, false);
    case ComponentType::kU32:
      return integer(32, false);
    case ComponentType::kU64:
      return integer(64, false);
    case ComponentType::kI8:
      return integer(8, true);
    case ComponentType::kI16:
      return integer(16, true);
    case ComponentType::kI32:
      return integer(32, true);
    case ComponentType::kI64:
      return integer(64, true);
    case ComponentType::kRecno:
      return std::to_string(1 + (random->Next() >> (2 + random->Below(60))));
    case ComponentType::kBool:
      return random->OneIn(2) ? "true" : "false";
    case ComponentType::kUuid:
    case ComponentType::kLuuid:
      return RandomUuid(random, false);
    case ComponentType::kTimeuuid:
      return RandomUuid(random, true);
    case ComponentType::kF32:
    case ComponentType::kF64: {
      static const char* const kFloats[] = {"0",   "1",      "-1",    "inf",    "-inf", "0.5",
                                            "2.5", "-1e-30", "1e+20", "-1e+30", "1e-05"};
      return kFloats[random->Below(std::size(kFloats))];
    }
    default:
      return RandomText(random, type, delimiter, is_last);
  }
}

struct Key {
  std::vector<std::string> parts;
  std::string text;
  std::string encoded;
};

int CompareKeys(const Order& order, const Key& a, const Key& b, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const OrderComponent component = order.components()[i];
    const int sign = CompareTexts(component.type, a.parts[i], b.parts[i]);
    if (sign != 0) return component.descending ? -sign : sign;
  }
  return 0;
}

Order RandomOrder(Random* random) {
  if (random->OneIn(20)) return ParseOrder("recno");
  const char delimiter = "#/|:,;~"[random->Below(7)];
  std::vector<OrderComponent> components(1 + random->Below(3));
  for (OrderComponent& component : components) {
    component.type =
        static_cast<ComponentType>(random->Below(static_cast<uint64_t>(ComponentType::kRecno)));
    component.descending = random->OneIn(3);
  }
  const bool single = components.size() == 1;
  const Order order = Order::FromComponents(std::move(components), single ? '\0' : delimiter);
  REQUIRE(ParseOrder(order.spec()) == order);
  return order;
}

Key RandomKey(Random* random, const Order& order) {
  Key key;
  for (size_t i = 0; i < order.components().size(); ++i) {
    const bool is_last = i + 1 == order.components().size();
    if (i > 0) key.text.push_back(order.delimiter());
    key.parts.push_back(
        RandomComponent(random, order.components()[i].type, order.delimiter(), is_last));
    key.text += key.parts.back();
  }
  key.encoded = Encoded(order, key.text);
  return key;
}

TEST_CASE("memcmp of encodings is the logical order, whatever the order", "[order]") {
  const uint64_t seed = 815;
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    const Order order = RandomOrder(&random);
    INFO(order.spec());
    std::vector<Key> keys;
    for (int i = 0; i < 40; ++i) keys.push_back(RandomKey(&random, order));
    for (const Key& a : keys) {
      if (Decoded(order, a.encoded) != a.text) FAIL("round trip of " << a.text);
      const std::string behind = a.encoded + std::string(random.Below(12), '\xff');
      if (order.EncodedSize(behind) != a.encoded.size()) FAIL("size of " << a.text);
      if (order.EncodedSize(a.encoded.substr(0, a.encoded.size() - 1)) != 0) FAIL("cut");
      for (const Key& b : keys) {
        const int sign = CompareKeys(order, a, b, a.parts.size());
        const int bytes = a.encoded.compare(b.encoded);
        if ((sign < 0) != (bytes < 0) || (sign > 0) != (bytes > 0)) {
          FAIL(a.text << " against " << b.text);
        }
        if (sign != 0 && b.encoded.starts_with(a.encoded)) FAIL("a prefix: " << a.text);
      }
    }
  }
}

TEST_CASE("Bounds take in or leave out every key with their first components", "[order]") {
  const uint64_t seed = 4242;
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    const Order order = RandomOrder(&random);
    INFO(order.spec());
    std::vector<Key> keys;
    for (int i = 0; i < 25; ++i) keys.push_back(RandomKey(&random, order));
    const Key& named = keys[0];
    const size_t total = named.parts.size();
    const size_t count = 1 + random.Below(total);
    std::string text = named.parts[0];
    for (size_t i = 1; i < count; ++i) text += order.delimiter() + named.parts[i];
    for (const BoundEdge edge : {BoundEdge::kInclusive, BoundEdge::kExclusive}) {
      const auto min = order.EncodeBound(text, edge, BoundSide::kMin);
      const auto max = order.EncodeBound(text, edge, BoundSide::kMax);
      REQUIRE(min.ok());
      REQUIRE(max.ok());
      const KeyRange from{*min, {{}, true}};
      const KeyRange up_to{{}, *max};
      for (const Key& key : keys) {
        const int sign = CompareKeys(order, key, named, count);
        const bool inclusive = edge == BoundEdge::kInclusive;
        const std::string tail = key.encoded + "\x07tail";
        if (from.contains(tail) != (inclusive ? sign >= 0 : sign > 0)) FAIL("min of " << key.text);
        if (up_to.contains(tail) != (inclusive ? sign <= 0 : sign < 0)) FAIL("max of " << key.text);
      }
    }
  }
}

TEST_CASE("Prefixes are whole components or end inside a text", "[order]") {
  const uint64_t seed = 2024;
  INFO("seed " << seed);
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    const Order order = RandomOrder(&random);
    INFO(order.spec());
    std::vector<Key> keys;
    for (int i = 0; i < 25; ++i) keys.push_back(RandomKey(&random, order));
    const Key& named = keys[0];
    const size_t whole = random.Below(named.parts.size() + 1);
    std::string text;
    for (size_t i = 0; i < whole; ++i) {
      text += named.parts[i];
      if (i + 1 < named.parts.size()) text += order.delimiter();
    }
    std::string begun;  // what the next component begins with
    const bool cut = whole < named.parts.size() && IsTextComponent(order.components()[whole].type);
    if (cut) begun = named.parts[whole].substr(0, random.Below(named.parts[whole].size() + 1));
    // A last text component is never "whole" in a prefix: more may follow.
    const bool last_is_text =
        whole == named.parts.size() && IsTextComponent(order.components().back().type);
    text += begun;
    const auto range = order.EncodePrefix(text);
    INFO("prefix " << text);
    REQUIRE(range.ok());
    for (const Key& key : keys) {
      const size_t equal = last_is_text ? whole - 1 : whole;
      bool expected = CompareKeys(order, key, named, equal) == 0;
      if (last_is_text) expected = expected && key.parts.back().starts_with(named.parts.back());
      if (cut) expected = expected && key.parts[whole].starts_with(begun);
      if (range->contains(key.encoded + "x") != expected) FAIL(key.text);
    }
  }
}

TEST_CASE("The prefixes of the specification", "[order]") {
  const Order text = ParseOrder("utf8#utf8#-u64");
  const auto contains = [](const Order& order, std::string_view prefix, std::string_view key) {
    const auto range = order.EncodePrefix(prefix);
    REQUIRE(range.ok());
    return range->contains(Encoded(order, key));
  };
  REQUIRE(contains(text, "STC#22#", "STC#22#5"));
  REQUIRE_FALSE(contains(text, "STC#22#", "STC#221#5"));
  REQUIRE(contains(text, "STC#2", "STC#22#5"));
  REQUIRE(contains(text, "", "anything#at#1"));
  const Order number = ParseOrder("utf8#i64#utf8");
  REQUIRE(contains(number, "STC#22", "STC#22#x"));
  REQUIRE_FALSE(contains(number, "STC#22", "STC#221#x"));
  REQUIRE_FALSE(number.EncodePrefix("STC#x").ok());
  REQUIRE(number.EncodePrefix("STC#x").status().code() == ErrorCode::kBadKey);
  REQUIRE_FALSE(ParseOrder("uuid").EncodePrefix("6ba7").ok());
  REQUIRE(ParseOrder("i64").EncodePrefix("").ok());
}

TEST_CASE("Successor leaves out trailing ff", "[order]") {
  REQUIRE(Successor("a").bytes == "b");
  REQUIRE(Successor("a\xff\xff").bytes == "b");
  REQUIRE(Successor("").at_end);
  REQUIRE(Successor("\xff\xff").at_end);
  REQUIRE(KeyRange{}.contains("anything"));
  REQUIRE((KeyRange{{"b", false}, {"a", false}}.empty()));
}

TEST_CASE("The first component is a super column", "[order]") {
  const Order order = ParseOrder("utf8:bytes");
  const std::string a = Encoded(order, "super:sub1");
  const std::string b = Encoded(order, "super:sub2");
  const size_t size = order.FirstComponentSize(a);
  REQUIRE(size == order.FirstComponentSize(b));
  REQUIRE(a.substr(0, size) == b.substr(0, size));
  REQUIRE(a.substr(0, order.FirstComponentSize(Encoded(order, "supes:sub1"))) !=
          a.substr(0, size + 1));
  REQUIRE(ParseOrder("bytes").FirstComponentSize(Encoded(Order(), "x")) == 3);
}

TEST_CASE("What a key has in common with the one before may tell its size", "[order]") {
  Random random(7);
  for (const std::string_view spec : {"utf8", "utf8#u64", "-u16#utf8", "u8", "bytes/-i32/u8"}) {
    const Order order = ParseOrder(spec);
    CHECK((order.fixed_bytes() > 0) == (spec == "u8"));
    std::string last;
    for (int i = 0; i < 500; ++i) {
      std::string text;
      for (const OrderComponent& component : order.components()) {
        if (!text.empty()) text += order.delimiter();
        if (IsTextComponent(component.type)) text += std::string(random.Below(3), 'a');
        text += std::to_string(random.Below(3));
      }
      std::string key = Encoded(order, text);
      const size_t size = key.size();
      key += "behind it";
      const size_t shared = static_cast<size_t>(
          std::mismatch(last.begin(), last.end(), key.begin(), key.end()).first - last.begin());
      REQUIRE(order.EncodedSizeBehind(last.size(), shared, key) == size);
      last = key.substr(0, size);
    }
  }
}

TEST_CASE("Record numbers go into keys and back", "[order]") {
  const Order order = ParseOrder("recno");
  std::string last;
  for (const int64_t number : {int64_t{1}, int64_t{2}, int64_t{300}, INT64_MAX}) {
    std::string encoded;
    order.EncodeRecno(number, &encoded);
    REQUIRE(encoded == Encoded(order, std::to_string(number)));
    REQUIRE(order.DecodeRecno(encoded) == number);
    REQUIRE(last < encoded);
    last = encoded;
  }
}

TEST_CASE("Malformed encodings are refused", "[order]") {
  std::string text;
  for (const std::string& bytes :
       {std::string(), std::string("abc"), std::string("a\0", 2), std::string("a\0\x02", 3),
        std::string("a\0\x01x", 4), std::string("\0", 1)}) {
    REQUIRE_FALSE(Order().Decode(bytes, &text));
  }
  REQUIRE_FALSE(ParseOrder("i64").Decode("1234567", &text));
  REQUIRE_FALSE(ParseOrder("bool").Decode("\x02", &text));
  REQUIRE_FALSE(ParseOrder("f64").Decode(std::string(8, '\xff'), &text));
  REQUIRE_FALSE(ParseOrder("timeuuid").Decode(std::string(16, '\x44'), &text));
}

TEST_CASE("Typed values and key text give the same component", "[order]") {
  const uint64_t seed = 606;
  INFO("seed " << seed);
  Random random(seed);
  for (uint8_t i = 0; i < kNamedTypeCount; ++i) {
    const auto type = static_cast<ValueType>(i);
    for (const bool descending : {false, true}) {
      const OrderComponent component{ComponentOfValueType(type), descending};
      for (int j = 0; j < 200; ++j) {
        const std::string text = RandomComponent(&random, component.type, '\0', true);
        std::string stored;
        REQUIRE(ParseValue(type, text, &stored).ok());
        std::string by_value;
        EncodeComponentValue(component, type, stored, &by_value);
        std::string by_text;
        std::string_view why;
        REQUIRE(EncodeComponent(component, text, &by_text, &why));
        REQUIRE(by_value == by_text);
        std::string back;
        REQUIRE(DecodeComponentValue(component, type, by_value, &back));
        REQUIRE(back == stored);
      }
    }
  }
}

}  // namespace order_test
