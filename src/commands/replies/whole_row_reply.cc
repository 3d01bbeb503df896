// See whole_row_reply.h.
#include "commands/replies/whole_row_reply.h"

#include "commands/replies/cell_reply.h"
#include "commands/session/services.h"
#include "engine/rows/whole_row.h"
#include "store/store.h"

namespace cellar {
namespace {

// What is written here at most, about: some 50 us of work.
constexpr uint64_t kColumnsMax{256};
constexpr size_t kBytesMax{64 * 1024};

}  // namespace

WholeRowReply ReplyWholeRow(CommandContext& ctx, const Table& table, std::string_view row_key,
                            size_t bytes_max, std::optional<BegunRow>* begun, ScanPosition* rest) {
  static thread_local ReadView view;              // keeps its memory
  static thread_local uint64_t columns_guess{4};  // rows are mostly alike
  ReplyWriter& reply = ctx.reply;
  const size_t begin = reply.position();
  const ReplyWriter::Mark map = reply.BeginMap(columns_guess);
  view.Bind(table, ctx.store().now_micros());
  WholeRow row(view, row_key);
  WholeRow::Cell cell;
  uint64_t columns = 0;
  while (row.Next(&cell)) {
    ReplyCell(reply, cell.family->name, cell.qualifier_text, cell.value.type, cell.value.stored);
    ++columns;
    const size_t bytes = reply.position() - begin;
    if (bytes > bytes_max) [[unlikely]] {
      reply.Truncate(begin);
      return WholeRowReply::kTooLong;
    }
    if (columns == kColumnsMax || bytes > kBytesMax) [[unlikely]] {
      *begun = {.begin = begin, .map = map, .columns = columns};
      *rest = row.PositionAfterCell(columns);
      return WholeRowReply::kBegun;
    }
  }
  reply.EndMap(map, columns);
  columns_guess = columns;
  ctx.host.services().stats.CountLookup(columns > 0);
  return WholeRowReply::kDone;
}

}  // namespace cellar
