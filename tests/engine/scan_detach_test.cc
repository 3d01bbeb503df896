// A scan that goes on beside others, from whatever step on, gives out what one does that nobody
// disturbs.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "engine/scans/index_scan.h"
#include "tests/engine/aggregate_rig.h"

namespace cellar::scan_detach_test {

using aggregate_rig::kNow;
using aggregate_rig::Rig;

struct Request {
  RowOptions rows;
  CellOptions cells;
};

std::vector<Request> Requests() {
  std::vector<Request> requests(7);
  requests[1].rows.reverse = true;
  requests[2].cells.versions_max = kUnlimited;
  requests[3].cells.filter = "value ~ \".*7.*\"";
  requests[4].cells.filter = "{label(\"a\"), label(\"b\")}";
  requests[5].cells.versions_max = kUnlimited;
  requests[5].cells.filter = "value ~ \".*\"";
  requests[6].rows.rows.push_back({RowSelector::Kind::kRange, "[a", "(z"});
  return requests;
}

// Long names stand outside of a cursor, short ones in it.
std::string Name(Random* random, std::string_view front) {
  static constexpr size_t kLengths[]{0, 1, 20, 150, 190, 200, 400, 3'000};
  return std::string(front) + std::string(kLengths[random->Below(8)], 'n') +
         std::to_string(random->Below(30));
}

void Fill(Random* random, Rig* rig) {
  for (int i = 0; i < 40; ++i) {
    const std::string row = Name(random, "r");
    for (uint64_t cells = 1 + random->Below(4); cells > 0; --cells) {
      rig->Put({row, random->OneIn(2) ? "f" : "g", Name(random, "q"),
                kNow - static_cast<int64_t>(random->Below(1'000)), ValueType::kBytes,
                std::to_string(random->Next())});
    }
  }
}

// As if the table had been dropped, and its memory were somebody else's.
void ForgetNames(Rig& rig) {
  for (const FamilySchema& family : rig.table().schema().families)
    const_cast<std::string&>(family.name).assign(1, '?');
}

// What it gives out, with where one would go on.
void Note(const Scan& scan, ScanStep step, std::vector<std::string>* said) {
  if (step == ScanStep::kRow) said->push_back("row " + std::string(scan.row_text()));
  if (step != ScanStep::kCell) return;
  const ScanCell& cell = scan.cell();
  const ScanPosition position = scan.PositionAfterCell();
  said->push_back(std::string(cell.family) + ":" + std::string(cell.qualifier_text) + " " +
                  std::to_string(cell.timestamp_micros) + " " + std::string(cell.stored) + " at " +
                  position.row_key + " " + position.cell_key);
}

TEST_CASE("A scan that is detached at any step goes on as it was", "[scan]") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    for (const Request& request : Requests()) {
      std::vector<std::string> wanted;
      for (size_t detached_at = 0; detached_at == 0 || detached_at < 60; ++detached_at) {
        INFO("seed " << seed << ", detached behind step " << detached_at);
        Random random(seed);
        Rig rig("bytes", {{"f"}, {"g"}});
        Fill(&random, &rig);
        ReadView view(rig.table(), kNow);
        auto scan = OpenScan(&view, request.rows, request.cells, nullptr, 1);
        REQUIRE(scan.ok());
        std::vector<std::string> said;
        size_t steps = 0;
        for (;;) {
          const ScanStep step = (*scan)->Next();
          if (step == ScanStep::kEnd) break;
          Note(**scan, step, &said);
          if (++steps != detached_at) continue;
          (*scan)->Detach();
          // In the place of what the scan held before.
          const std::vector<std::string> others(50, std::string(3'500, '#'));
          Fill(&random, &rig);
          ForgetNames(rig);
        }
        if (detached_at == 0) wanted = said;
        REQUIRE(said == wanted);
      }
    }
  }
}

TEST_CASE("COLREVERSE behind a filter holds no more of a row than it may give out", "[scan]") {
  constexpr size_t kValueBytes{1'000};
  Rig rig("bytes", {{"f"}});
  for (int column = 100; column < 300; ++column)
    for (int64_t version = 0; version < 2; ++version)
      rig.Put({"r", "f", "q" + std::to_string(column), kNow - version, ValueType::kBytes,
               std::string(kValueBytes, 'v')});
  for (const uint64_t skip : {uint64_t{0}, uint64_t{3}, uint64_t{250}}) {
    for (const uint64_t most : {uint64_t{0}, uint64_t{1}, uint64_t{7}, kUnlimited}) {
      INFO("SKIP " << skip << ", PERROW " << most);
      CellOptions cells;
      cells.columns_reverse = true;
      cells.versions_max = kUnlimited;
      cells.columns_skip = skip;
      cells.columns_max = most;
      std::vector<std::string> wanted;
      for (int column = 299 - static_cast<int>(skip); column >= 100; --column) {
        if (wanted.size() / 2 == most) break;
        wanted.insert(wanted.end(), 2, "q" + std::to_string(column));
      }
      std::vector<std::string> found;
      size_t bytes_max = 0;
      cells.filter = "value ~ \"v*\"";
      ReadView view(rig.table(), kNow);
      auto scan = OpenScan(&view, {}, cells, nullptr, 1);
      REQUIRE(scan.ok());
      for (ScanStep step = (*scan)->Next(); step != ScanStep::kEnd; step = (*scan)->Next()) {
        if (step == ScanStep::kCell) found.emplace_back((*scan)->cell().qualifier_text);
        bytes_max = std::max(bytes_max, (*scan)->memory_bytes());
      }
      REQUIRE(found == wanted);
      const uint64_t columns = most == kUnlimited ? 200 : std::min<uint64_t>(200, skip + most + 1);
      REQUIRE(bytes_max <= columns * 2 * (kValueBytes + 500));
      if (most == kUnlimited && skip < 200) REQUIRE(bytes_max > 400 * kValueBytes);
    }
  }
}

}  // namespace cellar::scan_detach_test
