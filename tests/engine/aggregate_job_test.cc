// A CAGG in slices, over snapshots and with threads, against one that is done at once.
#include "engine/aggregate/aggregate_job.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/os/worker_pool.h"
#include "engine/scans/table_scan.h"
#include "engine/table/row_split.h"
#include "tests/engine/aggregate_rig.h"

namespace aggregate_job_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using aggregate_rig::Answer;
using aggregate_rig::Function;
using aggregate_rig::kNow;
using aggregate_rig::Rig;
using aggregate_rig::Term;

struct How {
  uint64_t slice{kUnlimited};
  bool detaches{false};
  uint32_t threads{0};
  size_t memory_bytes_max{64 << 20};
};

WorkerPool& Helpers() {
  static WorkerPool pool("cellar-test", WorkerPool::Pace::kSteady, Clock::System());
  return pool;
}

std::unique_ptr<AggregateJob> Run(Rig& rig, const AggregateRequest& request, const How& how,
                                  bool changes_meanwhile = false) {
  auto view = std::make_unique<ReadView>(rig.table(), kNow);
  CellOptions cells;
  cells.versions_max = kUnlimited;
  auto scan = OpenScan(std::move(view), {}, cells, nullptr, 1, nullptr);
  REQUIRE(scan.ok());
  auto job = AggregateJob::Create(*std::move(scan), request, {}, false,
                                  {.memory_bytes_max = how.memory_bytes_max,
                                   .helpers = &Helpers(),
                                   .threads = how.threads,
                                   .entries_for_threads = 100});
  REQUIRE(job.ok());
  bool detached = false;
  while (!(*job)->Pull(how.slice)) {
    if (detached || !how.detaches) continue;
    detached = true;
    CHECK((*job)->WantsSplitKeys() == (how.threads > 0));
    (*job)->Detach(SplitRowKeys(rig.table(), 16));
    if (changes_meanwhile) rig.Put({"d0#0", "f", "later", kNow, ValueType::kI64, "1000000"});
  }
  return *std::move(job);
}

std::vector<Answer> Answers(const AggregateJob& job) {
  REQUIRE(job.status().ok());
  std::vector<Answer> answers;
  for (size_t i = 0; i < job.groups(); ++i)
    answers.push_back(aggregate_rig::Show(job.plan(), job.group(i)));
  return answers;
}

TEST_CASE("Slices, snapshots and threads change nothing of an answer", "[aggregate]") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    Random random(seed);
    // Of two groups of families nothing is folded by leaves.
    const uint32_t group = seed % 3 == 0 ? 1 : 0;
    Rig rig("utf8#u64", {{.name = "f"}, {.name = "g", .order = "utf8#u64", .group = group}});
    FillAtRandom(&rig, random, 3000);
    AggregateRequest request;
    if (seed > 1) request.terms = {Term(GroupTerm::Kind::kKey, 1 + seed % 2)};
    if (seed % 2 == 0) request.terms.push_back(Term(GroupTerm::Kind::kColumn));
    request.reduces = {
        Function(Reduce::Function::kSum, "f"), Function(Reduce::Function::kCount, "*"),
        Function(Reduce::Function::kRows, "*"), Function(Reduce::Function::kDistinct, "*")};
    if (random.OneIn(2)) {
      request.sort = "sum(f)";
      request.sort_descending = random.OneIn(2);
    }
    const std::vector<Answer> expected = Answers(*Run(rig, request, {}));
    for (const uint64_t slice : {uint64_t{1}, uint64_t{37}, uint64_t{1000}}) {
      INFO("seed " << seed << ", slices of " << slice);
      CHECK(Answers(*Run(rig, request, {.slice = slice})) == expected);
      CHECK(Answers(*Run(rig, request, {.slice = slice, .detaches = true})) == expected);
      if (group > 0) continue;
      for (const uint32_t threads : {1, 2, 5}) {
        const How how{.slice = slice, .detaches = true, .threads = threads};
        CHECK(Answers(*Run(rig, request, how)) == expected);
      }
    }
    const How how{.slice = 10, .detaches = true, .threads = group > 0 ? 0U : 1U};
    CHECK(Answers(*Run(rig, request, how, true)) == expected);  // what comes later is not seen
  }
}

