// The cells of a row against those that a scan of it gives out.
#include "engine/rows/whole_row.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/engine/aggregate_rig.h"

namespace whole_row_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using aggregate_rig::kNow;
using aggregate_rig::Rig;

std::string Show(std::string_view family, std::string_view qualifier, ValueType type,
                 std::string_view stored) {
  return std::string(family) + ":" + std::string(qualifier) + "=" + ValueText(type, stored);
}

// What a scan of the row gives out, from `from` on if that is given.
std::vector<std::string> Scanned(Rig& rig, const std::string& row, const ScanPosition* from) {
  ReadView view(rig.table(), kNow);
  RowOptions rows;
  rows.rows.push_back({RowSelector::Kind::kRow, row, {}});
  auto scan = OpenScan(&view, rows, {}, from, 1);
  REQUIRE(scan.ok());
  std::vector<std::string> cells;
  for (ScanStep step = (*scan)->Next(); step != ScanStep::kEnd; step = (*scan)->Next()) {
    if (step != ScanStep::kCell) continue;
    const ScanCell& cell = (*scan)->cell();
    cells.push_back(Show(cell.family, cell.qualifier_text, cell.type, cell.stored));
  }
  return cells;
}

TEST_CASE("A whole row is what a scan gives, and a scan goes on behind each cell", "[whole_row]") {
  const std::vector<std::string> policies{"", "maxversions=1", "maxage=8s",
                                          "maxversions=2 || maxage=12s"};
  size_t given = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    const auto family = [&](const std::string& name, const std::string& order) {
      return aggregate_rig::Family{name, order, policies[random.Below(4)],
                                   static_cast<uint32_t>(random.Below(2))};
    };
    // Ids come in the order in which families were made, replies by their names.
    Rig rig("utf8#u64", {family("g", "utf8#u64"), family("x", "bytes"), family("f", "bytes")});
    FillAtRandom(&rig, random, 1 + random.Below(1500));
    for (int number = 0; number < 30; ++number) {
      const std::string row = "d" + FormatUint64(random.Below(8)) + "#" + FormatInt64(number);
      std::string key;
      REQUIRE(EncodeRowKey(rig.schema(), row, &key).ok());
      ReadView view(rig.table(), kNow);
      WholeRow whole(view, key);
      WholeRow::Cell cell;
      std::vector<std::string> cells;
      std::vector<ScanPosition> behind;
      while (whole.Next(&cell)) {
        cells.push_back(
            Show(cell.family->name, cell.qualifier_text, cell.value.type, cell.value.stored));
        behind.push_back(whole.PositionAfterCell(cells.size()));
      }
      INFO("seed " << seed << ", row " << row);
      REQUIRE(cells == Scanned(rig, row, nullptr));
      for (size_t i = 0; i < cells.size(); ++i) {
        const std::vector<std::string> rest(cells.begin() + static_cast<ptrdiff_t>(i) + 1,
                                            cells.end());
        REQUIRE(Scanned(rig, row, &behind[i]) == rest);
      }
      given += cells.size();
    }
  }
  CHECK(given > 500);
}

}  // namespace whole_row_test
