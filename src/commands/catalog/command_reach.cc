// See command_reach.h.
#include "commands/catalog/command_reach.h"

#include "commands/catalog/command.h"

namespace cellar {
namespace {

struct NamedReach {
  std::string_view full_name;
  CommandReach reach;
};

// Those whose row in the command table does not tell.
constexpr NamedReach kReaches[] = {
    {"exec", CommandReach::kExec},           {"watch", CommandReach::kTables},
    {"crows", CommandReach::kRows},          {"table|sample", CommandReach::kRange},
    {"table|info", CommandReach::kInfo},     {"family|info", CommandReach::kInfo},
    {"index|info", CommandReach::kInfo},     {"tablet|split", CommandReach::kBounds},
    {"tablet|merge", CommandReach::kBounds}, {"tablet|route", CommandReach::kSureRow},
    {"tablet|move", CommandReach::kSchema},  {"tablet|cancel", CommandReach::kSchema},
    {"tablet|jobs", CommandReach::kSchema},  {"copy", CommandReach::kSchema},
    {"acl|setuser", CommandReach::kUsers},   {"acl|deluser", CommandReach::kUsers},
    {"cluster|init", CommandReach::kNode},   {"heat", CommandReach::kNode},
    {"xadd", CommandReach::kNode},           {"xdel", CommandReach::kNode},  // refused as ever
    {"xtrim", CommandReach::kNode},          {"xsetid", CommandReach::kNode},
};

}  // namespace

CommandReach ReachOf(const Command& row, std::string_view full_name) {
  for (const NamedReach& named : kReaches)
    if (named.full_name == full_name) return named.reach;
  const bool writes = (row.flags & kWrite) != 0;
  const auto is_of = [&row](uint32_t categories) { return (row.categories & categories) != 0; };
  if (full_name.starts_with("cluster|"))
    return writes || (row.flags & kReadonly) != 0 ? CommandReach::kSchema : CommandReach::kNode;
  if (writes && is_of(kCategorySchema | kCategoryKeyspace)) return CommandReach::kSchema;
  if (is_of(kCategoryStream) && !row.feeds.none()) return CommandReach::kFeeds;
  if (!is_of(kCategoryCell) || row.keys.none()) return CommandReach::kNode;
  return row.keys.row != 0 ? CommandReach::kRow : CommandReach::kRange;
}

}  // namespace cellar
