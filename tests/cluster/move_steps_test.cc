// What a set answers to steps that it must not take as they come.
#include "cluster/move_steps.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/move_protocol.h"
#include "engine/schema/schema.h"
#include "store/format/log_format.h"

namespace move_steps_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

// A set of cluster 1 that owns nothing, and takes what comes.
class Set final : public MoveParty {
 public:
  TabletMoves state;
  bool owns_part{false};

  const TabletMoves& moves() const override { return state; }
  uint64_t cluster_id() const override { return 1; }
  uint64_t set() const override { return 2; }
  uint64_t catalog() const override { return 1; }
  uint32_t term() const override { return 1; }
  uint64_t CountAttempt(uint64_t) override { return ++attempts_; }
  bool HasTable(uint64_t) const override { return true; }
  bool Owns(uint64_t, const Tablet&) const override { return false; }
  bool OwnsPart(uint64_t, const Tablet&) const override { return owns_part; }
  std::string WhyKept(const MoveOut&) const override { return {}; }
  std::string WhyNoRoom() const override { return {}; }
  bool RowsAreHeld(uint64_t) const override { return false; }
  LogMark Mark() const override { return {}; }
  int64_t stamp() const override { return 0; }
  uint64_t record_next(uint64_t) const override { return 0; }
  std::string IndexFailures(uint64_t) const override { return {}; }
  Status Begin(uint64_t job, const MoveOut& move) override { return Did(state.Begin(job, move)); }
  Status Give(uint64_t job) override { return Did(state.Give(job)); }
  Status Done(uint64_t job) override { return Did(state.Done(job)); }
  Status Cancel(uint64_t job) override { return Did(state.Cancel(job)); }
  Status Reclaim(uint64_t job) override { return Did(state.Reclaim(job)); }
  Status Raise(uint64_t floor) override { return Did(state.Raise(floor)); }
  Status Stage(uint64_t job, const MoveIn& move, std::string_view) override {
    return Did(state.Stage(job, move));
  }
  Status Fill(uint64_t, const MovePart&, std::string_view) override { return Did(false); }
  Status Own(uint64_t, const MovePart&, int64_t, uint64_t) override { return Did(false); }
  Result<bool> PurgeStage(const MoveIn&) override { return false; }
  std::unique_ptr<MoveSource> Open(const MoveOut&, const LogMark*) override { return nullptr; }

 private:
  uint64_t attempts_{0};
  static Status Did(bool done) {
    return done ? Status::Ok() : Status::Error(ErrorCode::kCorruption, "it cannot be");
  }
};

MoveStep StepOf(MoveStep::Kind kind, uint64_t job, uint64_t floor) {
  MoveStep step;
  step.kind = kind;
  step.cluster_id = 1;
  step.job = job;
  step.floor = floor;
  return step;
}

TEST_CASE("of a job that is forgotten nobody is told that it was cancelled", "[moves]") {
  Set set;
  REQUIRE(set.state.Begin(5, {.table_id = 1, .tablet = {"", "", 1}, .to = 3, .given = false}));
  REQUIRE(set.state.Give(5));
  REQUIRE(set.state.Done(5));
  const auto asked = [&set](MoveStep::Kind kind, uint64_t floor) {
    return AnswerMoveStep(set, StepOf(kind, 5, floor));
  };
  REQUIRE(asked(MoveStep::Kind::kJob, 4).code == MoveAnswer::Code::kEnded);
  REQUIRE(asked(MoveStep::Kind::kJob, 4).end == MoveEnd::kMoved);
  // From here on it is known to set 0 alone that it has moved.
  for (const MoveStep::Kind kind :
       {MoveStep::Kind::kJob, MoveStep::Kind::kCancel, MoveStep::Kind::kDrop}) {
    const MoveAnswer answer = asked(kind, 5);
    CHECK(answer.code == MoveAnswer::Code::kWait);
    CHECK(answer.text == "the job has ended, and how is known to set 0 alone");
  }
  REQUIRE(set.state.floor() == 5);
  REQUIRE(set.state.ended().empty());
}

TEST_CASE("what was given to a set that is lost is taken back once, and nothing else is",
          "[moves]") {
  Set set;
  const MoveOut move{.table_id = 1, .tablet = {"a", "b", 1}, .to = 3, .given = false};
  REQUIRE(set.state.Begin(5, move));
  REQUIRE(set.state.Begin(6, {.table_id = 1, .tablet = {"b", "c", 1}, .to = 3, .given = false}));
  REQUIRE(set.state.Give(5));
  const auto reclaimed = [&set](uint64_t job) {
    const MoveAnswer answer = AnswerMoveStep(set, StepOf(MoveStep::Kind::kReclaim, job, 0));
    CHECK(answer.code == MoveAnswer::Code::kEnded);
    return answer.end == MoveEnd::kCancelled;
  };
  for (int i = 0; i < 2; ++i) {
    CHECK(reclaimed(5));
    CHECK(reclaimed(6));  // what is not given yet is cancelled
    CHECK(reclaimed(7));  // and what is not known never begins
  }
  CHECK(set.state.out().empty());
  CHECK(set.state.ended().size() == 3);
  REQUIRE(set.state.Begin(8, move));
  REQUIRE(set.state.Give(8));
  REQUIRE(set.state.Done(8));
  CHECK_FALSE(reclaimed(8));  // the other set has had it
}

