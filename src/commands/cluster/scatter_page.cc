// See scatter_page.h.
#include "commands/cluster/scatter_page.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "commands/cluster/reply_reader.h"
#include "commands/replies/note_sum.h"
#include "commands/replies/reply_pieces.h"
#include "commands/replies/scan_run.h"
#include "commands/replies/schema_commands.h"

namespace cellar {

bool PageStats::Add(std::string_view map) {
  ReplyReader reader(map);
  uint64_t pairs = 0;
  if (!reader.Map(&pairs)) return false;
  for (; pairs > 0; --pairs) {
    std::string_view name;
    if (!reader.Bulk(&name)) return false;
    if (name == "notes") {
      uint64_t count = 0;
      if (!reader.Array(&count)) return false;
      for (; count > 0; --count) {
        std::string_view note;
        if (!reader.Bulk(&note)) return false;
        AddNote(note, &notes);
      }
    } else if (name == "index") {
      std::string_view text;
      if (!reader.Bulk(&text)) return false;
      index = text;
    } else {
      uint64_t number = 0;
      if (!reader.Unsigned(&number)) return false;
      if (name == "rows") rows += number;
      if (name == "cells") cells += number;
      if (name == "bytes") bytes += number;
      if (name == "groups") groups = std::max(groups, number);
    }
  }
  return true;
}

bool ScatterPage::ReadPlaces(std::string_view bytes, PagePart* part) const {
  ReplyReader reader(bytes);
  uint64_t count = 0;
  std::string_view text;
  if (!reader.Array(&count) || count < 2 || count % 2 != 0) return false;
  if (!reader.Bulk(&text) || !reader.Unsigned(&part->group_rows)) return false;
  part->group_front = text;
  for (count -= 2; count > 0; count -= 2) {
    uint64_t front_bytes = 0;
    if (!reader.Bulk(&text) || !reader.Unsigned(&front_bytes) || front_bytes > text.size())
      return false;
    part->places.push_back({std::string(text), front_bytes});
  }
  return part->places.empty() || part->places.size() == part->rows;
}

bool ScatterPage::Read(PagePart* part, bool tells_place) {
  ReplyReader reader(part->bytes);
  uint64_t elements = 0;
  std::string_view cursor;
  if (!reader.Array(&elements) ||
      elements != 2U + (shape_.stats ? 1U : 0U) + (tells_place ? 1U : 0U))
    return false;
  if (!reader.Bulk(&cursor) || !reader.Array(&part->rows)) return false;
  part->cursor = cursor;
  part->rows_begin = reader.position();
  const std::string_view bytes = part->bytes;
  // Rows are passed on as they are. They are gone through only where something is behind them.
  if (elements == 2) {
    part->rows_end = bytes.size();
    return part->rows > 0 || part->rows_begin == bytes.size();
  }
  for (uint64_t i = 0; i < part->rows; ++i)
    if (!reader.Skip()) return false;
  part->rows_end = reader.position();
  if (shape_.stats) {
    const size_t begin = reader.position();
    if (!reader.Skip() || !stats_.Add(bytes.substr(begin, reader.position() - begin))) return false;
  }
  if (tells_place) {
    const size_t begin = reader.position();
    if (!reader.Skip() || !ReadPlaces(bytes.substr(begin, reader.position() - begin), part))
      return false;
  }
  return reader.done();
}

std::vector<size_t> ScatterPage::RowPositions(const PagePart& part) const {
  ReplyReader reader(
      std::string_view(part.bytes).substr(part.rows_begin, part.rows_end - part.rows_begin));
  std::vector<size_t> positions{part.rows_begin};
  for (uint64_t i = 0; i < part.rows; ++i) {
    const bool skipped = reader.Skip();
    CELLAR_ASSERT(skipped);  // Read has done it before
    positions.push_back(part.rows_begin + reader.position());
  }
  return positions;
}

// A row is its key and a map; without arrays an entry of that is a cell.
uint64_t ScatterPage::CellsIn(std::string_view rows, uint64_t count) const {
  if (shape_.keys_only || !shape_.counts_cells) return 0;
  ReplyReader reader(rows);
  uint64_t cells = 0;
  for (; count > 0; --count) {
    uint64_t elements = 0;
    uint64_t columns = 0;
    if (!reader.Array(&elements) || !reader.Skip() || !reader.Map(&columns)) return cells;
    if (!shape_.arrays) cells += columns;
    for (; columns > 0; --columns) {
      uint64_t versions = 0;
      if (!reader.Skip()) return cells;
      if (!shape_.arrays) {
        if (!reader.Skip()) return cells;
        continue;
      }
      if (!reader.Array(&versions)) return cells;
      cells += versions;
      for (; versions > 0; --versions)
        if (!reader.Skip()) return cells;
    }
  }
  return cells;
}

void ScatterPage::Add(PagePart part) {
  const size_t bytes = part.rows_end - part.rows_begin;
  rows_ += part.rows;
  bytes_ += bytes;
  cells_ += CellsIn(std::string_view(part.bytes).substr(part.rows_begin, bytes), part.rows);
  if (bytes == 0) return;
  memory_bytes_ += part.bytes.capacity();
  pieces_.push_back({std::move(part.bytes), part.rows_begin, part.rows_end});
}

void ScatterPage::AddRow(std::string_view row) {
  ++rows_;
  bytes_ += row.size();
  cells_ += CellsIn(row, 1);
  if (pieces_.empty() || pieces_.back().end >= ReplyPieces::kPieceBytes)
    pieces_.push_back({{}, 0, 0});
  Piece& piece = pieces_.back();
  memory_bytes_ -= piece.bytes.capacity();
  piece.bytes.append(row);
  memory_bytes_ += piece.bytes.capacity();
  piece.end = piece.bytes.size();
}

void ScatterPage::End(std::string cursor) {
  CELLAR_ASSERT(!ended());
  CELLAR_ASSERT(!cursor.empty());
  cursor_ = std::move(cursor);
}

void ScatterPage::ReplyStats(ReplyWriter& reply) const {
  ScanStats stats;
  stats.rows = stats_.rows;
  stats.cells = stats_.cells;
  stats.bytes = stats_.bytes;
  stats.groups = stats_.groups;
  stats.index = stats_.index;
  BeginStats(reply, stats, clock_->MonotonicMicros() - begin_micros_, stats_.notes.empty() ? 0 : 1);
  if (stats_.notes.empty()) return;
  reply.Bulk("notes");
  ReplyNames(reply, stats_.notes);
}

TaskProgress ScatterPage::Deliver(ReplyWriter& reply, const TaskBudget& budget) {
  CELLAR_ASSERT(ended());
  if (!std::exchange(head_delivered_, true)) {
    reply.Array(shape_.stats ? 3 : 2);
    reply.Bulk(cursor_);
    reply.Array(rows_);
  }
  const size_t end = reply.position() + ReplyPieces::kDeliveryBytes;
  while (delivered_ < pieces_.size()) {
    Piece& piece = pieces_[delivered_];
    const size_t bytes = std::min(piece.end - piece.begin, ReplyPieces::kPieceBytes);
    reply.Raw(std::string_view(piece.bytes).substr(piece.begin, bytes));
    piece.begin += bytes;
    if (piece.begin == piece.end) {
      memory_bytes_ -= piece.bytes.capacity();
      std::string().swap(piece.bytes);
      ++delivered_;
    }
    const bool is_all = delivered_ == pieces_.size();
    if (!is_all && (reply.position() >= end || budget.Spent())) return TaskProgress::kMore;
  }
  if (shape_.stats) ReplyStats(reply);
  return TaskProgress::kDone;
}

}  // namespace cellar
