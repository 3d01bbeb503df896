// See source.h.
#include "cellar-export/source.h"

#include <algorithm>
#include <utility>

#include "client/command_words.h"

namespace cellar::exporter {
namespace {

constexpr uint64_t kRowsPerPage{10'000};
constexpr uint64_t kCellsMin{1};
constexpr uint64_t kCellsMax{50'000};
constexpr size_t kPageBytes{1 << 20};

Status Unexpected() {
  return Status::Error(ErrorCode::kErr, "the server's reply to CSCAN is not what was expected");
}

}  // namespace

Status Source::Ask() {
  const std::string rows = std::to_string(kRowsPerPage);
  const std::string cells = std::to_string(cells_);
  std::vector<std::string_view> words{"CSCAN", options_.table, cursor_,  "COUNT",    rows,
                                      "CELLS", cells,          "WITHTS", "WITHTYPE", "WITHTTL"};
  if (options_.states) words.push_back("STATE");
  if (options_.one_moment) words.push_back("SNAPSHOT");
  words.insert(words.end(), options_.words.begin(), options_.words.end());
  std::string bytes;
  client::AppendCommand(words, &bytes);
  RETURN_IF_ERROR(connection_->Append(bytes));
  is_asked_ = true;
  return connection_->Flush();
}

void Source::Adapt() {
  if (page_cells_ == 0) return;
  const uint64_t wanted = kPageBytes * page_cells_ / std::max<uint64_t>(page_bytes_, 1);
  cells_ = std::clamp(std::min(wanted, cells_ * 4), kCellsMin, kCellsMax);
}

bool Source::Refuse(const Item& item) {
  failure_ = item.kind == Kind::kError
                 ? Status::Error(ErrorCode::kErr, std::string(replies_.Text(item)))
                 : Unexpected();
  return false;
}

Result<bool> Source::ReadPage(Listener* listener) {
  if (at_end_) return false;
  if (!is_asked_) RETURN_IF_ERROR(Ask());
  replies_.Release();
  is_asked_ = false;
  Item page;
  if (!Expect(Kind::kArray, &page)) return Failure();
  if (page.number != 2) return Unexpected();
  Item cursor;
  if (!Expect(Kind::kText, &cursor)) return Failure();
  cursor_ = replies_.Text(cursor);
  at_end_ = cursor_ == "0";
  // The server works while this page is read.
  Adapt();
  if (!at_end_) RETURN_IF_ERROR(Ask());
  page_bytes_ = 0;
  page_cells_ = 0;
  Item rows;
  if (!Expect(Kind::kArray, &rows)) return Failure();
  for (int64_t i = 0; i < rows.number; ++i) RETURN_IF_ERROR(ReadRow(listener));
  return true;
}

Status Source::ReadRow(Listener* listener) {
  Item pair;
  if (!Expect(Kind::kArray, &pair)) return Failure();
  if (pair.number != 2) return Unexpected();
  Item row;
  if (!Expect(Kind::kText, &row)) return Failure();
  row_ = replies_.Text(row);
  page_bytes_ += row_.size();
  RETURN_IF_ERROR(listener->OnRow(row_));
  Item columns;
  if (!Expect(Kind::kArray, &columns)) return Failure();
  for (int64_t i = 0; i + 1 < columns.number; i += 2) {
    Item column;
    if (!Expect(Kind::kText, &column)) return Failure();
    column_ = replies_.Text(column);
    RETURN_IF_ERROR(ReadVersions(listener));
  }
  return Status::Ok();
}

// An array of versions; of VERSIONS 1 the version itself.
Status Source::ReadVersions(Listener* listener) {
  Item versions;
  if (!Expect(Kind::kArray, &versions)) return Failure();
  for (int64_t i = 0; i < versions.number; ++i) {
    replies_.Release();
    Item first;
    if (!replies_.Next(&first)) return Failure();
    if (first.kind == Kind::kInteger) {
      if (i > 0 || versions.number != 4) return Unexpected();
      return ReadCell(first, listener);
    }
    if (first.kind != Kind::kArray || first.number != 4) return Unexpected();
    Item timestamp;
    if (!Expect(Kind::kInteger, &timestamp)) return Failure();
    RETURN_IF_ERROR(ReadCell(timestamp, listener));
  }
  return Status::Ok();
}

Status Source::ReadCell(const Item& timestamp, Listener* listener) {
  Item value;
  if (!replies_.Next(&value)) return Failure();
  if (value.kind != Kind::kInteger && value.kind != Kind::kText) return Unexpected();
  Item type;
  if (!Expect(Kind::kText, &type)) return Failure();
  Item expiry;
  if (!replies_.Next(&expiry)) return Failure();
  Cell cell;
  cell.column = column_;
  cell.timestamp_micros = timestamp.number;
  cell.timestamp = replies_.Text(timestamp);
  cell.type = replies_.Text(type);
  cell.value = replies_.Text(value);
  if (expiry.kind == Kind::kInteger) {
    cell.expires_micros = expiry.number;
    cell.expires = replies_.Text(expiry);
  }
  page_bytes_ += column_.size() + cell.value.size();
  ++page_cells_;
  return listener->OnCell(cell);
}

}  // namespace cellar::exporter
