// Tables as the user of a command may see them: one without a family that the user may read or
// write is as good as absent (acl_check.h).
//
// FindTable is the one way from a word of the request to a table. It notes what the reply depends
// on, so that no reply, not even that there is no such table, leaves before what it tells is
// durable. The dispatcher's asserts hold every handler to that.
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

// FindTable for a name with a keyspace or a snapshot in it, of no table, or for a user who has not
// all rights.
Result<Table*> FindTableElsewhere(CommandContext& ctx, std::string_view word);
// The table that a word of the request names ("t", "keyspace/t", "t@snapshot"), for its user; the
// reply depends on the newest change of it or, where there is none, of the schema: that may have
// been the one that dropped it. A handler that changes the table says so again afterwards.
// NOKEYSPACE, NOSNAPSHOT, NOTABLE, each naming what there is not.
CELLAR_INLINE Result<Table*> FindTable(CommandContext& ctx, std::string_view word) {
  if (ctx.rights == nullptr) [[likely]] {
    Table* const table = ctx.store().engine().FindTable(ctx.session.keyspace, word);
    if (table != nullptr) [[likely]] {
      ctx.DependsOn(table->last_lsn());
      return table;
    }
  }
  return FindTableElsewhere(ctx, word);
}
// For a handler that changes the table at once and says behind that, whatever comes of it, on what
// its reply depends; null if there is none. REQUIRES: the user may do everything.
CELLAR_INLINE Table* FindTableToChange(const CommandContext& ctx, std::string_view word) {
  return ctx.store().FindTableIfAny(ctx.session.keyspace, word);
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

// Bytes of the families that may be read; of the whole table where `rights` is null.
uint64_t VisibleBytes(const CommandRights* rights, const Table& table);

}  // namespace cellar
