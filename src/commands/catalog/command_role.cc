// See command_role.h.
#include "commands/catalog/command_role.h"

#include "commands/catalog/command.h"

namespace cellar {
namespace {

struct NamedRole {
  std::string_view full_name;
  CommandRole role;
};

constexpr NamedRole kRoles[] = {
    {"exec", CommandRole::kExec},
    {"discard", CommandRole::kEndsWatches},
    {"reset", CommandRole::kEndsWatches},
    {"watch", CommandRole::kWatch},
    {"cwatch", CommandRole::kWatch},
    {"unwatch", CommandRole::kUnwatch},
    {"wait", CommandRole::kWait},
    {"waitaof", CommandRole::kWait},
    {"acl|setuser", CommandRole::kUserChange},
    {"acl|deluser", CommandRole::kUserChange},
    {"auth", CommandRole::kLogin},
    {"hello", CommandRole::kLogin},
    {"select", CommandRole::kSelect},
    {"debug|digest", CommandRole::kDigest},
    {"cscan", CommandRole::kScan},
    {"memory|usage", CommandRole::kOfNode},
    {"lolwut", CommandRole::kOfNode},
    {"tablet|list", CommandRole::kMapRead},
    {"tablet|route", CommandRole::kRoute},
    {"ping", CommandRole::kAnywhere},
    {"echo", CommandRole::kAnywhere},
    {"time", CommandRole::kAnywhere},
    {"publish", CommandRole::kAnywhere},
    {"spublish", CommandRole::kAnywhere},
    {"peer", CommandRole::kPeer},
    {"replicaof", CommandRole::kFollowing},
    {"slaveof", CommandRole::kFollowing},
    // These the catalog alone tells.
    {"feed|list", CommandRole::kNone},
    {"xinfo|consumers", CommandRole::kNone},
};

}  // namespace

CommandRole RoleOf(const Command& row, std::string_view full_name) {
  for (const NamedRole& named : kRoles)
    if (named.full_name == full_name) return named.role;
  if (full_name.starts_with("acl|")) return CommandRole::kUsers;
  if (full_name.starts_with("cluster|")) return CommandRole::kCluster;
  const bool reads_feeds = row.group == "stream" && (row.flags & kReadonly) != 0;
  return reads_feeds ? CommandRole::kFeedRead : CommandRole::kNone;
}

}  // namespace cellar
