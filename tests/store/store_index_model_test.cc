// Indexes against a naive model: maps of all versions, in which everything is looked up anew.
//
// A round has a schema of its own: retention of two families, up to five indexes. Then come writes,
// deletes, range deletes, moves of the clock, sweeps and restarts; every index must at any moment
// list what a sort of the model lists, and what entries hold must be what the model holds; and a
// scan that takes one by itself must give what it gives without.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text/number.h"
#include "engine/scans/index_choice.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/store.h"
#include "tests/store/index_fixture.h"

namespace store_index_model_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using index_fixture::Fixture;

constexpr int kRounds{50};
constexpr int kOperationsOfRound{10'000};
constexpr int kOperationsBetweenChecks{100};
constexpr uint64_t kRows{24};

struct ModelCell {
  ValueType type{ValueType::kBytes};
  std::string text;
  int64_t expiry_micros{kNeverMicros};
};
struct Retention {
  uint64_t versions_max{0};  // 0: all
  int64_t ttl_micros{0};     // 0: none
};
// "f:a" -> newest first
using Versions = std::map<int64_t, ModelCell, std::greater<>>;
using ModelRow = std::map<std::string, Versions>;

struct ModelIndex {
  std::string name;
  std::vector<std::pair<std::string, bool>> on;  // column, descending
  std::vector<std::string> include;
  bool of_family{false};  // ON 1 g
  bool unique{false};
};

// i64 or bytes: compared as what they are.
struct ModelValue {
  bool is_number{false};
  int64_t number{0};
  std::string text;
  bool descending{false};
  friend bool operator==(const ModelValue& a, const ModelValue& b) {
    return a.number == b.number && a.text == b.text;
  }
  friend bool operator<(const ModelValue& a, const ModelValue& b) {
    const ModelValue& low = a.descending ? b : a;
    const ModelValue& high = a.descending ? a : b;
    return low.is_number ? low.number < high.number : low.text < high.text;
  }
};
using Values = std::vector<ModelValue>;

class IndexModel : public Fixture {
 public:
  const Retention& RetentionOf(const std::string& column) { return retention[column[0] == 'g']; }

  static ValueType TypeOf(const std::string& column) {
    return column == "f:a" || column == "g:c" ? ValueType::kI64 : ValueType::kBytes;
  }

  bool Dropped(const std::string& column, uint64_t rank, int64_t timestamp, const ModelCell& cell) {
    const Retention& rule = RetentionOf(column);
    if (rule.versions_max > 0 && rank > rule.versions_max) return true;
    if (rule.ttl_micros > 0 && timestamp > 0 && clock.now_micros - timestamp >= rule.ttl_micros) {
      return true;
    }
    return clock.now_micros >= cell.expiry_micros;
  }

  void Reclaim(const std::string& column, Versions* versions) {
    uint64_t rank = 0;
    for (auto at = versions->begin(); at != versions->end();) {
      at = Dropped(column, ++rank, at->first, at->second) ? versions->erase(at) : std::next(at);
    }
  }

  const std::pair<const int64_t, ModelCell>* Newest(const ModelRow& row,
                                                    const std::string& column) {
    const auto found = row.find(column);
    if (found == row.end()) return nullptr;
    uint64_t rank = 0;
    for (const auto& version : found->second) {
      if (!Dropped(column, ++rank, version.first, version.second)) return &version;
    }
    return nullptr;
  }

  bool IsLive(const ModelRow& row) {
    return std::any_of(row.begin(), row.end(),
                       [&](const auto& column) { return Newest(row, column.first) != nullptr; });
  }

  std::vector<Values> EntriesOf(const ModelIndex& index, const ModelRow& row) {
    std::vector<Values> entries;
    if (index.of_family) {
      for (const auto& [column, versions] : row) {
        if (column[0] != 'g' || Newest(row, column) == nullptr) continue;
        entries.push_back({{false, 0, column.substr(2), index.on[0].second}});
      }
      return entries;
    }
    if (index.on.empty()) {
      if (IsLive(row)) entries.emplace_back();
      return entries;
    }
    Values values;
    for (const auto& [column, descending] : index.on) {
      const auto* newest = Newest(row, column);
      if (newest == nullptr || newest->second.type != TypeOf(column)) return {};
      ModelValue value{newest->second.type == ValueType::kI64, 0, newest->second.text, descending};
      if (value.is_number) REQUIRE(ParseInt64(value.text, &value.number) == NumberError::kNone);
      values.push_back(std::move(value));
    }
    entries.push_back(std::move(values));
    return entries;
  }

  std::string Expected(const ModelIndex& index, bool reverse) {
    std::vector<std::pair<Values, std::string>> entries;
    for (const auto& [key, row] : rows) {
      for (Values& values : EntriesOf(index, row)) entries.emplace_back(std::move(values), key);
    }
    std::sort(entries.begin(), entries.end());
    if (reverse) std::reverse(entries.begin(), entries.end());
    std::string text;
    for (const auto& entry : entries) text += " " + entry.second;
    return text;
  }

  // --- operations

  bool WouldConflict(const std::string& key, const ModelRow& after) {
    for (const ModelIndex& index : indexes) {
      if (!index.unique) continue;
      const std::vector<Values> now = EntriesOf(index, after);
      if (now.empty() || now == EntriesOf(index, rows[key])) continue;
      for (const auto& [other, row] : rows) {
        if (other != key && EntriesOf(index, row) == now) return true;
      }
    }
    return false;
  }

  void Carry(const std::string& key, const CellOp& op, const ModelRow& after) {
    const bool conflict = WouldConflict(key, after);
    const Status status = Do(Find("t"), key, {op});
    if (conflict) {
      if (status.code() != ErrorCode::kNotUnique) FAIL("not refused: " << status.ToString());
      return;
    }
    if (!status.ok()) FAIL(status.ToString());
    rows[key] = after;
  }

  std::string RandomColumn() {
    static const char* const kColumns[]{"f:a", "f:b", "g:c", "g:d", "g:e"};
    return kColumns[random.Below(5)];
  }

  void Put(const std::string& key) {
    const std::string column = RandomColumn();
    ModelRow after = rows[key];
    Versions& versions = after[column];
    Reclaim(column, &versions);
    ModelCell cell;
    cell.type = random.OneIn(10) ? ValueType::kBytes : TypeOf(column);
    cell.text = cell.type == ValueType::kI64
                    ? std::to_string(static_cast<int64_t>(random.Below(20)) - 10)
                    : std::string(random.Below(4), "ab"[random.Below(2)]);
    CellOp op = Fixture::Put(std::string_view(column).substr(0, 1),
                             std::string_view(column).substr(2), cell.text);
    op.type = cell.type;
    const int64_t back = random.OneIn(3) ? static_cast<int64_t>(random.Below(2'000'000)) : 0;
    op.timestamp_micros = random.OneIn(20) ? 0 : clock.now_micros - back;
    if (random.OneIn(4)) {
      op.ttl_micros = 1 + random.Below(3'000'000);
      cell.expiry_micros = clock.now_micros + static_cast<int64_t>(*op.ttl_micros);
    }
    versions[*op.timestamp_micros] = cell;
    Carry(key, op, after);
  }

  void Delete(const std::string& key) {
    ModelRow after = rows[key];
    CellOp op;
    if (random.OneIn(3)) {
      op.kind = CellOp::Kind::kDeleteRow;
      after.clear();
      return Carry(key, op, after);
    }
    op.kind = CellOp::Kind::kDelete;
    const std::string column = RandomColumn();
    op.selector = {ColumnSelector::Kind::kColumn,
                   std::string_view(column).substr(0, 1),
                   std::string_view(column).substr(2),
                   {}};
    if (random.OneIn(2)) {
      op.time.min_micros = clock.now_micros - static_cast<int64_t>(random.Below(1'000'000));
      Versions& versions = after[column];
      Reclaim(column, &versions);
      std::erase_if(versions, [&](const auto& v) { return v.first >= op.time.min_micros; });
    } else {
      after.erase(column);
    }
    Carry(key, op, after);
  }

  void DeleteRange() {
    const std::string low = RowKey(random.Below(kRows));
    const std::string high = RowKey(random.Below(kRows));
    const std::string min = "[" + low;
    const std::string max = "(" + high;
    RowOptions range;
    range.rows.push_back({RowSelector::Kind::kRange, min, max});
    auto change = store->DeleteRows(Find("t"), range);
    REQUIRE(change.ok());
    while (!(*change)->done()) REQUIRE((*change)->Step(5).ok());
    std::erase_if(rows, [&](const auto& row) { return row.first >= low && row.first < high; });
  }

  static std::string RowKey(uint64_t number) { return "r" + std::to_string(100 + number); }

  void Operate() {
    const uint64_t which = random.Below(1000);
    if (which < 700) return Put(RowKey(random.Below(kRows)));
    if (which < 850) return Delete(RowKey(random.Below(kRows)));
    if (which < 995) return SetTime(clock.now_micros + static_cast<int64_t>(random.Below(100'000)));
    if (which < 997) return DeleteRange();
    if (which < 999) {
      while (store->Sweep(50)) {
      }
      return;
    }
    if (random.OneIn(5)) {
      if (random.OneIn(2)) REQUIRE(store->journal().SaveNow().ok());
      Open();
    }
  }

  // --- rounds

  void NewRound() {
    rows.clear();
    indexes.clear();
    std::vector<NewFamily> families;
    for (size_t i = 0; i < 2; ++i) {
      retention[i] = {random.Below(4),
                      random.OneIn(2) ? 0 : 500'000 * static_cast<int64_t>(1 + random.Below(6))};
      FamilyOptions options;
      options.versions_max = retention[i].versions_max;
      options.ttl_ms = static_cast<uint64_t>(retention[i].ttl_micros / 1000);
      families.push_back({i == 0 ? "f" : "g", options});
    }
    (void)Make("t", families);
    const uint64_t count = 1 + random.Below(5);
    for (uint64_t i = 0; i < count; ++i) indexes.push_back(NewModelIndex("i" + std::to_string(i)));
    // Some before the rows, some over them.
    for (const ModelIndex& index : indexes) {
      for (uint64_t n = random.Below(200); n > 0; --n) PutPlain();
      Create(index);
    }
  }

  // A write that no UNIQUE index can refuse, nor fail over: those are made of f:a.
  void PutPlain() {
    const std::string key = RowKey(random.Below(kRows));
    const std::string text(1 + random.Below(3), 'c');
    CellOp op = Fixture::Put("g", "d", text);
    op.timestamp_micros = clock.now_micros;
    Versions& versions = rows[key]["g:d"];
    Reclaim("g:d", &versions);
    versions[clock.now_micros] = {ValueType::kBytes, text, kNeverMicros};
    REQUIRE(Do(Find("t"), key, {op}).ok());
  }

  ModelIndex NewModelIndex(std::string name) {
    ModelIndex index;
    index.name = std::move(name);
    const uint64_t kind = random.Below(6);
    if (kind == 0) {
      index.include = {"f", "g:c"};
    } else if (kind == 1) {
      index.of_family = true;
      index.on = {{"g", random.OneIn(2)}};
    } else {
      static const char* const kOn[]{"f:a", "f:b", "g:c"};
      for (uint64_t i = 1 + random.Below(2); i > 0; --i) {
        index.on.emplace_back(kOn[random.Below(3)], random.OneIn(3));
      }
      if (random.OneIn(2)) index.include = {"g", "f:b"};
      index.unique = random.OneIn(8);
      if (index.unique) index.on.insert(index.on.begin(), {"f:a", false});
    }
    return index;
  }

  void Create(const ModelIndex& index) {
    const auto column = [](const std::string& text, bool descending) {
      const std::string_view view(text);
      NewIndexColumn made{view.substr(0, 1), std::nullopt, std::nullopt, descending};
      if (view.size() > 1) {
        made.qualifier = view.substr(2);
        made.type = TypeOf(text);
      }
      return made;
    };
    NewIndex made;
    made.name = index.name;
    made.unique = index.unique;
    for (const auto& [text, descending] : index.on) made.on.push_back(column(text, descending));
    for (const std::string& text : index.include) made.include.push_back(column(text, false));
    const Status status = store->CreateIndex(Find("t"), made);
    if (!status.ok()) FAIL(status.ToString());
  }

  void Check() {
    Table& table = Find("t");
    const Status verified = store->VerifyIndexes();
    if (!verified.ok()) FAIL(verified.ToString());
    for (const ModelIndex& index : indexes) {
      const bool reverse = random.OneIn(2);
      IndexOptions options;
      options.name = index.name;
      const std::string found = Rows(table, options, reverse, random.OneIn(2) ? 3 : kUnlimited);
      const std::string wanted = Expected(index, reverse);
      if (found != wanted) {
        CAPTURE(index.name, found, wanted);
        FAIL("an index and the model disagree");
      }
      if (!index.include.empty()) CheckCells(table, index);
    }
    for (int i = 0; i < 20; ++i) CheckChoice(table);
  }

  // What a scan with conditions gives with an index that it takes by itself, and without.
  void CheckChoice(Table& table) {
    static const char* const kColumns[]{"f:a", "f:b", "g:c"};
    static const char* const kLiterals[]{"3", "-4", "-4.5", "a", "", "bbb", "aa", "1e30", "x"};
    RowOptions options;
    for (uint64_t n = 1 + random.Below(3); n > 0; --n) {
      const std::string_view column = kColumns[random.Below(3)];
      Predicate& predicate = options.where.emplace_back();
      predicate.kind = random.OneIn(8) ? Predicate::Kind::kColumnExists : Predicate::Kind::kCompare;
      predicate.family = column.substr(0, 1);
      predicate.qualifier = column.substr(2);
      predicate.op = random.OneIn(3) ? static_cast<CompareOp>(random.Below(6)) : CompareOp::kEq;
      predicate.literal = kLiterals[random.Below(9)];
    }
    const std::string min = "[" + RowKey(random.Below(kRows));
    const std::string max = "(" + RowKey(random.Below(kRows));
    if (random.OneIn(4)) options.rows.push_back({RowSelector::Kind::kRange, min, max});
    options.reverse = random.OneIn(3);
    options.reordered_max = random.OneIn(2) ? kUnlimited : 0;
    options.cells_wanted = !random.OneIn(4);
    CellOptions cells;
    if (random.OneIn(2)) cells.columns = {{ColumnSelector::Kind::kColumn, "f", "b", {}}};
    RowOptions plain = options;
    plain.no_index = true;
    ReadView view(table, clock.now_micros);
    const IndexChoice choice = ChooseIndex(view, options, cells, nullptr);
    choices_taken += choice.index != nullptr ? 1 : 0;
    const uint64_t budget = random.OneIn(2) ? 3 : kUnlimited;
    auto found = RowsOf(table, options, cells, budget);
    auto wanted = RowsOf(table, plain, cells, budget);
    if (choice.index != nullptr && !choice.in_row_order) {
      std::sort(found.begin(), found.end());
      std::sort(wanted.begin(), wanted.end());
    }
    if (found == wanted) return;
    CAPTURE(choice.index == nullptr ? "none" : choice.index->name, found, wanted);
    FAIL("a scan by an index that it took is not the scan without");
  }

  std::vector<std::string> RowsOf(Table& table, const RowOptions& options, const CellOptions& cells,
                                  uint64_t budget) {
    Result<std::unique_ptr<Scan>> scan = store->ScanRows(table, options, cells, nullptr);
    if (!scan.ok()) FAIL(scan.status().ToString());
    (*scan)->SetBudget(budget);
    std::vector<std::string> found;
    for (;;) {
      const ScanStep step = (*scan)->Next();
      if (step == ScanStep::kEnd) break;
      if (step == ScanStep::kRow) found.emplace_back((*scan)->row_text());
      if (step == ScanStep::kRow && !options.cells_wanted) (*scan)->SkipRow();
      if (step == ScanStep::kCell) {
        const ScanCell& cell = (*scan)->cell();
        found.back() += " " + std::string(cell.qualifier_text) + "@" +
                        FormatInt64(cell.timestamp_micros) + "=" +
                        ValueText(cell.type, cell.stored);
      }
      if (step != ScanStep::kPause) continue;
      (*scan)->Detach();
      (*scan)->SetBudget(budget);
    }
    store->EndScan(*std::move(scan));
    return found;
  }

  // f:b and g:c are in every index that includes something.
  void CheckCells(Table& table, const ModelIndex& index) {
    RowOptions by_index;
    by_index.index.emplace();
    by_index.index->name = index.name;
    CellOptions cells;
    cells.columns = {{ColumnSelector::Kind::kColumn, "f", "b", {}},
                     {ColumnSelector::Kind::kColumn, "g", "c", {}}};
    auto shown = Cells(table, by_index, cells, kUnlimited);
    if (shown["groups"] != "0") FAIL("the table was read");
    for (const auto& [key, row] : rows) {
      std::string wanted;
      if (EntriesOf(index, row).empty()) continue;
      for (const char* column : {"f:b", "g:c"}) {
        const auto* newest = Newest(row, column);
        if (newest == nullptr) continue;
        wanted += " " + std::string(column) + "@" + FormatInt64(newest->first) + "=" +
                  newest->second.text;
      }
      if (shown[key] != wanted) {
        CAPTURE(key, shown[key], wanted);
        FAIL("an entry holds other cells than the model");
      }
    }
  }

  Random random{0};
  Retention retention[2];
  std::map<std::string, ModelRow> rows;
  std::vector<ModelIndex> indexes;
  uint64_t choices_taken{0};
};

TEST_CASE_METHOD(IndexModel, "500,000 operations leave every index a sort of a naive model",
                 "[index][model]") {
  for (int round = 0; round < kRounds; ++round) {
    const auto seed = static_cast<uint64_t>(1000 + round);
    INFO("seed " << seed);
    random = Random(seed);
    NewRound();
    Check();
    for (int operation = 1; operation <= kOperationsOfRound; ++operation) {
      INFO("operation " << operation);
      Operate();
      if (operation % kOperationsBetweenChecks == 0) Check();
    }
    REQUIRE(store->DropTable(Find("t")).ok());
  }
  REQUIRE(choices_taken > 5'000);
}

}  // namespace store_index_model_test
