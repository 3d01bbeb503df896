// See visible_table.h.
#include "commands/replies/visible_table.h"

#include <algorithm>

#include "base/text/quote.h"
#include "engine/schema/column_set.h"

namespace cellar {

Result<Table*> FindTableElsewhere(CommandContext& ctx, std::string_view word) {
  Result<Table*> table = ctx.store().FindTable(ctx.session.keyspace, word);
  ctx.DependsOn(table.ok() ? (*table)->last_lsn() : ctx.store().schema_lsn());
  if (!table.ok() || ctx.rights == nullptr || ctx.rights->Sees(**table)) [[likely]]
    return table;
  // The words for a table that is not there: a hidden one must not be told from that.
  return Status::Error(ErrorCode::kNoTable, "no table " + Quote((*table)->name()) +
                                                " in keyspace " + Quote((*table)->keyspace()));
}

std::vector<Table*> VisibleTables(const CommandContext& ctx) {
  std::vector<Table*> tables = ctx.store().Tables(ctx.session.keyspace);
  if (ctx.rights != nullptr) {
    std::erase_if(tables, [&ctx](const Table* table) { return !ctx.rights->Sees(*table); });
  }
  return tables;
}

Status CheckMayWrite(const CommandContext& ctx, std::string_view family) {
  return ctx.rights == nullptr || ctx.rights->MayWrite(family) ? Status::Ok() : NoPermission();
}

Status CheckMayRead(const CommandContext& ctx, std::string_view family) {
  return ctx.rights == nullptr || ctx.rights->MayRead(family) ? Status::Ok() : NoPermission();
}

bool MayReadIndex(const CommandContext& ctx, const TableSchema& schema, const IndexSchema& index) {
  if (ctx.rights == nullptr) return true;
  const auto readable = [&](const IndexColumn& column) {
    const FamilySchema* family = schema.FindFamilyById(column.family_id);
    return family != nullptr && ctx.rights->MayRead(family->name);
  };
  return std::all_of(index.on.begin(), index.on.end(), readable) &&
         std::all_of(index.include.begin(), index.include.end(), readable);
}

uint64_t VisibleBytes(const CommandRights* rights, const Table& table) {
  if (rights == nullptr) return table.memory_bytes();
  uint64_t bytes = 0;
  for (const FamilySchema& family : table.schema().families) {
    if (rights->MayRead(family.name)) bytes += table.family_counters(family).bytes;
  }
  return bytes;
}

}  // namespace cellar
