// See map_tables.h.
#include "cluster/map_tables.h"

#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "engine/state/cluster_state.h"
#include "engine/state/cut_mark.h"
#include "store/requests.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr std::string_view kTabletsTable{kClusterTables[0]};
constexpr std::string_view kSetsTable{kClusterTables[1]};
constexpr std::string_view kOptionsTable{kClusterTables[2]};
constexpr std::string_view kEventsTable{kClusterTables[3]};
constexpr std::string_view kCatalogTable{kClusterTables[4]};
constexpr std::string_view kJobsTable{kClusterTables[5]};
constexpr std::string_view kCutsTable{kClusterTables[6]};
constexpr std::string_view kFamily{"f"};
constexpr std::string_view kHeadRow{"0/0"};

// While it lives, the table can be written as any other one.
class Opened {
 public:
  explicit Opened(Table& table) : table_(table) { table_.SetKept(false); }
  ~Opened() { table_.SetKept(true); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  Table& table_;
};

bool ParseNumber(std::string_view text, uint64_t* number) {
  int64_t value = 0;
  if (ParseInt64(text, &value) != NumberError::kNone || value < 0) return false;
  *number = static_cast<uint64_t>(value);
  return true;
}

std::string TabletRow(uint64_t table_id, uint64_t number) {
  return FormatUint64(table_id) + "/" + FormatUint64(number);
}

Status Damaged(std::string_view row) {
  return Status::Error(ErrorCode::kCorruption,
                       fmt::format("row {} of {}/{} is not as it was written", row,
                                   kClusterKeyspace, kTabletsTable));
}

}  // namespace

std::string_view MapTables::Row::Text(const std::string& column) const {
  const auto found = cells.find(column);
  return found == cells.end() ? std::string_view() : std::string_view(found->second);
}

bool MapTables::Row::Number(const std::string& column, uint64_t* number) const {
  return ParseNumber(Text(column), number);
}

Table* MapTables::Find(std::string_view name) const {
  return store_.engine().FindTable(kClusterKeyspace, name);
}

Status MapTables::AsOne(Store& store, const std::function<Status()>& write) {
  CELLAR_ASSERT(!store.in_transaction());
  store.BeginTransaction(Store::Atomicity::kAll);
  Status status = write();
  if (status.ok())
    store.CommitTransaction();
  else
    store.RollBackTransaction();
  return status;
}

bool MapTables::exist() const {
  return store_.engine().cluster().active() && Find(kTabletsTable) != nullptr &&
         Find(kSetsTable) != nullptr && Find(kOptionsTable) != nullptr &&
         Find(kEventsTable) != nullptr && Find(kCatalogTable) != nullptr;
}

const Table& MapTables::tablets() const {
  const Table* const table = Find(kTabletsTable);
  CELLAR_ASSERT(table != nullptr);
  return *table;
}

const Table& MapTables::sets() const {
  const Table* const table = Find(kSetsTable);
  CELLAR_ASSERT(table != nullptr);
  return *table;
}

Status MapTables::Create() {
  CELLAR_ASSERT(store_.in_transaction());
  CELLAR_ASSERT(!store_.engine().cluster().active());
  RETURN_IF_ERROR(store_.CreateKeyspace(kClusterKeyspace));
  constexpr std::pair<std::string_view, std::string_view> kTables[] = {
      {kTabletsTable, "table=u64/number=u64"},
      {kSetsTable, "u64"},
      {kOptionsTable, "utf8"},
      {kEventsTable, "-u64"},
      {kCatalogTable, "u64"},
      {kJobsTable, "u64"},
      {kCutsTable, "-u64"}};
  FamilyOptions options;
  options.versions_max = 1;
  const std::vector<NewFamily> families{{.name = kFamily, .options = options}};
  for (const auto& [name, order] : kTables) {
    ASSIGN_OR_RETURN(const Order key, Order::ParseKey(order));
    RETURN_IF_ERROR(store_.CreateTable(kClusterKeyspace, name, key, families));
  }
  return Status::Ok();
}

