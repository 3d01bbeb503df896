// See whole_row_reply.h.
#include "commands/replies/whole_row_reply.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/assert.h"
#include "base/inline.h"
#include "commands/replies/cell_reply.h"
#include "commands/replies/scan_heat.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "engine/rows/whole_row.h"
#include "engine/table/table.h"
#include "store/store.h"

namespace cellar {
namespace {

// What is written here of one row at most, about: some 50 us of work.
constexpr uint64_t kColumnsMax{256};
constexpr size_t kBytesMax{64 * 1024};
// Of several rows: what a scan would do at first. Each costs as much as a column, and its columns.
constexpr uint64_t kListWorkMax{kFirstSliceCells};
constexpr size_t kListBytesMax{kSliceReplyBytes};
constexpr size_t kRowsAtOnce{16};  // as many as a tree descends to together

thread_local uint64_t columns_guess{4};  // rows are mostly alike

// Writes the columns of a row behind the head of its map. False if there may be more of them, when
// there are kColumnsMax or the reply has reached `end`.
CELLAR_INLINE bool ReplyColumns(ReplyWriter& reply, WholeRow& row, size_t end, uint64_t* columns) {
  WholeRow::Cell cell;
  while (row.Next(&cell)) {
    ReplyCell(reply, cell.family->name, cell.qualifier_text, cell.value.type, cell.value.stored);
    ++*columns;
    if (*columns == kColumnsMax || reply.position() > end) [[unlikely]]
      return false;
  }
  return true;
}

// Keys of the next rows, encoded one behind the other.
class KeyBatch {
 public:
  // False if one is in doubt. REQUIRES: kRowsAtOnce at most.
  bool Encode(const TableSchema& schema, Arguments rows) {
    CELLAR_DEBUG_ASSERT(rows.size() <= kRowsAtOnce);
    bytes_.clear();
    std::array<size_t, kRowsAtOnce> ends;
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!EncodeRowKey(schema, rows[i], &bytes_).ok()) return false;
      ends[i] = bytes_.size();
    }
    for (size_t i = 0, begin = 0; i < rows.size(); begin = ends[i++])
      keys_[i] = std::string_view(bytes_).substr(begin, ends[i] - begin);
    count_ = rows.size();
    return true;
  }
  std::span<const std::string_view> keys() const { return {keys_.data(), count_}; }

 private:
  std::string bytes_;
  std::array<std::string_view, kRowsAtOnce> keys_;
  size_t count_{0};
};

ReadView& BindView(CommandContext& ctx, const Table& table) {
  static thread_local ReadView view;  // keeps its memory
  view.Bind(table, ctx.store().now_micros());
  return view;
}

}  // namespace

WholeRowReply ReplyWholeRow(CommandContext& ctx, const Table& table, std::string_view row_key,
                            size_t bytes_max, std::optional<BegunReply>* begun,
                            ScanPosition* rest) {
  CELLAR_DEBUG_ASSERT(!begun->has_value());
  ReplyWriter& reply = ctx.reply;
  const size_t begin = reply.position();
  const ReplyWriter::Mark map = reply.BeginMap(columns_guess);
  WholeRow row(BindView(ctx, table), row_key);
  uint64_t columns = 0;
  if (!ReplyColumns(reply, row, begin + std::min(bytes_max, kBytesMax), &columns)) [[unlikely]] {
    // Too long for any way of reading: the general one (CmdCRow) words the error.
    if (reply.position() - begin > bytes_max) {
      reply.Truncate(begin);
      return WholeRowReply::kRefused;
    }
    // The map stays open, and a scan goes on behind the last column.
    *begun = {.begin = begin, .open = map, .count = columns};
    *rest = row.PositionAfterCell(columns);
    return WholeRowReply::kBegun;
  }
  reply.EndMap(map, columns);
  columns_guess = columns;
  ctx.host.services().stats.CountLookup(columns > 0);
  return WholeRowReply::kDone;
}

// Rows that are small, without a scan: keys are encoded, and their leaves fetched, kRowsAtOnce at a
// time. Where a limit is met in the middle of a row, what was written of that row is taken back, so
// that the scan goes on with a whole one.
WholeRowReply ReplyWholeRows(CommandContext& ctx, const Table& table, Arguments rows,
                             size_t bytes_max, std::optional<BegunReply>* begun) {
  // Which row is another set's, the general way says.
  if (table.clamp() != nullptr) [[unlikely]]
    return WholeRowReply::kRefused;
  static thread_local KeyBatch batch;  // keeps its memory
  ReplyWriter& reply = ctx.reply;
  const size_t begin = reply.position();
  const size_t end = begin + std::min(bytes_max, kListBytesMax);
  const ReplyWriter::Mark array = reply.BeginArray(rows.size());
  const ReadView& view = BindView(ctx, table);
  ScanHeat heat(ctx.host, table, ScanHeat::Way::kJumps);
  uint64_t work = 0;
  for (size_t done = 0; done < rows.size(); done += batch.keys().size()) {
    if (!batch.Encode(table.schema(),
                      rows.subspan(done, std::min(kRowsAtOnce, rows.size() - done)))) {
      // Which key it is and why, the general way (CmdCRows) says.
      reply.Truncate(begin);
      return WholeRowReply::kRefused;
    }
    if (batch.keys().size() > 1) view.Prefetch(batch.keys());
    for (size_t i = 0; i < batch.keys().size(); ++i) {
      const size_t row_begin = reply.position();
      const ReplyWriter::Mark map = reply.BeginMap(columns_guess);
      WholeRow row(view, batch.keys()[i]);
      uint64_t columns = 0;
      const bool is_whole = ReplyColumns(reply, row, end, &columns);
      if (!is_whole || reply.position() > end || work > kListWorkMax) [[unlikely]] {
        reply.Truncate(row_begin);
        *begun = {.begin = begin, .open = array, .count = done + i};
        return WholeRowReply::kBegun;
      }
      reply.EndMap(map, columns);
      columns_guess = columns;
      // A row that is not there costs a search all the same.
      work += 1 + columns;
    }
    heat.NoteRead(done + batch.keys().size(), batch.keys().back(), reply.position() - begin);
  }
  reply.EndArray(array, rows.size());
  return WholeRowReply::kDone;
}

}  // namespace cellar
