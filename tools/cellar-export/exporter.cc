// See exporter.h.
#include "cellar-export/exporter.h"

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "cellar-export/moment.h"
#include "cellar-export/output.h"
#include "cellar-export/row_writer.h"
#include "cellar-export/source.h"
#include "cellar-export/state.h"
#include "cellar/clock.h"

namespace cellar::exporter {
namespace {

constexpr int64_t kStateMicros{100'000};       // between two writes of the state file, and
constexpr int64_t kStateShare{10};             // so many times what the last one took
constexpr int64_t kProgressMicros{1'000'000};  // between two lines
constexpr size_t kFieldsMax{10'000};

int64_t Now() { return Clock::System().MonotonicMicros(); }

struct Totals {
  std::atomic<uint64_t> rows{0};
  std::atomic<uint64_t> cells{0};
};

// "keyspace/table" is taken apart by the server.
Result<client::Reply> Ask(client::Connection* connection,
                          std::initializer_list<std::string_view> words) {
  ASSIGN_OR_RETURN(client::Reply reply, connection->Call(words));
  if (client::ErrorText(*reply).empty()) return reply;
  return Status::Error(ErrorCode::kErr, std::string(client::ErrorText(*reply)));
}

std::vector<std::string> Texts(const redisReply& reply) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < reply.elements; ++i) {
    if (reply.element[i]->str == nullptr) continue;
    texts.emplace_back(reply.element[i]->str, reply.element[i]->len);
  }
  return texts;
}

// --- one part

class Part final : public Source::Listener {
 public:
  // Which part of the table, and where it goes.
  struct Share {
    std::vector<std::string> words;  // that select it
    std::string suffix;              // of its file
    State state;                     // how far earlier runs came, and the snapshot that is read
  };
  Part(const Options& options, Share share, std::unique_ptr<RowWriter> writer, Totals* totals,
       const volatile bool* stop)
      : options_(options),
        words_(std::move(share.words)),
        suffix_(std::move(share.suffix)),
        writer_(std::move(writer)),
        totals_(totals),
        stop_(stop),
        state_(std::move(share.state)),
        rows_kept_(state_.rows),
        cells_kept_(state_.cells) {}

  Status Run();
  // What outlasts a failure: another run can go on behind it, or all of it is done.
  uint64_t rows_kept() const { return rows_kept_; }
  uint64_t cells_kept() const { return cells_kept_; }

  Status OnRow(std::string_view row) override;
  Status OnCell(const Cell& cell) override {
    writer_->AddCell(cell, output_->buffer());
    ++state_.cells;
    return output_->WriteIfMuch();
  }

 private:
  Status Open();
  Status CloseRow();
  Status MaybeSave();
  Status Save();
  bool resumes() const { return !options_.state_path.empty(); }

