// What a node tells of the cluster that it is part of: sets and their members, tablets, events
// (cellar-cluster(7)). As it tells it: nothing here is checked against another node.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "client/connection.h"

namespace cellar::client {

struct SetMember {
  std::string id;
  std::string host;
  int port{0};
  std::string kind;   // voter, standby, witness
  std::string state;  // leader, online, ...
  std::string version;

  std::string Address() const { return host + ":" + std::to_string(port); }
};

struct SetState {
  std::optional<uint64_t> number;  // none: it waits to be admitted
  std::string id;
  std::string state;   // ok, empty, no-leader, waiting, ...
  std::string leader;  // "host:port"; empty: nobody leads
  std::vector<SetMember> members;
  uint64_t tablets{0};
  uint64_t bytes{0};
  uint64_t maxmemory{0};  // 0: no limit
  uint64_t catalog{0};

  // "set 2", or the address of one that waits.
  std::string Name() const;
};

struct TabletState {
  std::string table;  // as the map has it, "keyspace/table"
  std::string start;  // empty: there is no bound
  std::string end;
  uint64_t set{0};
  uint64_t epoch{0};
  std::optional<uint64_t> bytes;  // none: nobody has told
  std::optional<uint64_t> rows;
  std::optional<uint64_t> load;  // percent of a core
  std::string state;
};

struct TabletMap {
  uint64_t version{0};
  std::vector<TabletState> tablets;
};

// A tablet that moves from one set to another, or has within the last hour.
struct JobState {
  uint64_t job{0};
  std::string table;  // "keyspace/table"
  std::string start;  // empty: there is no bound
  std::string end;
  uint64_t from{0};  // sets
  uint64_t to{0};
  std::string state;
  uint64_t copied{0};             // bytes
  std::optional<uint64_t> bytes;  // that there are to be copied, about; none: nobody has told
  int64_t started_ms{0};
  std::string error;
  bool ended() const { return state == "done" || state == "cancelled"; }
};

// A moment over all sets.
struct CutState {
  uint64_t cut{0};
  int64_t unix_micros{0};
  std::string purpose;
  std::string state;  // open, good, bad
};

// BACKUP STATUS of all sets.
struct BackupState {
  std::string state;  // of the set that is furthest behind
  std::string error;
  int64_t start_unix_s{0};                 // 0: none has begun
  int64_t end_unix_s{0};                   // 0: it is not sealed
  uint64_t cut{0};                         // that it is of; 0: of none yet
  std::map<uint64_t, std::string> of_set;  // states by the set's number; empty: of one set
  std::string folder{};                    // of this node; empty: it does not say
};

struct ClusterEvent {
  int64_t unix_ms{0};
  std::string what;
  std::string why;
};

// "host:port", of an IPv6 address too; nothing if it is none.
struct HostPort {
  std::string host;
  int port{0};
};
std::optional<HostPort> ParseHostPort(std::string_view text);

// All of these: kIo if the connection is lost, else the server's no, as it says it.
// Empty: the server is a node of a set that is part of no cluster.
Result<std::vector<SetState>> ReadSets(Connection* connection);
// The first `count` tablets of `table`, or of all tables if it is empty.
Result<TabletMap> ReadTablets(Connection* connection, std::string_view table, uint64_t count);
// By their numbers.
Result<std::vector<JobState>> ReadJobs(Connection* connection);
// Newest first.
Result<std::vector<CutState>> ReadCuts(Connection* connection, uint64_t count);
// cluster-cut-interval, in seconds.
Result<uint64_t> ReadCutInterval(Connection* connection);
Result<BackupState> ReadBackup(Connection* connection);
// Newest first.
Result<std::vector<ClusterEvent>> ReadEvents(Connection* connection, uint64_t count);
// What CLUSTER MAP CHECK finds wrong.
Result<std::vector<std::string>> CheckMap(Connection* connection);

}  // namespace cellar::client
