// See cluster_digest.h.
#include "commands/cluster/cluster_digest.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/ascii.h"
#include "base/text/quote.h"
#include "cluster/call_frames.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/arguments/syntax_error.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/cut_commands.h"
#include "commands/cluster/reply_reader.h"
#include "commands/reports/cluster_report.h"
#include "commands/session/command_context.h"
#include "commands/session/remote_calls.h"
#include "commands/session/services.h"
#include "commands/session/task.h"
#include "engine/state/snapshot_set.h"
#include "replica/replication.h"
#include "store/rows_digest.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr uint64_t kSliceCells{128};
constexpr std::string_view kNoExec{
    "CROSSSET DEBUG DIGEST CLUSTER goes over all sets, not into an EXEC"};

enum class DigestReply : uint8_t { kText, kPart };

void ReplyPart(ReplyWriter& reply, const RowsDigest::Part& part, DigestReply how) {
  if (how == DigestReply::kText)
    reply.SimpleString(part.Text());
  else
    reply.Bulk(part.Encode());
}

// Of what this node has.
class OwnTask final : public Task {
 public:
  OwnTask(std::unique_ptr<RowsDigest> digest, Lsn depends_on, DigestReply how)
      : digest_(std::move(digest)), depends_on_(depends_on), how_(how) {}

  TaskProgress Step(TaskContext& context) override {
    while (!digest_->Step(context.budget.unlimited() ? kUnlimited : kSliceCells))
      if (context.budget.Spent()) return TaskProgress::kMore;
    context.depends_on = depends_on_;
    ReplyPart(context.reply, digest_->part(), how_);
    return TaskProgress::kDone;
  }

 private:
  const std::unique_ptr<RowsDigest> digest_;
  const Lsn depends_on_;
  const DigestReply how_;
};

// Of what this node has kept of a cut.
class CutPartTask final : public Task {
 public:
  CutPartTask(Host& host, uint64_t cut) : host_(host), cut_(cut), depends_on_(host.last_lsn()) {}

  TaskProgress Step(TaskContext& context) override {
    for (;;) {
      RowsDigest* const digest = Find();
      if (digest == nullptr) {
        context.Fail(fmt::format("TRYAGAIN the leader has nothing of cut {}", cut_));
        return TaskProgress::kDone;
      }
      if (digest->Step(context.budget.unlimited() ? kUnlimited : kSliceCells)) {
        context.depends_on = depends_on_;
        ReplyPart(context.reply, digest->part(), DigestReply::kPart);
        return TaskProgress::kDone;
      }
      if (context.budget.Spent()) return TaskProgress::kMore;
    }
  }

 private:
  RowsDigest* Find() {
    if (host_.loading()) return nullptr;
    return host_.services().cut_digests.Use(host_.store(),
                                            {.number = cut_, .term = host_.replication().term()},
                                            host_.clock().MonotonicMicros());
  }

  Host& host_;
  const uint64_t cut_;
  const Lsn depends_on_;
};

// Of all sets: of a cut, or of a snapshot.
class SumTask final : public Task {
 public:
  // `snapshot`: with its keyspace; empty: of a cut.
  SumTask(const CommandContext& ctx, std::string snapshot)
      : host_(ctx.host),
        session_(ctx.session),
        snapshot_(std::move(snapshot)),
        begun_micros_(now()) {}
  ~SumTask() override { ForgetAll(); }

  TaskProgress Step(TaskContext& context) override {
    if (context.budget.unlimited()) return End(context, kNoExec);
    if (now() < next_micros_) return TaskProgress::kWaiting;
    if (tickets_.empty()) return Begin(context);
    for (const auto& [set, ticket] : tickets_)
      if (AnswerOf(ticket).state == RemoteCalls::State::kPending) return TaskProgress::kWaiting;
    context.depends_on = host_.last_lsn();
    return asks_for_cut_ ? TakeCut(context) : TakeParts(context);
  }

