// See cut_list.h.
#include "store/offline/cut_list.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/number.h"
#include "engine/scans/index_scan.h"
#include "engine/scans/table_scan.h"
#include "engine/state/cut_mark.h"
#include "engine/state/engine.h"
#include "engine/table/mutation.h"
#include "store/format/store_files.h"
#include "store/log/log_replay.h"
#include "store/log/log_walk.h"
#include "store/snapshot/snapshot_reader.h"

namespace cellar {
namespace {

constexpr std::string_view kCutsTable{"cuts"};

// Lets nothing through, and notes the cuts up to a commit time.
class MarkSearch final : public RecordGate {
 public:
  MarkSearch(int64_t until_micros, std::map<uint64_t, int64_t>* marks)
      : until_micros_(until_micros), marks_(marks) {}

  Admission Admit(const RecordHead& head, std::string_view payload) override {
    if (head.commit_micros > until_micros_) return {.is_last = true};
    if (head.kind != RecordKind::kCommand) return {};
    MutationReader reader(payload);
    int64_t stamp = 0;
    if (!reader.ReadStamp(&stamp)) return {};
    DecodedOp op;
    while (reader.Next(&op)) {
      CutMark mark;
      if (op.op == MutationOp::kCut && DecodeCutMark(&op.first, &mark))
        (*marks_)[op.id] = mark.time_micros;
    }
    return {};
  }

 private:
  const int64_t until_micros_;
  std::map<uint64_t, int64_t>* const marks_;
};

// From the newest base backwards, each part of the log once. Behind a gap nothing can be recovered;
// so it ends the search, unless it is behind the newest base.
Status FindMarks(FileSystem& files, const StoreFiles& found, std::map<uint64_t, int64_t>* marks) {
  std::vector<const FoundSnapshot*> bases;
  for (const FoundSnapshot& snapshot : found.snapshots) bases.push_back(&snapshot);
  std::reverse(bases.begin(), bases.end());
  bases.push_back(nullptr);  // the first record, if that is there
  int64_t until_micros = INT64_MAX;
  for (const FoundSnapshot* const base : bases) {
    MarkSearch search(until_micros, marks);
    Engine none;
    LogReplay replay(none, ApplyUpTo::kEnd);
    replay.SetGate(&search);
    LogWalk walk(files, found, base, nullptr);
    if (const Status walked = walk.Run(&replay); !walked.ok())
      return base == bases.front() ? walked : Status::Ok();
    if (base != nullptr) until_micros = base->commit_micros;
  }
  return Status::Ok();
}

// The state at the end of all that is there.
Status LoadNewest(FileSystem& files, const StoreFiles& found, Engine* engine) {
  const FoundSnapshot* const base = found.snapshots.empty() ? nullptr : &found.snapshots.back();
  LogReplay replay(*engine, ApplyUpTo::kEnd);
  if (base != nullptr) {
    ASSIGN_OR_RETURN(auto reader, SnapshotReader::Open(files, base->path));
    if (base->entry) RETURN_IF_ERROR(reader->CheckAgainst(*base->entry));
    RETURN_IF_ERROR(LoadSnapshot(reader.get(), *engine, [](uint64_t) { return Status::Ok(); }));
    replay.BeginBehind(base->lsn, reader->footer().members);
  }
  LogWalk walk(files, found, base, nullptr);
  return walk.Run(&replay);
}

Result<std::set<uint64_t>> GoodCuts(const Engine& engine) {
  std::set<uint64_t> good;
  const Table* const table = engine.FindTable(kClusterKeyspace, kCutsTable);
  if (table == nullptr) return good;
  ASSIGN_OR_RETURN(const std::unique_ptr<Scan> scan,
                   OpenScan(std::make_unique<ReadView>(*table, 0), RowOptions(), CellOptions(),
                            nullptr, 0, nullptr));
  for (ScanStep step = scan->Next(); step != ScanStep::kEnd; step = scan->Next()) {
    uint64_t number = 0;
    const bool says_good = step == ScanStep::kCell && scan->cell().qualifier_text == "state" &&
                           scan->cell().stored == "good";
    if (says_good && ParseUint64(scan->row_text(), &number) == NumberError::kNone)
      good.insert(number);
  }
  return good;
}

}  // namespace

Result<CutList> ListCuts(FileSystem& files, const std::string& directory) {
  std::vector<std::unique_ptr<FileLock>> locks;
  ASSIGN_OR_RETURN(const StoreFiles found, StoreFiles::Find(files, {directory}, &locks));
  Engine engine;
  RETURN_IF_ERROR(LoadNewest(files, found, &engine));
  const ClusterState& cluster = engine.cluster();
  if (!cluster.active())
    return Status::Error(ErrorCode::kErr, directory + " is of no set of a cluster");
  CutList list;
  RETURN_IF_ERROR(FindMarks(files, found, &list.marks));
  if (cluster.set == 0) {
    ASSIGN_OR_RETURN(list.good, GoodCuts(engine));
  }
  return list;
}

}  // namespace cellar