  const Options& options_;
  std::vector<std::string> words_;
  std::string suffix_;
  std::unique_ptr<RowWriter> writer_;
  Totals* totals_;
  const volatile bool* stop_;
  std::unique_ptr<client::Connection> connection_;
  std::unique_ptr<Output> output_;
  std::unique_ptr<Source> source_;
  State state_;  // of what was saved last, but for the counts
  uint64_t rows_kept_;
  uint64_t cells_kept_;
  bool in_row_{false};
  std::string row_;
  // The cursor behind the page before the one that is being written: if its last row ended with it,
  // that is where another run can begin.
  std::string page_cursor_;
  bool page_begins_{false};
  int64_t next_save_micros_{0};
};

Status Part::Open() {
  ASSIGN_OR_RETURN(client::Connection connection, client::Connection::Open(options_.connection));
  connection_ = std::make_unique<client::Connection>(std::move(connection));
  const bool to_file = options_.path != "-";
  ASSIGN_OR_RETURN(output_, Output::Open(to_file ? options_.path + suffix_ : options_.path,
                                         options_.compress, state_.bytes));
  SourceOptions source;
  source.table = TableAt(options_.table, state_.snapshot);
  source.words = words_;
  source.one_moment = state_.snapshot.empty() && !resumes();
  source.states = options_.format == Format::kRows || options_.format == Format::kAvro;
  page_cursor_ = state_.cursor;
  source_ = std::make_unique<Source>(std::move(source), state_.cursor, connection_.get());
  totals_->rows += state_.rows;
  totals_->cells += state_.cells;
  next_save_micros_ = Now() + kStateMicros;
  if (state_.bytes == 0) {
    writer_->WriteHeader(output_->buffer());
    state_.marker = writer_->marker();
  } else {
    RETURN_IF_ERROR(writer_->GoOn(state_.marker));
  }
  return Status::Ok();
}

Status Part::CloseRow() {
  if (!in_row_) return Status::Ok();
  writer_->EndRow(output_->buffer());
  in_row_ = false;
  ++state_.rows;
  ++totals_->rows;
  return output_->WriteIfMuch();
}

Status Part::OnRow(std::string_view row) {
  const bool goes_on = page_begins_ && in_row_ && row == row_;
  const bool begins_page = page_begins_;
  page_begins_ = false;
  if (goes_on) return Status::Ok();
  RETURN_IF_ERROR(CloseRow());
  if (begins_page) RETURN_IF_ERROR(MaybeSave());
  row_ = row;
  in_row_ = true;
  writer_->BeginRow(row, output_->buffer());
  return Status::Ok();
}

// REQUIRES: what is written ends with the row that the page before ended with.
Status Part::MaybeSave() {
  const int64_t begin_micros = Now();
  if (!resumes() || begin_micros < next_save_micros_) return Status::Ok();
  writer_->EndBlock(output_->buffer());
  // The disk has the rows before it has the state that counts on them.
  RETURN_IF_ERROR(output_->Keep(&state_.bytes));
  state_.cursor = page_cursor_;
  RETURN_IF_ERROR(Save());
  const int64_t now_micros = Now();
  next_save_micros_ =
      now_micros + std::max(kStateMicros, kStateShare * (now_micros - begin_micros));
  return Status::Ok();
}

Status Part::Save() {
  if (resumes()) {
    const std::string marker = writer_->marker();
    if (!marker.empty()) state_.marker = marker;
    RETURN_IF_ERROR(SaveState(options_.state_path + suffix_, options_, words_, state_));
  }
  rows_kept_ = state_.rows;
  cells_kept_ = state_.cells;
  return Status::Ok();
}

Status Part::Run() {
  if (state_.done) {
    totals_->rows += state_.rows;
    totals_->cells += state_.cells;
    return Status::Ok();
  }
  RETURN_IF_ERROR(Open());
  while (true) {
    page_begins_ = true;
    const uint64_t cells_before = state_.cells;
    ASSIGN_OR_RETURN(const bool found, source_->ReadPage(this));
    totals_->cells += state_.cells - cells_before;
    if (!found) break;
    page_cursor_ = source_->cursor();
    if (*stop_) return Status::Error(ErrorCode::kErr, "stopped by a signal");
  }
  RETURN_IF_ERROR(CloseRow());
  writer_->WriteEnd(output_->buffer());
  writer_->EndBlock(output_->buffer());
  RETURN_IF_ERROR(output_->Finish(&state_.bytes));
  state_.done = true;
  state_.cursor = "0";
  return Save();
}

// --- what a table has, before it is read

// Finds the columns of csv and tsv, with the type of the first cell of each.
class FieldFinder final : public Source::Listener {
 public:
  Status OnRow(std::string_view) override { return Status::Ok(); }
  Status OnCell(const Cell& cell) override {
    if (types_.find(cell.column) != types_.end()) return Status::Ok();
    if (types_.size() == kFieldsMax) {
      return Status::Error(ErrorCode::kErr, "the table has more than " +
                                                std::to_string(kFieldsMax) +
                                                " columns: name some (COLUMNS, --fields), or take "
                                                "--format jsonl");
    }
    types_.emplace(cell.column, cell.type);
    return Status::Ok();
  }
  std::vector<Field> TakeFields() {
    std::vector<Field> fields;
    for (auto& [column, type] : types_) fields.push_back({column, type});
    return fields;
  }

