// How long a cut that is bad is tried again.
#include "commands/cluster/cut_run.h"

#include <catch2/catch.hpp>
#include <cstdint>

#include "tests/commands/fake_host.h"
#include "tests/manual_clock.h"

namespace cut_run_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

constexpr int64_t kMilli{1'000};

// The director, whose cuts are open for so long and then bad, but for the n-th one.
class Desk final : public CutDesk {
 public:
  Desk(Clock& clock, int64_t open_micros, uint64_t good)
      : clock_(clock), open_micros_(open_micros), good_(good) {}

  Result<uint64_t> Begin(const Order& order) override {
    CHECK(order.attempt == static_cast<int>(begun));
    decided_micros_ = clock_.MonotonicMicros() + open_micros_;
    return ++begun;
  }
  State StateOf(uint64_t number) override {
    REQUIRE(number == begun);
    if (clock_.MonotonicMicros() < decided_micros_) return State::kOpen;
    return number == good_ ? State::kGood : State::kBad;
  }
  const CutFigures& figures() const override { return figures_; }

  uint64_t begun{0};

 private:
  Clock& clock_;
  int64_t open_micros_;
  uint64_t good_;
  int64_t decided_micros_{0};
  CutFigures figures_;
};

struct Run {
  CutRun::State state{CutRun::State::kRuns};
  uint64_t begun{0};
  uint64_t undone{0};
  int64_t micros{0};
  std::string text;
};

Run RunIt(int64_t open_micros, uint64_t good) {
  ManualClock clock;
  fake_host::FakeHost host;
  host.set_clock(&clock);
  Desk desk(clock, open_micros, good);
  host.own_services.cuts = &desk;
  Run run;
  const int64_t begin = clock.MonotonicMicros();
  CutRun cut(host, {.purpose = CutPurpose::kCursor, .argument = {}, .make = {}, .undo = [&run] {
                      ++run.undone;
                    }});
  while ((run.state = cut.Step()) == CutRun::State::kRuns) clock.now_micros += kMilli;
  run.begun = desk.begun;
  run.micros = clock.MonotonicMicros() - begin;
  if (run.state == CutRun::State::kFailed) run.text = cut.status().text();
  return run;
}

TEST_CASE("A cut for which a tablet was between two sets is tried until it is good", "[cuts]") {
  for (const uint64_t good : {1, 2, 3, 4, 20}) {
    const Run run = RunIt(5 * kMilli, good);
    CHECK(run.state == CutRun::State::kGood);
    CHECK(run.begun == good);
    CHECK(run.undone == good - 1);
    CHECK(run.micros < 2'000 * kMilli);
  }
}

TEST_CASE("... but for no longer than one that cannot begin", "[cuts]") {
  const Run run = RunIt(5 * kMilli, 0);
  CHECK(run.state == CutRun::State::kFailed);
  CHECK(run.undone == run.begun);
  CHECK(run.micros >= 10'000 * kMilli);
  CHECK(run.micros < 11'000 * kMilli);
  CHECK(run.text.find("is not one moment of all sets; nothing was done") != std::string::npos);
}

TEST_CASE("A cut that holds replies for long is tried three times", "[cuts]") {
  CHECK(RunIt(500 * kMilli, 3).state == CutRun::State::kGood);
  const Run run = RunIt(500 * kMilli, 4);
  CHECK(run.state == CutRun::State::kFailed);
  CHECK(run.begun == 3);
  CHECK(run.undone == 3);
}

}  // namespace cut_run_test
