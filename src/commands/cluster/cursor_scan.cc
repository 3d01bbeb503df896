// See cursor_scan.h.
#include "commands/cluster/cursor_scan.h"

#include <utility>

#include "base/text/number.h"
#include "cluster/call_frames.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/scan_cursor.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/catalog_wait.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/cut_run.h"
#include "commands/cluster/reply_reader.h"
#include "commands/replies/visible_table.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "engine/state/snapshot_set.h"
#include "store/frozen_tables.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr uint64_t kHeadSet{0};
constexpr int64_t kKnownMicros{5'000'000};

Status StaleCursor() {
  return Status::Error(ErrorCode::kStaleCursor,
                       "the snapshot of this cursor is gone: it ended, or was unused for "
                       "snapshot-cursor-timeout");
}

// The snapshot of a cursor that has this table; null.
const NamedSnapshot* CursorSnapshot(const Engine& engine, uint64_t frozen_id) {
  const Table* const table = engine.FindFrozenById(frozen_id);
  return table == nullptr || !IsCursorName(table->snapshot())
             ? nullptr
             : engine.snapshots().Find(table->keyspace(), table->snapshot());
}

// At the director: freezes the table at a cut, and answers with the id of the frozen one.
class OpenTask final : public Task {
 public:
  OpenTask(Host& host, const Table& table)
      : host_(host),
        lineage_(host.store().lineage()),
        table_id_(table.id()),
        run_(host, {.purpose = CutPurpose::kCursor,
                    .argument = table.keyspace() + "/" + table.name(),
                    .make = [this] { return Freeze(); },
                    .undo = [this] { LetGo(); }}) {}
  ~OpenTask() override { LetGo(); }

  TaskProgress Step(TaskContext& context) override {
    if (context.budget.unlimited()) {
      context.Fail("CROSSSET CSCAN ... SNAPSHOT goes over all sets, not into an EXEC");
      return TaskProgress::kDone;
    }
    if (const Status may = FrozenTables(host_.store()).CheckCursors(); !wait_ && !may.ok()) {
      context.Fail(may);
      return TaskProgress::kDone;
    }
    if (!wait_) {
      const CutRun::State state = run_.Step();
      if (state == CutRun::State::kRuns) return TaskProgress::kWaiting;
      const Status named = state == CutRun::State::kGood ? Name() : run_.status();
      if (!named.ok()) {
        context.Fail(named);
        return TaskProgress::kDone;
      }
    }
    context.depends_on = wait_->record();
    const OtherSetsWait::State state = wait_->Look();
    if (state == OtherSetsWait::State::kWaits) return TaskProgress::kWaiting;
    ClusterPart::Tend(host_);
    if (state == OtherSetsWait::State::kAllHave)
      context.reply.Unsigned(frozen_table_);
    else
      context.Fail(wait_->LacksText());
    return TaskProgress::kDone;
  }

 private:
  Status Freeze() {
    Store& store = host_.store();
    const Table* const table = store.lineage() == lineage_ ? store.TableById(table_id_) : nullptr;
    if (table == nullptr)
      return Status::Error(ErrorCode::kNoTable, "the table was dropped before it was read");
    RETURN_IF_ERROR(ClusterPart::CheckAllThere(host_, *table));
    ASSIGN_OR_RETURN(const uint64_t id, FrozenTables(store).Freeze(table->keyspace(), {table}, 0));
    FrozenTables(store).Hold(id);
    frozen_ = id;
    return Status::Ok();
  }
  Status Name() {
    Store& store = host_.store();
    const NamedSnapshot* const made = store.engine().snapshots().FindById(*frozen_);
    if (made == nullptr || !ClusterPart::Directs(host_))
      return Status::Error(ErrorCode::kTryAgain, "this node does not lead set 0 any more");
    RETURN_IF_ERROR(FrozenTables(store).CheckCursors());
    frozen_table_ = made->tables.begin()->second->id();
    RETURN_IF_ERROR(
        FrozenTables(store).Name(*frozen_, CursorSnapshotName(*frozen_), Store::Overwrite::kNo));
    host_.services().cursor_uses.Note(*frozen_, host_.clock().MonotonicMicros());
    LetGo();
    ClusterPart::Tend(host_);
    wait_.emplace(host_);
    return Status::Ok();
  }
  void LetGo() {
    if (frozen_ && !host_.loading()) FrozenTables(host_.store()).LetGo(*frozen_);
    frozen_.reset();
  }

  Host& host_;
  const uint64_t lineage_;
  const uint64_t table_id_;
  std::optional<uint64_t> frozen_{};
  uint64_t frozen_table_{0};
  CutRun run_;
  std::optional<OtherSetsWait> wait_{};
};

}  // namespace

CursorScan::CursorScan(CommandContext& ctx, const Table& live, std::unique_ptr<ScatterTask> page,
                       const Table* frozen)
    : host_(ctx.host),
      session_(ctx.session),
      table_(live.keyspace() + "/" + live.name()),
      page_(std::move(page)) {
  if (frozen == nullptr) {
    ticket_ = Ask("OPEN", table_);
    return;
  }
  frozen_id_ = frozen->id();
  page_->ReadFrozen(*frozen);
  opened_ = true;
  host_.services().remote->Forget(Ask("USE", FormatUint64(frozen_id_)));
}

