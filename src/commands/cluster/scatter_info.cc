// See scatter_info.h.
#include "commands/cluster/scatter_info.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "commands/cluster/reply_reader.h"

namespace cellar {
namespace {

constexpr std::array<std::string_view, 10> kCounts{"rows",      "cells",    "memory",  "compressed",
                                                   "saved",     "disk",     "entries", "bytes",
                                                   "log_bytes", "reclaimed"};
constexpr std::string_view kLeftOut{"left_out"};

bool IsCount(std::string_view field) {
  return field == kLeftOut || std::find(kCounts.begin(), kCounts.end(), field) != kCounts.end();
}

// How far an index is from being ready; 0 for what has no state.
constexpr int kReady{1};
constexpr int kBuilding{2};
constexpr int kFailed{3};
int BehindOf(std::string_view reply) {
  ReplyFields fields;
  if (!ReadReplyFields(reply, &fields)) return 0;
  for (const auto& [name, value] : fields) {
    std::string_view state;
    if (name != "state" || !ReplyReader(value).Bulk(&state)) continue;
    if (state == "failed") return kFailed;
    return state == "ready" ? kReady : kBuilding;
  }
  return 0;
}

}  // namespace

bool ScatterInfo::AskAll() {
  std::map<uint64_t, KeyRangeSet> parts;
  if (!DivideRows(map(), KeyRangeSet::All(), &parts)) return false;
  replies_.clear();
  for (auto& [set, rows] : parts) {
    CallPiece piece;
    piece.table_id = table_id();
    piece.rows = std::move(rows);
    asked_.push_back(Ask(set, piece));
  }
  moved_ = false;
  return true;
}

void ScatterInfo::Reply(TaskContext& context) {
  const auto worst = std::max_element(
      replies_.begin(), replies_.end(),
      [](const std::string& a, const std::string& b) { return BehindOf(a) < BehindOf(b); });
  std::iter_swap(replies_.begin(), worst);
  // What other sets have indexed is of no use.
  const bool failed_index = BehindOf(replies_.front()) == kFailed;
  ReplyFields fields;
  std::map<std::string_view, uint64_t> counts;
  for (auto reply = replies_.rbegin(); reply != replies_.rend(); ++reply) {
    fields.clear();
    if (!ReadReplyFields(*reply, &fields))
      return Fail(context, "ERR another node has answered what is no description");
    for (const auto& [name, value] : fields) {
      uint64_t number = 0;
      if (!IsCount(name) || !ReplyReader(value).Unsigned(&number)) continue;
      uint64_t& count = counts[name];
      count = failed_index && name == "entries" ? number : count + number;
    }
  }
  const MapTable* const mapped = map();
  std::set<uint64_t> sets;
  if (mapped != nullptr)
    for (const MapEntry& entry : mapped->tablets) sets.insert(entry.set);
  context.reply.Map(fields.size());
  for (const auto& [name, value] : fields) {
    context.reply.Bulk(name);
    if (const auto counted = counts.find(name); counted != counts.end()) {
      context.reply.Unsigned(counted->second);
    } else if (name == "tablets") {
      context.reply.Unsigned(mapped == nullptr ? 0 : mapped->tablets.size());
    } else if (name == "sets") {
      context.reply.Unsigned(sets.size());
    } else {
      context.reply.Raw(value);
    }
  }
}

TaskProgress ScatterInfo::Advance(TaskContext& context) {
  std::string reply;
  std::erase_if(asked_, [&](uint64_t ticket) {
    const Came came = Take(ticket, &reply);
    if (came == Came::kNothing) return false;
    if (came == Came::kMoved) moved_ = true;
    if (came == Came::kError && error_.empty()) error_ = reply;
    if (came == Came::kReply) replies_.push_back(std::move(reply));
    return true;
  });
  if (!asked_.empty()) return TaskProgress::kWaiting;
  if (failed()) return TaskProgress::kDone;
  if (!error_.empty()) {
    Fail(context, error_);
    return TaskProgress::kDone;
  }
  if (moved_) return AskAll() ? TaskProgress::kWaiting : Wait(context);
  Reply(context);
  return TaskProgress::kDone;
}

}  // namespace cellar
