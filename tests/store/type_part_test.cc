// What a set does of a change of types over several sets, with the rows that it is asked for.
#include "store/type_part.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "store/sliced_change.h"
#include "tests/store/index_fixture.h"

namespace type_part_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using Does = TypePart::Does;

constexpr uint64_t kRows{1'000};
constexpr uint64_t kSliceCells{16};

class OneSet : public index_fixture::Fixture {
 public:
  OneSet() {
    Make("t", {{"f", {}}});
    for (uint64_t row = 0; row < kRows; ++row) PutText(RowName(row), FormatUint64(row % 100));
  }
  static std::string RowName(uint64_t row) { return "r" + FormatUint64(10'000 + row); }
  void PutText(const std::string& row, std::string_view text) {
    CellOp put = Put("f", "a", text);
    put.timestamp_micros = 1;  // the one version of it is written anew each time
    REQUIRE(Do(Find("t"), row, {put}).ok());
  }
  static FamilyOptions Options(ValueType type, std::optional<OtherCells> others) {
    FamilyOptions options;
    options.type.emplace(type);
    options.other_cells = others;
    return options;
  }
  const FamilySchema& family() { return Find("t").schema().families[0]; }
  // [begin, end) of row numbers.
  static KeyRangeSet Rows(uint64_t begin, uint64_t end) {
    KeyRangeSet rows;
    KeyRange range{{}, {{}, false}};
    REQUIRE(Order().Encode(RowName(begin), &range.begin.bytes).ok());
    REQUIRE(Order().Encode(RowName(end), &range.end.bytes).ok());
    rows.Add(range);
    return rows;
  }
  std::unique_ptr<TypePart> Part(Does does, const FamilyOptions& options, KeyRangeSet rows) {
    FamilySchema after = family();
    if (does == Does::kLook)
      REQUIRE(AlterTypes(Find("t").schema(), family(), options, &after).ok());
    auto part = TypePart::Make(
        *store, Find("t"), {does, "f", options, TypeChange(after, options).Hash(), std::move(rows)},
        nullptr);
    REQUIRE(part.ok());
    return *std::move(part);
  }
  static Status Finish(TypePart& part) {
    while (!part.done()) RETURN_IF_ERROR(part.Step(kSliceCells));
    return Status::Ok();
  }
  void AlterKeeping(ValueType type) {
    auto change = store->AlterFamily(Find("t"), {"f", Options(type, OtherCells::kKeep)}, nullptr);
    REQUIRE(change.ok());
    while (!(*change)->done()) REQUIRE((*change)->Step(kUnlimited).ok());
  }
  std::map<ValueType, uint64_t> Types() {
    std::map<ValueType, uint64_t> types;
    Result<std::unique_ptr<Scan>> scan = store->ScanRows(Find("t"), {}, {}, nullptr);
    REQUIRE(scan.ok());
    for (ScanStep step = (*scan)->Next(); step != ScanStep::kEnd; step = (*scan)->Next())
      if (step == ScanStep::kCell) ++types[(*scan)->cell().type];
    store->EndScan(*std::move(scan));
    return types;
  }
};

TEST_CASE_METHOD(OneSet, "A set looks at the rows that it is asked for, and tells the first",
                 "[alter][tablets]") {
  for (const uint64_t row : {50, 300, 301, 900}) PutText(RowName(row), "n/a");
  const FamilyOptions options = Options(ValueType::kI64, OtherCells::kConvert);
  const auto part = Part(Does::kLook, options, Rows(100, 400));
  REQUIRE(part->Step(kSliceCells).ok());
  PutText(RowName(60), "n/a");   // of no row that it is asked for
  PutText(RowName(100), "n/a");  // which it may have passed
  PutText(RowName(300), "12");
  REQUIRE(Finish(*part).ok());
  const FoundCells found = part->found();
  CHECK(found.cells == 2);
  CHECK(found.row_key == Rows(100, 400).ranges()[0].begin.bytes);
  CHECK(found.text == "row 'r10100': column 'f:a' holds 'n/a', no i64");
  CHECK(family().type == std::nullopt);
  CHECK(Types() == std::map<ValueType, uint64_t>{{ValueType::kBytes, kRows}});

  const auto all = Part(Does::kLook, Options(ValueType::kI64, std::nullopt), KeyRangeSet::All());
  REQUIRE(Finish(*all).ok());
  CHECK(all->found().cells == 1);
  CHECK(all->found().text == "type bytes (row 'r10000', column 'f:a')");
}

TEST_CASE_METHOD(OneSet, "A look about other types than set 0 wants is none", "[alter][tablets]") {
  const FamilyOptions options = Options(ValueType::kI64, OtherCells::kConvert);
  const auto part = Part(Does::kLook, options, KeyRangeSet::All());
  REQUIRE(part->Step(kSliceCells).ok());
  SECTION("though others alter what it does not ask for") {
    FamilyOptions column;
    column.columns.push_back({"b", ValueType::kBool});
    auto change = store->AlterFamily(Find("t"), {"f", column}, nullptr);
    REQUIRE(change.ok());
    while (!(*change)->done()) REQUIRE((*change)->Step(kUnlimited).ok());
    REQUIRE(Finish(*part).ok());
  }
  SECTION("of another schema") {
    auto other = TypePart::Make(*store, Find("t"),
                                {Does::kLook, "f", options, 4711, KeyRangeSet::All()}, nullptr);
    REQUIRE(other.ok());
    CHECK((*other)->Step(kSliceCells).code() == ErrorCode::kTryAgain);
  }
  SECTION("of a table that is gone") {
    REQUIRE(store->DropTable(Find("t")).ok());
    CHECK(part->Step(kSliceCells).code() == ErrorCode::kNoTable);
  }
}

TEST_CASE_METHOD(OneSet, "A set converts the rows that it is asked for, and goes on where it ended",
                 "[alter][tablets]") {
  PutText(RowName(150), "n/a");
  AlterKeeping(ValueType::kI64);
  const FamilyOptions options = Options(ValueType::kI64, OtherCells::kConvert);
  auto part = Part(Does::kConvert, options, Rows(100, 400));
  for (int i = 0; i < 15; ++i) REQUIRE(part->Step(kSliceCells).ok());
  CHECK_FALSE(part->done());
  const uint64_t rows = part->rows();
  CHECK(rows > 0);
  CHECK(Types()[ValueType::kI64] == rows);
  // Its process ends, or its leader is another one.
  part.reset();
  const bool restarts = GENERATE(false, true);
  if (restarts) Open();
  part = Part(Does::kConvert, options, Rows(100, 400));
  REQUIRE(Finish(*part).ok());
  CHECK(part->rows() == 299 - rows);
  CHECK(part->found().cells == 1);
  CHECK(part->found().text == "row 'r10150': column 'f:a' holds 'n/a', no i64");
  CHECK(Types()[ValueType::kI64] == 299);

  const auto see = Part(Does::kSee, Options(ValueType::kI64, std::nullopt), Rows(400, 999));
  REQUIRE(Finish(*see).ok());
  CHECK(see->found().text == "type bytes (row 'r10400', column 'f:a')");
  const auto seen = Part(Does::kSee, Options(ValueType::kI64, std::nullopt), Rows(100, 149));
  REQUIRE(Finish(*seen).ok());
  CHECK(seen->found().cells == 0);
  part = Part(Does::kConvert, Options(ValueType::kI64, OtherCells::kSkip), KeyRangeSet::All());
  REQUIRE(Finish(*part).ok());
  CHECK(Types() ==
        std::map<ValueType, uint64_t>{{ValueType::kI64, kRows - 1}, {ValueType::kBytes, 1}});
}

TEST_CASE_METHOD(OneSet, "A conversion ends when the types are changed again", "[alter][tablets]") {
  AlterKeeping(ValueType::kI64);
  const auto part =
      Part(Does::kConvert, Options(ValueType::kI64, OtherCells::kConvert), KeyRangeSet::All());
  REQUIRE(part->Step(kSliceCells).ok());
  AlterKeeping(ValueType::kU8);
  const Status ended = part->Step(kSliceCells);
  CHECK(ended.text() ==
        "the types of family 'f' were changed again, after 16 rows had been "
        "converted");
}

TEST_CASE_METHOD(OneSet, "Rows that a set looks at or converts stay with it", "[alter][tablets]") {
  REQUIRE_FALSE(Find("t").rows_are_held());
  auto part = Part(Does::kLook, Options(ValueType::kI64, OtherCells::kConvert), KeyRangeSet::All());
  REQUIRE(Find("t").rows_are_held());
  part.reset();
  REQUIRE_FALSE(Find("t").rows_are_held());
}

}  // namespace type_part_test