 private:
  std::map<std::string, std::string, std::less<>> types_;
};

// "family:qualifier[:type]" of --fields: the last word counts as a type only if it is one.
Field ToField(const std::string& text) {
  static const std::set<std::string, std::less<>> kTypes{"bytes", "string", "bool", "u8",  "i8",
                                                         "i16",   "i32",    "i64",  "u16", "u32",
                                                         "u64",   "f32",    "f64",  "uuid"};
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || text.find(':') == colon) return {text, ""};
  if (kTypes.find(text.substr(colon + 1)) == kTypes.end()) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

class Export {
 public:
  Export(const Options& options, const volatile bool* stop) : options_(options), stop_(stop) {}

  // Whatever becomes of the rest, a snapshot that no other run needs is dropped.
  Status Run();
  void Conclude(const Status& outcome);
  const Complaints& complaints() const { return complaints_; }

 private:
  bool resumes() const { return !options_.state_path.empty(); }
  std::string SuffixOf(size_t part) const {
    return options_.parts > 1 ? "." + std::to_string(part) : "";
  }
  Status RunAll(client::Connection* connection);
  Status FindMoment(client::Connection* connection);
  Status ChooseSnapshot(client::Connection* connection, bool is_begun, const std::string& stored);
  Status FindParts(client::Connection* connection, Division* division);
  bool AllDone() const;
  Status Prepare(client::Connection* connection);
  std::unique_ptr<RowWriter> NewWriter(bool is_first);
  Status RunParts();
  void ShowProgress(int64_t begin_micros) const;

