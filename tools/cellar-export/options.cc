// See options.h.
#include "cellar-export/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/text/ascii.h"
#include "client/program.h"
#include "command_line.h"

namespace cellar::exporter {
namespace {

constexpr char kDescription[] =
    "Writes the rows of a table to a file.\n"
    "Exit status: 0 all rows are written; 1 some could not be said in the format (they are named); "
    "2 the export could not start or not continue.";
constexpr uint32_t kPartsMax{64};

// What needs a second look after CLI11 has filled it in.
struct RawOptions {
  std::string format{"auto"};
  std::string compression{"auto"};
  std::string progress{"auto"};
};

void AddOutputOptions(CLI::App* app, Options* options, RawOptions* raw) {
  app->add_option("table", options->table, "table, or keyspace/table")->required();
  app->add_option("words", options->words,
                  "row and cell options in CSCAN's words, such as: PREFIX a COLUMNS 1 f");
  const std::string group{"Output"};
  app->add_option("-o,--output", options->path, "file to write; - is standard output (-)")
      ->group(group);
  app->add_option("-f,--format", raw->format,
                  "auto (by the file's name, else rows), rows, jsonl, csv, tsv, avro")
      ->check(CLI::IsMember({"auto", "rows", "jsonl", "csv", "tsv", "avro"}))
      ->group(group);
  app->add_flag("--schema", options->schema, "rows, avro: put in the commands that make the table")
      ->group(group);
  app->add_option("--key-name", options->key_name, "name of the row key in jsonl, csv, tsv (key)")
      ->group(group);
  app->add_option("--fields", options->fields,
                  "csv, tsv: columns, as FAMILY:QUALIFIER[:TYPE]; without it a first pass looks "
                  "for all that are there")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
  app->add_option("--compress", raw->compression,
                  "auto (by the file's name; avro: deflate), zstd, deflate (avro), none")
      ->check(CLI::IsMember({"auto", "zstd", "deflate", "none"}))
      ->group(group);
  app->add_option("--split", options->parts,
                  "files OUTPUT.0, OUTPUT.1, ..., in the order of keys, written side by side")
      ->check(CLI::Range(1U, kPartsMax))
      ->group(group);
}

void AddRunningOptions(CLI::App* app, Options* options, RawOptions* raw) {
  const std::string group{"Running"};
  app->add_option("--snapshot", options->snapshot,
                  "named snapshot to read; without it one is made, and dropped at the end")
      ->group(group);
  app->add_option("--resume", options->state_path,
                  "file that records the progress of the export; if it exists, the export "
                  "continues behind the last whole row")
      ->group(group);
  app->add_option("--progress", raw->progress, "auto, lines, none")
      ->check(CLI::IsMember({"auto", "lines", "none"}))
      ->group(group);
  app->add_flag("-q,--quiet", options->quiet, "print nothing but errors")->group(group);
}

bool HasWord(const std::vector<std::string>& words, std::string_view upper) {
  return std::any_of(words.begin(), words.end(),
                     [upper](const std::string& word) { return EqualsIgnoreCase(word, upper); });
}

// Takes a suffix such as ".zst" away; false if it is not there.
bool TakeSuffix(std::string_view* name, std::string_view suffix) {
  if (!name->ends_with(suffix)) return false;
  name->remove_suffix(suffix.size());
  return true;
}

Format FormatOf(const std::string& word, std::string_view name) {
  const auto is = [&](std::string_view format, std::string_view suffix) {
    return word == format || (word == "auto" && name.ends_with(suffix));
  };
  if (is("csv", ".csv")) return Format::kCsv;
  if (is("tsv", ".tsv")) return Format::kTsv;
  if (is("avro", ".avro")) return Format::kAvro;
  if (is("jsonl", ".jsonl") || is("jsonl", ".ndjson")) return Format::kJsonLines;
  return Format::kRows;
}

// What the tool says itself in its CSCAN.
constexpr std::array<std::string_view, 10> kOwnWords{"COUNT",   "CELLS",     "WITHTS",   "WITHTYPE",
                                                     "WITHTTL", "SNAPSHOT",  "KEYSONLY", "STATS",
                                                     "STATE",   "WITHLABELS"};
// Those that name rows, or change their order.
constexpr std::array<std::string_view, 6> kRowWords{"PREFIX",  "RANGE", "ROWS",
                                                    "REVERSE", "INDEX", "EACH"};

// The checks and conversions that CLI11 leaves to us; an empty text, or what is wrong.
std::string Complete(const RawOptions& raw, Options* options) {
  std::string_view name{options->path};
  const bool named_so = TakeSuffix(&name, ".zst");
  options->compress = raw.compression == "zstd" || (raw.compression == "auto" && named_so);
  options->format = FormatOf(raw.format, name);
  const bool is_table = options->format == Format::kCsv || options->format == Format::kTsv;
  const bool is_avro = options->format == Format::kAvro;
  const bool is_lossless = is_avro || options->format == Format::kRows;
  options->deflate = is_avro && (raw.compression == "deflate" ||
                                 (raw.compression == "auto" && !options->compress));
  if (raw.compression == "deflate" && !is_avro) return "--compress deflate goes with --format avro";
  if (options->schema && !is_lossless) return "--schema goes with --format rows or avro";
  if (!options->fields.empty() && !is_table) return "--fields goes with --format csv or tsv";
  if (!options->snapshot.empty() && options->table.find('@') != std::string::npos)
    return "--snapshot: " + options->table + " names a snapshot already";
  const bool to_file = options->path != "-";
  if (options->parts > 1 && !to_file) return "--split needs --output";
  if (!options->state_path.empty() && !to_file) return "--resume needs --output";
  for (const std::string_view word : kOwnWords) {
    if (HasWord(options->words, word)) {
      return "option " + std::string(word) + " is what cellar-export says itself";
    }
  }
  for (const std::string_view word : kRowWords) {
    if (options->parts > 1 && HasWord(options->words, word)) {
      return "--split divides the whole table: " + std::string(word) + " does not go with it";
    }
  }
  if (is_lossless && !HasWord(options->words, "VERSIONS")) {
    options->words.insert(options->words.end(), {"VERSIONS", "ALL"});
  } else if (!is_lossless && HasWord(options->words, "VERSIONS")) {
    return "VERSIONS goes with --format rows or avro: the others hold a column's newest value";
  }
  options->progress =
      !options->quiet && (raw.progress == "lines" ||
                          (raw.progress == "auto" && to_file && isatty(STDERR_FILENO) == 1));
  return {};
}

}  // namespace

std::optional<Options> ParseOptions(int argc, char** argv, int* status) {
  Options options;
  RawOptions raw;
  CLI::App app{kDescription, "cellar-export"};
  AddCommonFlags(&app);
  AddOutputOptions(&app, &options, &raw);
  client::AddServerOptions(&app, &options.connection);
  AddRunningOptions(&app, &options, &raw);
  if (!ReadCommandLine(&app, argc, argv, status)) return std::nullopt;
  if (!MakesSense(app, Complete(raw, &options), status)) return std::nullopt;
  return options;
}

}  // namespace cellar::exporter
