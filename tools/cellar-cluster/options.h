// The command line of cellar-cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/connection.h"
#include "s3/s3_url.h"

namespace cellar::cluster_tool {

enum class Action : uint8_t { kPlan, kStart, kStop, kStatus, kMap, kEvents, kBackup, kRecover };

struct Options {
  Action action{Action::kStatus};
  std::vector<std::string> words;        // plan: machines; map: a table; recover: from where
  std::vector<std::string> directories;  // recover: of the sets, by their numbers
  std::string until;                     // recover: a time or CUT:n; empty: as the backup has it
  S3Settings s3;                         // recover: from a bucket
  client::ConnectionOptions connection;
  std::string directory{"cluster"};
  bool is_directory_given{false};
  // Nothing: as the folder has it, or the usual.
  std::optional<uint64_t> sets;
  std::optional<uint64_t> voters;
  std::optional<int> port;
  std::optional<std::string> host;
  std::vector<std::string> lines;  // more of each node's configuration
  std::string program;             // the server; empty: the one beside this program, or in PATH
  std::string write_to;            // plan: the folder for configuration files; empty: none
  bool systemd{false};
  bool json{false};
  bool quiet{false};
  uint64_t count{0};  // of tablets, or events
  uint64_t wait_s{60};
};

inline constexpr uint64_t kSetsMax{1024};
inline constexpr uint64_t kVotersMax{9};

// Nothing: the program ends with `*status`, and has said why.
std::optional<Options> ParseOptions(int argc, char** argv, int* status);

}  // namespace cellar::cluster_tool
