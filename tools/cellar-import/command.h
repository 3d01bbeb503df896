// Rows as the commands that write them, in the bytes of the wire (RESP arrays of bulk strings).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar-import/row_mapper.h"

namespace cellar::importer {

struct CommandOptions {
  std::string table;
  std::string ttl;                      // of every cell, or empty
  bool aggregates{false};               // values are inputs of aggregate families
  size_t cells_per_command{1'000'000};  // the server's limit on one write
};

// Appends the CPUTs (CADDs) that write `row`: one, or more if it has more cells than one may carry
// (it is then not written in one step). Returns how many.
uint32_t AppendRow(const CommandOptions& options, const Row& row, std::string* out);

// The commands of `row` as one would type them into redis-cli, a line each.
std::string DescribeRow(const CommandOptions& options, const Row& row);

}  // namespace cellar::importer