 private:
  static constexpr int kAttempts{5};
  static constexpr int64_t kRestMicros{100'000};

  int64_t now() const { return host_.clock().MonotonicMicros(); }
  const RemoteCalls::Answer& AnswerOf(uint64_t ticket) const {
    return host_.services().remote->AnswerTo(ticket);
  }
  void ForgetAll() {
    for (const auto& [set, ticket] : tickets_) host_.services().remote->Forget(ticket);
    tickets_.clear();
  }
  void Ask(uint64_t set, std::string_view word, std::string_view what) {
    std::vector<std::string_view> words{"DEBUG", "DIGEST", "CLUSTER", word};
    if (!what.empty()) words.push_back(what);
    tickets_[set] = host_.services().remote->Ask(session_, set, CallOf(words), false);
  }
  void AskForParts(const std::string& what) {
    ForgetAll();
    asks_for_cut_ = false;
    for (const auto& [number, set] : host_.services().cluster_view.sets.sets())
      Ask(number, "PART", what);
  }
  TaskProgress End(TaskContext& context, std::string_view line) {
    ForgetAll();
    context.Fail(line);
    return TaskProgress::kDone;
  }
  // What is wrong may be over by then; else it is told.
  TaskProgress Again(TaskContext& context, const std::string& line) {
    if (++attempt_ == kAttempts) return End(context, line);
    ForgetAll();
    next_micros_ = now() + kRestMicros;
    return TaskProgress::kWaiting;
  }

  TaskProgress Begin(TaskContext& context) {
    const Services& services = host_.services();
    if (!IsInCluster(host_)) return End(context, kClusterDisabled);
    if (!services.cluster_view.KnowsSets(host_.store().engine().cluster().set)) {
      if (now() - begun_micros_ < services.config.cluster_wait * 1000)
        return TaskProgress::kWaiting;
      return End(context, ClusterView::kSetsUnknown);
    }
    if (snapshot_.empty()) {
      asks_for_cut_ = true;
      Ask(0, "CUT", {});
    } else {
      AskForParts(snapshot_);
    }
    return TaskProgress::kWaiting;
  }
  TaskProgress TakeCut(TaskContext& context) {
    const RemoteCalls::Answer& answer = AnswerOf(tickets_.begin()->second);
    const bool answered = answer.state == RemoteCalls::State::kAnswered;
    if (!answered || answer.bytes.starts_with('-')) return End(context, FailureOf(answer));
    if (!ReplyReader(answer.bytes).Unsigned(&cut_))
      return End(context, "ERR set 0 has answered what is no cut");
    AskForParts(std::to_string(cut_));
    return TaskProgress::kWaiting;
  }
  TaskProgress TakeParts(TaskContext& context) {
    RowsDigest::Part sum;
    bool is_first = true;
    for (const auto& [set, ticket] : tickets_) {
      const RemoteCalls::Answer& answer = AnswerOf(ticket);
      const bool answered = answer.state == RemoteCalls::State::kAnswered;
      if (!answered || answer.bytes.starts_with('-')) {
        const std::string line = OfSet(set, FailureOf(answer));
        return line.starts_with("TRYAGAIN") ? Again(context, line) : End(context, line);
      }
      std::string_view bytes;
      RowsDigest::Part part;
      if (!ReplyReader(answer.bytes).Bulk(&bytes) || !RowsDigest::Part::Decode(bytes, &part))
        return End(context, fmt::format("ERR set {} has answered what is no digest", set));
      if (std::exchange(is_first, false))
        sum = part;
      else if (part.schema != sum.schema)
        return Again(context, fmt::format("ERR set {} has another schema than set {} at {}", set,
                                          tickets_.begin()->first, Moment()));
      else
        sum.Add(part);
    }
    if (!sum.is_whole())
      return Again(context, fmt::format("ERR at {} the sets do not own every row once: CLUSTER MAP "
                                        "CHECK says more",
                                        Moment()));
    ReplyPart(context.reply, sum, DigestReply::kText);
    return TaskProgress::kDone;
  }
  std::string Moment() const {
    return snapshot_.empty() ? fmt::format("cut {}", cut_) : "snapshot " + Quote(snapshot_);
  }
  // The code in front, then whose words they are.
  static std::string OfSet(uint64_t set, const std::string& line) {
    const size_t space = line.find(' ');
    if (space == std::string::npos || line.starts_with("CLUSTERDOWN")) return line;
    return fmt::format("{} set {}: {}", line.substr(0, space), set, line.substr(space + 1));
  }

  Host& host_;
  const Session& session_;
  const std::string snapshot_;
  const int64_t begun_micros_;
  int64_t next_micros_{0};
  int attempt_{0};
  bool asks_for_cut_{false};
  uint64_t cut_{0};
  std::map<uint64_t, uint64_t> tickets_{};  // by set
};

// --- what is asked

void ReplyOwn(CommandContext& ctx, std::unique_ptr<RowsDigest> digest, DigestReply how) {
  ctx.Continue(std::make_unique<OwnTask>(std::move(digest), ctx.host.last_lsn(), how));
}

// As DEBUG DIGEST judges what has expired.
void ReplyOwnRows(CommandContext& ctx) {
  Store& store = ctx.store();
  const int64_t at = ctx.host.replication().active() ? store.engine().stamp() : store.now_micros();
  ReplyOwn(ctx, std::make_unique<RowsDigest>(store, at), DigestReply::kText);
}

Result<const NamedSnapshot*> SnapshotOf(CommandContext& ctx, std::string_view word) {
  const TableName name = SplitTableName(ctx.session.keyspace, word);
  if (!IsSnapshotName(name.table))
    return Status::Error(ErrorCode::kErr, "invalid snapshot name " + Quote(name.table));
  return ctx.store().FindSnapshot(name.keyspace, name.table);
}

void ReplySnapshot(CommandContext& ctx, std::string_view word) {
  ASSIGN_OR_REPLY(ctx, const NamedSnapshot* const snapshot, SnapshotOf(ctx, word));
  if (IsInCluster(ctx.host))
    return ctx.Continue(std::make_unique<SumTask>(ctx, snapshot->keyspace + "/" + snapshot->name));
  ReplyOwn(ctx, std::make_unique<RowsDigest>(*snapshot), DigestReply::kText);
}

// A number, or a snapshot with its keyspace.
void ReplyPartOf(CommandContext& ctx, std::string_view what) {
  if (what.find('/') != std::string_view::npos) {
    ASSIGN_OR_REPLY(ctx, const NamedSnapshot* const snapshot, SnapshotOf(ctx, what));
    return ReplyOwn(ctx, std::make_unique<RowsDigest>(*snapshot), DigestReply::kPart);
  }
  ASSIGN_OR_REPLY(ctx, const uint64_t cut, ParseCount("PART", what, 1));
  ctx.Continue(std::make_unique<CutPartTask>(ctx.host, cut));
}

}  // namespace

