// See scatter_aggregate.h.
#include "commands/cluster/scatter_aggregate.h"

#include <map>
#include <utility>

#include "commands/cluster/reply_reader.h"

namespace cellar {
namespace {

constexpr uint64_t kSliceOfReply{1'024};  // in cells, as AggregateRun::Pull counts
constexpr uint64_t kBatchRows{16 * 1024};

}  // namespace

ScatterAggregate::ScatterAggregate(const CommandContext& ctx, const Table& table, AggregateRun run,
                                   KeyRangeSet rows, uint64_t seed, WorkMemory::Lease lease)
    : ScatterTask(ctx, table),
      lease_(std::move(lease)),
      run_(std::move(run)),
      seed_(seed),
      left_(std::move(rows)) {
  run_.EnterTask();
}

size_t ScatterAggregate::memory_bytes() const {
  size_t bytes = reply_.capacity() + run_.job().memory_bytes();
  for (const Part& part : parts_) bytes += part.bytes.capacity();
  if (choice_) bytes += choice_->memory_bytes();
  return bytes;
}

bool ScatterAggregate::AskForRest() {
  std::map<uint64_t, KeyRangeSet> sets;
  if (!DivideRows(map(), left_, &sets)) return false;
  for (auto& [set, rows] : sets) {
    CallPiece piece;
    piece.table_id = table_id();
    piece.seed = seed_;
    piece.names_rows = choice_.has_value();
    piece.rows = std::move(rows);
    asked_.push_back({Ask(set, piece), piece.rows});
  }
  left_ = {};
  return true;
}

bool ScatterAggregate::TakePart(std::string reply) {
  Part& part = parts_.emplace_back();
  part.bytes = std::move(reply);
  ReplyReader reader(part.bytes);
  uint64_t count = 0;
  std::string_view bytes;
  AggregateExamined examined;
  if (!reader.Array(&count) || count == 0 || !reader.Bulk(&bytes) || !examined.Decode(bytes))
    return false;
  for (; count > 1; --count) {
    if (!reader.Bulk(&bytes)) return false;
    part.groups.push_back(bytes);
  }
  run_.job().AddExamined(examined.stats, examined.skipped);
  run_.AddNotes(examined.notes);
  return reader.done();
}

bool ScatterAggregate::TakeAnswers(TaskContext& context, bool* moved) {
  for (size_t i = 0; i < asked_.size();) {
    std::string reply;
    const Came came = Take(asked_[i].ticket, &reply);
    if (came == Came::kNothing) {
      ++i;
      continue;
    }
    if (came == Came::kMoved) {
      left_.AddAll(asked_[i].rows);
      *moved = true;
    }
    asked_.erase(asked_.begin() + static_cast<ptrdiff_t>(i));
    if (came == Came::kMoved) continue;
    if (came == Came::kReply) {
      NoteProgress();
      if (TakePart(std::move(reply))) continue;
      reply = "ERR another node has answered what are no groups";
    }
    if (!failed()) Fail(context, reply);
    return false;
  }
  return true;
}

bool ScatterAggregate::MergeParts(TaskContext& context) {
  AggregateJob& job = run_.job();
  while (!parts_.empty()) {
    Part& part = parts_.front();
    if (part.next == part.groups.size()) {
      parts_.pop_front();
      continue;
    }
    if (!job.AddGroups(part.groups[part.next++]))
      Fail(context, "ERR another node has answered what are no groups");
    else if (!job.status().ok())
      Fail(context, job.status().ToString());
    if (failed()) return false;
    if (context.budget.Spent()) break;
  }
  return true;
}

TaskProgress ScatterAggregate::Reply(TaskContext& context) {
  ReplyWriter writer(&reply_, context.reply.version());
  while (!run_.Pull(kSliceOfReply, writer))
    if (context.budget.Spent()) return TaskProgress::kMore;
  if (!run_.refusal().ok())
    Fail(context, run_.refusal().ToString());
  else if (context.reply.buffer().empty())
    context.reply.buffer().Swap(reply_);
  else
    context.reply.Raw(reply_.view());
  return TaskProgress::kDone;
}

std::optional<TaskProgress> ScatterAggregate::ChooseRows(TaskContext& context) {
  switch (choice_->Choose(*this, context, kBatchRows)) {
    case ScatterChoice::Came::kWaits:
      return TaskProgress::kWaiting;
    case ScatterChoice::Came::kGoesOn:
      return TaskProgress::kMore;
    case ScatterChoice::Came::kFailed:
      return TaskProgress::kDone;
    case ScatterChoice::Came::kChosen:
      break;
  }
  left_ = choice_->TakeRows();
  return std::nullopt;
}

TaskProgress ScatterAggregate::Advance(TaskContext& context) {
  if (!lease_.granted()) return TaskProgress::kWaiting;
  bool moved = false;
  if (!TakeAnswers(context, &moved) || !MergeParts(context)) return TaskProgress::kDone;
  const bool idle = left_.empty() && asked_.empty() && parts_.empty();
  if (idle && choice_ && !choice_->ended()) {
    if (const auto ends = ChooseRows(context)) return *ends;
  }
  if (!left_.empty() && (moved || !AskForRest()))
    return asked_.empty() && parts_.empty() ? Wait(context) : TaskProgress::kWaiting;
  if (!parts_.empty()) return TaskProgress::kMore;
  return asked_.empty() ? Reply(context) : TaskProgress::kWaiting;
}

}  // namespace cellar
