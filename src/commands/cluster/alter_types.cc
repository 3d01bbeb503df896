// See alter_types.h.
// TypeAsks asks the sets; LookAndAlter and ConvertAfter are the tasks in front of the alteration
// and behind it.
#include "commands/cluster/alter_types.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/number.h"
#include "base/text/quote.h"
#include "cluster/call_frames.h"
#include "commands/cluster/alter_wait.h"
#include "commands/cluster/call_piece.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/command_route.h"
#include "commands/cluster/reply_reader.h"
#include "commands/cluster/scatter_task.h"
#include "commands/cluster/type_part_call.h"
#include "commands/config/config.h"
#include "commands/replies/change_task.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "store/cell_conversion.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/store.h"

namespace cellar {
namespace {

// How long a set may be away, behind the alteration.
constexpr int64_t kAwayMicros{10'000'000};
constexpr int64_t kAgainMicros{25'000};

// The command, for as long as its tasks go on.
struct Alteration {
  Host& host;
  Session& session;
  uint64_t table_id{0};
  uint64_t lineage{0};
  std::string table;               // keyspace/table
  std::vector<std::string> words;  // the family, and what is said of it
  std::string family;
  FamilyOptions options;
  uint64_t wanted{0};
  const CommandEntry& command;

  OtherCells others() const { return options.other_cells.value_or(OtherCells::kRefuse); }
  Table* FindTable() const {
    return host.store().lineage() == lineage ? host.store().TableById(table_id) : nullptr;
  }
};

// One round over all sets with rows of the table.
class TypeAsks {
 public:
  // `alteration` outlives it.
  explicit TypeAsks(const Alteration& alteration) : of_(alteration), host_(of_.host) {}
  ~TypeAsks() { Forget(); }
  TypeAsks(const TypeAsks&) = delete;
  TypeAsks& operator=(const TypeAsks&) = delete;

  void Begin(TypePart::Does does) {
    Forget();
    does_ = does;
    left_ = KeyRangeSet::All();
    found_ = {};
    failure_.clear();
    failed_ = false;
    since_micros_ = again_micros_ = 0;
  }
  enum class State : uint8_t { kWaits, kAnswered, kFailed };
  State Advance() {
    for (size_t i = 0; i < asked_.size();) {
      if (!TakeAnswer(asked_[i])) {
        ++i;
        continue;
      }
      asked_.erase(asked_.begin() + static_cast<ptrdiff_t>(i));
      if (failed_) {
        Forget();
        return State::kFailed;
      }
    }
    if (!left_.empty() && !AskForRest()) return State::kFailed;
    return left_.empty() && asked_.empty() ? State::kAnswered : State::kWaits;
  }
  // REQUIRES: kAnswered.
  const FoundCells& found() const { return found_; }
  // The line of an error. REQUIRES: kFailed.
  const std::string& failure() const { return failure_; }
  // Whether it is that sets are away.
  bool is_away() const { return !failed_; }

 private:
  struct Asked {
    uint64_t set;
    uint64_t ticket;
    KeyRangeSet rows;
  };

  void Forget() {
    for (const Asked& asked : asked_) host_.services().remote->Forget(asked.ticket);
    asked_.clear();
  }

  // Nothing has changed by a look, so that what fails may end it; what comes behind the alteration
  // goes on when the set is there again.
  bool IsOfOneAway(std::string_view line) const {
    if (does_ == TypePart::Does::kLook) return false;
    return line.starts_with("CLUSTERDOWN ") || line.starts_with("TRYAGAIN ") ||
           line.starts_with("LOADING ");
  }

  // What a set says that it does not know, and this one does.
  std::string FailureAt(uint64_t set, const RemoteCalls::Answer& answer) const {
    std::string line = FailureOf(answer);
    const bool lacks = line.starts_with("NOTABLE ") || line.starts_with("NOFAMILY ") ||
                       line.starts_with("NOKEYSPACE ");
    const Table* const table = of_.FindTable();
    if (!lacks || table == nullptr || table->schema().FindFamily(of_.family) == nullptr)
      return line;
    return "TRYAGAIN set " + FormatUint64(set) + " has not taken the schema of the table yet";
  }

  // False: it has none yet.
  bool TakeAnswer(const Asked& asked) {
    RemoteCalls& remote = *host_.services().remote;
    const RemoteCalls::Answer& answer = remote.AnswerTo(asked.ticket);
    if (answer.state == RemoteCalls::State::kPending) return false;
    FoundCells found;
    const bool moved = answer.state == RemoteCalls::State::kMoved || answer.bytes == kMovedPiece;
    if (moved) {
      failure_ = "TRYAGAIN its rows are on their way from one set to another";
      left_.AddAll(asked.rows);
    } else if (answer.state == RemoteCalls::State::kAnswered &&
               ReadTypesReply(answer.bytes, &found)) {
      since_micros_ = 0;
      Add(std::move(found));
    } else {
      failure_ = FailureAt(asked.set, answer);
      failed_ = !IsOfOneAway(failure_);
      left_.AddAll(asked.rows);
    }
    remote.Forget(asked.ticket);
    return true;
  }

  void Add(FoundCells found) {
    if (found.cells == 0) return;
    const uint64_t cells = found_.cells + found.cells;
    if (found_.cells == 0 || found.row_key < found_.row_key) found_ = std::move(found);
    found_.cells = cells;
  }

  // False: it has gone on for too long.
  bool AskForRest() {
    const int64_t now = host_.clock().MonotonicMicros();
    if (since_micros_ == 0) since_micros_ = now;
    if (now < again_micros_) return true;
    if (now - since_micros_ >= kAwayMicros) {
      Forget();
      return false;
    }
    again_micros_ = now + kAgainMicros;
    std::map<uint64_t, KeyRangeSet> sets;
    if (!DivideRows(MapOf(host_).Find(of_.table_id), left_, &sets)) {
      failure_ = "TRYAGAIN the map does not say who has all of its rows";
      return true;
    }
    for (auto& [set, rows] : sets) asked_.push_back({set, Ask(set, rows), rows});
    left_ = {};
    return true;
  }

  uint64_t Ask(uint64_t set, const KeyRangeSet& rows) {
    CallPiece piece;
    piece.table_id = of_.table_id;
    piece.rows = rows;
    const std::string wanted = FormatUint64(of_.wanted);
    std::vector<std::string_view> words{"CLUSTER", "TYPES", TypesWord(does_), wanted, of_.table};
    words.insert(words.end(), of_.words.begin(), of_.words.end());
    std::string text;
    PutCallCount(2, &text);
    piece.Put(&text);
    PutCallWords(words, &text);
    // It may be done twice: a set whose leader is lost is asked anew, as for a read.
    return host_.services().remote->Ask(of_.session, set, std::move(text), false);
  }

  const Alteration& of_;
  Host& host_;
  TypePart::Does does_{TypePart::Does::kLook};
  KeyRangeSet left_;  // rows that nobody is asked for
  std::vector<Asked> asked_;
  FoundCells found_;
  std::string failure_;
  bool failed_{false};
  int64_t since_micros_{0};  // monotonic, that some are left; 0: none are
  int64_t again_micros_{0};  // when sets are asked next
};

// Replies, at the end.
class ConvertAfter final : public Task {
 public:
  explicit ConvertAfter(Alteration alteration) : of_(std::move(alteration)), asks_(of_) {}

  TaskProgress Step(TaskContext& context) override {
    const bool sees = of_.others() == OtherCells::kRefuse;
    if (!std::exchange(begun_, true))
      asks_.Begin(sees ? TypePart::Does::kSee : TypePart::Does::kConvert);
    context.depends_on = of_.host.store().schema_lsn();
    switch (asks_.Advance()) {
      case TypeAsks::State::kWaits:
        if (!context.budget.unlimited()) return TaskProgress::kWaiting;
        context.Fail("TRYAGAIN the types of family " + Quote(of_.family) + " have changed");
        break;
      case TypeAsks::State::kFailed:
        if (!asks_.is_away()) {
          context.Fail(asks_.failure());
          break;
        }
        context.Fail(
            "TRYAGAIN the types of family " + Quote(of_.family) +
            " have changed; not all of its cells were looked at behind that: " + asks_.failure());
        break;
      case TypeAsks::State::kAnswered:
        Reply(context, asks_.found());
        break;
    }
    return TaskProgress::kDone;
  }

 private:
  void Reply(TaskContext& context, const FoundCells& found) {
    if (found.cells == 0 || of_.others() == OtherCells::kSkip) return context.reply.Ok();
    if (of_.others() == OtherCells::kConvert) return context.Fail(CellConversion::Left(found));
    context.Fail(Status::Error(ErrorCode::kWrongType,
                               "the types of family " + Quote(of_.family) +
                                   " have changed, and meanwhile cells were written of " +
                                   found.text + ": CONVERT rewrites them, KEEP leaves them"));
  }

  const Alteration of_;
  TypeAsks asks_;
  bool begun_{false};
};

Status TypesUnknown() {
  return Status::Error(ErrorCode::kTryAgain,
                       "not all sets of the cluster have said that they know how types are changed "
                       "over several sets: one is away, or has members of an earlier version");
}

// Up to the alteration; then that, and what it waits for.
class LookAndAlter final : public Task {
 public:
  LookAndAlter(Alteration alteration, std::unique_ptr<Task> then)
      : of_(std::move(alteration)), asks_(of_), then_(std::move(then)) {
    if (Looks()) asks_.Begin(TypePart::Does::kLook);
  }

  TaskProgress Step(TaskContext& context) override {
    if (alter_ != nullptr) return alter_->Step(context);
    context.depends_on = of_.host.store().schema_lsn();
    if (!all_know_ && !of_.host.services().cluster_map.KnowTypes()) {
      // Behind an election, or when a set has come, they say so within a moment.
      const int64_t patience_micros = of_.host.services().config.cluster_wait * 1000;
      if (!WaitedFor(patience_micros) && !context.budget.unlimited()) return TaskProgress::kWaiting;
      context.Fail(TypesUnknown());
      return TaskProgress::kDone;
    }
    if (!std::exchange(all_know_, true)) waits_since_micros_ = 0;
    if (Looks()) {
      const TypeAsks::State state = asks_.Advance();
      if (state == TypeAsks::State::kWaits && !context.budget.unlimited())
        return TaskProgress::kWaiting;
      Status refusal;
      if (state == TypeAsks::State::kAnswered)
        refusal = TypeLook::RefusalOf(AsksOf(of_.options), of_.family, asks_.found());
      if (state != TypeAsks::State::kAnswered || !refusal.ok()) {
        if (refusal.ok())
          context.Fail(asks_.failure());
        else
          context.Fail(refusal);
        return TaskProgress::kDone;
      }
    }
    if (WaitsForTablets() && !context.budget.unlimited()) return TaskProgress::kWaiting;
    if (const Status altered = Alter(); !altered.ok()) {
      context.Fail(altered);
      return TaskProgress::kDone;
    }
    return alter_->Step(context);
  }
  void Abandon() override {
    if (alter_ != nullptr) alter_->Abandon();
  }
  size_t memory_bytes() const override { return alter_ == nullptr ? 0 : alter_->memory_bytes(); }

 private:
  bool Looks() const { return of_.others() != OtherCells::kSkip; }

  // As the command has waited before it began; not for ever: then it is refused.
  bool WaitsForTablets() {
    return cellar::WaitsForTablets(of_.host.store().engine(), of_.command) &&
           !WaitedFor(kAwayMicros);
  }

  // It has waited so long.
  bool WaitedFor(int64_t micros) {
    const int64_t now = of_.host.clock().MonotonicMicros();
    if (waits_since_micros_ == 0) waits_since_micros_ = now;
    return now - waits_since_micros_ >= micros;
  }

  // What others have altered meanwhile may be what was looked at.
  Status Alter() {
    Table* const table = of_.FindTable();
    if (table == nullptr) return Status::Error(ErrorCode::kNoTable, "the table has been dropped");
    const FamilySchema* const family = table->schema().FindFamily(of_.family);
    if (family == nullptr)
      return Status::Error(ErrorCode::kNoFamily, "the family has been dropped");
    FamilySchema after;
    RETURN_IF_ERROR(AlterTypes(table->schema(), *family, of_.options, &after));
    if (TypeChange(after, of_.options).Hash() != of_.wanted)
      return TypePart::ChangedMeanwhile(*family);
    FamilyOptions options = of_.options;
    options.other_cells = OtherCells::kKeep;
    ASSIGN_OR_RETURN(
        std::unique_ptr<SlicedChange> change,
        of_.host.store().AlterFamily(*table, {of_.family, std::move(options)}, nullptr));
    alter_ = ChangeAsTask(of_.host, *table, std::move(change), std::move(then_));
    return Status::Ok();
  }

  const Alteration of_;
  TypeAsks asks_;
  std::unique_ptr<Task> then_;
  std::unique_ptr<Task> alter_;
  bool all_know_{false};
  int64_t waits_since_micros_{0};  // monotonic; 0: it does not
};

}  // namespace

Result<std::unique_ptr<Task>> AlterTypesOfSets(CommandContext& ctx, Table& table,
                                               const FamilyRequest& family) {
  const FamilyOptions& options = family.options;
  const bool keeps = options.other_cells == OtherCells::kKeep;
  const bool has_types = options.type || !options.columns.empty();
  if (!has_types || keeps || table.tablets() == nullptr || table.tablets()->owns_all() ||
      !HasSetsToAwait(ctx))
    return std::unique_ptr<Task>();
  FamilyOptions checked = options;
  checked.other_cells = OtherCells::kKeep;
  RETURN_IF_ERROR(
      ctx.store().AlterFamily(table, {family.name, std::move(checked)}, ctx.rights).status());
  const FamilySchema* const before = table.schema().FindFamily(family.name);
  FamilySchema after;
  RETURN_IF_ERROR(AlterTypes(table.schema(), *before, options, &after));
  const TypeChange change(after, options);
  if (!change.asks()) return std::unique_ptr<Task>();
  RETURN_IF_ERROR(ClusterPart::CheckAllThere(ctx.host, table));
  const Alteration alteration{ctx.host,
                              ctx.session,
                              table.id(),
                              ctx.store().lineage(),
                              table.keyspace() + "/" + table.name(),
                              {ctx.args.begin() + 3, ctx.args.end()},
                              std::string(family.name),
                              options,
                              change.Hash(),
                              ctx.command};
  return std::unique_ptr<Task>(std::make_unique<LookAndAlter>(
      alteration, AwaitSettled(ctx, table, std::make_unique<ConvertAfter>(alteration))));
}

}  // namespace cellar
