// See snapshot_cut.h.
#include "commands/cluster/snapshot_cut.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/text/quote.h"
#include "cluster/call_frames.h"
#include "commands/cluster/catalog_wait.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/cut_run.h"
#include "commands/cluster/reply_reader.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/table_events.h"
#include "commands/session/task.h"
#include "store/frozen_tables.h"
#include "store/store.h"

namespace cellar {
namespace {

class CreateTask final : public Task {
 public:
  CreateTask(Host& host, ClusterSnapshot snapshot)
      : host_(host),
        snapshot_(std::move(snapshot)),
        run_(host, {.purpose = CutPurpose::kSnapshot,
                    .argument = snapshot_.keyspace + "/" + snapshot_.name,
                    .make = [this] { return Freeze(); },
                    .undo = [this] { LetGo(); }}) {}
  ~CreateTask() override { LetGo(); }

  TaskProgress Step(TaskContext& context) override {
    if (!wait_) {
      if (context.budget.unlimited()) {
        context.Fail("CROSSSET SNAPSHOT CREATE goes over all sets, not into an EXEC");
        return TaskProgress::kDone;
      }
      const CutRun::State state = run_.Step();
      if (state == CutRun::State::kRuns) return TaskProgress::kWaiting;
      const Status named = state == CutRun::State::kGood ? Name() : run_.status();
      context.depends_on = host_.last_lsn();
      if (!named.ok()) {
        context.Fail(named);
        return TaskProgress::kDone;
      }
    }
    return Await(context);
  }

 private:
  Status Freeze() {
    Store& store = host_.store();
    RETURN_IF_ERROR(FrozenTables(store).CheckName(snapshot_.keyspace, snapshot_.name, overwrite()));
    if (!store.KeyspaceExists(snapshot_.keyspace))
      return Status::Error(ErrorCode::kNoKeyspace, "no keyspace " + Quote(snapshot_.keyspace));
    std::vector<const Table*> tables;
    if (snapshot_.all_tables)
      for (const Table* const table : store.Tables(snapshot_.keyspace)) tables.push_back(table);
    for (const std::string& name : snapshot_.tables) {
      ASSIGN_OR_RETURN(const Table* table, store.FindTable(snapshot_.keyspace, name));
      tables.push_back(table);
    }
    for (const Table* const table : tables)
      RETURN_IF_ERROR(ClusterPart::CheckAllThere(host_, *table));
    ASSIGN_OR_RETURN(const uint64_t id,
                     FrozenTables(store).Freeze(snapshot_.keyspace, tables, snapshot_.ttl_micros));
    FrozenTables(store).Hold(id);
    frozen_ = id;
    return Status::Ok();
  }
  Status Name() {
    if (!ClusterPart::Directs(host_))
      return Status::Error(ErrorCode::kTryAgain, "this node does not lead set 0 any more");
    Status named = FrozenTables(host_.store()).Name(*frozen_, snapshot_.name, overwrite());
    if (!named.ok()) return named;
    LetGo();
    NotifyTable(host_, kNotifyGeneric, "snapshot", snapshot_.keyspace, snapshot_.name);
    ClusterPart::Tend(host_);
    wait_.emplace(host_);
    return Status::Ok();
  }
  // Whoever has its id may read a feed from there on: it is to be on disk.
  TaskProgress Await(TaskContext& context) {
    context.depends_on = wait_->record();
    const OtherSetsWait::State state = wait_->Look();
    Journal& journal = host_.store().journal();
    const bool is_synced = !journal.Stats().log_enabled || journal.durable_lsn() >= wait_->record();
    if (!is_synced) journal.RequestSync();
    if (state == OtherSetsWait::State::kWaits || !is_synced) return TaskProgress::kWaiting;
    ClusterPart::Tend(host_);
    if (state == OtherSetsWait::State::kAllHave)
      context.reply.Ok();
    else
      context.Fail(wait_->LacksText());
    return TaskProgress::kDone;
  }
  // The sweeper drops what has no name.
  void LetGo() {
    if (frozen_ && !host_.loading()) FrozenTables(host_.store()).LetGo(*frozen_);
    frozen_.reset();
  }
  Store::Overwrite overwrite() const {
    return snapshot_.replace ? Store::Overwrite::kYes : Store::Overwrite::kNo;
  }

