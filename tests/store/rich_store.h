// RichStore: a small store on a disk in memory with some of everything that a log can tell of:
// orders of several components, types, retention, groups, indexes of all kinds, record numbers,
// transactions, deletes of cells, columns, rows and ranges, families and tables that come and go,
// packed values.
// The clock stands still, so it is the same store each time. What fails throws: fuzzers use it too.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/keys/hyperloglog.h"
#include "engine/state/table_census.h"
#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/store.h"
#include "tests/manual_clock.h"
#include "tests/store/faulty_file_system.h"

namespace cellar {

class RichStore {
 public:
  static constexpr int64_t kNow{1'700'000'000'000'000};

  explicit RichStore(FaultyFileSystem* disk) : disk_(disk) {
    options.journal.directory = "db";
    options.journal.segment_bytes_max = 1 << 30;
    options.journal.allocation_bytes_max = 64 << 10;
    options.journal.allocation_bytes_min = 4096;
  }
  Status Open() {
    store.reset();
    ASSIGN_OR_RETURN(store, Store::Open(options, *disk_, clock, {}));
    return Status::Ok();
  }
  Table& Find(std::string_view name) { return **store->FindTable("0", name); }

  void MakeTables() {
    FamilyOptions number;
    number.type = ValueType::kI64;
    number.versions_max = 2;
    FamilyOptions log;
    log.order = *Order::Parse("-u32");
    log.group = "cold";
    FamilyOptions brief;
    brief.ttl_ms = 60'000;
    brief.type = ValueType::kF64;
    brief.order = *Order::Parse("ascii/i16");
    Do(store->CreateTable("0", "plain", Order(), {{"f", {}}, {"n", number}}));
    Do(store->CreateTable("0", "keyed", *Order::Parse("utf8#-i32#uuid"),
                          {{"log", log}, {"brief", brief}, {"f", {}}}));
    Do(store->CreateTable("0", "numbers", *Order::Parse("recno"), {{"f", {}}}));
    Do(store->CreateKeyspace("other"));
    NewIndex by_value{"by_n", {{"n", "age", ValueType::kI64, true}}, {{"f", "a", {}, false}}};
    NewIndex unique{"one", {{"f", "mail", {}, false}}, {}, true};
    NewIndex by_name{"names", {{"f", {}, {}, false}}, {}};
    FamilyOptions sum;
    sum.fold = FoldKind::kSum;
    sum.bucket_ms = 1000;
    FamilyOptions hll;
    hll.fold = FoldKind::kHll;
    Do(store->CreateTable("0", "folds", Order(), {{"s", sum}, {"h", hll}}));
    FamilyOptions lz4;
    lz4.compression = Compression::kLz4;
    FamilyOptions zstd;
    zstd.compression = Compression::kZstd;
    zstd.type = ValueType::kString;
    Do(store->CreateTable("0", "packed", Order(), {{"l", lz4}, {"z", zstd}}));
    NewIndex by_row{"rows", {}, {{"f", {}, {}, false}}};
    for (const NewIndex& index : {by_value, unique, by_name, by_row})
      Do(store->CreateIndex(Find("plain"), index));
  }
  // Round i: some twenty mutations.
  void WriteRound(int i) {
    const std::string n = std::to_string(i);
    const std::string key = "häuser#" + std::to_string(7 - i) +
                            "#0a1b2c3d-0000-1000-8000-00000000000" + std::to_string(i % 10);
    Table& plain = Find("plain");
    Table& keyed = Find("keyed");
    for (int k = 0; k < 4; ++k) {
      const std::string row = "row" + std::to_string((i * 3 + k) % 11);
      Write(plain, row, {Put("f", "a", "value" + n), Put("n", "age", std::to_string(20 + k))});
    }
    store->Flush();
    Write(plain, std::string("nul\0row", 7), {Put("f", std::string_view("q\0q", 3), "zero")});
    Write(plain, "mail" + n, {Put("f", "mail", "a" + n + "@b")});
    Write(keyed, key, {Put("log", n, "line"), Put("brief", "t/-5", "1.5"), Put("f", "x", "y")});
    store->Flush();
    CellOp expires = Put("f", "soon", "gone");
    expires.ttl_micros = 5'000'000;
    Write(plain, "row1", {expires, Increment("n", "age", "3")});
    Write(Find("numbers"), "*", {Put("f", "q", n)}, true);
    const std::string state = HllStateOf(HllInputOf("state" + n));
    Write(Find("folds"), "r",
          {Fold(CellOp::Kind::kAdd, "s", "a", n), Fold(CellOp::Kind::kAdd, "h", "a", "user" + n)});
    Write(Find("folds"), "r", {Fold(CellOp::Kind::kMerge, "h", "a", state)});
    const std::string page = "<p>" + std::string(150, 'p') + n + std::string(100, 'q');
    Write(Find("packed"), "row" + n, {Put("l", "page", page), Put("z", "page", page + page)});
    CellOp more = Put("l", "page", "more");
    more.kind = CellOp::Kind::kAppend;
    Write(Find("packed"), "row0", {more});
    store->Flush();
    store->BeginTransaction(Store::Atomicity::kAll);
    Write(plain, "row2", {Put("f", "both", n)});
    Write(keyed, key, {Put("f", "both", n)});
    store->CommitTransaction();
    CellOp column;
    column.kind = CellOp::Kind::kDelete;
    column.selector = {ColumnSelector::Kind::kPrefix, "f", "bo", {}};
    CellOp row;
    row.kind = CellOp::Kind::kDeleteRow;
    Write(plain, "row" + std::to_string(i % 11), {column});
    Write(plain, "row" + std::to_string((i + 5) % 11), {row});
    clock.now_micros += 1'000'000;
    store->SetTurnTime();
    store->Flush();
  }
  void ChangeSchema() {
    FamilyOptions looser;
    looser.versions_max = 3;
    auto alter = store->AlterFamily(Find("plain"), {"n", looser}, nullptr);
    Do(alter.status());
    while (!(*alter)->done()) Do((*alter)->Step(1000));
    RowOptions rows;
    rows.rows = {{RowSelector::Kind::kPrefix, "row3", {}}};
    auto range = store->DeleteRows(Find("plain"), rows);
    Do(range.status());
    while (!(*range)->done()) Do((*range)->Step(1000));
    Do(store->AddFamily(Find("plain"), {"added", {}}));
    FamilyOptions unpacked;
    unpacked.compression = Compression::kNever;
    auto unpack = store->AlterFamily(Find("packed"), {"l", unpacked}, nullptr);
    Do(unpack.status());
    while (!(*unpack)->done()) Do((*unpack)->Step(1000));
    FamilyOptions log;
    log.order = *Order::Parse("u64");
    Do(store->DropFamily(Find("keyed"), "log"));
    Do(store->AddFamily(Find("keyed"), {"log", log}));
    Do(store->CreateTable("other", "passing", Order(), {{"f", {}}}));
    Do(store->RenameTable(**store->FindTable("other", "passing"), "other", "through",
                          Store::Overwrite::kNo));
    Do(store->TruncateTable(**store->FindTable("other", "through")));
    Do(store->DropTable(**store->FindTable("other", "through")));
    Do(store->DropKeyspace("other"));
    clock.now_micros += 20'000'000;  // some of it expires
    store->SetTurnTime();
    while (store->Sweep(1000)) {
    }
    store->Flush();
  }
  // All of the above, and closed.
  void Fill(int rounds) {
    Do(Open());
    MakeTables();
    for (int i = 0; i < rounds; ++i) WriteRound(i);
    ChangeSchema();
    for (int i = 0; i < rounds; ++i) WriteRound(i + 2);
    Do(store->journal().Close());
    store.reset();
  }

  static CellOp Put(std::string_view family, std::string_view qualifier, std::string_view value) {
    return CellOp(CellPut{family, qualifier, value});
  }
  static CellOp Fold(CellOp::Kind kind, std::string_view family, std::string_view qualifier,
                     std::string_view input) {
    CellOp op = Put(family, qualifier, input);
    op.kind = kind;
    return op;
  }
  static CellOp Increment(std::string_view family, std::string_view qualifier,
                          std::string_view by) {
    CellOp op = Put(family, qualifier, by);
    op.kind = CellOp::Kind::kIncrement;
    return op;
  }
  void Write(Table& table, std::string_view row, std::vector<CellOp> ops, bool allocates = false) {
    RowWrite write;
    write.row = row;
    write.ops = std::move(ops);
    write.allocates = allocates;
    const auto written = store->Write(table, write);
    Do(written.status());
  }
  static void Do(const Status& status) {
    if (!status.ok()) throw std::runtime_error(status.ToString());
  }

  StoreOptions options;
  ManualClock clock{kNow};
  std::unique_ptr<Store> store;

 private:
  FaultyFileSystem* const disk_;
};

// What must hold of any store that has been opened: every entry of every table is well-formed, the
// counters are those of the entries, the indexes are what the tables say, and all of it can be
// read.
inline Status ValidateStore(Store* store) {
  for (const std::string& keyspace : store->Keyspaces()) {
    for (const Table* table : store->Tables(keyspace)) {
      ASSIGN_OR_RETURN(const TableCounters counted, CountTable(*table));
      const TableCounters& said = table->counters();
      bool same = counted.rows == said.rows && counted.families.size() == said.families.size();
      for (size_t i = 0; same && i < counted.families.size(); ++i) {
        const FamilyCounters& a = counted.families[i];
        const FamilyCounters& b = said.families[i];
        same = a.cells == b.cells && a.bytes == b.bytes && a.expiring_cells == b.expiring_cells &&
               a.packed_cells == b.packed_cells && a.saved_bytes == b.saved_bytes;
      }
      if (!same) {
        std::string text = "counters of " + table->name() + " differ: rows " +
                           std::to_string(said.rows) + " said, " + std::to_string(counted.rows) +
                           " counted";
        for (size_t i = 0; i < counted.families.size(); ++i) {
          const FamilyCounters& a = said.families[i];
          const FamilyCounters& b = counted.families[i];
          text +=
              fmt::format("; cells {} {}, bytes {} {}, expiring {} {}, packed {} {}, saved {} {}",
                          a.cells, b.cells, a.bytes, b.bytes, a.expiring_cells, b.expiring_cells,
                          a.packed_cells, b.packed_cells, a.saved_bytes, b.saved_bytes);
        }
        return Status::Error(ErrorCode::kErr, text);
      }
    }
  }
  (void)store->Digest();
  return store->VerifyIndexes();
}

// The payloads of a segment's records, and a segment that holds these instead: the same header,
// records one behind the other with right checksums.
inline std::vector<std::string> PayloadsOf(std::string_view segment) {
  std::vector<std::string> payloads;
  const auto header = DecodeSegmentHeader(segment);
  RichStore::Do(header.status());
  LogPosition position{.last = header->after, .chain = header->chain};
  LogRecord record;
  std::string fault;
  while (ReadRecord(segment, &position, &record, &fault) == LogStep::kRecord)
    if (record.kind == RecordKind::kCommand) payloads.emplace_back(record.payload);
  return payloads;
}
inline std::string SegmentOf(std::string_view segment, const std::vector<std::string>& payloads) {
  const auto header = DecodeSegmentHeader(segment);
  RichStore::Do(header.status());
  std::string bytes(segment.substr(0, kSegmentHeaderBytes));
  uint64_t chain = header->chain;
  Lsn lsn = header->after;
  for (const std::string& payload : payloads) {
    const Lsn before = lsn;
    lsn = {1, lsn.seq + 1};
    const size_t at = bytes.size();
    bytes.resize(at + kRecordHeaderBytes + payload.size());
    LayOutRecord(&bytes[at], chain, {.lsn = lsn, .claim = before}, payload);
    chain = SealRecord(&bytes[at]);
  }
  return bytes;
}

// What an engine holds, tree by tree.
using Tree = std::map<std::string, std::string>;

inline std::map<uint64_t, Tree> TreesOf(const Engine& engine) {
  std::map<uint64_t, Tree> trees;
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1)) {
    for (size_t i = 0; i < table->groups(); ++i) {
      Tree& tree = trees[table->schema().groups[i].tree_id];
      BTreeCursor at(table->tree(i));
      for (at.SeekFirst(); at.valid(); at.Next()) tree.emplace(at.key(), at.value());
    }
  }
  return trees;
}

}  // namespace cellar
