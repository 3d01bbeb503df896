// The command line of cellar-export.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/connection.h"

namespace cellar::exporter {

enum class Format : uint8_t { kRows, kJsonLines, kCsv, kTsv, kAvro };

struct Options {
  std::string table;
  std::vector<std::string> words;  // row and cell options, as CSCAN takes them
  Format format{Format::kRows};
  bool schema{false};               // rows, avro: how the table is made stands in the file
  std::string key_name{"key"};      // of the row key in jsonl, csv and tsv
  std::vector<std::string> fields;  // csv, tsv: the columns; empty: those that are there
  std::string path{"-"};
  bool compress{false};  // zstd
  bool deflate{false};   // avro: of its blocks
  std::string snapshot;  // a named one to read, in place of one that is made for the export
  std::string state_path;
  uint32_t parts{1};
  client::ConnectionOptions connection;
  bool progress{false};
  bool quiet{false};
};

// Reads the command line. On --help, --version or a mistake prints what is to be said and gives the
// exit status in *status and no options.
std::optional<Options> ParseOptions(int argc, char** argv, int* status);

}  // namespace cellar::exporter
