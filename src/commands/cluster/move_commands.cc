// See move_commands.h.
#include "commands/cluster/move_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/text/quote.h"
#include "cluster/balance_plan.h"
#include "cluster/lost_rows.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/cluster_part.h"
#include "commands/replies/visible_table.h"
#include "commands/reports/cluster_report.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/task.h"
#include "store/store.h"
#include "store/tablet_changes.h"
#include "store/tablet_sizes.h"

namespace cellar {
namespace {

// So long CANCEL waits for the sets (SCALE: cluster-wait's default).
constexpr int64_t kAnswerMicros{10'000'000};

// Until the job has ended, or time is over.
class JobWait final : public BlockedTask {
 public:
  enum class Wants : uint8_t { kMoved, kCancelled };
  JobWait(Host& host, uint64_t job, Wants wants, Lsn record, int64_t deadline_micros)
      : host_(host), job_(job), wants_(wants), record_(record), deadline_micros_(deadline_micros) {}

  TaskProgress Step(TaskContext& context) override {
    Store& store = host_.store();
    const MoveJob* const job = host_.services().move_jobs.Find(store, job_);
    context.depends_on = std::max(record_, host_.last_lsn());
    if (job == nullptr || job->decided()) {
      End(context, job);
      return TaskProgress::kDone;
    }
    const MoveProgress progress = host_.services().moves->JobProgress(job_);
    if (wants_ == Wants::kCancelled && progress.given) {
      context.Fail(PastThePoint(*job));
      return TaskProgress::kDone;
    }
    const bool waits =
        host_.clock().MonotonicMicros() < deadline_micros_ && !context.budget.unlimited();
    if (waits && !unblocked()) return TaskProgress::kWaiting;
    context.Fail(fmt::format("TRYAGAIN job {} goes on", job_) +
                 (progress.why.empty() ? std::string() : ": " + progress.why));
    return TaskProgress::kDone;
  }

 private:
  static std::string PastThePoint(const MoveJob& job) {
    return fmt::format("ERR job {} is past the point: set {} owns the tablet", job.number, job.to);
  }
  void End(TaskContext& context, const MoveJob* job) const {
    const bool moved = job != nullptr && job->state == MoveJob::State::kDone;
    if (job == nullptr || moved == (wants_ == Wants::kMoved)) return context.reply.Ok();
    if (moved) return context.Fail(PastThePoint(*job));
    context.Fail(fmt::format("ERR job {} was cancelled", job_) +
                 (job->error.empty() ? std::string() : ": " + job->error));
  }

