// CommandTable: all commands by name, with their running figures.
//
// The rows are constexpr and live for ever; the table gives each (and each subcommand) an entry:
// its full name ("client|list"), categories with the implied ones, and counters for INFO
// commandstats. It is built once at start and found by an open-addressed hash over the lower-cased
// name: no allocation, one probe nearly always.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/equal_bytes.h"
#include "base/key_buffer.h"
#include "commands/catalog/command.h"
#include "commands/catalog/command_reach.h"
#include "commands/catalog/command_role.h"

namespace cellar {

// Latencies in buckets of powers of two of a nanosecond unit (1.024 us), for LATENCY HISTOGRAM and
// the percentiles of INFO.
struct LatencyHistogram {
  static constexpr int kBuckets{32};
  uint64_t counts[kBuckets]{};  // bucket 0: below 1.024 us; i: [2^(i-1), 2^i) units
  void Add(uint64_t nanos) {
    // The width of nanos / 1024: a last bit that is always set stands for none.
    const auto bucket = static_cast<size_t>(std::bit_width(nanos >> 9 | 1) - 1);
    ++counts[std::min(bucket, size_t{kBuckets - 1})];
  }
  // Upper bound of a bucket in microseconds.
  static double UpperMicros(int bucket) {
    return static_cast<double>(uint64_t{1} << bucket) * 1.024;
  }
  // Upper bound of the bucket that holds the percentile (0..100); 0 if empty.
  double PercentileMicros(double percentile) const;
};

struct CommandStats {
  uint64_t calls{0};
  uint64_t rejected_calls{0};
  uint64_t failed_calls{0};
  uint64_t nanos{0};  // not beside `calls`: counted as a pair they would cost thrice as much
  LatencyHistogram latency;
};

struct CommandEntry {
  const Command* row{nullptr};
  const CommandEntry* parent{nullptr};  // of a subcommand: its container
  std::string full_name;                // "get", "client|list"
  uint32_t categories{0};
  uint16_t id{0};  // dense, for bit sets of access control
  CommandRole role{CommandRole::kNone};
  CommandReach reach{CommandReach::kNode};
  size_t words_min{0};  // of a request, its name included: what the row's arity says
  size_t words_max{0};
  std::vector<CommandEntry*> subcommands;
  CommandStats stats;

  bool Has(uint32_t flags) const { return (row->flags & flags) != 0; }
  bool Is(CommandRole wanted) const { return role == wanted; }
  bool Takes(size_t words) const { return words >= words_min && words <= words_max; }
};

class CommandTable {
 public:
  CommandTable() = default;
  CommandTable(const CommandTable&) = delete;
  CommandTable& operator=(const CommandTable&) = delete;

  // Adds rows and their subcommands. REQUIRES: the names are new.
  void Add(std::span<const Command> rows);

  // The entry of a command's first word, in any case; null if there is none.
  CommandEntry* Find(std::string_view name) const {
    // Clients send the same command, in the same letters, again and again.
    if (EqualBytes(name, last_name_.view())) [[likely]]
      return last_found_;
    return FindAnew(name);
  }
  // A container's subcommand, in any case; null if there is none.
  static CommandEntry* FindSubcommand(const CommandEntry& container, std::string_view name);
  // By a name as COMMAND INFO takes it: "get", "client|list".
  CommandEntry* FindByFullName(std::string_view name) const;

  // The commands in the order they were added (no subcommands), and everything with subcommands.
  const std::vector<CommandEntry*>& commands() const { return commands_; }
  const std::vector<std::unique_ptr<CommandEntry>>& entries() const { return entries_; }
  void ResetStats();

 private:
  static constexpr size_t kSlots{1024};  // a power of two, several times the number of commands
  static constexpr size_t kNameBytesMax{32};
  // An entry for `row`, the last of all.
  CommandEntry* AddEntry(const Command& row, std::string full_name);
  static uint64_t HashName(const char* lower, size_t bytes);
  // Lower-cases `name` into `to`; false if it is too long to be a command's.
  static bool LowerName(std::string_view name, char* to);
  // Find without what it remembers.
  CommandEntry* FindAnew(std::string_view name) const;
  CommandEntry* FindInSlots(std::string_view name) const;

  std::vector<std::unique_ptr<CommandEntry>> entries_;
  std::vector<CommandEntry*> commands_;
  std::vector<CommandEntry*> slots_ = std::vector<CommandEntry*>(kSlots);
  // Find's answer to its last question.
  mutable KeyBuffer last_name_;
  mutable CommandEntry* last_found_{nullptr};
};

// The Redis words of flags and categories, for COMMAND INFO and ACL CAT.
struct NamedBit {
  uint32_t bit;
  std::string_view name;
};
std::span<const NamedBit> CommandFlagNames();
std::span<const NamedBit> CategoryNames();

}  // namespace cellar
