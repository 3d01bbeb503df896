// Which node of which set goes where, and what each is told in its configuration. No files, no
// network: the same request, the same plan.
//
//   machines a b c, 3 sets of 3 voters          set 0   a:6479  b:6479  c:6479
//                                               set 1   b:6480  c:6480  a:6480
//   a machine's nodes have ports one behind     set 2   c:6481  a:6481  b:6481
//   the other, from the first one on
//
// Each node goes to the machine that has none of its set, and whose zone has none, with the fewest
// nodes; each set begins with another machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"

namespace cellar::cluster_tool {

struct Machine {
  std::string host;
  std::string zone;  // empty: none was said
};

struct PlannedNode {
  uint64_t set{0};
  Machine machine;
  int port{0};

  // "10.0.0.1:6479"
  std::string Address() const { return machine.host + ":" + std::to_string(port); }
  // As its files and its unit are called: "set-0-6479".
  std::string Name() const;
};

struct Plan {
  std::vector<std::vector<PlannedNode>> sets;

  // Of set `set`, with spaces between.
  std::string AddressesOf(size_t set) const;
};

struct PlanRequest {
  std::vector<Machine> machines;
  uint64_t sets{1};
  uint64_t voters{1};
  int port{6479};  // of the first node of each machine
};

// "HOST" or "HOST@ZONE". The error says what is wrong with it.
Result<Machine> ParseMachine(std::string_view word);

// Whether nobody but this machine reaches `host`.
bool IsLoopback(std::string_view host);

// The error says which machine has no port left, or is there twice.
Result<Plan> MakePlan(const PlanRequest& request);

// What is unwise about it, in sentences. `has_password`: the nodes will have one.
std::vector<std::string> WarningsOf(const Plan& plan, bool has_password);

// What a node's configuration names; empty: it says nothing of it.
struct NodeFiles {
  std::string directory;
  std::string logfile;
  std::string pidfile;
};

// The lines of one node's configuration file; `lines` at its end.
std::string ConfigOf(const Plan& plan, const PlannedNode& node, const NodeFiles& files,
                     const std::string& password, const std::vector<std::string>& lines);

}  // namespace cellar::cluster_tool
