// See scatter_parts.h.
#include "commands/cluster/scatter_parts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "commands/cluster/reply_reader.h"
#include "commands/replies/note_sum.h"
#include "commands/replies/row_sample.h"
#include "commands/replies/schema_commands.h"

namespace cellar {

bool ScatterParts::AskForRest() {
  std::map<uint64_t, KeyRangeSet> sets;
  if (!DivideRows(map(), left_, &sets)) return false;
  for (auto& [set, rows] : sets) {
    CallPiece piece;
    piece.table_id = table_id();
    piece.rows = std::move(rows);
    asked_.push_back({Ask(set, piece), set, piece.rows});
  }
  left_ = {};
  return true;
}

bool ScatterParts::TakeAnswers(TaskContext& context, bool* moved) {
  for (size_t i = 0; i < asked_.size();) {
    std::string reply;
    const Came came = Take(asked_[i].ticket, &reply);
    if (came == Came::kNothing) {
      ++i;
      continue;
    }
    if (came == Came::kError) Fail(context, reply);
    if (came == Came::kMoved) {
      left_.AddAll(asked_[i].rows);
      *moved = true;
    }
    if (came == Came::kReply) {
      NoteProgress();
      answers_.push_back({asked_[i].set, std::move(reply)});
    }
    asked_.erase(asked_.begin() + static_cast<ptrdiff_t>(i));
    if (failed()) return false;
  }
  return true;
}

TaskProgress ScatterParts::Advance(TaskContext& context) {
  bool moved = false;
  if (!TakeAnswers(context, &moved)) return TaskProgress::kDone;
  if (!left_.empty() && (moved || !AskForRest()))
    return asked_.empty() ? Wait(context) : TaskProgress::kWaiting;
  if (!asked_.empty()) return TaskProgress::kWaiting;
  std::sort(answers_.begin(), answers_.end(),
            [](const Answer& a, const Answer& b) { return a.set < b.set; });
  if (!Reply(context, answers_)) Fail(context, kSomethingElse);
  return TaskProgress::kDone;
}

// --- TABLE SAMPLE

namespace {

bool ReadSamplePoints(std::string_view reply, std::vector<SamplePoint>* points) {
  ReplyReader reader(reply);
  uint64_t elements = 0;
  uint64_t bytes = 0;
  if (!reader.Array(&elements) || elements % 2 != 1 || !reader.Unsigned(&bytes)) return false;
  for (; elements > 1; elements -= 2) {
    std::string_view key;
    std::string_view row;
    if (!reader.Bulk(&key) || !reader.Bulk(&row)) return false;
    points->push_back({std::string(key), std::string(row), bytes});
  }
  return reader.done();
}

}  // namespace

bool ScatterSample::Reply(TaskContext& context, const std::vector<Answer>& answers) {
  std::vector<SamplePoint> points;
  for (const Answer& answer : answers)
    if (!ReadSamplePoints(answer.reply, &points)) return false;
  ReplyNames(context.reply, SplitPoints(std::move(points), parts_));
  return true;
}

// --- CEXPLAIN

namespace {

uint64_t CountIn(std::string_view map, std::string_view name) {
  ReplyFields fields;
  uint64_t count = 0;
  if (ReadReplyFields(map, &fields)) (void)ReplyReader(ValueOf(fields, name)).Unsigned(&count);
  return count;
}

// The texts of all; each once, in the order in which they are met.
void ReplyNotes(const std::vector<ReplyFields>& plans, ReplyWriter& reply) {
  std::vector<std::string> notes;
  for (const ReplyFields& plan : plans) {
    ReplyReader reader(ValueOf(plan, "notes"));
    uint64_t count = 0;
    std::string_view note;
    if (!reader.Array(&count)) continue;
    for (; count > 0 && reader.Bulk(&note); --count) AddNote(note, &notes);
  }
  ReplyNames(reply, notes);
}

// The sets work beside each other: of micros the longest is told. All look at the same groups.
void ReplySums(const std::vector<ReplyFields>& plans, std::string_view name, ReplyWriter& reply) {
  ReplyFields first;
  (void)ReadReplyFields(ValueOf(plans.front(), name), &first);
  reply.Map(first.size());
  for (const auto& [field, value] : first) {
    uint64_t sum = 0;
    for (const ReplyFields& plan : plans) {
      const uint64_t count = CountIn(ValueOf(plan, name), field);
      sum = field == "micros" || field == "groups" ? std::max(sum, count) : sum + count;
    }
    reply.Bulk(field);
    reply.Unsigned(sum);
  }
}

}  // namespace

bool ScatterExplain::Reply(TaskContext& context, const std::vector<Answer>& answers) {
  ReplyWriter& reply = context.reply;
  if (answers.size() == 1) {
    reply.Raw(answers.front().reply);
    return true;
  }
  std::vector<ReplyFields> plans(answers.size());
  size_t largest = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!ReadReplyFields(answers[i].reply, &plans[i])) return false;
    const auto rows = [&](size_t at) { return CountIn(ValueOf(plans[at], "estimated"), "rows"); };
    if (rows(largest) < rows(i)) largest = i;
  }
  std::swap(plans.front(), plans[largest]);
  const ReplyFields& shown = plans.front();
  reply.Map(shown.size() + 1);
  for (const auto& [name, value] : shown) {
    reply.Bulk(name);
    if (name == "notes")
      ReplyNotes(plans, reply);
    else if (name == "estimated" || name == "examined")
      ReplySums(plans, name, reply);
    else
      reply.Raw(value);
  }
  reply.Bulk("sets");
  reply.Array(answers.size());
  for (const Answer& answer : answers) {
    reply.Array(2);
    reply.Unsigned(answer.set);
    reply.Raw(answer.reply);
  }
  return true;
}

}  // namespace cellar
