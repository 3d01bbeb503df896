// ClusterConfig: the options of a node that passes commands on to others; a part of Config.
#pragma once

#include <cstdint>
#include <string>

namespace cellar {

// The last two are what holds while nobody has said anything: outside of a cluster, and in one.
enum class ClusterReads : int64_t { kLocal, kLeader, kLinearizable, kLocalUnsaid, kLeaderUnsaid };

struct ClusterConfig {
  bool cluster_forward{true};
  bool cluster_acl{true};
  int64_t cluster_wait{1000};  // milliseconds
  int64_t cluster_reads{static_cast<int64_t>(ClusterReads::kLocalUnsaid)};
  int64_t cluster_link_idle{300};  // seconds
  std::string cluster_zone{};      // told to others; empty: none
  std::string cluster_machine{};   // empty: the host's name
  std::string cluster_join{};      // "host:port host:port ...", or empty
  bool cluster_admit{false};
};

}  // namespace cellar