  Host& host_;
  const uint64_t job_;
  const Wants wants_;
  const Lsn record_;
  const int64_t deadline_micros_;
};

struct MoveRequest {
  std::string_view table;
  std::string_view row;
  uint64_t to{0};
  std::optional<uint64_t> wait_ms;
};

Result<MoveRequest> ParseMove(Arguments args) {
  ArgumentCursor at(args, 2);
  MoveRequest request;
  request.table = at.Take();
  request.row = at.Take();
  if (!at.TakeWord("TO")) return UnexpectedWord(at.Peek(), "TO");
  ASSIGN_OR_RETURN(const std::string_view set, at.TakeAny("TO", "set"));
  ASSIGN_OR_RETURN(request.to, ParseCount("TO", set, 0));
  while (!at.done()) {
    if (!at.TakeWord("WAIT")) return UnexpectedWord(at.Peek(), "WAIT");
    if (request.wait_ms) return RepeatedOption("WAIT");
    ASSIGN_OR_RETURN(const std::string_view word, at.TakeAny("WAIT", "ms"));
    ASSIGN_OR_RETURN(request.wait_ms, ParseCount("WAIT", word, 1));
  }
  return request;
}

// Of a set that is one of the cluster: why it takes nothing in now. What it has told lately counts;
// what it would say itself ends the job.
std::string WhyNotNow(CommandContext& ctx, uint64_t number) {
  const ClusterState& cluster = ctx.store().engine().cluster();
  const ClusterSet* const told = ctx.host.services().cluster_view.sets.Find(number);
  ClusterSet set = told == nullptr ? ClusterSet{} : *told;
  if (number == cluster.set) set = OwnClusterSet(ctx.host);
  if (set.leader == 0) return fmt::format("TRYAGAIN set {} has no leader", number);
  if (set.maxmemory != 0 && set.bytes > set.maxmemory / 100 * kFullPercent) {
    return fmt::format("ERR set {} is full: it has {} bytes, and maxmemory is {}", number,
                       set.bytes, set.maxmemory);
  }
  if (set.catalog < cluster.catalog) {
    return fmt::format("TRYAGAIN set {} has not taken schema change {} yet", number,
                       cluster.catalog);
  }
  return {};
}

// The line of an error; empty: it can.
std::string WhyNotTo(CommandContext& ctx, uint64_t set) {
  if (!ClusterPart::Directs(ctx.host)) return "TRYAGAIN this node does not lead set 0";
  const auto& sets = ctx.host.services().cluster_map.Sets(ctx.store());
  const auto found = std::find_if(sets.begin(), sets.end(),
                                  [set](const auto& each) { return each.number == set; });
  if (found == sets.end()) return fmt::format("ERR set {} is not of this cluster", set);
  if (found->draining) return fmt::format("ERR set {} is draining", set);
  if (ctx.host.services().move_jobs.running() >= kMovesMax)
    return fmt::format("TRYAGAIN {} jobs go on already", kMovesMax);
  return {};
}

// The number that it gets.
Result<uint64_t> OrderJob(CommandContext& ctx, MoveJob job) {
  Services& services = ctx.host.services();
  const Table* const table = ctx.store().TableById(job.table_id);
  if (table != nullptr) RETURN_IF_ERROR(services.cluster_map.CheckMayMove(*table, job.tablet));
  job.why = "asked by " + ctx.session.user_name;
  const ClusterTelling telling(ctx.host);
  Result<uint64_t> number = services.move_jobs.Order(ctx.store(), std::move(job));
  ctx.DependsOn(ctx.host.last_lsn());
  if (number.ok()) services.moves->Wake();
  return number;
}

void ReplyJob(ReplyWriter& reply, const MoveJob& job, const MoveProgress& progress,
              const Table* table, const TabletSize* size) {
  const auto text = [table](std::string_view bound) {
    return table == nullptr ? std::string(bound) : TabletBoundText(*table, bound);
  };
  const bool goes_on = job.state == MoveJob::State::kOrdered && !progress.state.empty();
  reply.Map(13);
  reply.Bulk("job");
  reply.Unsigned(job.number);
  reply.Bulk("table");
  reply.Bulk(job.table);
  reply.Bulk("start");
  reply.Bulk(text(job.tablet.begin));
  reply.Bulk("end");
  reply.Bulk(text(job.tablet.end));
  reply.Bulk("from");
  if (job.from == LostWith(0))
    reply.Null();
  else
    reply.Unsigned(SetNumber(job.from));
  reply.Bulk("to");
  reply.Unsigned(job.to);
  reply.Bulk("state");
  reply.Bulk(goes_on ? std::string_view(progress.state) : MoveJobStateName(job.state));
  reply.Bulk("bytes");
  if (size == nullptr)
    reply.Null();
  else
    reply.Unsigned(size->bytes);
  reply.Bulk("copied");
  reply.Unsigned(progress.bytes);
  reply.Bulk("lag");
  reply.Unsigned(progress.behind);
  reply.Bulk("started");
  reply.Integer(job.started_ms);
  reply.Bulk("ended");
  if (job.ended())
    reply.Integer(job.ended_ms);
  else
    reply.Null();
  reply.Bulk("error");
  reply.Bulk(job.error.empty() ? progress.why : job.error);
}

}  // namespace

void CmdTabletMove(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const MoveRequest request, ParseMove(ctx.args));
  if (!ClusterPart::IsOfCluster(ctx)) return;
  ASSIGN_OR_REPLY(ctx, const Table* const table, FindTable(ctx, request.table));
  REPLY_IF_ERROR(ctx, CheckHasTablets(*table));
  ASSIGN_OR_REPLY(ctx, const std::string key, EncodeTabletBound(table->schema(), request.row));
  if (table->fixed()) return ctx.Fail("ERR the cluster's own tables stay at set 0");
  if (const std::string why = WhyNotTo(ctx, request.to); !why.empty()) return ctx.Fail(why);
  ClusterPart::Tend(ctx.host);
  Services& services = ctx.host.services();
  const MapCache& map = services.cluster_map.Current(ctx.store());
  const MapEntry* const entry = map.FindTablet(table->id(), key);
  if (entry == nullptr) {
    return ctx.Fail(fmt::format("TRYAGAIN the map does not say who owns row {} of table {}",
                                Quote(request.row), Quote(table->name())));
  }
  if (IsLost(entry->set))
    return ctx.Fail(LostRowText(table->shown_name(), request.row, entry->set));
  if (entry->set == request.to)
    return ctx.Fail(fmt::format("ERR the tablet is set {}'s already", request.to));
  if (const std::string why = WhyNotNow(ctx, request.to); !why.empty()) return ctx.Fail(why);
  const Tablet tablet{entry->begin, entry->end, entry->epoch};
  if (const MoveJob* const other = services.move_jobs.Of(ctx.store(), table->id(), tablet)) {
    return ctx.Fail(fmt::format("TRYAGAIN the tablet is moving: job {} takes it to set {}",
                                other->number, other->to));
  }
  MoveJob job;
  job.table_id = table->id();
  job.table = table->keyspace() + "/" + table->name();
  job.tablet = tablet;
  job.from = entry->set;
  job.to = request.to;
  ASSIGN_OR_REPLY(ctx, const uint64_t number, OrderJob(ctx, std::move(job)));
  if (!request.wait_ms) return ctx.reply.Unsigned(number);
  const int64_t wait_micros =
      static_cast<int64_t>(std::min<uint64_t>(*request.wait_ms, 1ULL << 40));
  ctx.Continue(std::make_unique<JobWait>(ctx.host, number, JobWait::Wants::kMoved,
                                         ctx.host.last_lsn(),
                                         ctx.host.clock().MonotonicMicros() + wait_micros * 1000));
}

