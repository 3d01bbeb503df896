// See backup_task.h.
#include "commands/cluster/backup_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "cluster/call_frames.h"
#include "commands/cluster/command_route.h"
#include "commands/cluster/reply_reader.h"
#include "commands/session/remote_calls.h"
#include "commands/session/services.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr std::string_view kVerbs[] = {"START", "SEAL", "STATUS", "LIST", "ABORT", "CLEANUP"};
constexpr int64_t kStatusMicros{2'000'000};
// From the one that is furthest behind on.
constexpr std::string_view kStates[] = {"failed",       "idle",         "pending",
                                        "snapshotting", "incrementing", "sealed"};

struct PartStatus {
  std::string_view state{};
  std::string_view error{};
  std::string_view id{};
  uint64_t start_unix_s{0};
  uint64_t end_unix_s{0};
  uint64_t cut{0};

  size_t progress() const {
    return static_cast<size_t>(std::find(std::begin(kStates), std::end(kStates), state) -
                               std::begin(kStates));
  }
};

bool ReadPart(std::string_view reply, PartStatus* part) {
  ReplyReader reader(reply);
  uint64_t pairs = 0;
  if (!reader.Map(&pairs)) return false;
  for (; pairs > 0; --pairs) {
    std::string_view name;
    if (!reader.Bulk(&name)) return false;
    const bool read = name == "state"        ? reader.Bulk(&part->state)
                      : name == "error"      ? reader.Bulk(&part->error)
                      : name == "id"         ? reader.Bulk(&part->id)
                      : name == "start_time" ? reader.Unsigned(&part->start_unix_s)
                      : name == "end_time"   ? reader.Unsigned(&part->end_unix_s)
                      : name == "cut"        ? reader.Unsigned(&part->cut)
                                             : reader.Skip();
    if (!read) return false;
  }
  return reader.done() && part->progress() < std::size(kStates);
}

// What SEAL PART replies: the id of the last step, and a file: its name, length and hash.
struct SealedPart {
  std::string_view id{};
  std::string_view name{};
  uint64_t bytes{0};
  std::string_view hash{};
};

bool ReadSealed(std::string_view reply, SealedPart* part) {
  ReplyReader reader(reply);
  uint64_t count = 0;
  return reader.Array(&count) && count == 4 && reader.Bulk(&part->id) && reader.Bulk(&part->name) &&
         reader.Unsigned(&part->bytes) && reader.Bulk(&part->hash) && reader.done();
}

TaskProgress Failed(TaskContext& context, const std::string& line) {
  context.Fail(line);
  return TaskProgress::kDone;
}

}  // namespace

BackupTask::BackupTask(const CommandContext& ctx, Verb verb)
    : host_(ctx.host),
      session_(ctx.session),
      verb_(verb),
      deadline_micros_(ctx.host.clock().MonotonicMicros() + kStatusMicros) {}

BackupTask::~BackupTask() {
  for (const auto& [set, ticket] : tickets_) host_.services().remote->Forget(ticket);
}

void BackupTask::Ask(uint64_t set, const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  // A read: what was asked of a leader that is gone may be asked again of the next one.
  tickets_[set] = host_.services().remote->Ask(session_, set, CallOf(views), false);
}

void BackupTask::AskAll(const std::vector<std::string>& words) {
  for (const auto& [number, set] : host_.services().cluster_view.sets.sets()) Ask(number, words);
}

bool BackupTask::TakeAnswers() {
  RemoteCalls& remote = *host_.services().remote;
  std::erase_if(tickets_, [&](const auto& asked) {
    const RemoteCalls::Answer& answer = remote.AnswerTo(asked.second);
    if (answer.state == RemoteCalls::State::kPending) return false;
    if (answer.state == RemoteCalls::State::kAnswered && !answer.bytes.starts_with('-'))
      replies_[asked.first] = answer.bytes;
    else
      errors_[asked.first] = FailureOf(answer);
    remote.Forget(asked.second);
    return true;
  });
  return tickets_.empty();
}

// A set that stands still answers nothing for as long as its link is up; who looks is told so.
bool BackupTask::GivesUp() {
  if (verb_ != Verb::kStatus || host_.clock().MonotonicMicros() < deadline_micros_) return false;
  for (const auto& [set, ticket] : tickets_) {
    errors_[set] = fmt::format("CLUSTERDOWN set {} does not answer", set);
    host_.services().remote->Forget(ticket);
  }
  tickets_.clear();
  return true;
}

