// See scatter_rows.h.
#include "commands/cluster/scatter_rows.h"

#include <map>
#include <utility>

#include "base/text/number.h"
#include "commands/cluster/reply_reader.h"
#include "commands/replies/reply_pieces.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

constexpr size_t kCountWord{2};
constexpr size_t kRowsBetweenLooks{32};  // at the clock

}  // namespace

ScatterRows::ScatterRows(const CommandContext& ctx, const Table& table,
                         std::vector<std::string> keys, size_t first_word, size_t reply_bytes_max)
    : ScatterTask(ctx, table),
      first_word_(first_word),
      reply_bytes_max_(reply_bytes_max),
      left_(keys.size()) {
  rows_.reserve(keys.size());
  for (std::string& key : keys) rows_.push_back({.key = std::move(key)});
}

void ScatterRows::AskFor(uint64_t set, KeyRangeSet tablets, std::vector<size_t> rows) {
  CallPiece piece;
  piece.table_id = table_id();
  piece.rows = std::move(tablets);
  const std::string count = FormatUint64(rows.size());
  std::vector<std::string_view> asked(words().begin(), words().begin() + kCountWord);
  asked.emplace_back(count);
  for (const size_t row : rows) {
    asked.emplace_back(words()[first_word_ + row]);
    rows_[row].asked = true;
  }
  asked.insert(asked.end(), words().begin() + static_cast<ptrdiff_t>(first_word_ + rows_.size()),
               words().end());
  asked_.push_back({Ask(set, piece, asked), std::move(rows)});
}

bool ScatterRows::AskForRest() {
  const MapCache& map = MapOf(host());
  struct OfSet {
    KeyRangeSet tablets;
    std::vector<size_t> rows;
  };
  std::map<uint64_t, OfSet> sets;
  bool known = true;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].asked) continue;
    const MapEntry* const entry = map.FindTablet(table_id(), rows_[i].key);
    if (entry == nullptr) {
      known = false;
      continue;
    }
    OfSet& of_set = sets[entry->set];
    if (!of_set.tablets.Contains(rows_[i].key))
      of_set.tablets.Add({{entry->begin, false}, {entry->end, entry->end.empty()}});
    of_set.rows.push_back(i);
  }
  for (auto& [set, of_set] : sets) AskFor(set, std::move(of_set.tablets), std::move(of_set.rows));
  return known;
}

bool ScatterRows::TakeMaps(const Asked& asked, std::string reply) {
  ReplyReader reader(reply);
  uint64_t count = 0;
  if (!reader.Array(&count) || count != asked.rows.size()) return false;
  for (const size_t row : asked.rows) {
    rows_[row].part = parts_.size();
    rows_[row].begin = reader.position();
    if (!reader.Skip()) return false;
    rows_[row].end = reader.position();
    bytes_ += rows_[row].end - rows_[row].begin;
  }
  left_ -= asked.rows.size();
  parts_.push_back(std::move(reply));
  return reader.done();
}

bool ScatterRows::TakeAnswers(TaskContext& context, bool* moved) {
  for (size_t i = 0; i < asked_.size();) {
    std::string reply;
    const Came came = Take(asked_[i].ticket, &reply);
    if (came == Came::kNothing) {
      ++i;
      continue;
    }
    const Asked asked = std::move(asked_[i]);
    asked_.erase(asked_.begin() + static_cast<ptrdiff_t>(i));
    if (came == Came::kMoved) {
      for (const size_t row : asked.rows) rows_[row].asked = false;
      *moved = true;
      continue;
    }
    if (came == Came::kReply) {
      NoteProgress();
      if (TakeMaps(asked, std::move(reply))) continue;
      reply = "ERR another node has answered what are no rows";
    }
    if (!failed()) Fail(context, reply);
    return false;
  }
  return true;
}

// As one server would, which has the head of the rows in front.
TaskProgress ScatterRows::Deliver(TaskContext& context) {
  if (!std::exchange(delivering_, true)) context.reply.Array(rows_.size());
  const size_t end = context.reply.position() + ReplyPieces::kDeliveryBytes;
  while (delivered_ < rows_.size()) {
    const Row& row = rows_[delivered_++];
    context.reply.Raw(std::string_view(parts_[row.part]).substr(row.begin, row.end - row.begin));
    const bool looks = delivered_ % kRowsBetweenLooks == 0 && delivered_ < rows_.size();
    if (context.reply.position() >= end || (looks && context.budget.Spent()))
      return delivered_ < rows_.size() ? TaskProgress::kMore : TaskProgress::kDone;
  }
  return TaskProgress::kDone;
}

TaskProgress ScatterRows::Advance(TaskContext& context) {
  if (delivering_) return Deliver(context);
  bool moved = false;
  if (!TakeAnswers(context, &moved)) return TaskProgress::kDone;
  if (left_ == 0) {
    const size_t head = FormatUint64(rows_.size()).size() + 3;
    if (head + bytes_ <= reply_bytes_max_) return Deliver(context);
    Fail(context,
         "TOOLARGE these rows make a reply of more than reply-max-bytes: read fewer, or some "
         "columns");
    return TaskProgress::kDone;
  }
  if (moved || !AskForRest()) return asked_.empty() ? Wait(context) : TaskProgress::kWaiting;
  return TaskProgress::kWaiting;
}

}  // namespace cellar
