// The replies in both protocol versions, and lengths filled in later.
#include "resp/reply_writer.h"

#include <catch2/catch.hpp>
#include <functional>
#include <random>
#include <string>

namespace cellar {
namespace reply_writer_test {

std::string Written(RespVersion version, const std::function<void(ReplyWriter&)>& write) {
  OutputBuffer buffer;
  ReplyWriter reply(&buffer, version);
  write(reply);
  return std::string(buffer.view());
}

void Check(const std::function<void(ReplyWriter&)>& write, const std::string& resp2,
           const std::string& resp3) {
  REQUIRE(Written(RespVersion::k2, write) == resp2);
  REQUIRE(Written(RespVersion::k3, write) == resp3);
}

TEST_CASE("Every meaning has its encoding in RESP2 and RESP3", "[resp]") {
  Check([](ReplyWriter& r) { r.Ok(); }, "+OK\r\n", "+OK\r\n");
  Check([](ReplyWriter& r) { r.Error("ERR a\r\nb"); }, "-ERR a  b\r\n", "-ERR a  b\r\n");
  Check([](ReplyWriter& r) { r.Integer(INT64_MIN); }, ":-9223372036854775808\r\n",
        ":-9223372036854775808\r\n");
  Check([](ReplyWriter& r) { r.Unsigned(UINT64_MAX); }, "$20\r\n18446744073709551615\r\n",
        "(18446744073709551615\r\n");
  Check([](ReplyWriter& r) { r.Null(); }, "$-1\r\n", "_\r\n");
  Check([](ReplyWriter& r) { r.NullArray(); }, "*-1\r\n", "_\r\n");
  Check([](ReplyWriter& r) { r.Boolean(true); }, ":1\r\n", "#t\r\n");
  Check([](ReplyWriter& r) { r.Double(3.5); }, "$3\r\n3.5\r\n", ",3.5\r\n");
  Check([](ReplyWriter& r) { r.Map(2); }, "*4\r\n", "%2\r\n");
  Check([](ReplyWriter& r) { r.Set(2); }, "*2\r\n", "~2\r\n");
  Check([](ReplyWriter& r) { r.Push(3); }, "*3\r\n", ">3\r\n");
  Check([](ReplyWriter& r) { r.Verbatim("hi", "txt"); }, "$2\r\nhi\r\n", "=6\r\ntxt:hi\r\n");
  Check([](ReplyWriter& r) { r.Bulk(std::string_view("\0\r\n", 3)); },
        std::string("$3\r\n\0\r\n\r\n", 9), std::string("$3\r\n\0\r\n\r\n", 9));
}

TEST_CASE("A length filled in later is right whatever was guessed", "[resp]") {
  for (const uint64_t guess : {0U, 9U, 10U, 12345U}) {
    for (const uint64_t count : {0U, 1U, 10U, 1000U}) {
      OutputBuffer buffer;
      ReplyWriter reply(&buffer, RespVersion::k2);
      reply.Ok();
      const auto outer = reply.BeginArray(guess);
      const auto inner = reply.BeginMap(guess);
      std::string expected =
          "+OK\r\n*" + std::to_string(count) + "\r\n*" + std::to_string(2 * count) + "\r\n";
      for (uint64_t i = 0; i < count; ++i) {
        reply.Integer(1);
        reply.Bulk("x");
        expected += ":1\r\n$1\r\nx\r\n";
      }
      reply.EndMap(inner, count);
      reply.EndArray(outer, count);
      REQUIRE(buffer.view() == expected);
    }
  }
}

TEST_CASE("Decimals of the wire are strict", "[resp]") {
  int64_t value = 7;
  for (const char* bad : {"", "-", "+1", "01", "-0", "1 ", " 1", "9223372036854775808",
                          "-9223372036854775809", "1x", "99999999999999999999999"}) {
    REQUIRE_FALSE(ParseStrictInt64(bad, &value));
    REQUIRE(value == 7);
  }
  for (const int64_t good : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{10}, INT64_MAX}) {
    REQUIRE(ParseStrictInt64(std::to_string(good), &value));
    REQUIRE(value == good);
    char text[kDecimalBytesMax];
    REQUIRE(std::string(text, EncodeDecimal(text, good)) == std::to_string(good));
  }
}

TEST_CASE("Decimals of every length", "[resp]") {
  const auto check = [](uint64_t value) {
    char text[kDecimalBytesMax];
    REQUIRE(std::string(text, EncodeDecimal(text, value)) == std::to_string(value));
  };
  uint64_t power = 1;
  for (size_t digits = 1; digits <= kDecimalBytesMax; ++digits, power *= 10)
    for (const uint64_t value : {power - 1, power, power + 1}) check(value);
  std::mt19937_64 rng(1);
  for (int bits = 0; bits < 64; ++bits) {
    check((uint64_t{1} << bits) - 1);
    check(uint64_t{1} << bits);
    for (int i = 0; i < 1000; ++i) check(rng() >> bits);
  }
  check(UINT64_MAX);
}

}  // namespace reply_writer_test
}  // namespace cellar