namespace {

// The rows around that one which nobody has, as far as the map goes: those of a tablet that is
// lost, or of a gap in the map. False: somebody has it.
bool FindLost(const MapCache& map, uint64_t table_id, std::string_view key, MapEntry* lost) {
  if (const MapEntry* const entry = map.FindTablet(table_id, key); entry != nullptr) {
    *lost = *entry;
    return IsLost(entry->set);
  }
  *lost = MapEntry{};
  lost->set = LostWith(0);
  const MapTable* const table = map.Find(table_id);
  if (table == nullptr) return true;
  for (const MapEntry& entry : table->tablets) {
    lost->epoch = std::max(lost->epoch, entry.epoch);
    if (entry.begin <= key)
      lost->begin = entry.end;
    else if (lost->end.empty())
      lost->end = entry.begin;
  }
  return true;
}

}  // namespace

// TABLET ADOPT table row SET n
void CmdTabletAdopt(CommandContext& ctx) {
  ArgumentCursor at(ctx.args, 2);
  const std::string_view name = at.Take();
  const std::string_view row = at.Take();
  if (!at.TakeWord("SET")) return ctx.Fail(UnexpectedWord(at.Peek(), "SET"));
  ASSIGN_OR_REPLY(ctx, const uint64_t to, ParseCount("SET", at.Take(), 0));
  if (!ClusterPart::IsOfCluster(ctx)) return;
  ASSIGN_OR_REPLY(ctx, const Table* const table, FindTable(ctx, name));
  REPLY_IF_ERROR(ctx, CheckHasTablets(*table));
  ASSIGN_OR_REPLY(ctx, const std::string key, EncodeTabletBound(table->schema(), row));
  if (const std::string why = WhyNotTo(ctx, to); !why.empty()) return ctx.Fail(why);
  ClusterPart::Tend(ctx.host);
  Services& services = ctx.host.services();
  MapEntry lost;
  if (!FindLost(services.cluster_map.Current(ctx.store()), table->id(), key, &lost)) {
    return ctx.Fail(fmt::format("ERR row {} of table {} is not lost: set {} has it", Quote(row),
                                Quote(table->name()), lost.set));
  }
  if (const std::string why = WhyNotNow(ctx, to); !why.empty()) return ctx.Fail(why);
  if (services.cluster_map.has_others() && !services.cluster_map.KnowLost()) {
    return ctx.Fail(
        "TRYAGAIN not all sets of the cluster have said that they know lost rows: one is "
        "away, or has members of an earlier version");
  }
  const Tablet tablet{lost.begin, lost.end, lost.epoch};
  if (!services.move_jobs.AreOver(ctx.store(), table->id(), tablet))
    return ctx.Fail("TRYAGAIN a job that has to do with these rows goes on: TABLET JOBS");
  MoveJob job;
  job.table_id = table->id();
  job.table = table->keyspace() + "/" + table->name();
  job.tablet = tablet;
  job.from = lost.set;
  job.to = to;
  ASSIGN_OR_REPLY(ctx, const uint64_t number, OrderJob(ctx, std::move(job)));
  ctx.Continue(std::make_unique<JobWait>(ctx.host, number, JobWait::Wants::kMoved,
                                         ctx.host.last_lsn(),
                                         ctx.host.clock().MonotonicMicros() + kAnswerMicros));
}

