// The director's jobs, as set 0 keeps them.
#include "cluster/move_jobs.h"

#include <catch2/catch.hpp>
#include <string>

#include "cluster/cluster_map.h"
#include "cluster/lost_rows.h"
#include "tests/store/index_fixture.h"

namespace move_jobs_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

constexpr int64_t kHourMs{3'600'000};

class Jobs : public Fixture {
 public:
  Jobs() {
    SetTime(1'000'000'000);
    Make("t", {{"f", {}}});
    REQUIRE(map.Begin(*store, 1, {.cluster_id = 42, .set_id = "00000000000000ab", .who = "a test"})
                .ok());
  }
  uint64_t Order(std::string begin, std::string end) {
    MoveJob job;
    job.table_id = Find("t").id();
    job.table = "0/t";
    job.tablet = {std::move(begin), std::move(end), 1};
    job.to = 1;
    job.why = "a test";
    const Result<uint64_t> number = jobs.Order(*store, std::move(job));
    REQUIRE(number.ok());
    return *number;
  }
  void Note(uint64_t number, MoveJob::State state) {
    REQUIRE(jobs.Note(*store, number, state, "as it is").ok());
  }
  // What is in memory is what another director would read.
  void CheckAnew() {
    MoveJobs anew;
    REQUIRE(anew.All(*store).size() == jobs.All(*store).size());
    for (const auto& [number, job] : anew.All(*store)) {
      const MoveJob* const known = jobs.Find(*store, number);
      REQUIRE(known != nullptr);
      REQUIRE(known->state == job.state);
      REQUIRE(known->tablet == job.tablet);
      REQUIRE(known->error == job.error);
      REQUIRE(known->ended_ms == job.ended_ms);
    }
    REQUIRE(anew.running() == jobs.running());
    REQUIRE(anew.Floor(*store) == jobs.Floor(*store));
  }
  int64_t NowMs() const { return clock.now_micros / 1000; }

  ClusterMap map;
  MoveJobs jobs;
};

// The donor's end is the end of a move; of lost rows there is none, and the recipient says it.
TEST_CASE_METHOD(Jobs, "Rows that a set was to adopt are nobody else's before that has ended",
                 "[moves][lost]") {
  const uint64_t table_id = Find("t").id();
  const uint64_t moved = Order("a", "b");
  Note(moved, MoveJob::State::kCancelling);
  REQUIRE(jobs.Of(*store, table_id, {"a", "b", 1}) == nullptr);
  REQUIRE_FALSE(jobs.AreOver(*store, table_id, {"a", "b", 1}));
  MoveJob job;
  job.table_id = table_id;
  job.table = "0/t";
  job.tablet = {"m", "p", 3};
  job.from = LostWith(2);
  job.to = 1;
  const Result<uint64_t> adopted = jobs.Order(*store, std::move(job));
  REQUIRE(adopted.ok());
  for (const MoveJob::State state : {MoveJob::State::kOrdered, MoveJob::State::kCancelling}) {
    Note(*adopted, state);
    REQUIRE(jobs.Of(*store, table_id, {"o", "", 1}) != nullptr);
    REQUIRE(jobs.Of(*store, table_id, {"p", "", 1}) == nullptr);
  }
  Note(*adopted, MoveJob::State::kCancelled);
  REQUIRE(jobs.Of(*store, table_id, {"o", "", 1}) == nullptr);
  REQUIRE(jobs.AreOver(*store, table_id, {"m", "p", 1}));
  CheckAnew();
}

TEST_CASE_METHOD(Jobs, "Jobs and their floor outlive who has ordered them", "[moves]") {
  REQUIRE(jobs.Floor(*store) == 0);
  REQUIRE(Order("", "b") == 1);
  REQUIRE(Order("b", "c") == 2);
  REQUIRE(Order("c", "") == 3);
  const auto check = [this] {
    REQUIRE(jobs.All(*store).size() == 3);
    REQUIRE(jobs.running() == 2);
    REQUIRE(jobs.Floor(*store) == 0);
    REQUIRE(jobs.Find(*store, 2)->state == MoveJob::State::kDone);
    REQUIRE(jobs.Find(*store, 2)->error == "as it is");
    REQUIRE(jobs.Find(*store, 3)->tablet == Tablet{"c", "", 1});
    REQUIRE(jobs.Of(*store, Find("t").id(), {"a", "aa", 1})->number == 1);
    // What has ended, or is being cancelled, moves nothing.
    REQUIRE(jobs.Of(*store, Find("t").id(), {"b", "c", 1}) == nullptr);
    REQUIRE(jobs.Of(*store, Find("t").id(), {"x", "", 1}) == nullptr);
  };
  Note(2, MoveJob::State::kDone);
  Note(3, MoveJob::State::kCancelling);
  check();
  CheckAnew();
  Open();
  jobs = MoveJobs();
  check();
  Note(1, MoveJob::State::kDone);
  REQUIRE(jobs.Floor(*store) == 2);
  Note(3, MoveJob::State::kCancelled);
  REQUIRE(jobs.Floor(*store) == 3);
  // It has ended, and stays so.
  Note(3, MoveJob::State::kDone);
  REQUIRE(jobs.Find(*store, 3)->state == MoveJob::State::kCancelled);
}

TEST_CASE_METHOD(Jobs, "What has ended is told for an hour, and its number is not used again",
                 "[moves]") {
  for (int i = 0; i < 3; ++i) (void)Order("", "b");
  Note(1, MoveJob::State::kDone);
  SetTime(clock.now_micros + 1'000'000);
  Note(3, MoveJob::State::kDone);
  REQUIRE(jobs.Forget(*store, NowMs() + kHourMs - 1'001).ok());
  REQUIRE(jobs.All(*store).size() == 3);
  REQUIRE(jobs.Forget(*store, NowMs() + kHourMs - 1'000).ok());
  REQUIRE(jobs.Find(*store, 1) == nullptr);
  REQUIRE(jobs.Find(*store, 3) != nullptr);
  REQUIRE(jobs.Forget(*store, NowMs() + kHourMs).ok());
  // One that goes on is told as long as it does.
  REQUIRE(jobs.All(*store).size() == 1);
  REQUIRE(jobs.running() == 1);
  CheckAnew();
  Open();
  jobs = MoveJobs();
  REQUIRE(Order("", "b") == 4);
  REQUIRE(jobs.Floor(*store) == 1);
}

TEST_CASE_METHOD(Jobs, "Of many that have ended the newest are told", "[moves]") {
  const size_t many = MoveJobs::kToldMax + 5;
  for (size_t i = 1; i <= many; ++i) Note(Order("", "b"), MoveJob::State::kDone);
  REQUIRE(jobs.Forget(*store, NowMs()).ok());
  REQUIRE(jobs.All(*store).size() == MoveJobs::kToldMax);
  REQUIRE(jobs.All(*store).begin()->first == 6);
  CheckAnew();
}

}  // namespace move_jobs_test
