// A mutation reads back op by op, and a damaged one is noticed.
#include "engine/table/mutation.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "engine/state/engine.h"

namespace mutation_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

std::vector<MutationOp> Ops(std::string_view payload, Status* status) {
  std::vector<MutationOp> ops;
  MutationReader reader(payload);
  int64_t stamp = 0;
  DecodedOp op;
  if (reader.ReadStamp(&stamp)) {
    REQUIRE(reader.Next(&op));
    REQUIRE(op.op == MutationOp::kStep);
    while (reader.Next(&op)) ops.push_back(op.op);
  }
  *status = reader.status();
  return ops;
}

TEST_CASE("Table and row are named once for the ops that share them", "[mutation]") {
  MutationBuilder mutation;
  CHECK(mutation.empty());
  mutation.Row(4, "r1");
  mutation.Put(1, "q", 5, "v");
  mutation.Row(4, "r1");
  mutation.DeleteCell(1, "q", 4);
  mutation.Row(4, "r2");
  mutation.DeleteRow();
  mutation.SetStamp(77);
  Status status;
  CHECK(Ops(mutation.payload(), &status) ==
        std::vector<MutationOp>{MutationOp::kTable, MutationOp::kRow, MutationOp::kPut,
                                MutationOp::kDeleteCell, MutationOp::kRow, MutationOp::kDeleteRow});
  CHECK(status.ok());
}

TEST_CASE("A part names its table and row anew, and can be taken back", "[mutation]") {
  MutationBuilder mutation;
  mutation.Row(4, "r1");
  mutation.DeleteRow();
  const size_t part = mutation.BeginPart();
  mutation.Row(4, "r1");
  mutation.Put(2, "", 0, "v");
  CHECK(mutation.Since(part)[0] == static_cast<char>(MutationOp::kTable));
  const size_t whole = mutation.size();
  mutation.Truncate(part);
  mutation.Row(4, "r1");
  mutation.Put(2, "", 0, "v");
  CHECK(mutation.size() == whole);
}

TEST_CASE("A mutation cut inside an op is malformed", "[mutation]") {
  MutationBuilder mutation;
  mutation.CreateTable("0", "t", 1, "schema");
  const std::string payload(mutation.payload());
  for (size_t size = kMutationBeginBytes + 1; size < payload.size(); ++size) {
    Status status;
    CHECK(Ops(payload.substr(0, size), &status).empty());
    CHECK_FALSE(status.ok());
  }
}

TEST_CASE("What names something that is not there is refused", "[mutation]") {
  Engine engine;
  MutationBuilder mutation;
  mutation.Row(9, "r");
  mutation.DeleteRow();
  CHECK_FALSE(engine.Apply(mutation.payload()).ok());
  mutation.Reset();
  mutation.DropTable(9);
  CHECK_FALSE(engine.Apply(mutation.payload()).ok());
  mutation.Reset();
  mutation.CreateTable("nowhere", "t", 1, "");
  CHECK_FALSE(engine.Apply(mutation.payload()).ok());
}

TEST_CASE("An op that no version has written is refused", "[mutation]") {
  Engine engine;
  MutationBuilder mutation;
  mutation.SetSchema(9, "schema");
  std::string payload(mutation.payload());
  const size_t at = payload.find(static_cast<char>(MutationOp::kSetSchema), kMutationHeaderBytes);
  REQUIRE(at != std::string::npos);
  // 27 was meant for definitions of indexes, in this form.
  for (const int op : {0, 15, 19, 27, 39, 45, 49, 55, 255}) {
    payload[at] = static_cast<char>(op);
    Status status;
    (void)Ops(payload, &status);
    CHECK(status.code() == ErrorCode::kCorruption);
    CHECK(engine.Apply(payload).code() == ErrorCode::kCorruption);
  }
}

TEST_CASE("A mutation is described in words", "[mutation]") {
  Engine engine;
  MutationBuilder mutation;
  mutation.Row(4, "r1");
  mutation.Put(1, "q", 5, std::string_view("\0value", 6));
  mutation.SetStamp(77);
  CHECK(engine.Describe(mutation.payload()) ==
        "STAMP 77\nTABLE 4\nROW r1\nPUT 1:q value AS bytes TS 5");
  CHECK(engine.Describe("short") == "(malformed)");
}

}  // namespace mutation_test