TEST_CASE("Groups come in their order, or sorted by a function", "[aggregate]") {
  Rig rig("utf8#u64", {{.name = "f"}, {.name = "g", .order = "utf8#u64"}});
  for (int i = 0; i < 200; ++i) {
    rig.Put({"d" + FormatInt64(i % 20) + "#" + FormatInt64(i), "f", "q", 1, ValueType::kI64,
             FormatInt64(i * 7919 % 100)});
  }
  AggregateRequest request;
  request.terms = {Term(GroupTerm::Kind::kKey, 1)};
  request.reduces = {Function(Reduce::Function::kMax, "f")};
  for (const uint64_t slice : {uint64_t{1}, kUnlimited}) {
    request.sort.reset();
    const std::vector<Answer> by_key = Answers(*Run(rig, request, {.slice = slice}));
    REQUIRE(by_key.size() == 20);
    CHECK(std::is_sorted(by_key.begin(), by_key.end(),
                         [](const Answer& a, const Answer& b) { return a.first < b.first; }));
    request.sort = "max(f)";
    for (const bool descending : {false, true}) {
      request.sort_descending = descending;
      std::vector<Answer> sorted = Answers(*Run(rig, request, {.slice = slice}));
      CHECK(std::is_sorted(sorted.begin(), sorted.end(), [&](const Answer& a, const Answer& b) {
        const int64_t left = std::stoll(a.second);
        const int64_t right = std::stoll(b.second);
        return descending ? right < left : left < right;
      }));
      std::sort(sorted.begin(), sorted.end());
      CHECK(sorted == by_key);
    }
  }
}

TEST_CASE("Too many groups are an error and never a part", "[aggregate]") {
  Rig rig("utf8#u64", {{.name = "f"}, {.name = "g", .order = "utf8#u64"}});
  for (int i = 0; i < 3000; ++i)
    rig.Put({"d#" + FormatInt64(i), "f", "q", 1, ValueType::kI64, "1"});
  AggregateRequest request;
  request.terms = {Term(GroupTerm::Kind::kKey, 2)};
  request.reduces = {Function(Reduce::Function::kCount, "*")};
  for (const uint32_t threads : {0, 1, 3}) {
    for (const uint64_t slice : {uint64_t{50}, kUnlimited}) {
      const How how{.slice = slice,
                    .detaches = true,
                    .threads = threads,
                    .memory_bytes_max = size_t{64} * 1024};
      const auto job = Run(rig, request, how);
      INFO("threads " << threads << ", slices of " << slice);
      CHECK(job->status().code() == ErrorCode::kTooLarge);
      CHECK(job->status().text().find("agg-max-memory (65536 bytes)") != std::string::npos);
    }
  }
}

TEST_CASE("A job that is given up ends its threads", "[aggregate]") {
  Random random(5);
  Rig rig("utf8#u64", {{.name = "f"}, {.name = "g", .order = "utf8#u64"}});
  FillAtRandom(&rig, random, 3000);
  AggregateRequest request;
  request.reduces = {Function(Reduce::Function::kCount, "*")};
  for (int turn = 0; turn < 50; ++turn) {
    auto view = std::make_unique<ReadView>(rig.table(), kNow);
    auto scan = OpenScan(std::move(view), {}, {}, nullptr, 1, nullptr);
    auto job = AggregateJob::Create(*std::move(scan), request, {}, false,
                                    {.threads = 3, .entries_for_threads = 100});
    REQUIRE_FALSE((*job)->Pull(10));
    (*job)->Detach(SplitRowKeys(rig.table(), 16));
    if (turn % 2 == 0) REQUIRE_FALSE((*job)->Pull(1));
  }
}

}  // namespace aggregate_job_test