  const Options& options_;
  const volatile bool* stop_;
  Totals totals_;
  Complaints complaints_;
  std::string snapshot_;       // that is read; empty: the table itself
  bool owns_snapshot_{false};  // this export, so it drops it at its end
  bool is_remembered_{false};  // a file says so to other runs
  uint64_t rows_kept_{0};
  uint64_t cells_kept_{0};
  std::vector<std::string> schema_;
  std::vector<Field> fields_;
  uint64_t rows_expected_{0};                         // 0: unknown
  uint64_t rows_begin_{0};                            // of earlier runs
  std::vector<std::vector<std::string>> part_words_;  // of each part
  std::vector<State> states_;
  int64_t begin_micros_{Now()};
};

// With --resume the first run decides, and the others keep to it.
Status Export::ChooseSnapshot(client::Connection* connection, bool is_begun,
                              const std::string& stored) {
  if (is_begun && !options_.snapshot.empty() && stored != options_.snapshot) {
    return Status::Error(ErrorCode::kErr,
                         options_.state_path +
                             ": is the state of an export of another snapshot; remove it to start "
                             "over");
  }
  snapshot_ = is_begun ? stored : options_.snapshot;
  // table@snapshot names one itself.
  const bool is_own = options_.snapshot.empty() && options_.table.find('@') == std::string::npos;
  is_remembered_ = is_begun;
  if (is_own && !is_begun) {
    std::string refusal;
    // Also if the answer is lost: it may have been made.
    snapshot_ = NewSnapshotName();
    owns_snapshot_ = true;
    const Result<bool> made = MakeSnapshot(connection, options_.table, snapshot_, &refusal);
    const bool may_be_there = made.ok() ? *made : made.status().code() == ErrorCode::kIo;
    if (!may_be_there) snapshot_.clear();
    RETURN_IF_ERROR(made.status());
    // One connection alone has another way to see one moment.
    const bool is_one_moment = refusal.empty() || (options_.parts == 1 && !resumes());
    if (!is_one_moment && !options_.quiet) {
      std::fprintf(stderr,
                   "cellar-export: no snapshot, so rows are as they are when they are read: %s\n",
                   refusal.c_str());
    }
  }
  owns_snapshot_ = is_own && !snapshot_.empty();
  return Status::Ok();
}

Status Export::FindMoment(client::Connection* connection) {
  if (options_.parts > 1) {
    Division division;
    const std::string path = options_.state_path + ".parts";
    if (resumes()) {
      ASSIGN_OR_RETURN(division, LoadDivision(path));
    }
    RETURN_IF_ERROR(ChooseSnapshot(connection, division.is_begun, division.snapshot));
    RETURN_IF_ERROR(FindParts(connection, &division));
    if (resumes() && !division.is_begun) {
      RETURN_IF_ERROR(SaveDivision(path, division));
      is_remembered_ = true;
    }
  } else {
    part_words_.push_back(options_.words);
  }
  for (size_t i = 0; i < part_words_.size(); ++i) {
    const std::string path = options_.state_path + SuffixOf(i);
    State& state = states_.emplace_back();
    if (resumes()) {
      ASSIGN_OR_RETURN(state, LoadState(path, options_, part_words_[i]));
    }
    if (options_.parts == 1) {
      RETURN_IF_ERROR(ChooseSnapshot(connection, state.is_begun, state.snapshot));
    }
    state.snapshot = snapshot_;
    rows_begin_ += state.rows;
    if (resumes() && !state.is_begun) {
      RETURN_IF_ERROR(SaveState(path, options_, part_words_[i], state));
      is_remembered_ = true;
    }
  }
  return Status::Ok();
}

bool Export::AllDone() const {
  for (const State& state : states_) {
    if (!state.done) return false;
  }
  return true;
}

Status Export::Prepare(client::Connection* connection) {
  const std::string table = TableAt(options_.table, snapshot_);
  Result<client::Reply> shown_or = Ask(connection, {"TABLE", "SHOW", table});
  if (!shown_or.ok()) {
    const bool has_gone = owns_snapshot_ && shown_or.status().text().starts_with("NOSNAPSHOT");
    return !has_gone ? shown_or.status()
                     : Status::Error(ErrorCode::kErr,
                                     "the snapshot that this export reads has gone (it lives for a "
                                     "day): remove " +
                                         options_.state_path + " to start over");
  }
  const client::Reply shown = *std::move(shown_or);
  if (options_.schema) schema_ = Texts(*shown);
  if (schema_.empty() && options_.schema && shown->str != nullptr) {
    schema_.emplace_back(shown->str, shown->len);
  }
  ASSIGN_OR_RETURN(const client::Reply info, Ask(connection, {"TABLE", "INFO", table}));
  for (size_t i = 0; i + 1 < info->elements; i += 2) {
    const redisReply& name = *info->element[i];
    if (name.str != nullptr && std::string_view(name.str, name.len) == "rows" &&
        options_.words.size() <= 2) {
      rows_expected_ = static_cast<uint64_t>(info->element[i + 1]->integer);
    }
  }
  const bool is_table = options_.format == Format::kCsv || options_.format == Format::kTsv;
  for (const std::string& text : options_.fields) fields_.push_back(ToField(text));
  if (is_table && fields_.empty()) {
    SourceOptions source;
    source.table = table;
    source.words = options_.words;
    Source all(std::move(source), "0", connection);
    FieldFinder finder;
    for (bool more = true; more;) {
      ASSIGN_OR_RETURN(more, all.ReadPage(&finder));
      if (*stop_) return Status::Error(ErrorCode::kErr, "stopped by a signal");
    }
    fields_ = finder.TakeFields();
  }
  return Status::Ok();
}

// Ranges of about equal bytes, by TABLE SAMPLE.
Status Export::FindParts(client::Connection* connection, Division* division) {
  if (!division->is_begun) {
    ASSIGN_OR_RETURN(const client::Reply sample,
                     Ask(connection, {"TABLE", "SAMPLE", TableAt(options_.table, snapshot_),
                                      std::to_string(options_.parts)}));
    division->keys = Texts(*sample);
    division->snapshot = snapshot_;
  }
  const std::vector<std::string>& keys = division->keys;
  for (size_t i = 0; i < options_.parts; ++i) {
    std::vector<std::string> words{"RANGE",
                                   i == 0             ? "-"
                                   : i <= keys.size() ? "[" + keys[i - 1]
                                                      : "+",
                                   i < keys.size() ? "(" + keys[i] : "+"};
    words.insert(words.end(), options_.words.begin(), options_.words.end());
    part_words_.push_back(std::move(words));
  }
  return Status::Ok();
}

std::unique_ptr<RowWriter> Export::NewWriter(bool is_first) {
  switch (options_.format) {
    case Format::kJsonLines:
      return NewJsonLinesWriter(options_.key_name, &complaints_);
    case Format::kCsv:
    case Format::kTsv:
      return NewFieldsWriter(
          options_.format, options_.key_name, fields_,
          options_.fields.empty() ? OtherColumns::kComplain : OtherColumns::kLeaveOut,
          &complaints_);
    case Format::kAvro:
      return NewAvroWriter(schema_, options_.deflate, &complaints_);
    case Format::kRows:
      break;
  }
  return NewRowsWriter(is_first ? schema_ : std::vector<std::string>{});
}

void Export::ShowProgress(int64_t begin_micros) const {
  const double seconds = static_cast<double>(Now() - begin_micros) / 1e6;
  const uint64_t rows = totals_.rows;
  const double rate = static_cast<double>(rows - rows_begin_) / (seconds + 1e-6);
  if (rows_expected_ > rows && rate > 1) {
    std::fprintf(stderr, "%" PRIu64 " of %" PRIu64 " rows, %.0f rows/s, %.0f s left\n", rows,
                 rows_expected_, rate, static_cast<double>(rows_expected_ - rows) / rate);
  } else {
    std::fprintf(stderr, "%" PRIu64 " rows, %.0f rows/s\n", rows, rate);
  }
}

Status Export::RunParts() {
  std::vector<Status> outcomes(part_words_.size());
  std::vector<std::pair<uint64_t, uint64_t>> kept(part_words_.size());
  std::atomic<size_t> running{part_words_.size()};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < part_words_.size(); ++i) {
    threads.emplace_back([&, i] {
      Part part(options_, {part_words_[i], SuffixOf(i), states_[i]}, NewWriter(i == 0), &totals_,
                stop_);
      outcomes[i] = part.Run();
      kept[i] = {part.rows_kept(), part.cells_kept()};
      --running;
    });
  }
  int64_t next_micros = Now() + kProgressMicros;
  while (options_.progress && running > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (Now() < next_micros) continue;
    next_micros += kProgressMicros;
    ShowProgress(begin_micros_);
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& [rows, cells] : kept) {
    rows_kept_ += rows;
    cells_kept_ += cells;
  }
  for (Status& outcome : outcomes) RETURN_IF_ERROR(std::move(outcome));
  return Status::Ok();
}

Status Export::RunAll(client::Connection* connection) {
  RETURN_IF_ERROR(FindMoment(connection));
  if (!AllDone()) RETURN_IF_ERROR(Prepare(connection));
  return RunParts();
}

Status Export::Run() {
  ASSIGN_OR_RETURN(client::Connection connection, client::Connection::Open(options_.connection));
  const Status outcome = RunAll(&connection);
  if (owns_snapshot_ && !snapshot_.empty() && (outcome.ok() || !is_remembered_)) {
    // The first one may have been lost, or stopped inside a reply.
    Result<client::Connection> another = client::Connection::Open(options_.connection);
    const Status dropped =
        another.ok() ? DropSnapshot(&*another, options_.table, snapshot_) : another.status();
    if (!dropped.ok()) {
      std::fprintf(stderr, "cellar-export: snapshot %s stays for a day if it is not dropped: %s\n",
                   snapshot_.c_str(), dropped.text().c_str());
    }
  }
  return outcome;
}

void Export::Conclude(const Status& outcome) {
  std::fputs(complaints_.Summary().c_str(), stderr);
  if (!outcome.ok()) {
    std::fprintf(stderr, "cellar-export: %s\n", outcome.text().c_str());
    if (is_remembered_) {
      std::fprintf(stderr, "cellar-export: the same command continues from here\n");
    }
  }
  if (options_.quiet) return;
  if (!outcome.ok()) {
    std::fprintf(stderr, "%" PRIu64 " rows, %" PRIu64 " cells are safe\n", rows_kept_, cells_kept_);
    return;
  }
  const double seconds = static_cast<double>(Now() - begin_micros_) / 1e6;
  std::fprintf(stderr, "%" PRIu64 " rows, %" PRIu64 " cells written in %.1f s\n",
               totals_.rows.load(), totals_.cells.load(), seconds);
}

}  // namespace

int RunExport(const Options& options, const volatile bool* stop) {
  Export run(options, stop);
  const Status outcome = run.Run();
  run.Conclude(outcome);
  if (!outcome.ok()) return kExitStopped;
  return run.complaints().count() > 0 ? kExitSomeUnsaid : kExitAllWritten;
}

}  // namespace cellar::exporter