Status MapTables::Drop() {
  CELLAR_ASSERT(store_.in_transaction());
  if (!store_.KeyspaceExists(kClusterKeyspace)) return Status::Ok();
  return store_.DropKeyspace(kClusterKeyspace);
}

Status MapTables::Put(std::string_view table, std::string_view row,
                      const std::vector<Cell>& cells) {
  Table* const found = Find(table);
  CELLAR_ASSERT(found != nullptr);
  RowWrite write;
  write.row = row;
  for (const Cell& cell : cells)
    write.ops.emplace_back(
        CellPut{.family = kFamily, .qualifier = cell.column, .text = cell.value});
  const Opened opened(*found);
  return store_.Write(*found, write).status();
}

Status MapTables::Delete(std::string_view table, std::string_view row) {
  Table* const found = Find(table);
  CELLAR_ASSERT(found != nullptr);
  RowWrite write;
  write.row = row;
  write.ops.emplace_back().kind = CellOp::Kind::kDeleteRow;
  const Opened opened(*found);
  return store_.Write(*found, write).status();
}

std::vector<MapTables::Row> MapTables::Rows(std::string_view table, uint64_t rows_max) {
  std::vector<Row> rows;
  Table* const found = Find(table);
  if (found == nullptr || rows_max == 0) return rows;
  Result<std::unique_ptr<Scan>> scan = store_.ScanRows(*found, {}, {}, nullptr);
  CELLAR_ASSERT(scan.ok());
  for (ScanStep step = (*scan)->Next(); step != ScanStep::kEnd; step = (*scan)->Next()) {
    if (step == ScanStep::kRow) {
      if (rows.size() == rows_max) break;
      rows.push_back({.key = std::string((*scan)->row_text()), .cells = {}});
    } else if (step == ScanStep::kCell) {
      const ScanCell& cell = (*scan)->cell();
      rows.back().cells.emplace(cell.qualifier_text, cell.stored);
    }
  }
  store_.EndScan(*std::move(scan));
  return rows;
}

Status MapTables::Load(MapCache* map) {
  const std::vector<Row> rows = Rows(kTabletsTable, UINT64_MAX);
  uint64_t version = 0;
  uint64_t floor = 0;
  uint64_t next = 1;
  if (!rows.empty()) {
    const bool has_head = rows[0].key == kHeadRow && rows[0].Number("version", &version) &&
                          rows[0].Number("floor", &floor) && rows[0].Number("next", &next);
    if (!has_head) return Damaged(kHeadRow);
  }
  map->Begin(version, floor, next);
  for (size_t i = 1; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const size_t slash = row.key.find('/');
    uint64_t id = 0;
    MapEntry entry{.begin = std::string(row.Text("start")), .end = std::string(row.Text("end"))};
    const bool whole = slash != std::string::npos && ParseNumber(row.key.substr(0, slash), &id) &&
                       ParseNumber(row.key.substr(slash + 1), &entry.number) &&
                       row.Number("set", &entry.set) && row.Number("epoch", &entry.epoch) &&
                       row.Number("version", &entry.version);
    if (!whole) return Damaged(row.key);
    map->Add(id, row.Text("table"), std::move(entry));
  }
  map->Sort();
  return Status::Ok();
}

Status MapTables::Write(const MapChange& change) {
  CELLAR_ASSERT(store_.in_transaction());
  const std::string version = FormatUint64(change.version);
  for (const auto& [id, number] : change.removals)
    RETURN_IF_ERROR(Delete(kTabletsTable, TabletRow(id, number)));
  for (const auto& [id, table] : change.tables) {
    for (const MapEntry& entry : table.tablets) {
      if (entry.version != change.version) continue;
      RETURN_IF_ERROR(Put(kTabletsTable, TabletRow(id, entry.number),
                          {{"table", table.name},
                           {"start", entry.begin},
                           {"end", entry.end},
                           {"set", FormatUint64(entry.set)},
                           {"epoch", FormatUint64(entry.epoch)},
                           {"version", version}}));
    }
  }
  return Put(kTabletsTable, kHeadRow,
             {{"version", version},
              {"floor", FormatUint64(change.floor)},
              {"next", FormatUint64(change.number_next)}});
}

