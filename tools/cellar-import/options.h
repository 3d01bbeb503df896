// The command line of cellar-import.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cellar-import/command.h"
#include "cellar-import/pipeline.h"
#include "cellar-import/record_reader.h"
#include "cellar-import/redis_source.h"
#include "cellar-import/report.h"
#include "cellar-import/row_mapper.h"
#include "client/connection.h"

namespace cellar::importer {

struct Options {
  std::string path{"-"};
  std::optional<RedisOptions> redis;  // in place of a file
  Format format{Format::kCsv};
  char delimiter{','};
  bool has_header{true};
  std::vector<std::string> field_names;  // in place of a header
  uint64_t records_skipped{0};
  uint64_t records_max{UINT64_MAX};
  MapperOptions mapper;
  bool hex{false};  // dump: names and values of hexadecimal digits are decoded
  client::ConnectionOptions connection;
  PipelineOptions pipeline;
  bool create_table{false};
  std::string key_order;
  std::vector<std::string> families;  // each the words of a FAMILY clause
  std::string state_path;
  std::string errors_path;
  uint64_t errors_max{1000};
  Progress::Style progress{Progress::Style::kNone};
  bool quiet{false};
  bool dry_run{false};
  uint64_t rows_shown{0};
};

// Reads the command line. On --help, --version or a mistake prints what is to be said and gives the
// exit status in *status and no options.
std::optional<Options> ParseOptions(int argc, char** argv, int* status);

// Splits at blanks; a word may stand between double quotes.
std::vector<std::string> SplitWords(std::string_view text);

}  // namespace cellar::importer
