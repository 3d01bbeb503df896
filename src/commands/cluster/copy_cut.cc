// See copy_cut.h.
#include "commands/cluster/copy_cut.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "commands/cluster/catalog_wait.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/cut_run.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/table_events.h"
#include "commands/session/task.h"
#include "engine/state/snapshot_set.h"
#include "store/frozen_tables.h"
#include "store/sliced_change.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

constexpr uint64_t kSliceCells{128};

class CopyTask final : public Task {
 public:
  CopyTask(Host& host, const Table& source, ClusterCopy copy)
      : host_(host),
        lineage_(host.store().lineage()),
        source_keyspace_(source.keyspace()),
        source_(source.name()),
        source_id_(source.id()),
        is_frozen_(source.frozen()),
        copy_(std::move(copy)),
        run_(host, {.purpose = CutPurpose::kCopy,
                    .argument = source_keyspace_ + "/" + source_,
                    .make = [this] { return Freeze(); },
                    .undo = [this] { LetGo(); }}) {}
  ~CopyTask() override {
    change_.reset();
    LetGo();
  }

  TaskProgress Step(TaskContext& context) override {
    if (context.budget.unlimited()) return End(context, CrossSet());
    context.depends_on = host_.last_lsn();
    if (!std::exchange(begun_, true)) {
      const Status open = CheckKeyspaceOpen(host_.store().engine(), copy_.keyspace);
      if (!open.ok()) return End(context, open);
    }
    if (wait_) return Await(context);
    if (!change_) {
      if (!is_frozen_) {
        const CutRun::State state = run_.Step();
        if (state == CutRun::State::kRuns) return TaskProgress::kWaiting;
        if (state == CutRun::State::kFailed) return End(context, run_.status());
      }
      if (const Status begun = Begin(); !begun.ok()) return End(context, begun);
    }
    while (!change_->done()) {
      if (!ClusterPart::Directs(host_)) return End(context, NotHere());
      if (const Status done = change_->Step(kSliceCells); !done.ok()) return End(context, done);
      if (!change_->done() && context.budget.Spent()) return TaskProgress::kMore;
    }
    made_ = change_->rows();
    change_.reset();
    LetGo();
    if (made_ == 0) {
      context.reply.Unsigned(0);
      return TaskProgress::kDone;
    }
    NotifyTable(host_, kNotifyGeneric, "copy_to", copy_.keyspace, copy_.name);
    ClusterPart::Tend(host_);
    wait_.emplace(host_);
    return Await(context);
  }
  size_t memory_bytes() const override { return change_ == nullptr ? 0 : change_->memory_bytes(); }

 private:
  static Status CrossSet() {
    return Status::Error(ErrorCode::kCrossSet, "COPY goes over all sets, not into an EXEC");
  }
  static Status NotHere() {
    return Status::Error(ErrorCode::kTryAgain, "this node does not lead set 0 any more");
  }
  static TaskProgress End(TaskContext& context, const Status& status) {
    context.Fail(status);
    return TaskProgress::kDone;
  }
  Status Freeze() {
    Store& store = host_.store();
    const Table* const table = store.lineage() == lineage_ ? store.TableById(source_id_) : nullptr;
    if (table == nullptr)
      return Status::Error(ErrorCode::kNoTable, "the table was dropped before it was copied");
    ASSIGN_OR_RETURN(const uint64_t id, FrozenTables(store).Freeze(table->keyspace(), {table}, 0));
    FrozenTables(store).Hold(id);
    frozen_ = id;
    return Status::Ok();
  }
  Status Begin() {
    if (!ClusterPart::Directs(host_)) return NotHere();
    Store& store = host_.store();
    Engine& engine = store.engine();
    Table* source = nullptr;
    if (is_frozen_) {
      source = store.lineage() == lineage_ ? engine.FindFrozenById(source_id_) : nullptr;
    } else if (const NamedSnapshot* const made = engine.snapshots().FindById(*frozen_)) {
      source = made->tables.begin()->second.get();
    }
    if (source == nullptr) {
      return Status::Error(ErrorCode::kNoSnapshot, "the snapshot was dropped while it was copied");
    }
    RETURN_IF_ERROR(ClusterPart::CheckAllThere(host_, *source));
    change_ =
        FrozenTables(store).Copy(*source, frozen_.value_or(0), copy_.keyspace, copy_.name,
                                 copy_.replace ? Store::Overwrite::kYes : Store::Overwrite::kNo);
    return Status::Ok();
  }
  TaskProgress Await(TaskContext& context) {
    context.depends_on = wait_->record();
    const OtherSetsWait::State state = wait_->Look();
    if (state == OtherSetsWait::State::kWaits) return TaskProgress::kWaiting;
    ClusterPart::Tend(host_);
    if (state == OtherSetsWait::State::kAllHave)
      context.reply.Unsigned(made_);
    else
      context.Fail(wait_->LacksText());
    return TaskProgress::kDone;
  }
  // The sweeper drops what has no name, if the copy has not.
  void LetGo() {
    if (frozen_ && !host_.loading()) FrozenTables(host_.store()).LetGo(*frozen_);
    frozen_.reset();
  }

  Host& host_;
  const uint64_t lineage_;
  const std::string source_keyspace_;
  const std::string source_;
  const uint64_t source_id_;
  const bool is_frozen_;
  const ClusterCopy copy_;
  bool begun_{false};
  std::optional<uint64_t> frozen_{};
  CutRun run_;
  std::unique_ptr<SlicedChange> change_;
  uint64_t made_{0};
  std::optional<OtherSetsWait> wait_{};
};

}  // namespace

void CopyClusterTable(CommandContext& ctx, const Table& source, ClusterCopy copy) {
  ctx.Continue(std::make_unique<CopyTask>(ctx.host, source, std::move(copy)));
}

}  // namespace cellar