// The code in front, then whose words they are.
std::string BackupTask::FirstError() const {
  if (errors_.empty()) return {};
  const auto& [set, line] = *errors_.begin();
  const size_t space = line.find(' ');
  if (space == std::string::npos || line.starts_with("CLUSTERDOWN")) return line;
  return fmt::format("{} set {}: {}", line.substr(0, space), set, line.substr(space + 1));
}

std::string BackupTask::Description() const {
  const ClusterState& cluster = host_.store().engine().cluster();
  const auto& sets = host_.services().cluster_view.sets;
  std::string list;
  std::string_view id;
  for (const auto& [number, reply] : replies_) {
    SealedPart part;
    if (!ReadSealed(reply, &part)) return {};
    id = std::max(id, part.id);
    const ClusterSet* const set = sets.Find(number);
    list += fmt::format(
        "{}\n  {{\"set\": {}, \"replica_set\": \"{:016x}\", \"folder\": \"set-{}\",\n   \"files\": "
        "[{{\"name\": \"{}\", \"bytes\": {}, \"hash\": \"{}\"}}]}}",
        list.empty() ? "" : ",", number, set == nullptr ? 0 : set->id, number, part.name,
        part.bytes, part.hash);
  }
  return fmt::format(
      "{{\"version\": 1, \"cluster\": \"{:016x}\", \"cut\": {}, \"catalog\": {}, \"map_version\": "
      "{}, \"id\": \"{}\",\n \"sets\": [{}]}}\n",
      cluster.cluster_id, cut_, cut_, MapOf(host_).version(), id, list);
}

std::string BackupTask::WhyNotReady() const {
  for (const auto& [set, reply] : replies_) {
    PartStatus part;
    if (!ReadPart(reply, &part))
      return fmt::format("ERR set {} has answered what is no state of a backup", set);
    if (part.state != "incrementing") {
      return fmt::format(
          "ERR set {}: a backup can be sealed when its state is incrementing, not {}", set,
          part.state);
    }
  }
  return {};
}

uint64_t BackupTask::SealedCut() const {
  uint64_t cut = 0;
  for (const auto& [set, reply] : replies_) {
    PartStatus part;
    if (!ReadPart(reply, &part) || part.state != "sealed" || part.cut == 0) return 0;
    if (cut != 0 && part.cut != cut) return 0;
    cut = part.cut;
  }
  return cut;
}

bool BackupTask::AskNextToDescribe() {
  if (to_describe_.empty()) return false;
  Ask(to_describe_.back(), {"BACKUP", "DESCRIBE", description_});
  to_describe_.pop_back();
  return true;
}

void BackupTask::ReplyStatus(TaskContext& context) {
  std::map<uint64_t, PartStatus> parts;
  for (const auto& [set, reply] : replies_) {
    if (!ReadPart(reply, &parts[set]))
      return context.Fail(fmt::format("ERR set {} has answered what is no state of a backup", set));
  }
  CELLAR_ASSERT(!parts.empty());
  const auto least = std::min_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
    return a.second.progress() < b.second.progress();
  });
  PartStatus all{.state = least->second.state};
  std::string error;
  bool is_one_cut = true;
  for (const auto& [set, part] : parts) {
    if (error.empty() && !part.error.empty()) error = fmt::format("set {}: {}", set, part.error);
    if (part.start_unix_s != 0 && (all.start_unix_s == 0 || part.start_unix_s < all.start_unix_s))
      all.start_unix_s = part.start_unix_s;
    all.end_unix_s = std::max(all.end_unix_s, part.end_unix_s);
    is_one_cut = is_one_cut && part.cut == least->second.cut;
    all.id = std::max(all.id, part.id);
  }
  const bool is_sealed = all.state == "sealed" && is_one_cut;
  context.reply.Map(7);
  context.reply.Bulk("state");
  context.reply.Bulk(all.state);
  context.reply.Bulk("error");
  context.reply.Bulk(error);
  context.reply.Bulk("start_time");
  context.reply.Unsigned(all.start_unix_s);
  context.reply.Bulk("end_time");
  context.reply.Unsigned(is_sealed ? all.end_unix_s : 0);
  context.reply.Bulk("id");
  context.reply.Bulk(is_sealed ? all.id : std::string_view());
  context.reply.Bulk("cut");
  context.reply.Unsigned(is_sealed ? least->second.cut : 0);
  context.reply.Bulk("sets");
  context.reply.Array(parts.size());
  for (const auto& [set, part] : parts) {
    context.reply.Map(2);
    context.reply.Bulk("set");
    context.reply.Unsigned(set);
    context.reply.Bulk("state");
    context.reply.Bulk(part.state);
  }
}