Status MapTables::Clear() {
  CELLAR_ASSERT(store_.in_transaction());
  for (const Row& row : Rows(kTabletsTable, UINT64_MAX))
    RETURN_IF_ERROR(Delete(kTabletsTable, row.key));
  return Status::Ok();
}

Status MapTables::WriteSet(uint64_t set, std::string_view id, int64_t unix_ms) {
  CELLAR_ASSERT(store_.in_transaction());
  return Put(kSetsTable, FormatUint64(set), {{"id", id}, {"joined", FormatInt64(unix_ms)}});
}

Status MapTables::MarkSet(uint64_t set, SetMark mark, bool is_so) {
  CELLAR_ASSERT(store_.in_transaction());
  return Put(kSetsTable, FormatUint64(set),
             {{mark == SetMark::kDraining ? "draining" : "removed", is_so ? "1" : "0"}});
}

Status MapTables::WriteChange(const CatalogChange& change) {
  CELLAR_ASSERT(store_.in_transaction());
  std::string bytes;
  EncodeCatalogChange(change, &bytes);
  return Put(kCatalogTable, FormatUint64(change.number), {{"change", bytes}});
}

uint64_t MapTables::changes_bytes() const {
  const Table* const table = Find(kCatalogTable);
  return table == nullptr ? 0 : table->memory_bytes();
}