TEST_CASE("a step that begins tells of indexes that have failed, if there are any", "[moves]") {
  TableSchema schema;
  schema.indexes.resize(3);
  for (uint64_t id = 1; id <= 3; ++id) schema.indexes[id - 1].id = id;
  TableSchema other = schema;
  MoveStep step = StepOf(MoveStep::Kind::kBegin, 9, 0);
  step.in.tablet = {"b", "m", 4};
  step.failures = EncodeIndexFailures(schema);
  CHECK(step.failures.empty());
  schema.indexes[0].state = schema.indexes[2].state = IndexState::kFailed;
  schema.indexes[0].failure = Status::Error(ErrorCode::kNotUnique, "row 'a'");
  schema.indexes[2].failure = Status::Error(ErrorCode::kTooLarge, "row 'b'");
  for (const std::string& failures : {std::string(), EncodeIndexFailures(schema)}) {
    step.failures = failures;
    std::string bytes;
    EncodeMoveStep(step, &bytes);
    MoveStep read;
    REQUIRE(DecodeMoveStep(bytes, &read));
    CHECK(read.failures == failures);
  }
  bool changes = false;
  REQUIRE(TakeIndexFailures(step.failures, &other, &changes));
  CHECK(changes);
  CHECK(EncodeIndexFailures(other) == step.failures);
  CHECK(other.indexes[1].state == IndexState::kBuilding);
  REQUIRE(TakeIndexFailures(step.failures, &other, &changes));
  CHECK_FALSE(changes);
  other.indexes.clear();  // another change of the schema has come meanwhile
  REQUIRE(TakeIndexFailures(step.failures, &other, &changes));
  CHECK_FALSE(changes);
  for (size_t size = 1; size < step.failures.size(); ++size) {
    const std::string_view cut = std::string_view(step.failures).substr(0, size);
    const bool taken = TakeIndexFailures(cut, &other, &changes);
    CHECK(taken == (size == step.failures.size() / 2));  // of two that take as much
  }
}

TEST_CASE("a set denies rows only if nothing of them is here, or may come", "[moves]") {
  Set set;
  MoveStep step = StepOf(MoveStep::Kind::kHolds, 9, 0);
  step.out = {.table_id = 1, .tablet = {"b", "m", 4}, .to = 1, .given = false};
  std::string bytes;
  EncodeMoveStep(step, &bytes);
  MoveStep read;
  REQUIRE(DecodeMoveStep(bytes, &read));
  const auto denies = [&] { return AnswerMoveStep(set, read).code == MoveAnswer::Code::kOk; };
  CHECK(denies());
  set.owns_part = true;
  CHECK_FALSE(denies());
  set.owns_part = false;
  REQUIRE(set.state.Begin(5, {.table_id = 1, .tablet = {"l", "", 1}, .to = 3, .given = false}));
  REQUIRE(set.state.Give(5));
  CHECK_FALSE(denies());
  REQUIRE(set.state.Done(5));
  CHECK(denies());
  MoveIn stage{.table_id = 1, .tablet = {"", "c", 2}, .from = 1, .attempt = 1};
  REQUIRE(set.state.Stage(6, stage));
  CHECK_FALSE(denies());
  REQUIRE(set.state.Cancel(6));
  stage.table_id = 2;
  REQUIRE(set.state.Stage(7, stage));
  CHECK(denies());
  // What it is about to have by this very job counts for nothing.
  stage.table_id = 1;
  REQUIRE(set.state.Stage(9, stage));
  CHECK(denies());
}

TEST_CASE("what the director asks of an owner comes as it was sent", "[moves]") {
  for (const auto kind : {MoveStep::Kind::kSplit, MoveStep::Kind::kMerge, MoveStep::Kind::kLead}) {
    MoveStep step = StepOf(kind, 1, 0);
    step.job = UINT64_MAX;  // a node's id is any number
    step.out = {.table_id = 7, .tablet = {"b", "m", 4}, .to = 1, .given = false};
    step.ops = "x";
    std::string bytes;
    EncodeMoveStep(step, &bytes);
    MoveStep read;
    REQUIRE(DecodeMoveStep(bytes, &read));
    CHECK(read.kind == kind);
    CHECK(read.job == step.job);
    const bool names_rows = kind != MoveStep::Kind::kLead;
    CHECK(read.ops == (names_rows ? "x" : ""));
    CHECK((read.out.tablet == step.out.tablet) == names_rows);
    for (size_t size = 0; size < bytes.size(); ++size)
      CHECK_FALSE(DecodeMoveStep(std::string_view(bytes).substr(0, size), &read));
    bytes[0] = static_cast<char>(static_cast<uint8_t>(MoveStep::Kind::kLead) + 1);
    CHECK_FALSE(DecodeMoveStep(bytes, &read));
  }
}

TEST_CASE("a donor cannot push the clock of a recipient to the end of time", "[moves]") {
  MoveStep step = StepOf(MoveStep::Kind::kOwn, 5, 0);
  const auto is_taken = [&step](int64_t stamp) {
    step.stamp = stamp;
    std::string bytes;
    EncodeMoveStep(step, &bytes);
    MoveStep read;
    return DecodeMoveStep(bytes, &read) && read.stamp == stamp;
  };
  CHECK(is_taken(0));
  CHECK(is_taken(kCommitTimeMax));
  CHECK_FALSE(is_taken(kCommitTimeMax + 1));
  CHECK_FALSE(is_taken(INT64_MAX));
}

}  // namespace move_steps_test
