// Workload: which commands a run sends, in which mixture, over which keys.
//
//   Workload -> Operation (with a weight) -> Step -> CommandTemplate
//
// An operation is what a user of a store calls one: "read the record", "read, then change it". Its
// steps are rounds: step 2 is sent when the replies of step 1 have come. A step is one or several
// commands, sent together. Latency is that of the whole operation.
//
// Each built-in workload exists in two dialects, so that one tool drives Cellar and Redis: the same
// work in the words of each. YCSB is Cooper et al., "Benchmarking cloud serving systems with YCSB"
// (SoCC 2010): records of ten fields of 100 bytes; scans are of 50 records, the mean of its 1..100.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "command_template.h"
#include "key_distribution.h"

namespace cellar::benchmark {

enum class Dialect : uint8_t { kCellar, kRedis };

struct Step {
  std::vector<CommandTemplate> commands;
  uint32_t keys{1};  // the commands are sent for key, key + 1, ..., this many in all
};

struct Operation {
  std::string name;
  double weight{1.0};
  bool inserts{false};  // takes the next unused key number instead of one from the distribution
  std::vector<Step> steps;
};

struct Workload {
  std::string name;
  KeyDistributionKind keys{KeyDistributionKind::kUniform};
  std::vector<std::string> setup;     // sent once before the preload; BUSYKEY is no error
  std::vector<CommandTemplate> load;  // what one key's preload consists of
  std::vector<Operation> operations;
};

// Names of the built-in workloads, each with a line of explanation, for --help.
std::string WorkloadHelp();

// kErr if there is no workload of this name, or it does not exist in the dialect.
Result<Workload> BuiltInWorkload(std::string_view name, Dialect dialect,
                                 const TemplateOptions& options);

// A workload of the user's own commands. A text may begin with a weight, as in "80:CGET t __key__
// f:q" (1 without); its first word becomes the name. kErr for a text that does not parse.
Result<Workload> CustomWorkload(const std::vector<std::string>& commands,
                                const TemplateOptions& options);

}  // namespace cellar::benchmark