void BackupTask::ReplyList(TaskContext& context) {
  std::vector<std::string_view> paths;
  for (const auto& [set, reply] : replies_) {
    ReplyReader reader(reply);
    uint64_t count = 0;
    bool read = reader.Array(&count);
    for (; read && count > 0; --count) read = reader.Bulk(&paths.emplace_back());
    if (!read) return context.Fail(fmt::format("ERR set {} has answered what is no list", set));
  }
  context.reply.Array(paths.size());
  for (const std::string_view path : paths) context.reply.Bulk(path);
}

TaskProgress BackupTask::BeginSeal(TaskContext& context) {
  if (cut_ = SealedCut(); cut_ != 0) {
    round_ = Round::kParts;
    AskAll({"BACKUP", "SEAL", "PART", std::to_string(cut_)});
  } else if (const std::string why = WhyNotReady(); !why.empty()) {
    return Failed(context, why);
  } else {
    round_ = Round::kCut;
    Ask(0, {"CLUSTER", "CUT", "BACKUP"});
  }
  replies_.clear();
  return TaskProgress::kWaiting;
}

TaskProgress BackupTask::TakeParts(TaskContext& context) {
  // One that has nothing to be taken back is no reason not to take back what others have.
  const bool takes_back = verb_ == Verb::kAbort || verb_ == Verb::kCleanup;
  if (!errors_.empty() && verb_ == Verb::kStart && !replies_.empty()) {
    failure_ = FirstError();
    round_ = Round::kTakeBack;
    for (const auto& [set, reply] : replies_) Ask(set, {"BACKUP", "ABORT", "LOCAL"});
    return TaskProgress::kWaiting;
  }
  if (!errors_.empty() && (!takes_back || replies_.empty())) return Failed(context, FirstError());
  if (verb_ == Verb::kStatus)
    ReplyStatus(context);
  else if (verb_ == Verb::kList)
    ReplyList(context);
  else if (verb_ != Verb::kSeal)
    context.reply.Ok();
  if (verb_ != Verb::kSeal) return TaskProgress::kDone;
  description_ = Description();
  if (description_.empty())
    return Failed(context, "ERR a set has answered what is no part of a backup");
  for (const auto& [set, reply] : replies_) to_describe_.push_back(set);
  round_ = Round::kDescribe;
  (void)AskNextToDescribe();
  return TaskProgress::kWaiting;
}

TaskProgress BackupTask::Next(TaskContext& context) {
  const std::string verb(kVerbs[static_cast<size_t>(verb_)]);
  switch (round_) {
    case Round::kBegin:
      if (!host_.services().cluster_view.KnowsSets(host_.store().engine().cluster().set))
        return Failed(context, std::string(ClusterView::kSetsUnknown));
      if (verb_ == Verb::kSeal) {
        round_ = Round::kReady;
        AskAll({"BACKUP", "STATUS", "LOCAL"});
        return TaskProgress::kWaiting;
      }
      round_ = Round::kParts;
      AskAll({"BACKUP", verb, verb_ == Verb::kStart ? "PART" : "LOCAL"});
      return TaskProgress::kWaiting;
    case Round::kReady:
      return errors_.empty() ? BeginSeal(context) : Failed(context, FirstError());
    case Round::kCut: {
      if (!errors_.empty()) return Failed(context, errors_.begin()->second);
      if (!ReplyReader(replies_.begin()->second).Unsigned(&cut_))
        return Failed(context, "ERR set 0 has answered what is no cut");
      replies_.clear();
      round_ = Round::kParts;
      AskAll({"BACKUP", "SEAL", "PART", std::to_string(cut_)});
      return TaskProgress::kWaiting;
    }
    case Round::kParts:
      return TakeParts(context);
    case Round::kDescribe:
      if (!errors_.empty()) return Failed(context, FirstError());
      if (AskNextToDescribe()) return TaskProgress::kWaiting;
      context.reply.Ok();
      return TaskProgress::kDone;
    case Round::kTakeBack:
      return Failed(context, failure_);
  }
  return TaskProgress::kDone;
}

TaskProgress BackupTask::Step(TaskContext& context) {
  if (context.budget.unlimited()) {
    context.Fail("ERR BACKUP goes over all sets, not into an EXEC");
    return TaskProgress::kDone;
  }
  if (!TakeAnswers() && !GivesUp()) return TaskProgress::kWaiting;
  return Next(context);
}

}  // namespace cellar
