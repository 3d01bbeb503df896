// Tables as the user of a command may see them: one without a family that the user may read or
// write is as good as absent (acl_check.h).
#pragma once

#include <string_view>
#include <vector>

#include "base/inline.h"
#include "cellar/status.h"
#include "commands/session/command_context.h"
#include "engine/schema/schema.h"
#include "engine/table/table.h"
#include "store/store.h"

namespace cellar {

// Of a user who has not all rights.
Result<Table*> FindTableByRights(const CommandContext& ctx, std::string_view word);
// Store::FindTable for this user. NOKEYSPACE, NOTABLE.
inline Result<Table*> FindVisibleTable(const CommandContext& ctx, std::string_view word) {
  if (ctx.rights == nullptr) [[likely]]
    return ctx.store().FindTable(ctx.session.keyspace, word);
  return FindTableByRights(ctx, word);
}
// The table for this user; null where there is an error, which has been replied then.
Table* FindTableOrReplyWhy(CommandContext& ctx, std::string_view word);
CELLAR_INLINE Table* FindTableOrReply(CommandContext& ctx, std::string_view word) {
  if (ctx.rights == nullptr) [[likely]] {
    Table* const table = ctx.store().engine().FindTable(ctx.session.keyspace, word);
    if (table != nullptr) [[likely]]
      return table;
  }
  return FindTableOrReplyWhy(ctx, word);
}
// Store::Tables for this user.
std::vector<Table*> VisibleTables(const CommandContext& ctx);

// Whether all of the command's table may be read. REQUIRES: it names one.
inline bool MayReadTable(const CommandContext& ctx) {
  return ctx.rights == nullptr || ctx.rights->MayReadAll();
}
// NOPERM unless the family may be written (read). Asked before it is said whether there is one.
Status CheckMayWrite(const CommandContext& ctx, std::string_view family);
Status CheckMayRead(const CommandContext& ctx, std::string_view family);
// NOPERM unless all families of the index may be read.
bool MayReadIndex(const CommandContext& ctx, const TableSchema& schema, const IndexSchema& index);

// Bytes of the families that may be read, or of the whole table.
uint64_t VisibleBytes(const CommandContext& ctx, const Table& table);

}  // namespace cellar
