// See point_recovery.h.
#include "store/offline/point_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>

#include "base/assert.h"
#include "base/text/quote.h"
#include "engine/feeds/feed.h"
#include "engine/state/engine.h"
#include "engine/table/mutation.h"
#include "store/format/store_files.h"
#include "store/log/log_replay.h"
#include "store/log/log_walk.h"
#include "store/offline/later_steps.h"
#include "store/snapshot/snapshot_reader.h"
#include "store/snapshot/snapshot_writer.h"

namespace cellar {
namespace {

// The bytes of a payload up to and with its first `steps` steps, of which it has more. Whole ops
// that are in a prefix of it grow with the prefix, so that where the next step begins is searched
// for by halves.
size_t BytesOfSteps(std::string_view payload, uint64_t steps) {
  const auto begun_in = [payload](size_t bytes) { return StepsOf(payload.substr(0, bytes)).count; };
  size_t low = 0;
  size_t high = payload.size();
  while (low + 1 < high) {
    const size_t middle = low + (high - low) / 2;
    (begun_in(middle) > steps ? high : low) = middle;
  }
  return low;  // kStep is one byte, the next one
}

// Notes what it lets through.
class PointGate : public RecordGate {
 public:
  uint64_t steps() const { return steps_; }
  int64_t last_micros() const { return last_micros_; }
  // There is more behind the point.
  bool is_reached() const { return is_reached_; }
  // It is not known of the last step if it was committed before the point.
  virtual bool is_undated() const { return false; }

 protected:
  void Note(const RecordHead& head, uint64_t steps, int64_t commit) {
    if (head.kind != RecordKind::kCommand) return;
    steps_ += steps;
    last_micros_ = commit;
  }
  bool is_reached_{false};

 private:
  uint64_t steps_{0};
  int64_t last_micros_{0};
};

// Lets all steps up to a commit time through.
class UntilTime final : public PointGate {
 public:
  UntilTime(int64_t micros, RecoverPoint::Kind kind) : micros_(micros), kind_(kind) {}

  Admission Admit(const RecordHead& head, std::string_view payload) override {
    const Steps steps = StepsOf(payload);
    const uint64_t count = std::max<uint64_t>(steps.count, 1);
    const int64_t commit = head.commit_micros;
    if (commit == 0) {  // of an older format
      ++undated_;
    } else if (FirstMicros(commit, payload, steps) > micros_) {
      // Of several steps each has its own microsecond.
      const int64_t first = commit - static_cast<int64_t>(count) + 1;
      if (first > micros_ || count == 1) {
        is_reached_ = true;
        return {.payload_bytes = 0, .commit_micros = 0, .is_last = true};
      }
      const auto admitted = static_cast<uint64_t>(micros_ - first + 1);
      CELLAR_ASSERT(admitted < count);
      is_reached_ = true;
      Note(head, admitted, micros_);
      return {BytesOfSteps(payload, admitted), micros_, true};
    }
    if (commit != 0) is_dated_ = true;
    Note(head, head.kind == RecordKind::kCommand ? count : 0, commit);
    return {payload.size(), commit, false};
  }

  bool is_undated() const override { return undated_ > 0 && !is_dated_; }

 private:
  // Of a large step an id may be of an earlier microsecond than that of its commit.
  int64_t FirstMicros(int64_t commit, std::string_view payload, const Steps& steps) const {
    if (kind_ != RecoverPoint::Kind::kId || payload.size() < kFeedLargeStepBytes) return commit;
    return steps.count > 1 ? commit : commit - FeedMicrosOfStep(steps.changes) + 1;
  }

  const int64_t micros_;
  const RecoverPoint::Kind kind_;
  uint64_t undated_{0};
  bool is_dated_{false};
};

// Lets all steps up to and with a change of the cluster's schema through.
class UntilCut final : public PointGate {
 public:
  explicit UntilCut(uint64_t cut) : cut_(cut) {}
  // There is nothing before it but what the base holds.
  void StopAtOnce() { is_reached_ = true; }
  // Of what was let through.
  bool has_passed() const { return is_reached_ && !was_left_out_; }

