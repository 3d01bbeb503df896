// The process of one node on this machine: begun in the background, found again by its pid file,
// told to end. By itself, or as a unit of systemd.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cellar-cluster/folder.h"
#include "cellar-cluster/plan.h"
#include "cellar/status.h"

namespace cellar::cluster_tool {

class NodeProcess {
 public:
  // `folder` must outlive it.
  NodeProcess(const Folder& folder, PlannedNode node, bool systemd)
      : folder_(&folder), node_(std::move(node)), systemd_(systemd) {}

  const PlannedNode& node() const { return node_; }

  // Whether it runs, and is this folder's.
  bool IsRunning() const;
  // ERR: another program listens on its port. REQUIRES: it does not run.
  Status CheckPort() const;
  // Begins it. By itself: `program` with its configuration, in a session of its own.
  Status Begin(const std::string& program);
  // After Begin(): ERR with the last line of its log, if it has ended since.
  Status CheckAlive();
  // Tells it to end; Ok if it does not run.
  Status Tell() const;

 private:
  // Of the pid file, if that process is this node; else 0.
  pid_t Pid() const;
  std::string Unit() const { return "cellar@" + node_.Name() + ".service"; }

  const Folder* folder_;
  PlannedNode node_;
  bool systemd_;
  pid_t begun_{0};  // a child of this program
};

// Runs a program with these words and waits: its exit status, or -1. *output: what it has printed;
// what it says of errors is this program's.
int RunAndRead(const std::vector<std::string>& words, std::string* output);

// The server that is meant by no name: the one beside this program, or in PATH.
std::string ServerProgram();

}  // namespace cellar::cluster_tool
