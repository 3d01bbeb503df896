// IndexFixture: a store in a directory of its own, a clock that stands still, and scans as text.
#pragma once

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/os/log.h"
#include "base/text/number.h"
#include "store/requests.h"
#include "store/store.h"
#include "tests/manual_clock.h"

namespace index_fixture {

using namespace cellar;  // NOLINT(google-build-using-namespace)

class Fixture {
 public:
  Fixture() {
    SilenceLog(true);
    char name[] = "/tmp/cellar-index-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    directory = name;
    Open();
  }
  ~Fixture() {
    store.reset();
    std::filesystem::remove_all(directory);
  }
  void Open() {
    store.reset();
    StoreOptions options;
    options.journal.directory = directory;
    options.journal.sync_policy = SyncPolicy::kNo;
    options.journal.segment_bytes_max = 1 << 20;
    options.journal.allocation_bytes_min = 4096;
    options.journal.allocation_bytes_max = 65536;
    Result<std::unique_ptr<Store>> opened = Store::Open(options, FileSystem::Posix(), clock, {});
    if (!opened.ok()) FAIL(opened.status().ToString());
    store = *std::move(opened);
  }
  Table& Make(const std::string& name, const std::vector<NewFamily>& families) {
    const Status made = store->CreateTable("0", name, Order(), families);
    if (!made.ok()) FAIL(made.ToString());
    return Find(name);
  }
  Table& Find(const std::string& name) { return **store->FindTable("0", name); }
  void SetTime(int64_t now) {
    clock.now_micros = now;
    store->SetTurnTime();
  }

  static CellOp Put(std::string_view family, std::string_view qualifier, std::string_view value) {
    CellOp op;
    op.family = family;
    op.qualifier = qualifier;
    op.text = value;
    return op;
  }
  Status Do(Table& table, std::string_view row, std::vector<CellOp> ops) {
    RowWrite write;
    write.row = row;
    write.ops = std::move(ops);
    Status done = store->Write(table, write).status();
    // A disk that others use as well may stand still for a while.
    while (!done.ok() && done.text().ends_with("the disk does not keep up"))
      done = store->Write(table, write).status();
    return done;
  }
  static NewIndexColumn On(std::string_view family, std::string_view qualifier,
                           std::optional<ValueType> type = std::nullopt, bool descending = false) {
    return {family, qualifier, type, descending};
  }

  // Rows in the order of the index, or the error.
  std::string Rows(Table& table, IndexOptions index, bool reverse = false,
                   uint64_t budget = kUnlimited) {
    RowOptions rows;
    rows.index = std::move(index);
    rows.reverse = reverse;
    Result<std::unique_ptr<Scan>> scan = store->ScanRows(table, rows, {}, nullptr);
    if (!scan.ok()) return std::string(ErrorCodeWord(scan.status().code()));
    (*scan)->SetBudget(budget);
    std::string text;
    for (;;) {
      switch ((*scan)->Next()) {
        case ScanStep::kRow:
          text += " " + std::string((*scan)->row_text());
          break;
        case ScanStep::kPause:
          (*scan)->Detach();
          (*scan)->SetBudget(budget);
          break;
        case ScanStep::kEnd:
          store->EndScan(*std::move(scan));
          return text;
        default:
          break;
      }
    }
  }
  // By row: all that a scan shows of it; "order" is the rows' order, "groups" what was opened.
  std::map<std::string, std::string> Cells(Table& table, const RowOptions& rows,
                                           const CellOptions& cells, uint64_t budget) {
    Result<std::unique_ptr<Scan>> scan = store->ScanRows(table, rows, cells, nullptr);
    if (!scan.ok()) FAIL(scan.status().ToString());
    (*scan)->SetBudget(budget);
    std::map<std::string, std::string> shown;
    std::string row;
    for (;;) {
      switch ((*scan)->Next()) {
        case ScanStep::kRow:
          row = (*scan)->row_text();
          shown["order"] += " " + row;
          break;
        case ScanStep::kCell: {
          const ScanCell& cell = (*scan)->cell();
          shown[row] += " " + std::string(cell.family) + ":" + std::string(cell.qualifier_text) +
                        "@" + FormatInt64(cell.timestamp_micros) + "=" +
                        ValueText(cell.type, cell.stored) + (cell.column_begins ? "" : "+");
          break;
        }
        case ScanStep::kPause:
          (*scan)->Detach();
          (*scan)->SetBudget(budget);
          break;
        case ScanStep::kEnd:
          shown["groups"] = FormatUint64((*scan)->stats().groups);
          store->EndScan(*std::move(scan));
          return shown;
      }
    }
  }
  std::string Rows(Table& table, std::string_view name) {
    IndexOptions options;
    options.name = name;
    return Rows(table, options);
  }

  std::string directory;
  ManualClock clock{1'000'000'000};
  std::unique_ptr<Store> store;
};

}  // namespace index_fixture