  Host& host_;
  const ClusterSnapshot snapshot_;
  std::optional<uint64_t> frozen_{};
  CutRun run_;
  std::optional<OtherSetsWait> wait_{};
};

// Numbers of all sets are summed; what else there is all of them say.
class InfoTask final : public Task {
 public:
  InfoTask(const CommandContext& ctx, std::string_view word)
      : host_(ctx.host), depends_on_(ctx.store().schema_lsn()) {
    const std::string_view words[] = {"SNAPSHOT", "INFO", word, "LOCAL"};
    const std::string text = CallOf(words);
    for (const auto& [number, set] : host_.services().cluster_view.sets.sets())
      tickets_.push_back(host_.services().remote->Ask(ctx.session, number, text, false));
  }
  ~InfoTask() override {
    for (const uint64_t ticket : tickets_) host_.services().remote->Forget(ticket);
  }

  TaskProgress Step(TaskContext& context) override {
    context.depends_on = depends_on_;
    RemoteCalls& remote = *host_.services().remote;
    while (!tickets_.empty()) {
      const RemoteCalls::Answer& answer = remote.AnswerTo(tickets_.back());
      if (answer.state == RemoteCalls::State::kPending) {
        if (!context.budget.unlimited()) return TaskProgress::kWaiting;
        return End(context, "CROSSSET SNAPSHOT INFO asks all sets, which no EXEC does");
      }
      if (answer.state != RemoteCalls::State::kAnswered) return End(context, answer.bytes);
      if (answer.bytes.starts_with('-')) return End(context, ErrorLineOf(answer.bytes));
      if (!Add(answer.bytes)) return End(context, "ERR another node has answered what is no map");
      remote.Forget(tickets_.back());
      tickets_.pop_back();
    }
    Reply(context.reply);
    return TaskProgress::kDone;
  }

 private:
  static TaskProgress End(TaskContext& context, std::string_view line) {
    context.Fail(std::string(line));
    return TaskProgress::kDone;
  }
  static bool IsCount(std::string_view field) {
    return field == "rows" || field == "cells" || field == "memory" || field == "held";
  }
  bool Add(std::string_view bytes) {
    ReplyReader reader(bytes);
    uint64_t pairs = 0;
    if (!reader.Map(&pairs)) return false;
    std::vector<std::pair<std::string, std::string>> fields;
    for (; pairs > 0; --pairs) {
      std::string_view name;
      if (!reader.Bulk(&name)) return false;
      const size_t begin = reader.position();
      if (!reader.Skip()) return false;
      const std::string_view value = bytes.substr(begin, reader.position() - begin);
      fields.emplace_back(name, value);
      uint64_t number = 0;
      if (IsCount(name) && ReplyReader(value).Unsigned(&number))
        counts_[std::string(name)] += number;
    }
    fields_ = std::move(fields);
    return reader.done();
  }
  void Reply(ReplyWriter& reply) const {
    reply.Map(fields_.size());
    for (const auto& [name, value] : fields_) {
      reply.Bulk(name);
      if (const auto count = counts_.find(name); count != counts_.end())
        reply.Unsigned(count->second);
      else
        reply.Raw(value);
    }
  }

  Host& host_;
  const Lsn depends_on_;
  std::vector<uint64_t> tickets_;
  std::map<std::string, uint64_t> counts_;
  std::vector<std::pair<std::string, std::string>> fields_;  // of the last one
};

}  // namespace

bool SnapshotsAreOfSets(const CommandContext& ctx) {
  const Services& services = ctx.host.services();
  return ctx.store().engine().cluster().active() && services.remote != nullptr &&
         (services.cluster_view.has_others() || services.cluster_map.has_others());
}

void CreateClusterSnapshot(CommandContext& ctx, ClusterSnapshot snapshot) {
  ctx.Continue(std::make_unique<CreateTask>(ctx.host, std::move(snapshot)));
}

void DescribeClusterSnapshot(CommandContext& ctx, std::string_view word) {
  ctx.Continue(std::make_unique<InfoTask>(ctx, word));
}

}  // namespace cellar