void CmdTabletCancel(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const uint64_t number, ParseCount("job", ctx.args[2], 1));
  if (!ClusterPart::IsOfCluster(ctx)) return;
  if (!ClusterPart::Directs(ctx.host)) return ctx.Fail("TRYAGAIN this node does not lead set 0");
  Services& services = ctx.host.services();
  const MoveJob* const job = services.move_jobs.Find(ctx.store(), number);
  if (job == nullptr) return ctx.Fail(fmt::format("ERR there is no job {}", number));
  if (!job->ended()) services.moves->WantCancel(number, "cancelled by " + ctx.session.user_name);
  ctx.Continue(std::make_unique<JobWait>(ctx.host, number, JobWait::Wants::kCancelled,
                                         ctx.host.last_lsn(),
                                         ctx.host.clock().MonotonicMicros() + kAnswerMicros));
}

void CmdTabletJobs(CommandContext& ctx) {
  if (!ClusterPart::IsOfCluster(ctx)) return;
  Services& services = ctx.host.services();
  const auto& jobs = services.move_jobs.All(ctx.store());
  if (const Table* const table = MapTables(ctx.store()).jobs(); table != nullptr)
    ctx.DependsOn(table->last_lsn());
  const auto sees = [&ctx](const MoveJob& job) {
    const Table* const table = ctx.store().TableById(job.table_id);
    return ctx.rights == nullptr ||
           (table != nullptr && ctx.rights->MayReadTable(table->keyspace(), table->name()));
  };
  const auto mark = ctx.reply.BeginArray(1);
  uint64_t count = 0;
  for (const auto& [number, job] : jobs) {
    if (!sees(job)) continue;
    ++count;
    ReplyJob(ctx.reply, job,
             services.moves == nullptr || job.ended() ? MoveProgress{}
                                                      : services.moves->JobProgress(number),
             ctx.store().TableById(job.table_id),
             services.moves == nullptr ? nullptr
                                       : services.moves->SizeOf(job.table_id, job.tablet.begin));
  }
  ctx.reply.EndArray(mark, count);
}

}  // namespace cellar
