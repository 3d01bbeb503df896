// The commands that make a table like this one: TABLE SHOW, and what a feed tells of a schema.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/quote.h"
#include "engine/schema/schema.h"

namespace cellar {

// Each as one would type it into redis-cli. `shows(family)` says which families are there;
// an index is if all of its families are.
template <typename Shows>
std::vector<std::string> RebuildCommands(std::string_view name, const TableSchema& schema,
                                         const Shows& shows) {
  std::string create = "TABLE CREATE " + std::string(name);
  if (!schema.key.is_plain_bytes()) create += " KEY " + QuoteWord(schema.key.spec());
  if (schema.placement.colocate != 0)
    create += " COLOCATE " + std::to_string(schema.placement.colocate);
  if (schema.placement.whole) create += " WHOLE";
  for (const FamilySchema& family : schema.families) {
    if (!shows(family)) continue;
    create += " FAMILY " + family.name + FamilyOptionsText(schema, family);
  }
  std::vector<std::string> commands{std::move(create)};
  const auto shown = [&](const std::vector<IndexColumn>& columns) {
    for (const IndexColumn& column : columns) {
      const FamilySchema* family = schema.FindFamilyById(column.family_id);
      if (family == nullptr || !shows(*family)) return false;
    }
    return true;
  };
  for (const IndexSchema& index : schema.indexes) {
    if (!shown(index.on) || !shown(index.include)) continue;
    commands.push_back("INDEX CREATE " + std::string(name) + " " +
                       IndexDefinitionText(schema, index));
  }
  return commands;
}

}  // namespace cellar