  Admission Admit(const RecordHead& head, std::string_view payload) override {
    if (is_reached_) return {.is_last = true};
    const uint64_t count = std::max<uint64_t>(StepsOf(payload).count, 1);
    const uint64_t in = head.kind == RecordKind::kCommand ? StepOfCut(payload) : 0;
    if (was_left_out_) return {.is_last = true};
    const uint64_t admitted = in == 0 ? count : in;
    const int64_t commit =
        head.commit_micros - static_cast<int64_t>(count) + static_cast<int64_t>(admitted);
    is_reached_ = in != 0;
    Note(head, head.kind == RecordKind::kCommand ? admitted : 0, commit);
    const size_t bytes = admitted == count ? payload.size() : BytesOfSteps(payload, admitted);
    return {bytes, commit, is_reached_};
  }

 private:
  // The step with the change, from 1 on; 0: none.
  uint64_t StepOfCut(std::string_view payload) {
    MutationReader reader(payload);
    int64_t stamp = 0;
    if (!reader.ReadStamp(&stamp)) return 0;
    uint64_t steps = 0;
    DecodedOp op;
    while (reader.Next(&op)) {
      if (op.op == MutationOp::kStep) ++steps;
      if (op.op != MutationOp::kCatalog || op.number < cut_) continue;
      was_left_out_ = op.number > cut_;
      return std::max<uint64_t>(steps, 1);
    }
    return 0;
  }

  const uint64_t cut_;
  bool was_left_out_{false};  // a later one came without it
};

// Lets nothing through, and looks for the last step that made a snapshot of a name.
class SnapshotSearch final : public RecordGate {
 public:
  SnapshotSearch(const RecoverPoint& point, int64_t until) : point_(point), until_(until) {}

  Admission Admit(const RecordHead& head, std::string_view payload) override {
    if (head.commit_micros > until_) return {.is_last = true};
    if (head.kind != RecordKind::kCommand) return {};
    MutationReader reader(payload);
    int64_t stamp = 0;
    if (!reader.ReadStamp(&stamp)) return {};
    int64_t steps = 0;
    int64_t found_in = 0;
    DecodedOp op;
    while (reader.Next(&op)) {
      if (op.op == MutationOp::kStep) ++steps;
      if (op.op == MutationOp::kCreateSnapshot && op.first == point_.keyspace &&
          op.second == point_.name)
        found_in = std::max<int64_t>(steps, 1);
    }
    if (found_in != 0) found_ = head.commit_micros - (std::max<int64_t>(steps, 1) - found_in);
    return {};
  }

  std::optional<int64_t> found() const { return found_; }

 private:
  const RecoverPoint& point_;
  const int64_t until_;
  std::optional<int64_t> found_;
};

class PointRecovery {
 public:
  PointRecovery(FileSystem& files, Clock& clock, const RecoverRequest& request, std::ostream& out)
      : files_(files), clock_(clock), request_(request), out_(out) {}

  Status Run();

 private:
  Status CheckNew();
  Status FindPoint();
  Status FindCreation();
  Result<std::optional<int64_t>> CreationInCatalog(const FoundSnapshot& snapshot);
  Status ChooseBase();
  Status ChooseBaseOfCut();
  Status CheckCut(const UntilCut& gate, size_t pending) const;
  Status MarkRecovered();
  Status LoadBase();
  Status ReplayLog();
  void TellLater();
  Status WriteNew();
  Status FillNew();
  void EmptyNew();
  bool HasFirstRecord() const;

