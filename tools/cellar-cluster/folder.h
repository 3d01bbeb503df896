// A cluster's folder on this machine, as `start` makes it:
//
//   DIR/cluster.json     what was started: {"sets":3,"voters":1,"host":...,"port":...,"id":...}
//   DIR/set-0-6479/      a node: cellar.conf, cellar.log, cellar.pid, data/
//
// With systemd DIR is where the units' configurations are: set-0-6479.conf, and nothing else; data
// is in /var/lib/cellar/NAME, as cellar@.service has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cellar-cluster/plan.h"
#include "cellar/status.h"

namespace cellar::cluster_tool {

struct ClusterNote {
  uint64_t sets{0};
  uint64_t voters{0};
  std::string host;
  int port{0};
  bool systemd{false};
  std::string id;  // of set 0; empty: it is not known yet
};

class Folder {
 public:
  // `directory` need not be there, nor be absolute.
  explicit Folder(const std::string& directory);

  const std::string& path() const { return path_; }
  // Nothing: there is no cluster. ERR: the folder cannot be read, or holds something else.
  Result<std::optional<ClusterNote>> Read() const;
  // Makes the folder, and keeps other runs of this program out of it until this one ends. ERR: one
  // is at work there.
  Status Lock() const;
  // Replaces the note in one step. REQUIRES: Lock().
  Status Write(const ClusterNote& note) const;

  // Where a node's files are.
  std::string ConfigPath(const PlannedNode& node, bool systemd) const;
  std::string LogPath(const PlannedNode& node) const;
  std::string PidPath(const PlannedNode& node) const;
  NodeFiles FilesOf(const PlannedNode& node, bool systemd) const;
  bool HasConfig(const PlannedNode& node, bool systemd) const;
  // Writes a node's configuration, for its owner (a unit: its user) alone, and makes its folders.
  Status WriteConfig(const PlannedNode& node, bool systemd, const std::string& text) const;

 private:
  std::string path_;  // absolute
};

// All nodes of a cluster that is noted so. REQUIRES: MakePlan took it when it was noted.
Plan PlanOf(const ClusterNote& note);

// Writes a file that only its owner reads, and below folders that are made.
Status WriteFile(const std::string& path, const std::string& text);

}  // namespace cellar::cluster_tool
