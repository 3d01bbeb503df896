// See scatter_sum.h.
#include "commands/cluster/scatter_sum.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/text/number.h"
#include "cluster/lost_rows.h"
#include "commands/cluster/reply_reader.h"

namespace cellar {
namespace {

constexpr uint64_t kBatchRows{16 * 1024};

// What a change that goes over many rows ends its error with (store/row_update.cc).
constexpr std::string_view kAfter{" after "};
constexpr std::string_view kRows{" rows"};

// Takes that off the line; nothing: it does not end so.
std::optional<uint64_t> TakeRowsDone(std::string* line) {
  const size_t at = line->rfind(kAfter);
  if (at == std::string::npos || !line->ends_with(kRows)) return std::nullopt;
  const size_t begin = at + kAfter.size();
  uint64_t rows = 0;
  const std::string_view digits =
      std::string_view(*line).substr(begin, line->size() - kRows.size() - begin);
  if (ParseUint64(digits, &rows) != NumberError::kNone) return std::nullopt;
  line->resize(at);
  return rows;
}

}  // namespace

ScatterSum::ScatterSum(const CommandContext& ctx, const Table& table, ScatterChoice::Plan choice,
                       uint64_t limit, bool counts_them)
    : ScatterTask(ctx, table),
      limit_(limit),
      seed_(choice.seed),
      choice_(std::in_place, std::move(choice)),
      counts_chosen_(counts_them),
      is_to_check_(ctx.command.Has(kWrite)) {}

void ScatterSum::TakeAnswers() {
  std::string reply;
  moved_ = false;
  std::erase_if(asked_, [&](Asked& asked) {
    const Came came = Take(asked.ticket, &reply);
    if (came == Came::kNothing) return false;
    uint64_t number = 0;
    if (came == Came::kMoved) {
      if (asked.rows_max == 0)
        is_to_check_ = true;
      else
        left_.AddAll(asked.rows);
      moved_ = true;
    } else if (came == Came::kReply && ReplyReader(reply).Unsigned(&number)) {
      sum_ += number;
      NoteProgress();
    } else if (came == Came::kReply || came == Came::kError) {
      const KeyBound& at = asked.rows.ranges().front().begin;
      if (came == Came::kReply) reply = "ERR another node has answered what is no number";
      const std::optional<uint64_t> counted = TakeRowsDone(&reply);
      done_before_errors_ += counted.value_or(0);
      if (!error_ || at < error_->at) error_ = {at, std::move(reply), counted.has_value()};
    }
    return true;
  });
}

void ScatterSum::AskFor(uint64_t set, KeyRangeSet rows) {
  CallPiece piece;
  piece.table_id = table_id();
  piece.rows_max = limit_ == kUnlimited ? kUnlimited : limit_ - sum_;
  piece.seed = seed_;
  // An update looks again whether an entry still leads to its row.
  piece.names_rows = choice_ && limit_ == kUnlimited;
  piece.rows = std::move(rows);
  asked_.push_back({Ask(set, piece), piece.rows, piece.rows_max});
}

bool ScatterSum::AskForAll() {
  std::map<uint64_t, KeyRangeSet> parts;
  if (!DivideRows(map(), left_, &parts)) return false;
  for (auto& [set, part] : parts) AskFor(set, std::move(part));
  left_ = {};
  return true;
}

bool ScatterSum::AskForRest() {
  if (limit_ == kUnlimited || choice_) return AskForAll();
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

bool ScatterSum::AskWhatIsWrong() {
  uint64_t set = 0;
  CallPiece piece;
  KeyRange run;
  if (!FindRun(map(), KeyRange{}, false, &set, &run)) return false;
  piece.table_id = table_id();
  piece.rows_max = 0;
  piece.rows.Add(std::move(run));
  asked_.push_back({Ask(set, piece), piece.rows, piece.rows_max});
  return true;
}

std::optional<TaskProgress> ScatterSum::Choose(TaskContext& context) {
  if (is_to_check_) {
    if (moved_ || !AskWhatIsWrong()) return Wait(context);
    is_to_check_ = false;
    return TaskProgress::kWaiting;
  }
  const uint64_t rows_max = limit_ == kUnlimited ? kBatchRows : std::min(kBatchRows, limit_ - sum_);
  for (;;) {
    switch (choice_->Choose(*this, context, rows_max)) {
      case ScatterChoice::Came::kWaits:
        return TaskProgress::kWaiting;
      case ScatterChoice::Came::kGoesOn:
        return TaskProgress::kMore;
      case ScatterChoice::Came::kFailed:
        return TaskProgress::kDone;
      case ScatterChoice::Came::kChosen:
        break;
    }
    if (counts_chosen_) {
      sum_ += choice_->chosen();
      (void)choice_->TakeRows();
    } else {
      left_ = choice_->TakeRows();
      if (!left_.empty()) return std::nullopt;
    }
    if (choice_->ended()) return std::nullopt;
  }
}

std::string ScatterSum::EndOfErrors() const {
  const uint64_t done = writes() ? sum_ + done_before_errors_ : 0;
  const bool tells = done > 0 || (error_ && error_->counts);
  return tells ? fmt::format("{}{}{}", kAfter, done, kRows) : std::string();
}

TaskProgress ScatterSum::Reply(TaskContext& context) {
  if (!error_) {
    context.reply.Unsigned(sum_);
    return TaskProgress::kDone;
  }
  Fail(context, error_->line);
  return TaskProgress::kDone;
}

TaskProgress ScatterSum::Advance(TaskContext& context) {
  if (!std::exchange(is_begun_, true)) {
    if (const auto lost = LostAmong(choice_ ? choice_->rows() : left_)) {
      Fail(context, LostRowsText(*lost));
      return TaskProgress::kDone;
    }
  }
  TakeAnswers();
  const bool goes_on = !failed() && !error_ && sum_ < limit_;
  const bool chooses = goes_on && choice_ && !choice_->ended() && left_.empty() && asked_.empty();
  if (chooses) {
    if (const auto ends = Choose(context)) return *ends;
  }
  if (goes_on && !left_.empty() && (moved_ || !AskForRest()))
    return asked_.empty() ? Wait(context) : TaskProgress::kWaiting;
  if (!asked_.empty()) return TaskProgress::kWaiting;
  return failed() ? TaskProgress::kDone : Reply(context);
}

}  // namespace cellar
