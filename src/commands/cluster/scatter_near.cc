// See scatter_near.h.
#include "commands/cluster/scatter_near.h"

#include <map>
#include <utility>

#include "commands/cluster/reply_reader.h"

namespace cellar {
namespace {

// Whether the reply is a row; if so, whether it is the one that was asked for or one behind it.
bool IsPlace(std::string_view reply, bool* is_behind) {
  ReplyReader reader(reply);
  uint64_t elements = 0;
  std::string_view row;
  uint64_t direction = 0;
  if (!reader.Array(&elements) || elements != 2 || !reader.Bulk(&row)) return false;
  *is_behind = reader.Unsigned(&direction);  // -1 is none
  return true;
}

}  // namespace

ScatterNear::ScatterNear(const CommandContext& ctx, const Table& table, const std::string& key)
    : ScatterTask(ctx, table) {
  at_.begin.bytes = key;
}

bool ScatterNear::AskNext() {
  uint64_t set = 0;
  if (!FindRun(map(), at_, backwards_, &set, &run_)) return false;
  CallPiece piece;
  piece.table_id = table_id();
  piece.rows.Add(run_);
  ticket_ = Ask(set, piece);
  return true;
}

bool ScatterNear::LookFurther() {
  if (!before_) before_ = KeyRange{{}, run_.begin};
  if (!backwards_ && !run_.end.at_end) {
    at_ = {run_.end, {{}, true}};
    return true;
  }
  at_ = backwards_ ? KeyRange{{}, run_.begin} : *before_;
  backwards_ = true;
  // The owner's own row before that one is nearer than those that lie before its rows.
  return nearest_.empty() && !at_.empty();
}

TaskProgress ScatterNear::Advance(TaskContext& context) {
  if (ticket_) {
    std::string reply;
    if (const auto ends = TakeOnly(context, &ticket_, &reply)) return *ends;
    bool is_behind = false;
    const bool is_place = IsPlace(reply, &is_behind);
    if (is_place) nearest_ = std::move(reply);
    if ((is_place && (is_behind || backwards_)) || !LookFurther()) {
      if (nearest_.empty())
        context.reply.Null();
      else
        context.reply.Raw(nearest_);
      return TaskProgress::kDone;
    }
  }
  return AskNext() ? TaskProgress::kWaiting : Wait(context);
}

namespace {

// An entry of an index, as a set has told it.
struct ToldEntry {
  std::string_view key;
  bool is_before{false};  // what was asked for: the set has nothing behind it
  std::string_view reply;

  // What is behind is nearer than what is before; of either the one that is next.
  bool IsNearerThan(const ToldEntry& other) const {
    if (is_before != other.is_before) return other.is_before;
    return is_before ? other.key < key : key < other.key;
  }
};

// Nothing in `entry`: the set has none. False: that is no answer.
bool ReadEntry(std::string_view reply, std::optional<ToldEntry>* entry) {
  ReplyReader reader(reply);
  uint64_t elements = 0;
  if (!reader.Array(&elements)) return ReplyReader(reply).Skip();  // null
  ToldEntry told;
  uint64_t before = 0;
  if (elements != 3 || !reader.Bulk(&told.key) || !reader.Unsigned(&before)) return false;
  const size_t begin = reader.position();
  if (!reader.Skip() || !reader.done()) return false;
  told.is_before = before != 0;
  told.reply = reply.substr(begin);
  *entry = told;
  return true;
}

}  // namespace

bool ScatterNearEntry::Reply(TaskContext& context, const std::vector<Answer>& answers) {
  std::optional<ToldEntry> nearest;
  for (const Answer& answer : answers) {
    std::optional<ToldEntry> entry;
    if (!ReadEntry(answer.reply, &entry)) return false;
    if (entry && (!nearest || entry->IsNearerThan(*nearest))) nearest = entry;
  }
  if (nearest)
    context.reply.Raw(nearest->reply);
  else
    context.reply.Null();
  return true;
}

}  // namespace cellar
