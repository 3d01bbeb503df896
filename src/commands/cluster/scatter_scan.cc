// See scatter_scan.h.
#include "commands/cluster/scatter_scan.h"

#include <algorithm>
#include <utility>

#include "base/text/number.h"
#include "commands/cluster/reply_reader.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

constexpr size_t kCursorWord{2};

// What of ascending `ranges` lies behind `run`.
void LeaveRun(const KeyRange& run, bool reverse, std::vector<KeyRange>* ranges) {
  for (KeyRange& range : *ranges) {
    if (reverse)
      range.end = std::min(range.end, run.begin);
    else
      range.begin = std::max(range.begin, run.end);
  }
  std::erase_if(*ranges, [](const KeyRange& range) { return range.empty(); });
}

}  // namespace

size_t RowsHeadBytes(uint64_t rows_max) {
  return FormatUint64(std::min(rows_max, kScanCountDefault)).size() + 3;
}

ScatterScan::ScatterScan(const CommandContext& ctx, const Table& table, Plan plan)
    : ScatterTask(ctx, table), plan_(std::move(plan)), page_(plan_.shape, ctx.host.clock()) {}

// The bytes that are left are those of a page of which the set writes the head anew.
bool ScatterScan::AskNext() {
  uint64_t set = 0;
  const KeyRange& from = plan_.reverse ? plan_.ranges.back() : plan_.ranges.front();
  if (!FindRun(map(), from, plan_.reverse, &set, &run_)) return false;
  CallPiece piece;
  piece.table_id = table_id();
  piece.rows.Add(run_);
  piece.rows_max = plan_.rows_max - page_.rows();
  piece.cells_max = plan_.cells_max == kUnlimited ? kUnlimited : plan_.cells_max - page_.cells();
  const size_t used = RowsHeadBytes(plan_.rows_max) + page_.bytes();
  piece.bytes_max = plan_.bytes_max + RowsHeadBytes(piece.rows_max) -
                    std::min(used, plan_.bytes_max + RowsHeadBytes(piece.rows_max));
  piece.rows_before = page_.rows();
  piece.seed = plan_.seed;
  piece.tells_place = plan_.each;
  ticket_ = Ask(set, piece);
  return true;
}

bool ScatterScan::TakePart(TaskContext& context, std::string reply) {
  PagePart part;
  part.bytes = std::move(reply);
  if (!page_.Read(&part, plan_.each)) {
    Fail(context, "ERR another node has answered what is no page");
    return false;
  }
  const std::string cursor = part.cursor;
  ScanPosition place;
  place.row_key = std::move(part.group_front);
  place.group_rows = part.group_rows;
  page_.Add(std::move(part));
  if (!IsStartCursor(cursor)) {
    page_.End(cursor);
    return false;
  }
  LeaveRun(run_, plan_.reverse, &plan_.ranges);
  if (plan_.ranges.empty()) {
    page_.End("0");
    return false;
  }
  // Rows of the next piece lie behind wherever the cursor stood.
  words()[kCursorWord] =
      place.group_rows == 0
          ? "0"
          : EncodeCursor({.position = std::move(place), .pin = plan_.pin}, plan_.binding);
  return true;
}

TaskProgress ScatterScan::Advance(TaskContext& context) {
  if (page_.ended()) return page_.Deliver(context.reply, context.budget);
  if (ticket_) {
    std::string reply;
    if (const auto ends = TakeOnly(context, &ticket_, &reply)) return *ends;
    if (!TakePart(context, std::move(reply)))
      return failed() ? TaskProgress::kDone : page_.Deliver(context.reply, context.budget);
  }
  return AskNext() ? TaskProgress::kWaiting : Wait(context);
}

}  // namespace cellar
