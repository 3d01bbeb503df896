// Sample: what the server says of itself at one moment, as far as cellar-top shows it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cellar/status.h"
#include "client/cluster_state.h"
#include "client/connection.h"
#include "client/info_fields.h"

namespace cellar::top {

struct SlowCommand {
  int64_t unix_s{0};
  int64_t micros{0};
  std::string text;
  std::string client;
};

// Of a table, in the last minutes.
struct WarmRange {
  std::string table;
  std::string first;
  std::string end;  // empty: the table's end
  uint64_t reads{0};
  uint64_t writes{0};
};

struct Feed {
  std::string name;
  uint64_t groups{0};
  uint64_t bytes{0};
  int64_t lag_ms{0};
  // Of a feed over several sets:
  std::optional<uint64_t> home{};          // the set that keeps its groups
  std::optional<int64_t> resolved_ms{};    // Unix; it shows all that was written before then
  std::optional<uint64_t> held_back_by{};  // a set that is behind, or away
  std::optional<uint64_t> held_back_s{};   // not known of one that is away
};

// Where a table's tablets lie.
struct TabletSpread {
  std::string table;
  uint64_t tablets{0};
  std::map<uint64_t, uint64_t> of_set;  // tablets by the set's number
};

struct Sample {
  int64_t monotonic_micros{0};
  int64_t unix_s{0};
  std::map<std::string, std::string> info;  // all fields of INFO
  std::vector<SlowCommand> slow;            // newest first
  std::vector<WarmRange> ranges;            // warmest first
  std::vector<Feed> feeds;
  std::vector<client::SetState> sets;  // of a cluster, in their order
  std::vector<TabletSpread> spreads;   // of tables in several tablets, those with most first
  bool has_more_tablets{false};        // than were looked at
  std::vector<client::JobState> jobs;  // tablets that move
  std::vector<client::CutState> cuts;  // the last moments over all sets, newest first
  uint64_t cut_interval_s{0};          // 0: none is made by itself
  std::optional<client::BackupState> backup{};  // of all sets

  uint64_t Number(const std::string& field) const;
  std::string Text(const std::string& field) const;
};

using client::InfoFields;
using client::Parts;

// Asks the server. What the user has no right to see is left out; kIo if the connection is lost.
Result<Sample> Take(client::Connection* connection);

}  // namespace cellar::top
