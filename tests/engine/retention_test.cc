// Policies against an evaluator that walks the expression again for every cell.
#include "engine/schema/retention.h"

#include <catch2/catch.hpp>
#include <memory>

#include "base/random.h"
#include "base/text/duration.h"

namespace retention_test {

using namespace cellar;

constexpr int64_t kDay{86'400'000'000};

TEST_CASE("A policy drops by rank, by age, by both, by either", "[retention]") {
  const auto policy = RetentionPolicy::Parse("maxversions=3 && maxage=7d || maxage=30d");
  REQUIRE(policy.ok());
  const int64_t now = 1000 * kDay;
  REQUIRE_FALSE(policy->Drops(1, now - 29 * kDay, now));
  REQUIRE(policy->Drops(1, now - 30 * kDay, now));
  REQUIRE_FALSE(policy->Drops(1, now - 30 * kDay + 1, now));
  REQUIRE_FALSE(policy->Drops(3, now - 8 * kDay, now));
  REQUIRE(policy->Drops(4, now - 7 * kDay, now));
  REQUIRE_FALSE(policy->Drops(4, now - 7 * kDay + 1, now));
  REQUIRE_FALSE(policy->Drops(100, 0, now));  // timestamp 0 has no age
  REQUIRE_FALSE(policy->Drops(100, now + kDay, now));
  REQUIRE(policy->DueMicros(4, now) == now + 7 * kDay);
  REQUIRE(policy->DueMicros(1, now) == now + 30 * kDay);
  REQUIRE(policy->depends_on_rank());
  REQUIRE(policy->depends_on_age());
  REQUIRE(policy->rank_kept_max() == UINT64_MAX);
  REQUIRE(policy->is_expression());
}

TEST_CASE("VERSIONS and TTL together mean either", "[retention]") {
  const RetentionPolicy both = RetentionPolicy::FromVersionsAndTtl(2, 1000);
  REQUIRE(both.text() == "maxversions=2 || maxage=1s");
  REQUIRE(both.versions() == 2);
  REQUIRE(both.ttl_ms() == 1000);
  REQUIRE_FALSE(both.is_expression());
  REQUIRE(both.rank_kept_max() == 2);
  REQUIRE(both.Drops(3, 0, 0));
  REQUIRE(both.Drops(1, 5, 1'000'005));
  REQUIRE_FALSE(both.Drops(2, 5, 1'000'004));
  REQUIRE(both.DueMicros(3, 5) == INT64_MIN);
  const RetentionPolicy versions = RetentionPolicy::FromVersionsAndTtl(1, 0);
  REQUIRE(versions.depends_on_rank());
  REQUIRE_FALSE(versions.depends_on_age());
  const RetentionPolicy none = RetentionPolicy::FromVersionsAndTtl(0, 0);
  REQUIRE(none.keeps_everything());
  REQUIRE(none.text().empty());
  REQUIRE_FALSE(none.Drops(UINT64_MAX, 1, INT64_MAX));
}

TEST_CASE("A cell's own expiry counts beside the policy", "[retention]") {
  const RetentionPolicy ttl = RetentionPolicy::FromVersionsAndTtl(0, 1000);
  REQUIRE(ttl.DueMicros(1, 10, 500) == 500);
  REQUIRE(ttl.DueMicros(1, 10, kNeverMicros) == 1'000'010);
  REQUIRE(RetentionPolicy().DueMicros(1, 10, kNeverMicros) == kNeverMicros);
  REQUIRE(RetentionPolicy().Drops(1, 10, 500, 500));
  REQUIRE_FALSE(RetentionPolicy().Drops(1, 10, 500, 499));
  REQUIRE_FALSE(RetentionPolicy().Drops(1, 10, kNeverMicros, INT64_MAX));
}

TEST_CASE("Policies print canonically and read back", "[retention]") {
  struct Case {
    const char* text;
    const char* canonical;
  };
  for (const Case& c :
       {Case{"maxage=7d", "maxage=7d"}, Case{"  MaxVersions = 3  ", "maxversions=3"},
        Case{"maxage=168h", "maxage=7d"}, Case{"maxage=90", "maxage=90s"},
        Case{"maxversions=3 and maxage=7d or maxage=30d",
             "maxversions=3 && maxage=7d || maxage=30d"},
        Case{"maxversions=3&&(maxage=7d||maxage=30d)",
             "maxversions=3 && (maxage=7d || maxage=30d)"},
        Case{"((maxage=7d))", "maxage=7d"},
        Case{"(maxage=1d && maxversions=1) || maxage=2d",
             "maxage=1d && maxversions=1 || maxage=2d"},
        Case{"NONE", ""}, Case{"none", ""}}) {
    INFO(c.text);
    const auto policy = RetentionPolicy::Parse(c.text);
    REQUIRE(policy.ok());
    REQUIRE(policy->text() == c.canonical);
    if (policy->text().empty()) continue;
    REQUIRE(*RetentionPolicy::Parse(policy->text()) == *policy);
  }
}

TEST_CASE("What is no policy is refused with its position", "[retention]") {
  for (const char* text : {"",
                           " ",
                           "maxage",
                           "maxage=",
                           "maxage=0",
                           "maxversions=0",
                           "maxversions=-1",
                           "maxversions=x",
                           "maxage=7w",
                           "maxage=7d maxage=8d",
                           "maxage=7d &&",
                           "&& maxage=7d",
                           "(maxage=7d",
                           "maxage=7d)",
                           "maxage=7d & maxage=8d",
                           "none || maxage=7d",
                           "maxversions=1.5",
                           "versions=3",
                           "maxversions=99999999999999999999",
                           "maxage=7d ororor maxage=8d"}) {
    INFO(text);
    const auto policy = RetentionPolicy::Parse(text);
    REQUIRE_FALSE(policy.ok());
    REQUIRE(policy.status().code() == ErrorCode::kErr);
    REQUIRE(policy.status().text().find("position") != std::string::npos);
  }
  REQUIRE_FALSE(RetentionPolicy::Parse(std::string(kPolicyBytesMax + 1, ' ')).ok());
  const std::string deep = std::string(30, '(') + "maxage=7d" + std::string(30, ')');
  REQUIRE_FALSE(RetentionPolicy::Parse(deep).ok());
  const std::string fits = std::string(19, '(') + "maxage=7d" + std::string(19, ')');
  REQUIRE(RetentionPolicy::Parse(fits).ok());
}

// An expression as a tree, made together with its text.
struct Expression {
  enum class Kind { kVersions, kAge, kAnd, kOr } kind{Kind::kAge};
  uint64_t versions{0};
  int64_t age_ms{0};
  std::unique_ptr<Expression> a;
  std::unique_ptr<Expression> b;

  bool Drops(uint64_t rank, int64_t timestamp, int64_t now) const {
    switch (kind) {
      case Kind::kVersions:
        return rank > versions;
      case Kind::kAge:
        return timestamp != 0 && now - timestamp >= age_ms * 1000;
      case Kind::kAnd:
        return a->Drops(rank, timestamp, now) && b->Drops(rank, timestamp, now);
      case Kind::kOr:
        return a->Drops(rank, timestamp, now) || b->Drops(rank, timestamp, now);
    }
    return false;
  }
};

std::unique_ptr<Expression> RandomExpression(Random* random, int depth, std::string* text) {
  auto expression = std::make_unique<Expression>();
  if (depth == 0 || random->OneIn(3)) {
    if (random->OneIn(2)) {
      expression->kind = Expression::Kind::kVersions;
      expression->versions = 1 + random->Below(5);
      *text += "maxversions=" + std::to_string(expression->versions);
    } else {
      expression->age_ms = 1 + static_cast<int64_t>(random->Below(50));
      *text += "maxage=" + std::to_string(expression->age_ms) + "ms";
    }
    return expression;
  }
  const bool is_and = random->OneIn(2);
  expression->kind = is_and ? Expression::Kind::kAnd : Expression::Kind::kOr;
  *text += "(";
  expression->a = RandomExpression(random, depth - 1, text);
  *text += is_and ? ") and (" : ")||(";
  expression->b = RandomExpression(random, depth - 1, text);
  *text += ")";
  return expression;
}

TEST_CASE("Random policies drop what their expressions drop, from the moment that is due",
          "[retention]") {
  const uint64_t seed = 99;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 500; ++i) {
    std::string text;
    const auto expression = RandomExpression(&random, 4, &text);
    INFO(text);
    const auto policy = RetentionPolicy::Parse(text);
    REQUIRE(policy.ok());
    const auto again = RetentionPolicy::Parse(policy->text());
    REQUIRE(again.ok());
    for (int j = 0; j < 100; ++j) {
      const uint64_t rank = 1 + random.Below(8);
      const auto timestamp = static_cast<int64_t>(random.OneIn(5) ? 0 : random.Below(60'000));
      const auto now = static_cast<int64_t>(random.Below(120'000));
      const bool drops = expression->Drops(rank, timestamp, now);
      if (policy->Drops(rank, timestamp, now) != drops)
        FAIL(rank << " " << timestamp << " " << now);
      if (again->Drops(rank, timestamp, now) != drops) FAIL("canonical text differs");
      if (rank > policy->rank_kept_max() && !drops) FAIL("rank_kept_max");
      const int64_t due = policy->DueMicros(rank, timestamp);
      if (due != kNeverMicros && due != INT64_MIN) {
        if (!expression->Drops(rank, timestamp, due)) FAIL("not dropped when due");
        if (expression->Drops(rank, timestamp, due - 1)) FAIL("dropped before it was due");
      }
    }
  }
}

}  // namespace retention_test
