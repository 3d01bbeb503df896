// See source.h.
#include "cellar-export/source.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "client/command_words.h"

namespace cellar::exporter {
namespace {

constexpr uint64_t kRowsPerPage{10'000};
constexpr uint64_t kCellsMin{1};
constexpr uint64_t kCellsMax{50'000};
constexpr size_t kPageBytes{1 << 20};

std::string_view Text(const redisReply& reply) { return {reply.str, reply.len}; }

Status Unexpected() {
  return Status::Error(ErrorCode::kErr, "the server's reply to CSCAN is not what was expected");
}

// One version: [timestamp, value, type, expiry or nil]. A number's text goes to *scratch.
bool ReadCell(const redisReply& entry, std::string* scratch, Cell* cell) {
  if (entry.type != REDIS_REPLY_ARRAY || entry.elements != 4) return false;
  const redisReply& timestamp = *entry.element[0];
  const redisReply& value = *entry.element[1];
  const redisReply& type = *entry.element[2];
  const redisReply& expiry = *entry.element[3];
  if (timestamp.type != REDIS_REPLY_INTEGER || type.str == nullptr) return false;
  cell->timestamp_micros = timestamp.integer;
  cell->type = Text(type);
  if (value.type == REDIS_REPLY_INTEGER) {
    *scratch = std::to_string(value.integer);
    cell->value = *scratch;
  } else if (value.str != nullptr) {
    cell->value = Text(value);
  } else {
    return false;
  }
  cell->expires_micros.reset();
  if (expiry.type == REDIS_REPLY_INTEGER) cell->expires_micros = expiry.integer;
  return true;
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

void Source::Adapt(size_t bytes, size_t cells) {
  if (cells == 0) return;
  const uint64_t wanted = kPageBytes * cells / std::max<size_t>(bytes, 1);
  cells_ = std::clamp(std::min(wanted, cells_ * 4), kCellsMin, kCellsMax);
}

Result<bool> Source::ReadPage(Listener* listener) {
  if (at_end_) return false;
  if (!is_asked_) RETURN_IF_ERROR(Ask());
  ASSIGN_OR_RETURN(const client::Reply reply, connection_->Read());
  is_asked_ = false;
  if (!client::ErrorText(*reply).empty()) {
    return Status::Error(ErrorCode::kErr, std::string(client::ErrorText(*reply)));
  }
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) return Unexpected();
  cursor_ = Text(*reply->element[0]);
  at_end_ = cursor_ == "0";
  if (!at_end_) RETURN_IF_ERROR(Ask());  // the server works while this page is written
  size_t bytes = 0;
  size_t cells = 0;
  std::string scratch;
  Cell cell;
  const redisReply& rows = *reply->element[1];
  for (size_t i = 0; i < rows.elements; ++i) {
    const redisReply& row = *rows.element[i];
    if (row.type != REDIS_REPLY_ARRAY || row.elements != 2) return Unexpected();
    RETURN_IF_ERROR(listener->OnRow(Text(*row.element[0])));
    bytes += row.element[0]->len;
    const redisReply& columns = *row.element[1];
    for (size_t c = 0; c + 1 < columns.elements; c += 2) {
      cell.column = Text(*columns.element[c]);
      const redisReply& versions = *columns.element[c + 1];
      const bool is_one = versions.elements > 0 &&
                          versions.element[0]->type == REDIS_REPLY_INTEGER;  // of VERSIONS 1
      for (size_t v = 0; v < (is_one ? 1 : versions.elements); ++v) {
        if (!ReadCell(is_one ? versions : *versions.element[v], &scratch, &cell)) {
          return Unexpected();
        }
        RETURN_IF_ERROR(listener->OnCell(cell));
        bytes += cell.column.size() + cell.value.size();
        ++cells;
      }
    }
  }
  Adapt(bytes, cells);
  return true;
}

}  // namespace cellar::exporter
