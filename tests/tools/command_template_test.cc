// Tests of the load generator's commands: splitting, placeholders, workloads, key distributions.
#include "cellar-benchmark/command_template.h"

#include <catch2/catch.hpp>

#include "cellar-benchmark/key_distribution.h"
#include "cellar-benchmark/workload.h"

namespace command_template_test {

using namespace cellar::benchmark;  // NOLINT(google-build-using-namespace)
using cellar::Random;

std::string RenderOnce(std::string_view text, uint64_t key) {
  const auto command = CommandTemplate::Parse(text, TemplateOptions{});
  REQUIRE(command.ok());
  Random random(1);
  RenderContext context;
  context.random = &random;
  context.key = key;
  context.sequence = 3;
  context.now_micros = 1700000000123456;
  std::string out;
  command->Render(context, &out);
  return out;
}

TEST_CASE("A command is rendered as an array of bulk strings", "[command_template]") {
  CHECK(RenderOnce("PING", 0) == "*1\r\n$4\r\nPING\r\n");
  CHECK(RenderOnce("SET 'a b' \"\"", 0) == "*3\r\n$3\r\nSET\r\n$3\r\na b\r\n$0\r\n\r\n");
  CHECK_FALSE(CommandTemplate::Parse("GET 'a", TemplateOptions{}).ok());
  CHECK_FALSE(CommandTemplate::Parse(" ", TemplateOptions{}).ok());
}

TEST_CASE("Placeholders are filled in with a fixed width", "[command_template]") {
  CHECK(RenderOnce("G p#__key__x", 42) == "*2\r\n$1\r\nG\r\n$15\r\np#000000000042x\r\n");
  CHECK(RenderOnce("G __seq__ __now__", 0) ==
        "*3\r\n$1\r\nG\r\n$10\r\n1000000003\r\n$16\r\n1700000000123456\r\n");
  CHECK(RenderOnce("G __now-10__", 0) == "*2\r\n$1\r\nG\r\n$16\r\n1699999990123456\r\n");
  CHECK(RenderOnce("G __rand:7:7__", 0) == "*2\r\n$1\r\nG\r\n$1\r\n7\r\n");
  CHECK(RenderOnce("G __data:3__", 0).size() == RenderOnce("G abc", 0).size());
  CHECK_FALSE(CommandTemplate::Parse("G __wat__", TemplateOptions{}).ok());
  CHECK_FALSE(CommandTemplate::Parse("G __rand:2:1__", TemplateOptions{}).ok());
}

TEST_CASE("Every built-in workload parses in both dialects", "[workload]") {
  for (const char* name :
       {"ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f", "timeseries", "webtable"}) {
    for (const Dialect dialect : {Dialect::kCellar, Dialect::kRedis}) {
      const auto workload = BuiltInWorkload(name, dialect, TemplateOptions{});
      REQUIRE(workload.ok());
      CHECK_FALSE(workload->operations.empty());
      CHECK_FALSE(workload->load.empty());
    }
  }
  CHECK_FALSE(BuiltInWorkload("ycsb-z", Dialect::kCellar, TemplateOptions{}).ok());
}

TEST_CASE("A user's command may carry a weight and several steps", "[workload]") {
  const auto workload =
      CustomWorkload({"80:GET a:b", "GET a:b ; SET a b & SET c d"}, TemplateOptions{});
  REQUIRE(workload.ok());
  REQUIRE(workload->operations.size() == 2);
  CHECK(workload->operations[0].weight == 80.0);
  CHECK(workload->operations[1].weight == 1.0);
  CHECK(workload->operations[1].steps.size() == 2);
  CHECK(workload->operations[1].steps[1].commands.size() == 2);
}

TEST_CASE("Keys stay in range, and zipf prefers few of them", "[key_distribution]") {
  constexpr uint64_t kKeys{1000};
  for (const auto kind : {KeyDistributionKind::kUniform, KeyDistributionKind::kZipf,
                          KeyDistributionKind::kLatest, KeyDistributionKind::kSequence}) {
    Random random(11);
    KeyDistribution keys(kind, kKeys, 0);
    std::vector<uint32_t> seen(kKeys + 100, 0);
    for (int i = 0; i < 100000; ++i) ++seen.at(keys.Next(random, kKeys + 100));
    const uint32_t most = *std::max_element(seen.begin(), seen.end());
    if (kind == KeyDistributionKind::kUniform) CHECK(most < 200);
    if (kind == KeyDistributionKind::kZipf) CHECK(most > 5000);
    if (kind == KeyDistributionKind::kLatest) CHECK(seen[kKeys + 99] == most);
    if (kind == KeyDistributionKind::kSequence) CHECK(most == 100);
  }
}

}  // namespace command_template_test
