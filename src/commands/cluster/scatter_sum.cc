// See scatter_sum.h.
#include "commands/cluster/scatter_sum.h"

#include <map>
#include <utility>

#include "commands/cluster/reply_reader.h"

namespace cellar {

void ScatterSum::TakeAnswers() {
  std::string reply;
  moved_ = false;
  std::erase_if(asked_, [&](Asked& asked) {
    const Came came = Take(asked.ticket, &reply);
    if (came == Came::kNothing) return false;
    uint64_t number = 0;
    if (came == Came::kMoved) {
      left_.AddAll(asked.rows);
      moved_ = true;
    } else if (came == Came::kReply && ReplyReader(reply).Unsigned(&number)) {
      sum_ += number;
      NoteProgress();
    } else if (came == Came::kReply || came == Came::kError) {
      const KeyBound& at = asked.rows.ranges().front().begin;
      if (came == Came::kReply) reply = "ERR another node has answered what is no number";
      if (!error_ || at < error_->at) error_ = {at, reply};
    }
    return true;
  });
}

void ScatterSum::AskFor(uint64_t set, KeyRangeSet rows) {
  CallPiece piece;
  piece.table_id = table_id();
  piece.rows_max = limit_ == kUnlimited ? kUnlimited : limit_ - sum_;
  piece.seed = seed_;
  piece.rows = std::move(rows);
  asked_.push_back({Ask(set, piece), piece.rows});
}

bool ScatterSum::AskForRest() {
  if (limit_ == kUnlimited) {
    std::map<uint64_t, KeyRangeSet> parts;
    if (!DivideRows(map(), left_, &parts)) return false;
    for (auto& [set, part] : parts) AskFor(set, std::move(part));
    left_ = {};
    return true;
  }
  if (!asked_.empty()) return true;
  uint64_t set = 0;
  KeyRange run;
  if (!FindRun(map(), left_.ranges().front(), false, &set, &run)) return false;
  KeyRangeSet part = left_;
  KeyRangeSet within;
  within.Add(run);
  part.IntersectWith(within);
  KeyRangeSet behind;
  if (!run.end.at_end) behind.Add({run.end, {{}, true}});
  left_.IntersectWith(behind);
  AskFor(set, std::move(part));
  return true;
}

TaskProgress ScatterSum::Advance(TaskContext& context) {
  TakeAnswers();
  if (!failed() && !error_ && !left_.empty() && sum_ < limit_ && (moved_ || !AskForRest()))
    return asked_.empty() ? Wait(context) : TaskProgress::kWaiting;
  if (!asked_.empty()) return TaskProgress::kWaiting;
  if (failed()) return TaskProgress::kDone;
  if (error_)
    Fail(context, error_->line);
  else
    context.reply.Unsigned(sum_);
  return TaskProgress::kDone;
}

}  // namespace cellar