CursorScan::~CursorScan() {
  if (ticket_) host_.services().remote->Forget(*ticket_);
}

// What is asked twice does no harm: what nobody uses goes.
uint64_t CursorScan::Ask(std::string_view word, std::string_view what) {
  const std::string_view words[] = {"CLUSTER", "CURSOR", word, what};
  return host_.services().remote->Ask(session_, kHeadSet, CallOf(words), false);
}

bool CursorScan::Open(TaskContext& context, bool* failed) {
  const auto fail = [&](const std::string& line) {
    context.Fail(line);
    *failed = true;
    return false;
  };
  if (ticket_) {
    RemoteCalls& remote = *host_.services().remote;
    const RemoteCalls::Answer& answer = remote.AnswerTo(*ticket_);
    if (answer.state == RemoteCalls::State::kPending) return false;
    const std::string bytes = answer.bytes;
    const bool answered = answer.state == RemoteCalls::State::kAnswered;
    remote.Forget(*ticket_);
    ticket_.reset();
    if (!answered) return fail(bytes);
    if (bytes.starts_with('-')) return fail(std::string(ErrorLineOf(bytes)));
    if (!ReplyReader(bytes).Unsigned(&frozen_id_))
      return fail("ERR another node has answered what is no number");
    deadline_micros_ = host_.clock().MonotonicMicros() + kKnownMicros;
  }
  // A follower may hear of it a little later.
  const Table* const frozen = host_.store().engine().FindFrozenById(frozen_id_);
  if (frozen == nullptr || frozen->snapshot().empty()) {
    if (host_.clock().MonotonicMicros() < deadline_micros_) return false;
    return fail("TRYAGAIN this node does not know the snapshot of the cursor yet");
  }
  page_->ReadFrozen(*frozen);
  return opened_ = true;
}

TaskProgress CursorScan::Step(TaskContext& context) {
  if (context.budget.unlimited()) {
    context.Fail("CROSSSET CSCAN ... SNAPSHOT goes over all sets, not into an EXEC");
    return TaskProgress::kDone;
  }
  bool failed = false;
  if (!opened_ && !Open(context, &failed))
    return failed ? TaskProgress::kDone : TaskProgress::kWaiting;
  // The page may wait for who has its rows, which is nobody any more.
  if (host_.store().engine().FindFrozenById(frozen_id_) == nullptr) {
    context.Fail(StaleCursor());
    return TaskProgress::kDone;
  }
  const TaskProgress progress = page_->Step(context);
  if (progress == TaskProgress::kDone && page_->at_end())
    host_.services().remote->Forget(Ask("CLOSE", FormatUint64(frozen_id_)));
  return progress;
}

const Table* FrozenOfCursor(Host& host, const Table& live, uint64_t pin) {
  if ((pin & kFrozenPin) == 0) return nullptr;
  const Table* const frozen = host.store().engine().FindFrozenById(pin & ~kFrozenPin);
  const bool is_of_it = frozen != nullptr && IsCursorName(frozen->snapshot()) &&
                        frozen->keyspace() == live.keyspace() && frozen->name() == live.name();
  return is_of_it ? frozen : nullptr;
}

bool IsCursorCall(std::span<const std::string_view> words) {
  return words.size() == 4 && words[0] == "CLUSTER" && words[1] == "CURSOR";
}

void CmdClusterCursor(CommandContext& ctx) {
  if (!ClusterPart::IsOfCluster(ctx)) return;
  const std::string_view word = ctx.args[2];
  const bool uses = EqualsIgnoreCase(word, "USE");
  if (EqualsIgnoreCase(word, "OPEN")) {
    ASSIGN_OR_REPLY(ctx, const Table* const table, FindTable(ctx, ctx.args[3]));
    REPLY_IF_ERROR(ctx, FrozenTables::CheckMayChange(*table));
    return ctx.Continue(std::make_unique<OpenTask>(ctx.host, *table));
  }
  if (!uses && !EqualsIgnoreCase(word, "CLOSE"))
    return ctx.Fail(UnexpectedWord(word, "OPEN, USE or CLOSE"));
  ASSIGN_OR_REPLY(ctx, const uint64_t id, ParseCount("id", ctx.args[3], 1));
  const NamedSnapshot* const snapshot = CursorSnapshot(ctx.store().engine(), id);
  if (snapshot == nullptr) return ctx.Fail(StaleCursor());
  if (uses)
    ctx.host.services().cursor_uses.Note(snapshot->id, ctx.host.clock().MonotonicMicros());
  else
    REPLY_IF_ERROR(ctx, ctx.store().DropSnapshot(*snapshot));
  ctx.DependsOn(ctx.store().schema_lsn());
  ctx.reply.Ok();
}

}  // namespace cellar
