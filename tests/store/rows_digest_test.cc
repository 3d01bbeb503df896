// Digests of parts add up to that of the whole, and see whatever differs.
#include "store/rows_digest.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "engine/state/snapshot_set.h"
#include "store/tablet_changes.h"
#include "tests/store/index_fixture.h"

namespace rows_digest_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

class Digests : public Fixture {
 public:
  static constexpr int kRows{300};
  Digests() {
    SetTime(1'000'000);
    Fill();
  }
  void Fill() {
    Make("t", {{"f", {}}, {"g", {}}});
    Make("u", {{"f", {}}});
    for (int i = 0; i < kRows; ++i) {
      const std::string row = FormatUint64(static_cast<uint64_t>(1000 + i));
      REQUIRE(Do(Find("t"), row, {Put("f", "a", row), Put("g", "b", "x")}).ok());
    }
    REQUIRE(Do(Find("u"), "r", {Put("f", "a", "1")}).ok());
  }
  static RowsDigest::Part PartOf(RowsDigest& digest, uint64_t budget = 7) {
    while (!digest.Step(budget)) continue;
    RowsDigest::Part part;
    const std::string bytes = digest.part().Encode();
    REQUIRE(RowsDigest::Part::Decode(bytes, &part));
    RowsDigest::Part none;
    REQUIRE_FALSE(RowsDigest::Part::Decode(bytes + "x", &none));
    REQUIRE_FALSE(RowsDigest::Part::Decode(std::string_view(bytes).substr(1), &none));
    REQUIRE(part.Text() == digest.part().Text());
    return part;
  }
  RowsDigest::Part Own(uint64_t budget = 7) {
    RowsDigest digest(*store, clock.now_micros);
    return PartOf(digest, budget);
  }
  std::string Text() { return Own().Text(); }
};

TEST_CASE_METHOD(Digests, "Digests of what sets own add up to that of all rows", "[digest]") {
  const RowsDigest::Part whole = Own();
  REQUIRE(whole.is_whole());
  REQUIRE(Own(kUnlimited).Text() == whole.Text());
  TabletChanges changes(*store);
  REQUIRE(changes.Init(42).ok());
  REQUIRE(Text() == whole.Text());
  const std::string bounds[] = {"", "1007", "1100", "1101", "12", ""};
  RowsDigest::Part sum;
  for (size_t i = 0; i + 1 < std::size(bounds); ++i) {
    const auto bound = [&](size_t at) {
      const Result<std::string> encoded = EncodeTabletBound(Find("t").schema(), bounds[at]);
      REQUIRE(encoded.ok());
      return *encoded;
    };
    REQUIRE(changes.Assign(Find("t"), {{bound(i), bound(i + 1), 1}}).ok());
    REQUIRE(
        changes.Assign(Find("u"), i == 2 ? std::vector<Tablet>{{}} : std::vector<Tablet>{}).ok());
    const RowsDigest::Part part = Own();
    REQUIRE_FALSE(part.is_whole());
    REQUIRE(part.schema == whole.schema);
    if (i == 0)
      sum = part;
    else
      sum.Add(part);
    // One that is there twice is seen, too.
    if (i + 2 == std::size(bounds)) {
      RowsDigest::Part more = sum;
      more.Add(part);
      REQUIRE(sum.is_whole());
      REQUIRE_FALSE(more.is_whole());
    } else {
      REQUIRE_FALSE(sum.is_whole());
    }
  }
  REQUIRE(sum.Text() == whole.Text());
}

TEST_CASE_METHOD(Digests, "A digest is of the moment when it was made", "[digest]") {
  const std::string before = Text();
  auto digest = std::make_unique<RowsDigest>(*store, clock.now_micros);
  REQUIRE_FALSE(digest->Step(1));
  const std::vector<const Table*> tables{&Find("t"), &Find("u")};
  REQUIRE(store->CreateSnapshot("0", "s", tables, 0, Store::Overwrite::kNo).ok());
  REQUIRE(Do(Find("t"), "1000", {Put("f", "a", "new")}).ok());
  REQUIRE(Text() != before);
  REQUIRE(store->DropTable(Find("u")).ok());
  REQUIRE(PartOf(*digest).Text() == before);
  digest.reset();
  RowsDigest of_snapshot(*store->engine().snapshots().Find("0", "s"));
  REQUIRE(PartOf(of_snapshot).Text() == before);
  REQUIRE(store->DropTable(Find("t")).ok());
  Fill();
  REQUIRE(Text() != before);  // at other times
}

TEST_CASE_METHOD(Digests, "A digest sees rows, timestamps, values and what is declared",
                 "[digest]") {
  const std::string before = Text();
  const auto differs = [&](const char* table, CellOp op) {
    const std::string was = Text();
    REQUIRE(Do(Find(table), "r", {std::move(op)}).ok());
    return Text() != was;
  };
  REQUIRE(differs("u", Put("f", "a", "2")));
  REQUIRE(differs("u", Put("f", "b", "2")));
  REQUIRE(differs("t", Put("f", "a", "2")));
  CellOp expires = Put("f", "c", "2");
  expires.timestamp_micros = 5;
  REQUIRE(differs("u", expires));
  expires.expiry_micros = 2'000'000;
  REQUIRE(differs("u", expires));
  // It is judged by the time that is said.
  RowsDigest later(*store, 3'000'000);
  const std::string was = Text();
  REQUIRE(PartOf(later).Text() != was);
  Make("v", {{"f", {}}});
  const std::string with_table = Text();
  REQUIRE(with_table != was);
  REQUIRE(store->AddFamily(Find("v"), {"g", {}}).ok());
  REQUIRE(Text() != with_table);
  REQUIRE(store->DropTable(Find("v")).ok());
  REQUIRE(Text() == was);
  REQUIRE(was != before);
}

}  // namespace rows_digest_test
