// See importer.h.
#include "cellar-import/importer.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "cellar-import/avro_reader.h"
#include "cellar-import/dump_mapper.h"
#include "cellar-import/dump_reader.h"
#include "cellar-import/export_marks.h"
#include "cellar-import/redis_source.h"
#include "cellar/clock.h"
#include "client/command_words.h"

namespace cellar::importer {
namespace {

constexpr int64_t kStateMicros{500'000};  // between two writes of the state file
constexpr size_t kFingerprintBytesMax{64 * 1024};
constexpr uint64_t kRecordsPerLook{64};  // at the clock

class Import final : public Pipeline::Listener {
 public:
  Import(const Options& options, const volatile bool* stop) : options_(options), stop_(stop) {}

  // A returned error stopped the import; what was acknowledged before is counted.
  Status Run();
  void Conclude(const Status& outcome);
  uint64_t errors() const { return state_.errors; }

  void OnRow(const RowRef& ref, std::string_view error) override;

 private:
  Status OpenAll();
  Status OpenInput();
  Status OpenRedis();
  Status ImportKeys();
  Status TakeKey(RedisRecord* record, const RowRef& ref, Row* row);
  Status Resume();
  Status ReadHeader();
  Status Connect();
  Status CreateTable();
  Status FindFamilies(std::set<std::string, std::less<>>* names);
  Status ImportRecords();
  Status CheckEnd();
  Status TakeRecord(const Record& record, Row* row);
  Result<bool> MapRecord(const Record& record, Row* row, std::vector<std::string>* schema);
  Status TakeSchema(const std::vector<std::string>& schema);
  void NoteTimestamp(uint64_t line, int64_t micros);
  Status Look();

  const Options& options_;
  const volatile bool* stop_;
  std::unique_ptr<RedisSource> redis_;                    // in place of the next two
  std::deque<std::pair<uint64_t, std::string>> cursors_;  // that hold once so much is done
  std::unique_ptr<Input> input_;
  std::unique_ptr<RecordReader> reader_;
  AvroReader* avro_{nullptr};  // reader_, if it is one of these
  DumpReader* dump_{nullptr};
  std::unique_ptr<DumpMapper> dump_mapper_;
  std::unique_ptr<RowMapper> mapper_;
  ExportMarks marks_;  // of format rows
  std::unique_ptr<client::Connection> connection_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<ErrorReport> report_;
  std::unique_ptr<Progress> progress_;
  ImportState state_;
  uint64_t redis_keys_{0};
  uint64_t rows_begin_{0};
  uint64_t state_end_{0};  // of earlier runs
  uint64_t taken_offset_{
      0};  // records up to here are done: of formats that are read from the front
  uint64_t early_timestamps_{0};
  int64_t begin_micros_{0};
  int64_t state_saved_micros_{0};
  bool is_open_{false};       // the state file may be written
  bool nothing_left_{false};  // earlier runs came to the input's end
};

// Microseconds that are a time of today taken in a larger unit: seconds lie below 1e10 (the year
// 2286), milliseconds below 1e13, and what people mean rarely lies in the first months of 1970.
constexpr int64_t kEarlyBegin{100'000'000};
constexpr int64_t kEarlySecondsEnd{10'000'000'000};
constexpr int64_t kEarlyEnd{10'000'000'000'000};
bool LooksTooEarly(int64_t micros) { return micros >= kEarlyBegin && micros < kEarlyEnd; }

int64_t Now() { return Clock::System().MonotonicMicros(); }

std::unique_ptr<RecordReader> NewReader(const Options& options, Input* input) {
  switch (options.format) {
    case Format::kTsv:
      return NewTsvReader(input);
    case Format::kJsonLines:
    case Format::kRows:
      return NewLineReader(input);
    default:
      break;
  }
  return NewCsvReader(input, options.delimiter);
}

Status Import::Run() {
  RETURN_IF_ERROR(OpenAll());
  Status outcome = redis_ != nullptr ? ImportKeys() : ImportRecords();
  // What is under way is waited for, also when the input failed or a signal came.
  if (pipeline_ != nullptr && (outcome.ok() || outcome.code() != ErrorCode::kIo)) {
    const Status flushed = pipeline_->Flush();
    if (outcome.ok()) outcome = flushed;
  }
  return outcome;
}

Status Import::OpenInput() {
  ASSIGN_OR_RETURN(Input input, Input::Open(options_.path));
  input_ = std::make_unique<Input>(std::move(input));
  const std::string name{options_.path == "-" ? "standard input" : options_.path};
  if (options_.format == Format::kAvro) {
    auto avro = std::make_unique<AvroReader>(input_.get(), name);
    avro_ = avro.get();
    reader_ = std::move(avro);
  } else if (options_.format == Format::kDump) {
    auto dump = std::make_unique<DumpReader>(input_.get(), name);
    dump_ = dump.get();
    reader_ = std::move(dump);
    dump_mapper_ = std::make_unique<DumpMapper>(options_.mapper, options_.hex);
  } else {
    reader_ = NewReader(options_, input_.get());
  }
  if (avro_ == nullptr && dump_ == nullptr && options_.format != Format::kRows) {
    mapper_ = std::make_unique<RowMapper>(options_.mapper);
  }
  return Resume();
}

// Goes on where the state file says; all cells have the timestamp of the first run, so that those
// written once more are the same.
Status Import::OpenRedis() {
  const client::ConnectionOptions& server = options_.redis->server;
  const std::string place{server.socket + '\n' + server.host + '\n' + std::to_string(server.port) +
                          '\n' + server.keyspace + '\n' + options_.redis->match};
  const std::string fingerprint{Fingerprint(place)};
  const std::string& table = options_.pipeline.command.table;
  if (!options_.state_path.empty()) {
    ASSIGN_OR_RETURN(state_, LoadState(options_.state_path));
    if (!state_.table.empty() && (state_.fingerprint != fingerprint || state_.table != table)) {
      return Status::Error(ErrorCode::kErr, options_.state_path +
                                                ": is the state of another import (source or table "
                                                "differ); remove it to start over");
    }
  }
  state_.table = table;
  state_.fingerprint = fingerprint;
  if (state_.timestamp_micros == 0) state_.timestamp_micros = Clock::System().WallMicros();
  if (state_.cursor.empty()) state_.cursor = "0";
  nothing_left_ = state_.cursor == RedisSource::kEndCursor;
  redis_ = std::make_unique<RedisSource>(*options_.redis);
  if (nothing_left_) return Status::Ok();
  ASSIGN_OR_RETURN(redis_keys_, redis_->Open(state_.cursor));
  // Before the first row is written: a run that is killed has its timestamp.
  return options_.state_path.empty() || options_.dry_run ? Status::Ok()
                                                         : SaveState(options_.state_path, state_);
}

Status Import::OpenAll() {
  RETURN_IF_ERROR(options_.redis ? OpenRedis() : OpenInput());
  ASSIGN_OR_RETURN(ErrorReport report, ErrorReport::Open(options_.errors_path, state_.offset > 0));
  report_ = std::make_unique<ErrorReport>(std::move(report));
  if (avro_ != nullptr) report_->SetUnit("record");
  if (!options_.dry_run) RETURN_IF_ERROR(Connect());
  rows_begin_ = state_.rows;
  state_end_ = state_.offset;
  begin_micros_ = Now();
  state_saved_micros_ = begin_micros_;
  const uint64_t total = redis_ != nullptr  ? redis_keys_
                         : avro_ != nullptr ? 0  // it counts rows
                                            : input_->bytes_total();
  progress_ = std::make_unique<Progress>(options_.progress, stderr, total, state_, begin_micros_);
  is_open_ = true;
  return Status::Ok();
}

// Reads the header, and goes on where the state file says an earlier import stopped.
Status Import::Resume() {
  while (input_->View().size() < kFingerprintBytesMax) {
    ASSIGN_OR_RETURN(const bool more, input_->Fill());
    if (!more) break;
  }
  if (avro_ == nullptr) RETURN_IF_ERROR(input_->CheckIsText());
  const std::string fingerprint{Fingerprint(input_->View().substr(0, kFingerprintBytesMax))};
  marks_.LookAtBeginning(input_->View());
  RETURN_IF_ERROR(ReadHeader());
  if (!options_.state_path.empty()) {
    ASSIGN_OR_RETURN(state_, LoadState(options_.state_path));
    const bool is_begun{state_.offset > 0};
    const std::string& table = options_.pipeline.command.table;
    if (is_begun && (state_.fingerprint != fingerprint || state_.table != table)) {
      return Status::Error(
          ErrorCode::kErr,
          options_.state_path +
              ": is the state of another import (input or table differ); remove it to start over");
    }
    if (is_begun && (avro_ != nullptr || dump_ != nullptr)) {
      taken_offset_ = state_.offset;  // what stands there depends on what stands before
    } else if (is_begun) {
      RETURN_IF_ERROR(input_->SkipTo(state_.offset));
      reader_->SetLine(state_.line);
      marks_.BeginInside();
    }
  }
  state_.table = options_.pipeline.command.table;
  state_.fingerprint = fingerprint;
  if (state_.offset == 0) state_.line = reader_->line();
  return Status::Ok();
}

Status Import::ReadHeader() {
  if (avro_ != nullptr) return avro_->ReadHeader();
  const bool has_header_line{options_.format == Format::kCsv || options_.format == Format::kTsv};
  if (!has_header_line) return Status::Ok();
  std::vector<std::string> names{options_.field_names};
  Record record;
  if (options_.has_header) {
    ASSIGN_OR_RETURN(const bool found, reader_->Next(&record));
    if (!found) return Status::Error(ErrorCode::kErr, options_.path + ": has no header");
    if (!record.error.empty()) return Status::Error(ErrorCode::kErr, "header: " + record.error);
    names = record.fields;
  } else if (names.empty()) {
    // Fields without names are numbered; the first record, read by a reader of its own, says how
    // many.
    Input beginning = Input::FromText(std::string(input_->View()), SIZE_MAX);
    ASSIGN_OR_RETURN(const bool found, NewReader(options_, &beginning)->Next(&record));
    if (!found) return Status::Error(ErrorCode::kErr, options_.path + ": is empty");
    for (size_t index{1}; index <= record.fields.size(); ++index) {
      names.push_back(std::to_string(index));
    }
  }
  return mapper_->SetHeader(names);
}

// The words of --family NAME [OPTION ...], and what the header says of the family's columns, unless
// it is said here what types they have.
static std::vector<std::string> FamilyWords(const std::string& text, const RowMapper* mapper) {
  std::vector<std::string> words = SplitWords(text);
  if (words.empty() || mapper == nullptr) return words;
  const bool says_types = std::any_of(words.begin() + 1, words.end(), [](const auto& word) {
    return EqualsIgnoreCase(word, "TYPE") || EqualsIgnoreCase(word, "COLUMN") ||
           EqualsIgnoreCase(word, "AGGREGATE");
  });
  const auto columns = mapper->TypedColumns();
  const auto typed = columns.find(words[0]);
  if (!says_types && typed != columns.end())
    words.insert(words.end(), typed->second.begin(), typed->second.end());
  return words;
}

Status Import::Connect() {
  ASSIGN_OR_RETURN(client::Connection connection, client::Connection::Open(options_.connection));
  connection_ = std::make_unique<client::Connection>(std::move(connection));
  PipelineOptions pipeline = options_.pipeline;
  if (mapper_ != nullptr) pipeline.family_options = mapper_->TypedColumns();
  pipeline_ =
      std::make_unique<Pipeline>(std::move(pipeline), options_.connection, connection_.get(), this);
  if (!options_.create_table) return Status::Ok();
  // The file's own schema comes first.
  if (options_.format == Format::kRows && options_.families.empty()) return Status::Ok();
  if (avro_ != nullptr && options_.families.empty() && !avro_->table_schema().empty()) {
    return TakeSchema(avro_->table_schema());
  }
  RETURN_IF_ERROR(CreateTable());
  std::set<std::string, std::less<>> families;
  RETURN_IF_ERROR(FindFamilies(&families));
  pipeline_->SetKnownFamilies(std::move(families));
  return Status::Ok();
}

Status Import::CreateTable() {
  const std::string& table = options_.pipeline.command.table;
  std::vector<std::string_view> words{"TABLE", "CREATE", table};
  if (!options_.key_order.empty()) words.insert(words.end(), {"KEY", options_.key_order});
  std::vector<std::vector<std::string>> families;
  for (const std::string& text : options_.families)
    families.push_back(FamilyWords(text, mapper_.get()));
  std::string bytes;
  client::AppendCommand(words, &bytes);
  for (const auto& family : families) {
    if (family.empty()) return Status::Error(ErrorCode::kErr, "--family: a name is missing");
    words = {"FAMILY", "ADD", table};
    words.insert(words.end(), family.begin(), family.end());
    client::AppendCommand(words, &bytes);
  }
  RETURN_IF_ERROR(connection_->Append(bytes));
  Status outcome;
  for (size_t reply_count{0}; reply_count < families.size() + 1; ++reply_count) {
    ASSIGN_OR_RETURN(const client::Reply reply, connection_->Read());
    const std::string_view error{client::ErrorText(*reply)};
    if (outcome.ok() && !error.empty() && !error.starts_with("BUSYKEY")) {
      outcome = Status::Error(ErrorCode::kErr, "--create-table: " + std::string(error));
    }
  }
  return outcome;
}

// The families that the table has (`families` in the map that TABLE INFO answers).
Status Import::FindFamilies(std::set<std::string, std::less<>>* names) {
  ASSIGN_OR_RETURN(const client::Reply reply,
                   connection_->Call({"TABLE", "INFO", options_.pipeline.command.table}));
  if (!client::ErrorText(*reply).empty()) {
    return Status::Error(ErrorCode::kErr, "TABLE INFO: " + std::string(client::ErrorText(*reply)));
  }
  for (size_t index{0}; index + 1 < reply->elements; index += 2) {
    const redisReply& name = *reply->element[index];
    const redisReply& value = *reply->element[index + 1];
    if (name.str == nullptr || std::string_view(name.str, name.len) != "families") continue;
    for (size_t family{0}; family < value.elements; ++family) {
      const redisReply& word = *value.element[family];
      if (word.str != nullptr) names->emplace(word.str, word.len);
    }
  }
  return Status::Ok();
}

Status Import::ImportRecords() {
  Record record;
  Row row;
  uint64_t record_count{0};
  // An earlier run that came beyond the beginning of the input has left them out.
  const uint64_t records_skipped{state_.offset > 0 ? 0 : options_.records_skipped};
  while (record_count < options_.records_max) {
    ASSIGN_OR_RETURN(const bool found, reader_->Next(&record));
    if (!found) {
      nothing_left_ = record_count == 0 && state_.offset > 0;
      return CheckEnd();
    }
    if (options_.format == Format::kRows && record.error.empty()) {
      ASSIGN_OR_RETURN(const bool is_mark, marks_.Take(record.fields[0]));
      if (is_mark) continue;
    }
    if (record.end_offset <= taken_offset_) {
      // A range that is deleted may begin here.
      if (dump_ != nullptr) (void)dump_mapper_->Map(dump_->place(), record, &row);
      continue;
    }
    ++record_count;
    if (record_count <= records_skipped) continue;
    RETURN_IF_ERROR(TakeRecord(record, &row));
    if (record_count % kRecordsPerLook == 0) RETURN_IF_ERROR(Look());
    if (state_.errors > options_.errors_max) {
      return Status::Error(ErrorCode::kErr, "more than " + std::to_string(options_.errors_max) +
                                                " records are refused (--errors-max)");
    }
  }
  return Status::Ok();
}

// What the end of the input says of whether all of it was there.
Status Import::CheckEnd() {
  if (options_.format == Format::kRows) {
    const ExportMarks::Verdict verdict{marks_.verdict()};
    if (verdict == ExportMarks::Verdict::kCut) {
      return Status::Error(ErrorCode::kErr, options_.path +
                                                ": the export's end mark is missing: it was cut, "
                                                "or has not ended");
    }
    if (verdict == ExportMarks::Verdict::kWhole || options_.quiet || nothing_left_) {
      return Status::Ok();
    }
    fprintf(stderr,
            "cellar-import: warning: the export has no end mark, as older ones: if it was cut, "
            "rows are missing\n");
  } else if (reader_->ends_in_a_line() && !options_.quiet && !nothing_left_) {
    fprintf(stderr,
            "cellar-import: warning: the last line has no line end: if the input was cut, its last "
            "record is not whole\n");
  }
  return Status::Ok();
}

Status Import::ImportKeys() {
  RedisRecord record;
  Row row;
  uint64_t record_count{0};
  while (!nothing_left_ && record_count < options_.records_max) {
    ASSIGN_OR_RETURN(const bool found, redis_->Next(&record));
    if (!found) break;
    ++record_count;
    const uint64_t number{state_end_ + record_count};
    if (!record.cursor.empty()) cursors_.emplace_back(number, record.cursor);
    RETURN_IF_ERROR(TakeKey(&record, RowRef{number, number + 1, number, 0}, &row));
    if (record_count % kRecordsPerLook == 0) RETURN_IF_ERROR(Look());
    if (state_.errors > options_.errors_max) {
      return Status::Error(ErrorCode::kErr, "more than " + std::to_string(options_.errors_max) +
                                                " keys are refused (--errors-max)");
    }
  }
  return Status::Ok();
}

Status Import::TakeKey(RedisRecord* record, const RowRef& ref, Row* row) {
  const MapperOptions& mapper = options_.mapper;
  row->key = record->key;
  if (!options_.redis->key_delimiter.empty()) {
    size_t at{0};
    while ((at = row->key.find(options_.redis->key_delimiter, at)) != std::string::npos) {
      row->key.replace(at++, options_.redis->key_delimiter.size(), "#");
    }
  }
  row->timestamp_micros = state_.timestamp_micros;
  row->cells = std::move(record->cells);
  std::erase_if(row->cells, [&mapper](Cell& cell) {
    const auto mapped = mapper.columns.find(cell.qualifier);
    if (mapped != mapper.columns.end()) {
      cell.family = mapped->second.family;
      cell.qualifier = mapped->second.qualifier;
      cell.type = mapped->second.type;
      return cell.family.empty();
    }
    cell.family = mapper.default_family;
    cell.type = mapper.default_type;
    return std::find(mapper.ignored_fields.begin(), mapper.ignored_fields.end(), cell.qualifier) !=
           mapper.ignored_fields.end();
  });
  if (row->cells.empty() && record->error.empty()) record->error = "no field is left";
  RowRef counted{ref};
  counted.cells = row->cells.size();
  if (!record->error.empty()) {
    const std::string error{"key '" + record->key + "' " + record->error};
    if (pipeline_ != nullptr) return pipeline_->AddRefused(counted, error);
    OnRow(counted, error);
    return Status::Ok();
  }
  if (pipeline_ != nullptr) return pipeline_->Add(*row, counted);
  if (state_.rows < options_.rows_shown) {
    fputs(DescribeRow(options_.pipeline.command, *row).c_str(), stdout);
  }
  OnRow(counted, {});
  return Status::Ok();
}

// False: the record is no row, but gives the table's schema, or nothing at all.
Result<bool> Import::MapRecord(const Record& record, Row* row, std::vector<std::string>* schema) {
  if (!record.error.empty()) return Status::Error(ErrorCode::kBadValue, record.error);
  if (avro_ != nullptr) {
    *row = avro_->row();
    if (options_.mapper.default_type.empty()) return true;
    for (Cell& cell : row->cells) cell.type = options_.mapper.default_type;
    return true;
  }
  if (dump_ != nullptr) return dump_mapper_->Map(dump_->place(), record, row);
  if (options_.format == Format::kRows) {
    RETURN_IF_ERROR(MapRows(record.fields[0], row, schema));
    return schema->empty();
  }
  RETURN_IF_ERROR(options_.format == Format::kJsonLines ? mapper_->MapJson(record.fields[0], row)
                                                        : mapper_->MapFields(record, row));
  return true;
}

Status Import::TakeRecord(const Record& record, Row* row) {
  RowRef ref{record.line, reader_->line(), record.end_offset, 0};
  std::vector<std::string> schema;
  const Result<bool> mapped = MapRecord(record, row, &schema);
  if (mapped.ok() && !*mapped) {
    if (schema.empty()) return Status::Ok();
    RETURN_IF_ERROR(TakeSchema(schema));
    state_.offset = ref.end_offset;
    state_.line = ref.next_line;
    return Status::Ok();
  }
  if (!mapped.ok()) {
    if (pipeline_ != nullptr) return pipeline_->AddRefused(ref, mapped.status().text());
    OnRow(ref, mapped.status().text());
    return Status::Ok();
  }
  ref.cells = row->cells.size();
  if (row->timestamp_micros) NoteTimestamp(record.line, *row->timestamp_micros);
  if (pipeline_ != nullptr) return pipeline_->Add(*row, ref);
  if (state_.rows < options_.rows_shown) {
    fputs(DescribeRow(options_.pipeline.command, *row).c_str(), stdout);
  }
  OnRow(ref, {});
  return Status::Ok();
}

// What an export says of how the table is made: done with --create-table, for the table that the
// import is for.
Status Import::TakeSchema(const std::vector<std::string>& schema) {
  if (pipeline_ != nullptr && options_.create_table) {
    RETURN_IF_ERROR(pipeline_->Flush());
    std::string bytes;
    for (const std::string& command : schema) {
      std::vector<std::string> words = client::SplitCliWords(command);
      const bool is_known =
          words.size() > 2 && (words[0] == "TABLE" || words[0] == "INDEX") && words[1] == "CREATE";
      if (!is_known) {
        return Status::Error(ErrorCode::kErr, "the schema holds what is no schema: " + command);
      }
      words[2] = options_.pipeline.command.table;
      client::AppendCommand(std::vector<std::string_view>(words.begin(), words.end()), &bytes);
    }
    RETURN_IF_ERROR(connection_->Append(bytes));
    for (const std::string& command : schema) {
      ASSIGN_OR_RETURN(const client::Reply reply, connection_->Read());
      const std::string_view error{client::ErrorText(*reply)};
      if (error.empty() || error.starts_with("BUSYKEY")) continue;
      return Status::Error(ErrorCode::kErr, command + ": " + std::string(error));
    }
    std::set<std::string, std::less<>> families;
    RETURN_IF_ERROR(FindFamilies(&families));
    pipeline_->SetKnownFamilies(std::move(families));
  }
  return Status::Ok();
}

// Timestamps in a smaller unit than they are taken for are far too early: retention may drop their
// cells at once.
void Import::NoteTimestamp(uint64_t line, int64_t micros) {
  if (!LooksTooEarly(micros)) return;
  if (early_timestamps_++ > 0 || options_.quiet) return;
  fprintf(stderr,
          "cellar-import: line %" PRIu64
          ": warning: the timestamp lies %s after 1970 began: are "
          "timestamps in %s? (--ts-unit s, ms or us)\n",
          line, micros < kEarlySecondsEnd ? "minutes" : "days",
          micros < kEarlySecondsEnd ? "seconds" : "milliseconds or seconds");
}

void Import::OnRow(const RowRef& ref, std::string_view error) {
  CELLAR_ASSERT(ref.end_offset > state_.offset);
  state_.offset = ref.end_offset;
  if (error.empty()) {
    ++state_.rows;
    state_.cells += ref.cells;
  } else {
    ++state_.errors;
    report_->Add(ref.line, error);
  }
  state_.line = ref.next_line;
  for (; !cursors_.empty() && cursors_.front().first <= state_.offset; cursors_.pop_front()) {
    state_.cursor = cursors_.front().second;
  }
}

// What is due from time to time: progress, state, and a look at the signal.
Status Import::Look() {
  const int64_t now_micros{Now()};
  progress_->Update(state_, now_micros);
  if (!options_.state_path.empty() && !options_.dry_run &&
      now_micros - state_saved_micros_ >= kStateMicros) {
    state_saved_micros_ = now_micros;
    RETURN_IF_ERROR(report_->Flush());
    RETURN_IF_ERROR(SaveState(options_.state_path, state_));
  }
  if (*stop_) return Status::Error(ErrorCode::kErr, "stopped by a signal");
  return Status::Ok();
}

void Import::Conclude(const Status& outcome) {
  const int64_t now_micros{Now()};
  if (is_open_) {
    if (!nothing_left_) progress_->Finish(state_, now_micros);
    Status kept = report_->Flush();
    if (kept.ok() && !options_.state_path.empty() && !options_.dry_run) {
      kept = SaveState(options_.state_path, state_);
    }
    if (!kept.ok()) fprintf(stderr, "cellar-import: %s\n", kept.text().c_str());
    fputs(report_->Summary().c_str(), stderr);
  }
  if (!outcome.ok()) {
    fprintf(stderr, "cellar-import: %s\n", outcome.text().c_str());
    if (is_open_ && !options_.state_path.empty() && !options_.dry_run) {
      fprintf(stderr, "cellar-import: the same command continues from here\n");
    }
  }
  if (options_.quiet || !is_open_) return;
  if (nothing_left_) {
    fprintf(stderr,
            "nothing was left to do: %s rows, %s cells written, %s refused by earlier runs\n",
            GroupDigits(state_.rows).c_str(), GroupDigits(state_.cells).c_str(),
            GroupDigits(state_.errors).c_str());
    return;
  }
  if (early_timestamps_ > 0) {
    fprintf(stderr, "warning: %s timestamps look 1,000 times or more too early (--ts-unit)\n",
            GroupDigits(early_timestamps_).c_str());
  }
  if (dump_mapper_ != nullptr && dump_mapper_->hidden() > 0) {
    fprintf(stderr, "%s deletions, and cells that they hide, are left out\n",
            GroupDigits(dump_mapper_->hidden()).c_str());
  }
  const double seconds{static_cast<double>(now_micros - begin_micros_) / 1e6};
  const uint64_t rows{state_.rows - rows_begin_};
  fprintf(stderr, "%s rows, %s cells %s, %s refused, in %.1f s (%s rows/s)\n",
          GroupDigits(state_.rows).c_str(), GroupDigits(state_.cells).c_str(),
          options_.dry_run ? "read, none written" : "written", GroupDigits(state_.errors).c_str(),
          seconds,
          GroupDigits(static_cast<uint64_t>(static_cast<double>(rows) / (seconds + 1e-6))).c_str());
}

}  // namespace

int RunImport(const Options& options, const volatile bool* stop) {
  Import import(options, stop);
  const Status outcome = import.Run();
  import.Conclude(outcome);
  if (!outcome.ok()) return kExitStopped;
  return import.errors() > 0 ? kExitSomeRefused : kExitAllWritten;
}

}  // namespace cellar::importer
