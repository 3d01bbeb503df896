// Reads of snapshots in other threads, while their owner writes, drops and frees: each sees what
// was there when it began. Under ThreadSanitizer this is where it looks.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/os/worker_pool.h"
#include "base/random.h"
#include "base/text/number.h"
#include "engine/aggregate/aggregate_job.h"
#include "engine/scans/table_scan.h"
#include "engine/state/engine.h"
#include "engine/table/read_view.h"
#include "engine/table/row_split.h"

namespace cellar::scan_threads_test {

constexpr int64_t kNow{1'700'000'000'000'000};
constexpr uint64_t kRows{3'000};

std::string Key(const std::string& text) { return text + std::string("\0\1", 2); }
std::string RowKey(uint64_t row) { return Key("row" + FormatUint64(100'000 + row)); }

// A table of two families, the second one in a group of its own with large and packed values.
class Tables {
 public:
  explicit Tables(uint64_t seed) : random_(seed) { Make(); }

  Engine engine;

  const Table& table() const { return *engine.FindTableById(table_id_); }

  void WriteSome(uint64_t rows) {
    MutationBuilder mutation;
    for (uint64_t i = 0; i < rows; ++i) WriteRow(random_.Below(kRows), &mutation);
    REQUIRE(engine.Apply(mutation.payload()).ok());
  }
  void DeleteSome() {
    const uint64_t first = random_.Below(kRows);
    MutationBuilder mutation;
    mutation.DeleteRows(table_id_, RowKey(first), RowKey(first + 1 + random_.Below(kRows / 10)));
    REQUIRE(engine.Apply(mutation.payload()).ok());
  }
  // Another one takes its place.
  void DropTable() {
    MutationBuilder mutation;
    mutation.DropTable(table_id_);
    REQUIRE(engine.Apply(mutation.payload()).ok());
    ++table_id_;
    Make();
  }

 private:
  void Make() {
    TableSchema schema;
    schema.groups = {{std::string(kDefaultGroup), table_id_ * 2}, {"other", table_id_ * 2 + 1}};
    for (uint32_t i = 0; i < 2; ++i) {
      FamilySchema family;
      family.id = schema.family_id_next++;
      family.name = "f" + FormatUint64(i);
      family.group = i;
      family.policy = *RetentionPolicy::Parse("maxversions=2");
      if (i == 1) family.compression = Compression::kZstd;
      schema.families.push_back(std::move(family));
    }
    std::string bytes;
    EncodeTableSchema(schema, &bytes);
    MutationBuilder mutation;
    mutation.CreateTable("0", "t", table_id_, bytes);
    for (uint64_t row = 0; row < kRows; ++row) WriteRow(row, &mutation);
    REQUIRE(engine.Apply(mutation.payload()).ok());
  }

  void WriteRow(uint64_t row, MutationBuilder* mutation) {
    mutation->Row(table_id_, RowKey(row));
    const auto put = [&](uint32_t family, const std::string& column, std::string_view value) {
      std::string bytes;
      PutCellValue(&bytes, {.type = ValueType::kString, .stored = value});
      mutation->Put(family, Key(column), kNow + static_cast<int64_t>(++writes_), bytes);
    };
    for (uint64_t i = 0; i < 4; ++i) put(1, "c" + FormatUint64(i), FormatUint64(random_.Next()));
    const std::string text(random_.OneIn(50) ? 5'000 : 200, static_cast<char>('a' + row % 26));
    const auto packed = packer_.Pack(Compression::kZstd, text);
    REQUIRE(packed.has_value());
    std::string bytes;
    PutCellValue(&bytes,
                 {.type = ValueType::kString, .packed = kCellCompressed, .stored = *packed});
    mutation->Put(2, Key("t"), kNow + static_cast<int64_t>(++writes_), bytes);
  }

  Random random_;
  ValuePacker packer_;
  uint64_t table_id_{1};
  uint64_t writes_{0};
};

// What a scan gives out, in few words.
struct Digest {
  uint64_t rows{0};
  uint64_t cells{0};
  size_t hash{0};

  void Add(Scan& scan, ScanStep step) {
    const std::hash<std::string_view> hash_of;
    if (step == ScanStep::kRow) {
      ++rows;
      hash = hash * 31 + hash_of(scan.row_text());
    } else if (step == ScanStep::kCell) {
      ++cells;
      hash = hash * 31 + hash_of(scan.cell().qualifier_text);
      hash = hash * 31 + hash_of(scan.cell().stored);
    }
  }
  friend bool operator==(const Digest&, const Digest&) = default;
};

Digest DigestOf(Scan& scan) {
  Digest digest;
  for (ScanStep step = scan.Next(); step != ScanStep::kEnd; step = scan.Next())
    digest.Add(scan, step);
  return digest;
}

class ScanWork : public WorkerPool::Work {
 public:
  explicit ScanWork(std::unique_ptr<Scan> scan) : scan_(std::move(scan)) {}
  const Digest& digest() const { return digest_; }

 private:
  WorkerPool::Progress Run(WorkerPool::Turn& turn) override {
    for (;;) {
      scan_->SetBudget(128);
      ScanStep step = scan_->Next();
      for (; step != ScanStep::kEnd && step != ScanStep::kPause; step = scan_->Next())
        digest_.Add(*scan_, step);
      if (step == ScanStep::kEnd) return WorkerPool::Progress::kDone;
      if (turn.MustPause()) return WorkerPool::Progress::kPaused;
    }
  }

  std::unique_ptr<Scan> scan_;
  Digest digest_;
};

class AggregateWork : public WorkerPool::Work {
 public:
  explicit AggregateWork(std::unique_ptr<AggregateJob> job) : job_(std::move(job)) {}
  AggregateJob& job() { return *job_; }

 private:
  WorkerPool::Progress Run(WorkerPool::Turn& turn) override {
    while (!job_->Pull(1'024)) {
      if (turn.MustPause()) return WorkerPool::Progress::kPaused;
    }
    return WorkerPool::Progress::kDone;
  }

  std::unique_ptr<AggregateJob> job_;
};

struct Request {
  RowOptions rows;
  CellOptions cells;
};

std::vector<Request> Requests() {
  std::vector<Request> requests(6);
  requests[1].rows.reverse = true;
  requests[2].cells.versions_max = kUnlimited;
  requests[3].cells.filter = "value ~ \".*7.*\"";
  requests[4].rows.where.push_back(
      {.kind = Predicate::Kind::kMatch, .family = "f1", .qualifier = "t", .literal = "*b"});
  requests[5].rows.rows.push_back({RowSelector::Kind::kRange, "[row100500", "(row102500"});
  return requests;
}

void AwaitDone(const WorkerPool::Work& work) {
  while (!work.done()) std::this_thread::yield();
}

TEST_CASE("scans in threads see what was there when they began", "[scan-threads]") {
  Tables tables(7);
  WorkerPool pool("cellar-test", WorkerPool::Pace::kGiving, Clock::System());
  const std::vector<Request> requests = Requests();
  for (int round = 0; round < 6; ++round) {
    std::vector<std::unique_ptr<ReadView>> views;
    std::vector<std::unique_ptr<ScanWork>> works;
    std::vector<Digest> expected;
    for (const Request& request : requests) {
      views.push_back(std::make_unique<ReadView>(tables.table(), kNow + 1'000'000'000));
      views.back()->Detach();
      // Two readers of one view, which both have a view of their own.
      for (int reader = 0; reader < 2; ++reader) {
        auto view = std::make_unique<ReadView>();
        view->Share(*views.back());
        auto scan = std::make_unique<TableScan>();
        REQUIRE(scan->Open(std::move(view), request.rows, request.cells, nullptr, 1).ok());
        works.push_back(std::make_unique<ScanWork>(std::move(scan)));
      }
      TableScan scan;
      auto view = std::make_unique<ReadView>(tables.table(), kNow + 1'000'000'000);
      REQUIRE(scan.Open(std::move(view), request.rows, request.cells, nullptr, 1).ok());
      expected.push_back(DigestOf(scan));
      REQUIRE(expected.back().cells > 0);
    }
    for (const auto& work : works) pool.Start(work.get(), 2);
    for (int i = 0; i < 40; ++i) {
      tables.WriteSome(50);
      if (i % 8 == 3) tables.DeleteSome();
      (void)tables.engine.CollectGarbage(500);
    }
    tables.DropTable();
    for (int i = 0; i < 20; ++i) (void)tables.engine.CollectGarbage(2'000);
    // One of each pair is given up.
    for (size_t i = 0; i < works.size(); i += 4) pool.Abandon(std::move(works[i]));
    for (size_t i = 0; i < works.size(); ++i) {
      if (works[i] == nullptr) continue;
      AwaitDone(*works[i]);
      CHECK(works[i]->digest() == expected[i / 2]);
    }
    pool.End();  // what was given up goes before the views
    works.clear();
    views.clear();
    while (!tables.engine.CollectGarbage(10'000)) {
    }
  }
}

TEST_CASE("aggregates in threads see what was there when they began", "[scan-threads]") {
  Tables tables(8);
  WorkerPool helpers("cellar-test", WorkerPool::Pace::kSteady, Clock::System());
  WorkerPool pool("cellar-test", WorkerPool::Pace::kGiving, Clock::System());
  AggregateRequest request;
  GroupTerm& term = request.terms.emplace_back();
  term.kind = GroupTerm::Kind::kBytes;
  term.count = 6;
  for (const auto function : {Reduce::Function::kCount, Reduce::Function::kDistinct})
    request.reduces.emplace_back().function = function;
  const std::vector<ColumnSelector> columns{
      {.kind = ColumnSelector::Kind::kFamily, .family = "f0", .first = {}, .second = {}}};
  CellOptions cells;
  cells.columns = columns;
  for (int round = 0; round < 6; ++round) {
    const auto make = [&](uint32_t threads) {
      auto scan = std::make_unique<TableScan>();
      auto view = std::make_unique<ReadView>(tables.table(), kNow + 1'000'000'000);
      REQUIRE(scan->Open(std::move(view), {}, cells, nullptr, 1).ok());
      const AggregateLimits limits{
          .helpers = &helpers, .threads = threads, .entries_for_threads = 100};
      Result<std::unique_ptr<AggregateJob>> job =
          AggregateJob::Create(std::move(scan), request, columns, false, limits);
      REQUIRE(job.ok());
      return *std::move(job);
    };
    const std::unique_ptr<AggregateJob> whole = make(0);
    REQUIRE(whole->Pull(kUnlimited));
    std::vector<std::unique_ptr<AggregateWork>> works;
    for (int i = 0; i < 3; ++i) {
      std::unique_ptr<AggregateJob> job = make(2);
      REQUIRE(!job->Pull(100));
      REQUIRE(job->WantsSplitKeys());
      job->Detach(SplitRowKeys(tables.table(), 16));
      works.push_back(std::make_unique<AggregateWork>(std::move(job)));
      pool.Start(works.back().get(), 2);
    }
    for (int i = 0; i < 20; ++i) tables.WriteSome(50);
    tables.DropTable();
    pool.Abandon(std::move(works[1]));
    for (const size_t i : {size_t{0}, size_t{2}}) {
      AwaitDone(*works[i]);
      AggregateJob& job = works[i]->job();
      REQUIRE(job.status().ok());
      REQUIRE(job.groups() == whole->groups());
      for (size_t group = 0; group < job.groups(); ++group) {
        for (size_t reduce = 0; reduce < 2; ++reduce) {
          const PlannedReduce& planned = job.plan().reduces[reduce];
          const AggregatePlan& plan = whole->plan();
          CHECK(ReduceValue(job.plan(), planned, job.group(group)).integer ==
                ReduceValue(plan, plan.reduces[reduce], whole->group(group)).integer);
        }
      }
      CHECK(job.stats().cells == whole->stats().cells);
    }
    pool.End();
    works.clear();
    while (!tables.engine.CollectGarbage(10'000)) {
    }
  }
}

}  // namespace cellar::scan_threads_test