  FileSystem& files_;
  Clock& clock_;
  const RecoverRequest& request_;
  std::ostream& out_;
  std::vector<std::unique_ptr<FileLock>> locks_;
  StoreFiles found_;
  bool new_exists_{false};
  bool new_is_marked_{false};  // kNewStoreName
  int64_t until_{0};
  const FoundSnapshot* base_{nullptr};
  bool base_is_cut_{false};  // it is a backup of that moment
  Engine engine_;
  std::string members_;
  Lsn last_;
  int64_t last_micros_{0};
  uint64_t steps_{0};
};

// What is in the way of NEW is told before anything is read.
Status PointRecovery::CheckNew() {
  const std::string& to = request_.to;
  ASSIGN_OR_RETURN(new_exists_, files_.Exists(to));
  if (!new_exists_) {
    return Status::Ok();
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(to));
  for (const std::string& name : names) {
    new_is_marked_ = new_is_marked_ || name == kNewStoreName;
    if (name == kNewStoreName) continue;
    return Status::Error(ErrorCode::kIo, fmt::format("{} is not empty: {} is there. A store is "
                                                     "recovered into a folder of its own",
                                                     to, name));
  }
  return Status::Ok();
}

bool PointRecovery::HasFirstRecord() const {
  return std::any_of(found_.segments.begin(), found_.segments.end(), [](const auto& segment) {
    return segment.second.front().header.after == Lsn{};
  });
}

// The creation of a snapshot that is known by its name: what the log says last, looked for from the
// newest base backwards.
Status PointRecovery::FindCreation() {
  int64_t until = INT64_MAX;
  const auto look_behind = [&](const FoundSnapshot* base) -> Result<bool> {
    SnapshotSearch search(request_.until, until);
    Engine none;
    LogReplay replay(none, ApplyUpTo::kEnd);
    replay.SetGate(&search);
    LogWalk walk(files_, found_, base, nullptr);
    RETURN_IF_ERROR(walk.Run(&replay));
    if (search.found()) until_ = *search.found();
    return search.found().has_value();
  };
  for (auto base = found_.snapshots.rbegin(); base != found_.snapshots.rend(); ++base) {
    ASSIGN_OR_RETURN(const bool is_behind, look_behind(&*base));
    if (is_behind) return Status::Ok();
    ASSIGN_OR_RETURN(const std::optional<int64_t> created, CreationInCatalog(*base));
    if (created) {
      until_ = *created;
      return Status::Ok();
    }
    until = base->commit_micros;
  }
  if (HasFirstRecord()) {
    ASSIGN_OR_RETURN(const bool is_there, look_behind(nullptr));
    if (is_there) return Status::Ok();
  }
  return Status::Error(ErrorCode::kNoSnapshot,
                       fmt::format("no snapshot {} in keyspace {} has been made since the oldest "
                                   "of these files",
                                   Quote(request_.until.name), Quote(request_.until.keyspace)));
}

Result<std::optional<int64_t>> PointRecovery::CreationInCatalog(const FoundSnapshot& snapshot) {
  ASSIGN_OR_RETURN(auto reader, SnapshotReader::Open(files_, snapshot.path));
  Engine catalog;
  RETURN_IF_ERROR(catalog.BeginLoad(reader->footer().catalog));
  const NamedSnapshot* named =
      catalog.snapshots().FindAny(request_.until.keyspace, request_.until.name);
  if (named == nullptr) return std::optional<int64_t>{};
  return std::optional(named->created_micros);
}

Status PointRecovery::FindPoint() {
  if (request_.until.kind == RecoverPoint::Kind::kSnapshot) return FindCreation();
  until_ = request_.until.kind == RecoverPoint::Kind::kCut ? INT64_MAX : request_.until.micros;
  return Status::Ok();
}

// One that holds the cut's change may hold more, unless it was made of that moment.
Status PointRecovery::ChooseBaseOfCut() {
  const uint64_t cut = request_.until.cut;
  uint64_t oldest = 0;
  for (auto snapshot = found_.snapshots.rbegin(); snapshot != found_.snapshots.rend(); ++snapshot) {
    ASSIGN_OR_RETURN(auto reader, SnapshotReader::Open(files_, snapshot->path));
    Engine catalog;
    RETURN_IF_ERROR(catalog.BeginLoad(reader->footer().catalog));
    const ClusterState& cluster = catalog.cluster();
    base_is_cut_ = cluster.active() && cluster.recovered_cut == cut;
    if (base_is_cut_ || !cluster.active() || cluster.catalog < cut) {
      base_ = &*snapshot;
      return Status::Ok();
    }
    oldest = cluster.catalog;
  }
  if (HasFirstRecord()) return Status::Ok();
  if (found_.snapshots.empty()) return Status::Ok();  // ChooseBase tells of it
  return Status::Error(
      ErrorCode::kErr,
      fmt::format("{} is before the oldest base: {} has change {} of the schema already",
                  request_.until.text, found_.snapshots.front().path, oldest));
}

Status PointRecovery::CheckCut(const UntilCut& gate, size_t pending) const {
  if (base_is_cut_ || gate.has_passed()) return Status::Ok();
  const ClusterState& cluster = engine_.cluster();
  if (!cluster.active())
    return Status::Error(ErrorCode::kErr, request_.until.text +
                                              " is not in these files: they are of no set of a "
                                              "cluster");
  std::string text = fmt::format("{} is not in these files: they lead to change {} of the schema",
                                 request_.until.text, cluster.catalog);
  if (gate.is_reached()) text += ", and go on behind it";
  if (pending > 0)
    text += fmt::format("; of {} records it is not known that the set has committed them", pending);
  return Status::Error(ErrorCode::kErr, text);
}

// The set serves nothing until the cluster has looked at it: as it was, or all of them at the cut.
Status PointRecovery::MarkRecovered() {
  const ClusterState& cluster = engine_.cluster();
  if (!cluster.active()) return Status::Ok();
  const bool is_cut = request_.until.kind == RecoverPoint::Kind::kCut;
  if (!is_cut && cluster.recovered_cut == 0 && cluster.opened_as != 0) return Status::Ok();
  MutationBuilder mark;
  const uint64_t was = cluster.opened_as == 0 ? kOpenedByNobody : cluster.opened_as;
  mark.Move(MutationOp::kOpenAs, is_cut ? request_.until.cut : 0, EncodeOpenAs(was));
  return engine_.Apply(mark.payload());
}

// The newest snapshot that is not behind the point: the least log is read from there.
Status PointRecovery::ChooseBase() {
  if (request_.until.kind == RecoverPoint::Kind::kCut) {
    RETURN_IF_ERROR(ChooseBaseOfCut());
    if (base_ != nullptr) return Status::Ok();
  }
  for (const FoundSnapshot& snapshot : found_.snapshots) {
    const bool is_sure = request_.until.kind != RecoverPoint::Kind::kCut;
    if (is_sure && snapshot.commit_micros <= until_) base_ = &snapshot;
  }
  if (base_ != nullptr || HasFirstRecord()) return Status::Ok();
  if (found_.snapshots.empty()) {
    return Status::Error(ErrorCode::kCorruption,
                         "there is neither a snapshot that can be read nor the first record of the "
                         "log to begin with");
  }
  const FoundSnapshot& oldest = found_.snapshots.front();
  return Status::Error(ErrorCode::kErr,
                       fmt::format("{} is before the oldest base: {} is of {}", request_.until.text,
                                   oldest.path, FormatTime(oldest.commit_micros)));
}

Status PointRecovery::LoadBase() {
  if (base_ == nullptr) {
    out_ << "from the first record of the log\n";
    return Status::Ok();
  }
  ASSIGN_OR_RETURN(auto reader, SnapshotReader::Open(files_, base_->path));
  if (base_->entry) RETURN_IF_ERROR(reader->CheckAgainst(*base_->entry));
  RETURN_IF_ERROR(LoadSnapshot(reader.get(), engine_, [](uint64_t) { return Status::Ok(); }));
  members_ = reader->footer().members;
  last_ = base_->lsn;
  last_micros_ = base_->commit_micros;
  out_ << fmt::format("{}: up to record {}, {}\n", base_->path, FormatLsn(base_->lsn),
                      FormatTime(base_->commit_micros));
  return Status::Ok();
}

// Reads the log behind the base up to the moment that is asked for, and says what an operator
// should know of where that is.
Status PointRecovery::ReplayLog() {
  UntilTime until_time(until_, request_.until.kind);
  UntilCut until_cut(request_.until.cut);
  if (base_is_cut_) until_cut.StopAtOnce();
  const bool is_cut = request_.until.kind == RecoverPoint::Kind::kCut;
  PointGate& gate = is_cut ? static_cast<PointGate&>(until_cut) : until_time;
  LogReplay replay(engine_, ApplyUpTo::kEnd);
  replay.SetGate(&gate);
  if (base_ != nullptr) replay.BeginBehind(base_->lsn, members_);
  LogWalk walk(files_, found_, base_, &out_);
  RETURN_IF_ERROR(walk.Run(&replay));
  if (gate.is_undated() && gate.is_reached())
    return Status::Error(ErrorCode::kErr, request_.until.text +
                                              " lies among records of an older version of the "
                                              "log, which do not say when they were committed");
  if (is_cut) RETURN_IF_ERROR(CheckCut(until_cut, replay.pending().size()));
  members_ = replay.members();
  steps_ = gate.steps();
  if (steps_ > 0) {
    last_ = replay.applied();
    last_micros_ = gate.last_micros();
  }
  if (last_ == Lsn{}) {
    return Status::Error(ErrorCode::kErr,
                         request_.until.text + " is before the first step of the log");
  }
  if (!replay.pending().empty())
    out_ << fmt::format(
        "{} records are left out: it is not known that the replica set has "
        "committed them\n",
        replay.pending().size());
  if (!is_cut && !gate.is_reached() && last_micros_ < until_)
    out_ << request_.until.text << " is behind the last step that is there\n";
  if (gate.is_reached()) TellLater();
  if (!members_.empty())
    out_ << "this was a member of a replica set; what comes of it is a store of its own\n";
  return Status::Ok();
}

// Of a set's member there may be records that others have voided, which are no steps.
void PointRecovery::TellLater() {
  if (!members_.empty()) return;
  const LaterSteps later = CountLaterSteps(files_, found_, last_, last_micros_);
  if (later.count > 0) {
    out_ << fmt::format("{}{} later step{} left out, up to {} {}\n",
                        later.is_all ? "" : "at least ", later.count,
                        later.count == 1 ? " is" : "s are", FeedId::Of(later.last_micros, 0).text(),
                        FormatTime(later.last_micros));
  } else if (!later.is_all) {
    out_ << "later steps are left out\n";
  }
  if (later.clock_went_back || later.last_micros > clock_.WallMicros())
    out_ << "the clock was set back meanwhile: steps that it gave a time before "
         << request_.until.text << " may be among them; an id says which step is meant\n";
}

Status PointRecovery::FillNew() {
  const SnapshotTask task{.directory = request_.to,
                          .number = 1,
                          .lsn = last_,
                          .created_micros = static_cast<uint64_t>(clock_.WallMicros()),
                          .commit_micros = last_micros_};
  SnapshotProgress progress;
  ASSIGN_OR_RETURN(const SnapshotEntry entry,
                   WriteSnapshot(files_, task, engine_.TakeSnapshot(), &progress));
  const Manifest manifest{.next = 2, .snapshot = entry, .earlier = {}, .segments = {}};
  return InstallManifest(files_, request_.to, manifest).status;
}

void PointRecovery::EmptyNew() {
  const Result<std::vector<std::string>> names = files_.List(request_.to);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (name != kNewStoreName) (void)files_.Remove(JoinPath(request_.to, name));
  }
}

Status PointRecovery::WriteNew() {
  if (!new_exists_) {
    RETURN_IF_ERROR(files_.CreateDirectory(request_.to));
    RETURN_IF_ERROR(files_.SyncDirectory(JoinPath(request_.to, "..")));
  }
  Status status = FillNew();
  if (!status.ok()) {
    // So that the same command can be given again (CheckNew).
    EmptyNew();
    return status;
  }
  if (new_is_marked_) (void)files_.Remove(JoinPath(request_.to, kNewStoreName));
  return Status::Ok();
}

Status PointRecovery::Run() {
  RETURN_IF_ERROR(CheckNew());
  ASSIGN_OR_RETURN(found_, StoreFiles::Find(files_, request_.from, &locks_));
  RETURN_IF_ERROR(FindPoint());
  RETURN_IF_ERROR(ChooseBase());
  RETURN_IF_ERROR(LoadBase());
  RETURN_IF_ERROR(ReplayLog());
  RETURN_IF_ERROR(MarkRecovered());
  RETURN_IF_ERROR(WriteNew());
  if (const ClusterState& cluster = engine_.cluster(); cluster.active()) {
    out_ << fmt::format("set {} of cluster {:016x}, with change {} of the schema\n", cluster.set,
                        cluster.cluster_id, cluster.catalog);
  }
  out_ << fmt::format(
      "recovered to {} {}, {} step{} after {}\n", FeedId::Of(last_micros_, 0).text(),
      FormatTime(last_micros_), steps_, steps_ == 1 ? "" : "s",
      base_ == nullptr ? std::string("the beginning of the log") : "snapshot " + base_->path);
  return Status::Ok();
}

}  // namespace

Status RecoverToPoint(FileSystem& files, Clock& clock, const RecoverRequest& request,
                      std::ostream& out) {
  return PointRecovery(files, clock, request, out).Run();
}

}  // namespace cellar