void CmdDebugDigestCluster(CommandContext& ctx) {
  const Arguments words = ctx.args.subspan(3);
  if (ctx.host.loading()) return ctx.Fail("LOADING Cellar is loading the dataset in memory");
  ctx.DependsOn(ctx.host.last_lsn());
  if (words.empty()) {
    if (!IsInCluster(ctx.host)) return ReplyOwnRows(ctx);
    return ctx.Continue(std::make_unique<SumTask>(ctx, std::string()));
  }
  if (words.size() == 1 && EqualsIgnoreCase(words[0], "LOCAL")) return ReplyOwnRows(ctx);
  if (words.size() == 1 && EqualsIgnoreCase(words[0], "CUT")) {
    if (!ClusterPart::IsOfCluster(ctx)) return;
    return ctx.Continue(MakeCutTask(ctx.host, CutPurpose::kDigest));
  }
  if (words.size() == 2 && EqualsIgnoreCase(words[0], "SNAPSHOT"))
    return ReplySnapshot(ctx, words[1]);
  if (words.size() == 2 && EqualsIgnoreCase(words[0], "PART")) return ReplyPartOf(ctx, words[1]);
  ctx.Fail(UnexpectedWord(words[0], "LOCAL or SNAPSHOT"));
}

}  // namespace cellar
