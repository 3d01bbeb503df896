// See options.h.
#include "cellar-import/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <utility>

#include "client/program.h"
#include "command_line.h"
#include "resp/decimal.h"

namespace cellar::importer {
namespace {

constexpr char kDescription[] =
    "Writes each record of a file as a row of a table: of CSV, TSV, JSON lines, of Avro, of "
    "Cassandra's dumps, of another Cellar or a Redis.\n"
    "Exit status: 0 all rows are in; 1 some records were refused (and reported); 2 the import "
    "could not start or not continue.";

// What needs a second look after CLI11 has filled it in.
struct RawOptions {
  std::string format{"auto"};
  std::string delimiter{","};
  bool no_header{false};
  std::vector<std::string> keys;
  std::vector<std::string> columns;
  std::string null_text;
  std::string timestamp_unit{"us"};
  std::string arrays{"text"};
  std::string progress{"auto"};
  RedisOptions redis;
  std::string redis_place;
  std::string redis_password_path;
};

void AddInputOptions(CLI::App* app, Options* options, RawOptions* raw) {
  app->add_option("table", options->pipeline.command.table, "table, or keyspace/table")->required();
  app->add_option("file", options->path, "file to read, also of gzip or zstd; - is standard input");
  const std::string group{"Input"};
  app->add_option(
         "-f,--format", raw->format,
         "auto (by the file's name, else csv), csv, tsv, jsonl, rows (of cellar-export), avro "
         "(Bigtable's templates), sstabledump (of Cassandra, or sstable2json)")
      ->check(CLI::IsMember({"auto", "csv", "tsv", "jsonl", "rows", "avro", "sstabledump"}))
      ->group(group);
  app->add_option("--delimiter", raw->delimiter,
                  "delimiter between CSV fields: one character, or \\t")
      ->group(group);
  app->add_flag("--no-header", raw->no_header,
                "the first record is data; fields are named 1, 2, 3 ...")
      ->group(group);
  app->add_option("--fields", options->field_names, "names of the fields, if there is no header")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
  app->add_flag("--hex", options->hex,
                "sstabledump: names and values are hexadecimal digits, to be decoded")
      ->group(group);
  app->add_option("--skip", options->records_skipped, "records to skip at the beginning")
      ->group(group);
  app->add_option("--limit", options->records_max, "records to read at most")->group(group);
}

void AddRedisOptions(CLI::App* app, RawOptions* raw) {
  const std::string group{"From a Redis"};
  app->add_option("--from-redis", raw->redis_place,
                  "HOST:PORT, or a unix socket's path: its hashes and strings take the place of a "
                  "file")
      ->group(group);
  app->add_option("--match", raw->redis.match, "pattern of the keys, as SCAN's MATCH")
      ->group(group);
  app->add_option("--redis-db", raw->redis.server.keyspace, "number of its database (0)")
      ->group(group);
  app->add_option("--redis-user", raw->redis.server.user, "user there")->group(group);
  app->add_option("--redis-auth-file", raw->redis_password_path,
                  "file whose first line is the password there")
      ->group(group);
}

// A text that says what is wrong, or an empty one.
std::string CompleteRedis(const CLI::App& app, const RawOptions& raw, Options* options) {
  RedisOptions redis = raw.redis;
  const size_t colon{raw.redis_place.rfind(':')};
  if (raw.redis_place.starts_with('/')) {
    redis.server.socket = raw.redis_place;
  } else {
    const std::string port{colon == std::string::npos ? "" : raw.redis_place.substr(colon + 1)};
    int64_t number{0};
    if (colon == 0 || !ParseStrictInt64(port, &number) || number < 1 || number > 65'535) {
      return "--from-redis: '" + raw.redis_place + "' is not HOST:PORT";
    }
    redis.server.host = raw.redis_place.substr(0, colon);
    redis.server.port = static_cast<int>(number);
  }
  if (!raw.redis_password_path.empty()) {
    std::ifstream file(raw.redis_password_path);
    if (!std::getline(file, redis.server.password)) {
      return "--redis-auth-file: " + raw.redis_password_path + " cannot be read";
    }
  }
  if (app.count("--key-delimiter") > 0) redis.key_delimiter = options->mapper.key_delimiter;
  for (const char* option :
       {"file", "--format", "--delimiter", "--no-header", "--fields", "--skip", "--key",
        "--keep-key-fields", "--null", "--keep-empty", "--ts", "--json-types", "--arrays"}) {
    if (app.count(option) > 0) return std::string(option) + " does not go with --from-redis";
  }
  if (options->mapper.default_family.empty()) {
    return "--default-family is required with --from-redis: the family of the fields";
  }
  options->redis = std::move(redis);
  return {};
}

void AddMappingOptions(CLI::App* app, Options* options, RawOptions* raw) {
  MapperOptions& mapper = options->mapper;
  const std::string group{"Rows and columns"};
  app->add_option("-k,--key", raw->keys,
                  "field of the row key; several (repeated, or with commas) are joined; * lets a "
                  "KEY recno table number the rows")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
  app->add_option("--key-delimiter", mapper.key_delimiter,
                  "delimiter between joined key fields (#)")
      ->group(group);
  app->add_option("-c,--column", raw->columns,
                  "FIELD=FAMILY:QUALIFIER[:TYPE], or FIELD=- to leave it out; a JSON field is a "
                  "path such as meta.size")
      ->allow_extra_args(false)
      ->group(group);
  app->add_option("-F,--default-family", mapper.default_family,
                  "family for all fields that nothing else maps")
      ->group(group);
  app->add_option("--default-type", mapper.default_type,
                  "type of cells for which --column names none")
      ->check([](const std::string& word) {
        return IsValueType(word) ? std::string() : "'" + word + "' is not a type";
      })
      ->group(group);
  app->add_option("--ignore", mapper.ignored_fields, "fields to leave out")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
  app->add_flag("--ignore-unmapped", mapper.ignore_unmapped, "leave out fields that nothing maps")
      ->group(group);
  app->add_flag("--keep-key-fields", mapper.keep_key_fields,
                "turn key and timestamp fields into cells as well")
      ->group(group);
  app->add_option("--null", raw->null_text, "field text that stands for no cell")->group(group);
  app->add_flag("--keep-empty", mapper.keep_empty, "write empty fields as empty values")
      ->group(group);
  app->add_option("--ts", mapper.timestamp_field,
                  "field of the timestamp, a number (--ts-unit) or ISO 8601")
      ->group(group);
  app->add_option("--ts-unit", raw->timestamp_unit, "unit of a timestamp that is a number (us)")
      ->check(CLI::IsMember({"s", "ms", "us"}))
      ->group(group);
  app->add_option("--ttl", options->pipeline.command.ttl, "time to live of the cells, such as 7d")
      ->group(group);
  app->add_flag("--aggregate", options->pipeline.command.aggregates,
                "fold the values into cells of aggregate families (CADD)")
      ->group(group);
  app->add_flag("--json-types", mapper.json_types,
                "write JSON numbers, booleans and strings as i64, u64, f64, bool, string")
      ->group(group);
  app->add_option("--arrays", raw->arrays,
                  "JSON arrays: text (as they are), index (a column for each element), set (a "
                  "column named after each element)")
      ->check(CLI::IsMember({"text", "index", "set"}))
      ->group(group);
}

void AddWritingOptions(CLI::App* app, Options* options) {
  PipelineOptions& pipeline = options->pipeline;
  const std::string group{"Server"};
  app->add_option("--pipeline", pipeline.units_max, "commands in flight at most (1024)")
      ->check(CLI::Range(1, 1'000'000))
      ->group(group);
  app->add_option("--pipeline-bytes", pipeline.bytes_max, "bytes in flight at most (4 MiB)")
      ->check(CLI::Range(1UL, 1UL << 40))
      ->group(group);
  app->add_option("--batch-rows", pipeline.rows_per_batch,
                  "rows written in one MULTI ... EXEC (1: no transactions)")
      ->check(CLI::Range(1, 100'000))
      ->group(group);
  app->add_option("--batch-cells", pipeline.command.cells_per_command,
                  "cells in one command; a wider row takes several commands (1,000,000)")
      ->check(CLI::Range(1, 1'000'000))
      ->group(group);
  app->add_option("--reconnect", pipeline.reconnect_seconds,
                  "seconds to keep reconnecting when the connection is lost (0: stop)")
      ->group(group);
  app->add_flag("--create-table", options->create_table,
                "create the table and its families if they do not exist")
      ->group(group);
  app->add_option("--key-order", options->key_order,
                  "key order of the new table, such as utf8#-u64")
      ->group(group);
  app->add_option("--family", options->families,
                  "family of the new table, with its options: 'meta VERSIONS 3 TYPE string'")
      ->allow_extra_args(false)
      ->group(group);
}

void AddReportOptions(CLI::App* app, Options* options, RawOptions* raw) {
  const std::string group{"Running"};
  app->add_option("--resume", options->state_path,
                  "file that records the progress of the import; if it exists, the import "
                  "continues from there")
      ->group(group);
  app->add_option("--errors", options->errors_path,
                  "file for refused records: line number and error")
      ->group(group);
  app->add_option("--errors-max", options->errors_max,
                  "stop when more records than this are refused (1,000)")
      ->group(group);
  app->add_option("--progress", raw->progress, "auto, bar, lines, none")
      ->check(CLI::IsMember({"auto", "bar", "lines", "none"}))
      ->group(group);
  app->add_flag("-q,--quiet", options->quiet, "print nothing but errors")->group(group);
  app->add_flag("--dry-run", options->dry_run, "read and map everything, write nothing")
      ->group(group);
  app->add_option("--show", options->rows_shown, "with --dry-run: print the first N commands")
      ->group(group);
}

Format FormatOf(const std::string& word, const std::string& path) {
  std::string_view plain{path};
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (plain.ends_with(packed)) plain.remove_suffix(packed.size());
  }
  const std::string_view suffix{plain.substr(std::min(plain.size(), plain.rfind('.') + 1))};
  const std::string_view name{word == "auto" ? suffix : std::string_view(word)};
  if (name == "rows") return Format::kRows;
  if (name == "avro") return Format::kAvro;
  if (name == "sstabledump") return Format::kDump;
  if (name == "tsv" || name == "tab") return Format::kTsv;
  if (name == "jsonl" || name == "ndjson" || name == "json") return Format::kJsonLines;
  return Format::kCsv;
}

// What does not go with a file that says itself what goes where; an empty text, or what is wrong.
std::string CompletePlaces(const CLI::App& app, const Options& options, bool is_redis) {
  std::vector<const char*> forbidden;
  const char* format{""};
  switch (options.format) {
    case Format::kRows:
      format = "rows";
      forbidden = {"--key", "--column", "--default-family", "--default-type", "--ignore", "--ts",
                   "--ttl", "--null",   "--json-types",     "--aggregate",    "--arrays", "--hex"};
      break;
    case Format::kAvro:
      format = "avro";
      forbidden = {"--key",  "--column",     "--default-family", "--ignore", "--ts",
                   "--null", "--json-types", "--arrays",         "--hex"};
      break;
    case Format::kDump:
      format = "sstabledump";
      forbidden = {"--key", "--keep-key-fields", "--ts", "--null", "--arrays", "--aggregate"};
      break;
    default:
      if (app.count("--hex") > 0) return "--hex goes with --format sstabledump";
      return app.count("--key") > 0 || is_redis ? std::string() : "--key is required";
  }
  for (const char* option : forbidden) {
    if (app.count(option) > 0) {
      return std::string(option) + " does not go with --format " + format;
    }
  }
  if (options.format == Format::kDump && options.mapper.default_family.empty() &&
      app.count("--column") == 0) {
    return "--default-family is required with --format sstabledump: the family of the columns";
  }
  return {};
}

// The checks and conversions that CLI11 leaves to us; an empty text, or what is wrong.
std::string Complete(const CLI::App& app, const RawOptions& raw, Options* options) {
  options->format = FormatOf(raw.format, options->path);
  options->has_header = !raw.no_header && options->field_names.empty();
  if (raw.delimiter == "\\t") {
    options->delimiter = '\t';
  } else if (raw.delimiter.size() == 1 && raw.delimiter != "\"" && raw.delimiter != "\n") {
    options->delimiter = raw.delimiter.front();
  } else {
    return "--delimiter: one character, not a quote";
  }
  MapperOptions& mapper = options->mapper;
  mapper.key_fields = raw.keys;
  const bool is_redis = !raw.redis_place.empty();
  for (const char* option : {"--match", "--redis-db", "--redis-user", "--redis-auth-file"}) {
    if (!is_redis && app.count(option) > 0) return std::string(option) + " goes with --from-redis";
  }
  if (is_redis) {
    std::string redis_mistake = CompleteRedis(app, raw, options);
    if (!redis_mistake.empty()) return redis_mistake;
  }
  std::string mistake = CompletePlaces(app, *options, is_redis);
  if (!mistake.empty()) return mistake;
  for (const char* option : {"--ttl", "--default-type", "--json-types"}) {
    if (options->pipeline.command.aggregates && app.count(option) > 0) {
      return std::string(option) + " does not go with --aggregate";
    }
  }
  for (const std::string& text : raw.columns) {
    const size_t equals{text.find('=')};
    if (equals == std::string::npos || equals == 0) {
      return "--column: '" + text + "' is not FIELD=FAMILY:QUALIFIER[:TYPE]";
    }
    Result<Column> column = ParseColumn(std::string_view(text).substr(equals + 1));
    if (!column.ok()) return "--column: " + column.status().text();
    if (!mapper.columns.emplace(text.substr(0, equals), *std::move(column)).second) {
      return "--column: field '" + text.substr(0, equals) + "' is mapped twice";
    }
  }
  if (app.count("--null") > 0) mapper.null_text = raw.null_text;
  mapper.timestamp_unit = raw.timestamp_unit == "s"    ? TimeUnit::kSeconds
                          : raw.timestamp_unit == "ms" ? TimeUnit::kMillis
                                                       : TimeUnit::kMicros;
  mapper.arrays = raw.arrays == "set"     ? ArrayStyle::kSet
                  : raw.arrays == "index" ? ArrayStyle::kIndex
                                          : ArrayStyle::kText;
  const bool is_terminal{isatty(STDERR_FILENO) == 1};
  options->progress = options->quiet || raw.progress == "none" ? Progress::Style::kNone
                      : raw.progress == "bar" || (raw.progress == "auto" && is_terminal)
                          ? Progress::Style::kBar
                          : Progress::Style::kLines;
  options->pipeline.create_families = options->create_table;
  if (!options->create_table && (!options->key_order.empty() || !options->families.empty())) {
    return "--key-order and --family go with --create-table";
  }
  return {};
}

}  // namespace

std::optional<Options> ParseOptions(int argc, char** argv, int* status) {
  Options options;
  RawOptions raw;
  CLI::App app{kDescription, "cellar-import"};
  AddCommonFlags(&app);
  AddInputOptions(&app, &options, &raw);
  AddRedisOptions(&app, &raw);
  AddMappingOptions(&app, &options, &raw);
  client::AddServerOptions(&app, &options.connection);
  AddWritingOptions(&app, &options);
  AddReportOptions(&app, &options, &raw);
  if (!ReadCommandLine(&app, argc, argv, status)) return std::nullopt;
  if (!MakesSense(app, Complete(app, raw, &options), status)) return std::nullopt;
  return options;
}

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  bool is_quoted{false};
  bool in_word{false};
  for (const char c : text) {
    if (c == '"') {
      is_quoted = !is_quoted;
      if (!in_word) words.emplace_back();
      in_word = true;
    } else if (c == ' ' && !is_quoted) {
      in_word = false;
    } else {
      if (!in_word) words.emplace_back();
      in_word = true;
      words.back().push_back(c);
    }
  }
  return words;
}

}  // namespace cellar::importer
