// See type_part_call.h.
#include "commands/cluster/type_part_call.h"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "commands/acl/acl_check.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/cluster/call_piece.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/reply_reader.h"
#include "commands/replies/visible_table.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/tracking.h"
#include "engine/request/row_update.h"

namespace cellar {
namespace {

constexpr std::array<std::string_view, 3> kWords{"LOOK", "CONVERT", "SEE"};  // as TypePart::Does
constexpr size_t kTableAt{4};

class TypePartTask final : public Task {
 public:
  TypePartTask(Host& host, const Table& table, std::unique_ptr<TypePart> part, bool writes)
      : host_(host),
        keyspace_(table.keyspace()),
        table_(table.name()),
        part_(std::move(part)),
        writes_(writes) {}

  TaskProgress Step(TaskContext& context) override {
    const bool unlimited = context.budget.unlimited();
    // Also while the set is handed over.
    if (writes_ && host_.writes_paused() && !unlimited) return TaskProgress::kWaiting;
    while (!part_->done()) {
      const Status status = part_->Step(kSliceCells);
      if (!status.ok()) {
        TellReaders();
        context.depends_on = host_.store().last_lsn();
        context.Fail(status);
        return TaskProgress::kDone;
      }
      if (!part_->done() && context.budget.Spent()) {
        TellReaders();
        return TaskProgress::kMore;
      }
    }
    TellReaders();
    context.depends_on = host_.store().last_lsn();
    const FoundCells found = part_->found();
    context.reply.Array(3);
    context.reply.Unsigned(found.cells);
    context.reply.Bulk(found.row_key);
    context.reply.Bulk(found.text);
    return TaskProgress::kDone;
  }
  size_t memory_bytes() const override { return part_->memory_bytes(); }
  void Abandon() override { TellReaders(); }

 private:
  static constexpr uint64_t kSliceCells{128};

  // What they have read has another type now.
  void TellReaders() {
    if (part_->rows() == std::exchange(rows_told_, part_->rows())) return;
    Tracking& tracking = host_.services().tracking;
    if (tracking.active()) tracking.TableChanged(host_, keyspace_, table_);
  }

  Host& host_;
  const std::string keyspace_;
  const std::string table_;
  const std::unique_ptr<TypePart> part_;
  const bool writes_;
  uint64_t rows_told_{0};
};

// As FAMILY ALTER of that user would have them; null: all. Who asks has asked whether he may alter.
std::unique_ptr<FamilyAccess> RightsOf(CommandContext& ctx, const Table& table) {
  const User* const user = ctx.session.user;
  CommandEntry* const container = ctx.host.services().commands.Find("family");
  if (user == nullptr || user->unrestricted() || container == nullptr) return nullptr;
  const CommandEntry* const alter = CommandTable::FindSubcommand(*container, "alter");
  CELLAR_ASSERT(alter != nullptr);
  const std::string_view words[] = {"FAMILY", "ALTER", ctx.args[kTableAt], ctx.args[kTableAt + 1]};
  CommandRights rights(*user, CheckCommand(*user, *alter, words, ctx.session.keyspace).selectors);
  rights.SetTable(ctx.session.keyspace, ctx.args[kTableAt]);
  auto copy = std::make_unique<FamilyAccessCopy>(rights);
  for (const FamilySchema& family : table.schema().families) copy->Add(rights, family.name);
  return copy;
}

std::optional<TypePart::Does> DoesOf(std::string_view word) {
  for (size_t i = 0; i < kWords.size(); ++i)
    if (kWords.at(i) == word) return static_cast<TypePart::Does>(i);
  return std::nullopt;
}

}  // namespace

std::string_view TypesWord(TypePart::Does does) { return kWords.at(static_cast<size_t>(does)); }

bool IsTypesCall(std::span<const std::string_view> words) {
  return words.size() > kTableAt + 1 && words[0] == "CLUSTER" && words[1] == "TYPES";
}

void CmdClusterTypes(CommandContext& ctx) {
  if (!ClusterPart::IsOfCluster(ctx)) return;
  const CallPiece* const piece = ctx.host.services().piece;
  if (piece == nullptr) return ctx.Fail("ERR CLUSTER TYPES is for nodes: FAMILY ALTER asks it");
  const std::optional<TypePart::Does> does = DoesOf(ctx.args[2]);
  TypePart::Request request;
  if (!does || ParseUint64(ctx.args[3], &request.wanted) != NumberError::kNone)
    return ctx.SyntaxError();
  ASSIGN_OR_REPLY(ctx, FamilyRequest family,
                  ParseFamily(FamilyVerb::kAlter, ArgumentCursor(ctx.args, kTableAt + 1)));
  ASSIGN_OR_REPLY(ctx, Table* const table, FindTable(ctx, ctx.args[kTableAt]));
  const OtherCells others = family.options.other_cells.value_or(OtherCells::kRefuse);
  const bool converts = *does == TypePart::Does::kConvert;
  if (converts && others != OtherCells::kConvert && others != OtherCells::kSkip)
    return ctx.SyntaxError();
  if (table->id() != piece->table_id)
    return ctx.Fail("TRYAGAIN the table was dropped and made anew meanwhile");
  request.does = *does;
  request.family = family.name;
  request.options = std::move(family.options);
  request.rows = piece->rows;
  ASSIGN_OR_REPLY(ctx, std::unique_ptr<TypePart> part,
                  TypePart::Make(ctx.store(), *table, std::move(request), RightsOf(ctx, *table)));
  ctx.Continue(std::make_unique<TypePartTask>(ctx.host, *table, std::move(part), converts));
}

bool ReadTypesReply(std::string_view reply, FoundCells* found) {
  ReplyReader reader(reply);
  uint64_t elements = 0;
  std::string_view row;
  std::string_view text;
  if (!reader.Array(&elements) || elements != 3 || !reader.Unsigned(&found->cells) ||
      !reader.Bulk(&row) || !reader.Bulk(&text) || !reader.done())
    return false;
  found->row_key = row;
  found->text = text;
  return true;
}

}  // namespace cellar
