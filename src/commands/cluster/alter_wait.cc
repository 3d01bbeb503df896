// See alter_wait.h.
#include "commands/cluster/alter_wait.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "cluster/call_frames.h"
#include "commands/cluster/catalog_wait.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/reply_reader.h"
#include "commands/replies/visible_table.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "store/policy_changes.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr uint64_t kHeadSet{0};

// Begins when the change has been made: first all sets are to have it, then they are asked.
class AlterWait final : public Task {
 public:
  AlterWait(CommandContext& ctx, std::string table, std::unique_ptr<Task> then)
      : host_(ctx.host), session_(ctx.session), table_(std::move(table)), then_(std::move(then)) {}
  ~AlterWait() override {
    for (const auto& [set, ticket] : tickets_) host_.services().remote->Forget(ticket);
  }

  TaskProgress Step(TaskContext& context) override {
    if (asked_ && tickets_.empty() && then_ != nullptr) return then_->Step(context);
    if (!have_) have_.emplace(host_);
    context.depends_on = have_->record();
    if (!asked_) {
      const OtherSetsWait::State state = have_->Look();
      if (state == OtherSetsWait::State::kWaits && !context.budget.unlimited())
        return TaskProgress::kWaiting;
      if (state != OtherSetsWait::State::kAllHave) {
        context.Fail(have_->LacksText());
        return TaskProgress::kDone;
      }
      Ask();
    }
    RemoteCalls& remote = *host_.services().remote;
    while (!tickets_.empty()) {
      const auto [set, ticket] = *tickets_.begin();
      const RemoteCalls::Answer& answer = remote.AnswerTo(ticket);
      if (answer.state == RemoteCalls::State::kPending && !context.budget.unlimited())
        return TaskProgress::kWaiting;
      const bool answered = answer.state == RemoteCalls::State::kAnswered;
      if (!answered || answer.bytes.starts_with('-')) {
        context.Fail(fmt::format(
            "TRYAGAIN the family is altered; set {} has not said that it goes by it yet: {}", set,
            answered ? ErrorLineOf(answer.bytes) : std::string_view(answer.bytes)));
        return TaskProgress::kDone;
      }
      remote.Forget(ticket);
      tickets_.erase(tickets_.begin());
    }
    if (then_ != nullptr) return then_->Step(context);
    context.reply.Ok();
    return TaskProgress::kDone;
  }

 private:
  void Ask() {
    asked_ = true;
    const Services& services = host_.services();
    const std::string_view words[] = {"CLUSTER", "SETTLED", table_};
    const std::string text = CallOf(words);
    for (const auto& [number, set] : services.cluster_view.sets.sets()) {
      if (number == kHeadSet) continue;
      tickets_.emplace(number, services.remote->Ask(session_, number, text, false));
    }
  }

  Host& host_;
  Session& session_;
  const std::string table_;  // keyspace/table
  const std::unique_ptr<Task> then_;
  std::optional<OtherSetsWait> have_{};
  bool asked_{false};
  std::map<uint64_t, uint64_t> tickets_{};  // by set
};

class SettledTask final : public Task {
 public:
  SettledTask(Host& host, const Table& table)
      : host_(host), lineage_(host.store().lineage()), table_id_(table.id()) {}

  TaskProgress Step(TaskContext& context) override {
    const Store& store = host_.store();
    const Table* const table =
        store.lineage() == lineage_ ? host_.store().TableById(table_id_) : nullptr;
    const bool is_settled = table == nullptr || PolicyChanges::IsSettled(*table);
    const Status stuck = PolicyChanges(host_.store()).stuck();
    if (!is_settled && !context.budget.unlimited() && !IsStuckForLong(stuck))
      return TaskProgress::kWaiting;
    context.depends_on = host_.store().schema_lsn();
    if (is_settled)
      context.reply.Ok();
    else
      context.Fail("TRYAGAIN the set cannot go by it yet: " + stuck.text());
    return TaskProgress::kDone;
  }

 private:
  static constexpr int64_t kStuckMicros{10'000'000};

  bool IsStuckForLong(const Status& stuck) {
    const int64_t now = host_.clock().MonotonicMicros();
    if (stuck.ok()) stuck_micros_ = 0;
    if (!stuck.ok() && stuck_micros_ == 0) stuck_micros_ = now;
    return stuck_micros_ != 0 && now - stuck_micros_ >= kStuckMicros;
  }

  Host& host_;
  const uint64_t lineage_;
  const uint64_t table_id_;
  int64_t stuck_micros_{0};  // monotonic, since then; 0: it goes on
};

}  // namespace

bool HasSetsToAwait(const CommandContext& ctx) {
  const Services& services = ctx.host.services();
  return services.cluster_map.has_others() && services.director != nullptr &&
         services.remote != nullptr && !ctx.session.exec_running && ClusterPart::Directs(ctx.host);
}

std::unique_ptr<Task> AwaitSettled(CommandContext& ctx, const Table& table) {
  return HasSetsToAwait(ctx) ? AwaitSettled(ctx, table, nullptr) : nullptr;
}

std::unique_ptr<Task> AwaitSettled(CommandContext& ctx, const Table& table,
                                   std::unique_ptr<Task> then) {
  return std::make_unique<AlterWait>(ctx, table.keyspace() + "/" + table.name(), std::move(then));
}

bool IsSettledCall(std::span<const std::string_view> words) {
  return words.size() == 3 && words[0] == "CLUSTER" && words[1] == "SETTLED";
}

void CmdClusterSettled(CommandContext& ctx) {
  if (!ClusterPart::IsOfCluster(ctx)) return;
  ASSIGN_OR_REPLY(ctx, const Table* const table, FindTable(ctx, ctx.args[2]));
  ctx.Continue(std::make_unique<SettledTask>(ctx.host, *table));
}

}  // namespace cellar
