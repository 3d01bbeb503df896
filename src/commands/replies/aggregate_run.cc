// See aggregate_run.h.
#include "commands/replies/aggregate_run.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/number.h"
#include "commands/replies/cell_reply.h"
#include "commands/replies/note_sum.h"
#include "commands/replies/scan_run.h"
#include "commands/replies/schema_commands.h"
#include "engine/aggregate/aggregate_result.h"

namespace cellar {
namespace {

// A group's part of a reply is worth so many cells of a slice.
constexpr uint64_t kCellsPerReplyGroup{8};
// And so many go to another node at once.
constexpr uint64_t kFoldedGroupsMax{4'096};

std::string Digits(int128_t number) {
  const bool negative = number < 0;
  auto left = static_cast<uint128_t>(negative ? -number : number);
  std::string digits;
  do {
    digits.push_back(static_cast<char>('0' + static_cast<int>(left % 10)));
    left /= 10;
  } while (left > 0);
  if (negative) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

void ReplyDouble(ReplyWriter& reply, double value) {
  if (std::isnan(value)) return reply.DoubleText("nan");
  reply.Double(value);
}

void ReplyInteger(ReplyWriter& reply, int128_t value) {
  // A sum of 64-bit integers can be wider than they are.
  if (value >= INT64_MIN && value <= INT64_MAX) return reply.Integer(static_cast<int64_t>(value));
  reply.BigNumber(Digits(value));
}

void Reply(ReplyWriter& reply, const AggregateValue& value) {
  switch (value.kind) {
    case AggregateValue::Kind::kNull:
      return reply.Null();
    case AggregateValue::Kind::kText:
      return reply.Bulk(value.text);
    case AggregateValue::Kind::kInteger:
      return ReplyInteger(reply, value.integer);
    case AggregateValue::Kind::kDouble:
      return ReplyDouble(reply, value.floating);
    case AggregateValue::Kind::kFloat32:
      return reply.DoubleText(FormatFloat(static_cast<float>(value.floating)));
    case AggregateValue::Kind::kBool:
      return reply.Boolean(value.integer != 0);
    case AggregateValue::Kind::kCell:
      return ReplyValue(reply, value.type, value.text);
    case AggregateValue::Kind::kDoubles:
      reply.Array(value.doubles.size());
      for (const double number : value.doubles) ReplyDouble(reply, number);
      return;
    case AggregateValue::Kind::kCounts:
      reply.Array(value.counts.size());
      for (const uint64_t count : value.counts) reply.Unsigned(count);
      return;
  }
}

void ReplyGroup(ReplyWriter& reply, const AggregatePlan& plan, const AggregateGroup& group) {
  reply.Array(2);
  const std::vector<AggregateValue> values = GroupValues(plan, group);
  reply.Array(values.size());
  for (const AggregateValue& value : values) Reply(reply, value);
  reply.Map(plan.reduces.size());
  for (const PlannedReduce& reduce : plan.reduces) {
    reply.Bulk(reduce.name);
    Reply(reply, ReduceValue(plan, reduce, group));
  }
}

}  // namespace

AggregateRun::AggregateRun(std::unique_ptr<AggregateJob> job, size_t reply_bytes_max,
                           Clock* stats_clock, std::vector<std::string> notes)
    : job_(std::move(job)),
      reply_bytes_max_(reply_bytes_max),
      stats_clock_(stats_clock),
      notes_(std::move(notes)) {
  if (stats_clock_ != nullptr) begin_micros_ = stats_clock_->MonotonicMicros();
}

void AggregateRun::Refuse(Status status, ReplyWriter& reply) {
  CELLAR_ASSERT(!status.ok());
  CELLAR_ASSERT(!replying_ || begin_position_ <= reply.position());
  if (replying_) reply.Truncate(begin_position_);
  refusal_ = std::move(status);
}

void AggregateRun::Begin(ReplyWriter& reply) {
  CELLAR_ASSERT(!replying_);
  replying_ = true;
  begin_position_ = reply.position();
  if (tells_folded_) {
    folded_ = reply.BeginArray(2);
    return;
  }
  const AggregatePlan& plan = job_->plan();
  const size_t groups = job_->groups();
  group_at_ = static_cast<size_t>(std::min<uint64_t>(plan.skip, groups));
  group_end_ = group_at_ + static_cast<size_t>(std::min<uint64_t>(plan.limit, groups - group_at_));
  CELLAR_ASSERT(group_at_ <= group_end_);
  CELLAR_ASSERT(group_end_ <= groups);
  if (stats_clock_ != nullptr) reply.Array(2);
  reply.Array(group_end_ - group_at_);
}

// Where leaves are folded without the scan there is nothing that it could have met: conditions and
// filters are always asked by it.
void AggregateRun::ReplyStats(ReplyWriter& reply) {
  job_->scan().AddNotes(&notes_);
  BeginStats(reply, job_->stats(), stats_clock_->MonotonicMicros() - begin_micros_,
             notes_.empty() ? 1 : 2);
  reply.Bulk("skipped");
  reply.Unsigned(job_->skipped());
  if (notes_.empty()) return;
  reply.Bulk("notes");
  ReplyNames(reply, notes_);
}

void AggregateRun::AddNotes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) AddNote(note, &notes_);
}

bool AggregateRun::ReplyFolded(uint64_t groups, ReplyWriter& reply) {
  constexpr size_t kBytesOfGroup{64};
  std::string bytes;
  if (folded_elements_ == 0) {
    job_->scan().AddNotes(&notes_);
    AggregateExamined{job_->stats(), job_->skipped(), notes_}.Encode(&bytes);
  } else {
    job_->folded().Encode(static_cast<size_t>(groups) * kBytesOfGroup, &group_at_, &bytes);
  }
  reply.Bulk(bytes);
  ++folded_elements_;
  if (group_at_ < job_->folded().size() || folded_elements_ == 1) return false;
  reply.EndArray(folded_, folded_elements_);
  return true;
}

void AggregateExamined::Encode(std::string* to) const {
  for (const uint64_t number : {stats.rows, stats.cells, stats.bytes, stats.groups, skipped})
    PutVarint64(to, number);
  PutLengthPrefixed(to, stats.index);
  PutVarint64(to, notes.size());
  for (const std::string& note : notes) PutLengthPrefixed(to, note);
}

bool AggregateExamined::Decode(std::string_view from) {
  for (uint64_t* const number : {&stats.rows, &stats.cells, &stats.bytes, &stats.groups, &skipped})
    if (!GetVarint64(&from, number)) return false;
  std::string_view text;
  uint64_t count = 0;
  if (!GetLengthPrefixed(&from, &text) || !GetVarint64(&from, &count)) return false;
  stats.index = text;
  for (; count > 0; --count) {
    if (!GetLengthPrefixed(&from, &text)) return false;
    notes.emplace_back(text);
  }
  return from.empty();
}

bool AggregateRun::Pull(uint64_t cells, ReplyWriter& reply) {
  if (!replying_) {
    if (!job_->Pull(cells)) return false;
    if (!job_->status().ok()) {
      Refuse(job_->status(), reply);
      return true;
    }
    // The handler writes all or nothing. Many groups are left to the task, which writes them in
    // slices.
    if (!in_task_ && job_->groups() > cells / kCellsPerReplyGroup) return false;
    Begin(reply);
  }
  const uint64_t groups = cells / kCellsPerReplyGroup + 1;
  if (tells_folded_) {
    const uint64_t slice = std::min(groups, kFoldedGroupsMax);
    do {
      if (ReplyFolded(slice, reply)) return true;
    } while (!in_task_);
    return false;
  }
  const size_t slice_end =
      group_at_ + static_cast<size_t>(std::min<uint64_t>(groups, group_end_ - group_at_));
  for (; group_at_ < slice_end; ++group_at_) {
    ReplyGroup(reply, job_->plan(), job_->group(group_at_));
    if (reply.position() - begin_position_ <= reply_bytes_max_) continue;
    Refuse(Status::Error(ErrorCode::kTooLarge,
                         "the groups make a reply of more than reply-max-bytes: ask for fewer by "
                         "LIMIT"),
           reply);
    return true;
  }
  if (group_at_ < group_end_) return false;
  if (stats_clock_ != nullptr) ReplyStats(reply);
  return true;
}

bool AggregateRead::Pull(uint64_t cells) {
  ReplyWriter writer(&reply_, version_);
  if (run_.Pull(cells, writer)) return true;
  const std::string_view place = in_worker() ? std::string_view() : run_.job().place();
  if (!place.empty()) heat_.NotePlace(place);
  return false;
}

void AggregateRead::RecordHeat() {
  const uint64_t rows = heat_.Take(run_.job().stats().rows);
  if (rows > 0) heat_.NoteRange(rows, range_);
}

bool AggregateTask::Reply(TaskContext& context) {
  auto& aggregate = static_cast<AggregateRead&>(read());
  if (const Status& refusal = aggregate.run().refusal(); !refusal.ok()) {
    context.Fail(refusal);
    return true;
  }
  OutputBuffer& reply = aggregate.reply();
  // Usually nothing stands there yet: the reply changes hands and is not copied.
  if (context.reply.buffer().empty())
    context.reply.buffer().Swap(reply);
  else
    context.reply.Raw(reply.view());
  return true;
}

}  // namespace cellar
