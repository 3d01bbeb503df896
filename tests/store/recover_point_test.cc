// Words for a point in time.
#include "store/offline/recover_point.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/text/time_text.h"

namespace cellar::recover_point_test {

int64_t MicrosOf(std::string_view text) {
  const auto point = ParseRecoverPoint(text);
  if (!point.ok()) FAIL(point.status().text());
  REQUIRE(point->kind == RecoverPoint::Kind::kTime);
  CHECK(point->text == text);
  return point->micros;
}

TEST_CASE("A time is RFC 3339 or microseconds", "[recover]") {
  CHECK(MicrosOf("1970-01-01T00:00:00Z") == 0);
  CHECK(MicrosOf("2026-11-23T02:59:59Z") == 1795402799000000);
  CHECK(MicrosOf("2026-11-23t02:59:59z") == 1795402799000000);
  CHECK(MicrosOf("2026-11-23 02:59:59Z") == 1795402799000000);
  CHECK(MicrosOf("2026-11-23T02:59:59.5Z") == 1795402799500000);
  CHECK(MicrosOf("2026-11-23T02:59:59.000001+00:00") == 1795402799000001);
  CHECK(MicrosOf("2026-11-23T04:29:59+01:30") == 1795402799000000);
  CHECK(MicrosOf("2026-11-22T21:59:59-05:00") == 1795402799000000);
  CHECK(MicrosOf("2026-11-23T02:59:59.123456000Z") == 1795402799123456);
  CHECK(MicrosOf("2026-11-23") == 1795392000000000);
  cellar::SetNowOfTexts(1795402799000000);
  CHECK(MicrosOf("now-1h") == 1795399199000000);
  CHECK(MicrosOf("2024-02-29T00:00:00Z") == 1709164800000000);
  CHECK(MicrosOf("1795402799000000") == 1795402799000000);
  CHECK(FormatTime(1795402799000001) == "2026-11-23T02:59:59.000001Z");
  CHECK(FormatTime(0) == "1970-01-01T00:00:00.000000Z");
  for (const int64_t micros : {int64_t{1}, int64_t{1709164799999999}, int64_t{4102444800123456}})
    CHECK(MicrosOf(FormatTime(micros)) == micros);
}

TEST_CASE("What is no time is an id or a name, or nothing", "[recover]") {
  const auto id = ParseRecoverPoint("1795403485350-197000000");
  REQUIRE(id.ok());
  CHECK(id->kind == RecoverPoint::Kind::kId);
  CHECK(id->micros == 1795403485350197);
  const auto name = ParseRecoverPoint("monday");
  REQUIRE(name.ok());
  CHECK(name->kind == RecoverPoint::Kind::kSnapshot);
  CHECK(name->keyspace == "0");
  CHECK(name->name == "monday");
  const auto elsewhere = ParseRecoverPoint("shop/dropped.t.1795403485350197");
  REQUIRE(elsewhere.ok());
  CHECK(elsewhere->keyspace == "shop");
  CHECK(elsewhere->name == "dropped.t.1795403485350197");
  CHECK(ParseRecoverPoint("2026")->kind == RecoverPoint::Kind::kSnapshot);
  for (const char* wrong :
       {"", "2026-11-23T02:59:59", "2026-11-23T25:00:00Z", "2026-02-30T00:00:00Z",
        "2026-11-23T02:59:60Z", "2026-11-23T02:59:59.Z", "2026-11-23T02:59:59.1234567Z",
        "2026-11-23T02:59:59+1:00", "2026-11-23T02:59:59Z ", "1969-12-31T23:59:59Z", "/monday",
        "shop/", "a b", "monday@t"}) {
    INFO(wrong);
    CHECK_FALSE(ParseRecoverPoint(wrong).ok());
  }
}

}  // namespace cellar::recover_point_test
