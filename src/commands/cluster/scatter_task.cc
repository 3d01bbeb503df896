// See scatter_task.h.
#include "commands/cluster/scatter_task.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"
#include "cluster/call_frames.h"
#include "cluster/lost_rows.h"
#include "commands/arguments/scan_cursor.h"
#include "commands/cluster/reply_reader.h"
#include "commands/session/services.h"
#include "engine/scans/table_scan.h"
#include "engine/state/snapshot_set.h"
#include "store/store.h"

namespace cellar {
namespace {

KeyBound EndOf(const MapEntry& entry) { return {entry.end, entry.end.empty()}; }

}  // namespace

// Tablets ascend, so that each is added at the end of its set's.
bool DivideRows(const MapTable* map, const KeyRangeSet& rows,
                std::map<uint64_t, KeyRangeSet>* parts) {
  parts->clear();
  if (rows.empty()) return true;
  if (map == nullptr) return false;
  KeyRangeSet mapped;
  for (const MapEntry& entry : map->tablets) {
    const KeyRange range{{entry.begin, false}, EndOf(entry)};
    if (!(rows.ranges().front().begin < range.end) || !(range.begin < rows.ranges().back().end))
      continue;
    (*parts)[entry.set].Add(range);
    mapped.Add(range);
  }
  for (auto& [set, part] : *parts) part.IntersectWith(rows);
  std::erase_if(*parts, [](const auto& part) { return part.second.empty(); });
  mapped.IntersectWith(rows);
  return mapped.ranges() == rows.ranges();
}

bool FindRun(const MapTable* map, const KeyRange& from, bool reverse, uint64_t* set,
             KeyRange* run) {
  CELLAR_ASSERT(!from.empty());
  if (map == nullptr) return false;
  const std::vector<MapEntry>& tablets = map->tablets;
  // The first one that ends behind the begin, or not before the end.
  const auto found =
      std::partition_point(tablets.begin(), tablets.end(), [&](const MapEntry& entry) {
        return reverse ? EndOf(entry) < from.end
                       : !entry.end.empty() && entry.end <= from.begin.bytes;
      });
  if (found == tablets.end()) return false;
  const KeyBound begin{found->begin, false};
  if (reverse ? !(begin < from.end) : from.begin < begin) return false;
  *set = found->set;
  *run = {begin, EndOf(*found)};
  if (reverse) {
    for (auto at = found; at != tablets.begin();) {
      --at;
      if (at->set != *set || at->end != run->begin.bytes) break;
      run->begin.bytes = at->begin;
    }
  } else {
    for (auto at = found + 1; at != tablets.end(); ++at) {
      if (at->set != *set || run->end.at_end || at->begin != run->end.bytes) break;
      run->end = EndOf(*at);
    }
  }
  return true;
}

KeyRangeSet RowsOf(const Table& table, const std::vector<RowSelector>& rows) {
  std::vector<KeyRange> ranges;
  if (!CompileRows(table.schema(), nullptr, rows, &ranges).ok()) return KeyRangeSet::All();
  KeyRangeSet set;
  for (KeyRange& range : ranges) set.Add(std::move(range));
  return set;
}

ScatterTask::ScatterTask(const CommandContext& ctx, const Table& table)
    : host_(ctx.host),
      session_(ctx.session),
      table_id_(table.id()),
      table_name_(table.shown_name()),
      depends_on_(table.last_lsn()),
      writes_(ctx.command.Has(kWrite)),
      words_(ctx.args.begin(), ctx.args.end()) {
  CELLAR_ASSERT(host_.services().remote != nullptr);
  if (session_.tracking != nullptr && host_.services().tracked_sets != nullptr) {
    read_names_ = Tracking::NamesOf(host_, session_, ctx.command, ctx.args);
    read_mark_ = host_.services().tracked_sets->Now();
  }
}

ScatterTask::~ScatterTask() {
  for (const uint64_t ticket : tickets_) host_.services().remote->Forget(ticket);
}

void ScatterTask::ReadFrozen(const Table& frozen) {
  CELLAR_ASSERT(frozen.frozen() && tickets_.empty());
  table_id_ = frozen.id();
  // What a cursor has made has a name that clients do not know.
  const bool is_inner = IsCursorName(frozen.snapshot());
  table_name_ = is_inner ? frozen.name() : frozen.shown_name();
  if (is_inner) inner_name_ = frozen.shown_name();
  words_[1] += kSnapshotSign + frozen.snapshot();
  SetPin(kFrozenPin | frozen.id());
}

TaskProgress ScatterTask::Step(TaskContext& context) {
  context.depends_on = depends_on_;
  if (context.budget.unlimited()) {
    Fail(context, "CROSSSET table " + Quote(table_name_) + " lies on several sets");
    return TaskProgress::kDone;
  }
  const TaskProgress progress = Advance(context);
  const bool is_read = progress == TaskProgress::kDone && !read_names_.empty();
  // What is read of a moment may have changed, and that been told, before this page began.
  if (is_read && !inner_name_.empty() && session_.tracking != nullptr)
    host_.services().tracking.TellEverything(host_, session_);
  else if (is_read)
    host_.services().tracked_sets->EndRead(host_, session_, read_mark_, read_names_);
  return progress;
}

std::optional<uint64_t> ScatterTask::LostAmong(const KeyRangeSet& rows) const {
  if (!MapOf(host_).has_lost() || map() == nullptr) return std::nullopt;
  std::map<uint64_t, KeyRangeSet> parts;
  (void)DivideRows(map(), rows, &parts);
  for (const auto& [set, part] : parts)
    if (IsLost(set)) return set;
  return std::nullopt;
}

uint64_t ScatterTask::Ask(uint64_t set, const CallPiece& piece) {
  return Ask(set, piece, std::vector<std::string_view>(words_.begin(), words_.end()));
}

uint64_t ScatterTask::Ask(uint64_t set, const CallPiece& piece,
                          std::span<const std::string_view> words) {
  std::string text;
  PutCallCount(2, &text);
  piece.Put(&text);
  PutCallWords(words, &text);
  const uint64_t ticket = host_.services().remote->Ask(session_, set, std::move(text), writes_);
  tickets_.push_back(ticket);
  return ticket;
}

ScatterTask::Came ScatterTask::Take(uint64_t ticket, std::string* reply) {
  RemoteCalls& remote = *host_.services().remote;
  RemoteCalls::Answer& answer = remote.AnswerTo(ticket);
  Came came = Came::kNothing;
  switch (answer.state) {
    case RemoteCalls::State::kPending:
      return Came::kNothing;
    case RemoteCalls::State::kAnswered:
      *reply = std::move(answer.bytes);
      came = *reply == kMovedPiece ? Came::kMoved : Came::kReply;
      break;
    case RemoteCalls::State::kMoved:
      came = Came::kMoved;
      break;
    case RemoteCalls::State::kFailed:
      *reply = std::move(answer.bytes);
      came = Came::kError;
      break;
    case RemoteCalls::State::kUnknown:
      came = Came::kUnknown;
      failed_ = true;
      // Behind the replies that are complete.
      session_.EndAfterReplies();
      break;
  }
  remote.Forget(ticket);
  std::erase(tickets_, ticket);
  if (came == Came::kReply && reply->starts_with('-')) came = Came::kError;
  if (came == Came::kError && reply->starts_with('-')) *reply = ErrorLineOf(*reply);
  if (came == Came::kError && !inner_name_.empty()) {
    const size_t at = reply->find(inner_name_);
    if (at != std::string::npos) reply->replace(at, inner_name_.size(), table_name_);
  }
  return came;
}

std::optional<TaskProgress> ScatterTask::TakeOnly(TaskContext& context,
                                                  std::optional<uint64_t>* ticket,
                                                  std::string* reply) {
  const Came came = Take(**ticket, reply);
  if (came == Came::kNothing) return TaskProgress::kWaiting;
  ticket->reset();
  if (came == Came::kMoved) return Wait(context);
  if (came == Came::kError) Fail(context, *reply);
  if (failed()) return TaskProgress::kDone;
  NoteProgress();
  return std::nullopt;
}

TaskProgress ScatterTask::Wait(TaskContext& context) {
  Store& store = host_.store();
  if (store.TableById(table_id_) == nullptr &&
      store.engine().FindFrozenById(table_id_) == nullptr) {
    Fail(context, "NOTABLE table " + Quote(table_name_) + " was dropped while this went on");
    return TaskProgress::kDone;
  }
  const int64_t now = host_.clock().MonotonicMicros();
  if (waits_since_micros_ == 0) waits_since_micros_ = now;
  if (now - waits_since_micros_ < host_.services().config.cluster_wait * 1000)
    return TaskProgress::kWaiting;
  Fail(context, "TRYAGAIN the map does not say who owns rows of table " + Quote(table_name_));
  return TaskProgress::kDone;
}

void ScatterTask::Fail(TaskContext& context, std::string_view line) {
  CELLAR_ASSERT(!failed_);
  failed_ = true;
  context.Fail(std::string(line) + EndOfErrors());
}

}  // namespace cellar