Status MapTables::ForgetChanges(uint64_t number) {
  CELLAR_ASSERT(store_.in_transaction());
  constexpr uint64_t kAtOnce{1'000};
  for (const Row& row : Rows(kCatalogTable, kAtOnce)) {
    uint64_t its = 0;
    if (!ParseNumber(row.key, &its) || its > number) break;
    RETURN_IF_ERROR(Delete(kCatalogTable, row.key));
  }
  return Status::Ok();
}

Result<std::vector<MapTables::SetRow>> MapTables::Sets() {
  std::vector<SetRow> sets;
  for (const Row& row : Rows(kSetsTable, UINT64_MAX)) {
    SetRow set;
    const std::string_view id = row.Text("id");
    const auto read = std::from_chars(id.data(), id.data() + id.size(), set.id, 16);
    const bool whole = ParseNumber(row.key, &set.number) && read.ec == std::errc{} &&
                       read.ptr == id.data() + id.size();
    if (!whole) {
      return Status::Error(ErrorCode::kCorruption,
                           fmt::format("row {} of {}/{} is not as it was written", row.key,
                                       kClusterKeyspace, kSetsTable));
    }
    set.draining = row.Text("draining") == "1";
    set.removed = row.Text("removed") == "1";
    sets.push_back(set);
  }
  return sets;
}

uint64_t MapTables::FirstChange() {
  const std::vector<Row> rows = Rows(kCatalogTable, 1);
  uint64_t number = 0;
  return !rows.empty() && ParseNumber(rows[0].key, &number) ? number : 0;
}

bool MapTables::ReadChange(uint64_t number, CatalogChange* change) {
  Table* const table = Find(kCatalogTable);
  if (table == nullptr) return false;
  const Result<OpenedRow*> row = store_.OpenRow(*table, FormatUint64(number), nullptr);
  if (!row.ok()) return false;
  const Result<const CellRead*> cell = (*row)->Get(std::string(kFamily) + ":change");
  return cell.ok() && *cell != nullptr && DecodeCatalogChange((*cell)->value.stored, change);
}

const Table* MapTables::jobs() const {
  return store_.engine().cluster().active() ? Find(kJobsTable) : nullptr;
}

// A change of the schema, which other sets take as any other one.
Status MapTables::CreateJobs() {
  CELLAR_ASSERT(store_.in_transaction());
  if (Find(kJobsTable) != nullptr) return Status::Ok();
  ASSIGN_OR_RETURN(const Order key, Order::ParseKey("u64"));
  FamilyOptions options;
  options.versions_max = 1;
  return store_.CreateTable(kClusterKeyspace, kJobsTable, key,
                            {{.name = kFamily, .options = options}});
}

bool MapTables::has_cuts() const {
  return store_.engine().cluster().active() && Find(kCutsTable) != nullptr;
}

Status MapTables::CreateCuts() {
  CELLAR_ASSERT(store_.in_transaction());
  if (Find(kCutsTable) != nullptr) return Status::Ok();
  ASSIGN_OR_RETURN(const Order key, Order::ParseKey("-u64"));
  FamilyOptions options;
  options.versions_max = 1;
  return store_.CreateTable(kClusterKeyspace, kCutsTable, key,
                            {{.name = kFamily, .options = options}});
}

std::string_view MapTables::CutStateName(CutState state) {
  return state == CutState::kOpen ? "open" : state == CutState::kGood ? "good" : "bad";
}

std::vector<MapTables::CutRow> MapTables::Cuts(uint64_t count) {
  std::vector<CutRow> cuts;
  for (const Row& row : Rows(kCutsTable, count)) {
    CutRow cut;
    uint64_t time = 0;
    if (!ParseNumber(row.key, &cut.number)) continue;
    (void)row.Number("time", &time);
    cut.time_micros = static_cast<int64_t>(time);
    cut.purpose = row.Text("purpose");
    const std::string_view state = row.Text("state");
    cut.state = state == "good"   ? CutState::kGood
                : state == "open" ? CutState::kOpen
                                  : CutState::kBad;
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

Status MapTables::WriteCut(const CutRow& cut) {
  CELLAR_ASSERT(store_.in_transaction());
  RETURN_IF_ERROR(Put(kCutsTable, FormatUint64(cut.number),
                      {{"time", FormatInt64(cut.time_micros)},
                       {"purpose", cut.purpose},
                       {"state", CutStateName(cut.state)}}));
  // To count them all takes some milliseconds, and a few too many do no harm.
  constexpr uint64_t kChangesBetween{32};
  if (cut.state != CutState::kOpen) return Status::Ok();
  const std::vector<CutRow> newest = Cuts(2);
  const bool looks = newest.size() == 2 &&
                     newest[0].number / kChangesBetween != newest[1].number / kChangesBetween;
  return looks ? DropOldCuts() : Status::Ok();
}

// What anybody makes at any time, cursors for one, does not take the place of what is kept to be
// recovered to.
Status MapTables::DropOldCuts() {
  uint64_t restore_points = 0;
  uint64_t others = 0;
  for (const CutRow& cut : Cuts(UINT64_MAX)) {
    const bool is_restore_point =
        cut.state != CutState::kBad && (cut.purpose == CutPurposeName(CutPurpose::kRestorePoint) ||
                                        cut.purpose == CutPurposeName(CutPurpose::kBackup));
    const bool is_old =
        is_restore_point ? ++restore_points > kRestorePointsMax : ++others > kOtherCutsMax;
    if (is_old) RETURN_IF_ERROR(Delete(kCutsTable, FormatUint64(cut.number)));
  }
  return Status::Ok();
}

Result<MapTables::JobRows> MapTables::Jobs() {
  JobRows found;
  const auto damaged = [](std::string_view row) {
    return Status::Error(
        ErrorCode::kCorruption,
        fmt::format("row {} of {}/{} is not as it was written", row, kClusterKeyspace, kJobsTable));
  };
  for (const Row& row : Rows(kJobsTable, UINT64_MAX)) {
    MoveJob job;
    if (!ParseNumber(row.key, &job.number)) return damaged(row.key);
    if (job.number == 0) {
      if (!row.Number("next", &found.next)) return damaged(row.key);
      continue;
    }
    uint64_t state = 0;
    uint64_t started = 0;
    uint64_t ended = 0;
    const bool whole = row.Number("id", &job.table_id) && row.Number("epoch", &job.tablet.epoch) &&
                       row.Number("from", &job.from) && row.Number("to", &job.to) &&
                       row.Number("state", &state) && row.Number("started", &started) &&
                       row.Number("ended", &ended) &&
                       state <= static_cast<uint64_t>(MoveJob::State::kDone);
    if (!whole) return damaged(row.key);
    job.table = row.Text("table");
    job.tablet.begin = row.Text("start");
    job.tablet.end = row.Text("end");
    job.state = static_cast<MoveJob::State>(state);
    job.started_ms = static_cast<int64_t>(started);
    job.ended_ms = static_cast<int64_t>(ended);
    job.why = row.Text("why");
    job.error = row.Text("error");
    found.jobs.emplace(job.number, std::move(job));
  }
  return found;
}

Status MapTables::WriteJob(const MoveJob& job) {
  CELLAR_ASSERT(store_.in_transaction());
  return Put(kJobsTable, FormatUint64(job.number),
             {{"id", FormatUint64(job.table_id)},
              {"table", job.table},
              {"start", job.tablet.begin},
              {"end", job.tablet.end},
              {"epoch", FormatUint64(job.tablet.epoch)},
              {"from", FormatUint64(job.from)},
              {"to", FormatUint64(job.to)},
              {"state", FormatUint64(static_cast<uint64_t>(job.state))},
              {"started", FormatInt64(job.started_ms)},
              {"ended", FormatInt64(job.ended_ms)},
              {"why", job.why},
              {"error", job.error}});
}

Status MapTables::WriteNextJob(uint64_t next) {
  CELLAR_ASSERT(store_.in_transaction());
  return Put(kJobsTable, "0", {{"next", FormatUint64(next)}});
}

Status MapTables::DeleteJob(uint64_t number) {
  CELLAR_ASSERT(store_.in_transaction());
  return Delete(kJobsTable, FormatUint64(number));
}

Status MapTables::WriteOption(std::string_view name, std::string_view value) {
  CELLAR_ASSERT(store_.in_transaction());
  return Put(kOptionsTable, name, {{"value", value}});
}

// The oldest one makes way.
Status MapTables::AddEvent(const ClusterEvent& event) {
  CELLAR_ASSERT(store_.in_transaction());
  uint64_t number = 0;
  const std::vector<Row> newest = Rows(kEventsTable, 1);
  if (!newest.empty() && !ParseNumber(newest[0].key, &number)) return Damaged(newest[0].key);
  ++number;
  RETURN_IF_ERROR(
      Put(kEventsTable, FormatUint64(number),
          {{"time", FormatInt64(event.unix_ms)}, {"what", event.what}, {"why", event.why}}));
  if (number <= kEventsMax) return Status::Ok();
  return Delete(kEventsTable, FormatUint64(number - kEventsMax));
}

std::map<std::string, std::string> MapTables::Options() {
  std::map<std::string, std::string> options;
  for (const Row& row : Rows(kOptionsTable, UINT64_MAX))
    options.emplace(row.key, row.Text("value"));
  return options;
}

std::vector<ClusterEvent> MapTables::Events(uint64_t count) {
  std::vector<ClusterEvent> events;
  for (const Row& row : Rows(kEventsTable, count)) {
    uint64_t time = 0;
    (void)row.Number("time", &time);
    events.push_back(
        {static_cast<int64_t>(time), std::string(row.Text("what")), std::string(row.Text("why"))});
  }
  return events;
}

}  // namespace cellar
