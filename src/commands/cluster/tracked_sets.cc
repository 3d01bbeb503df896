// See tracked_sets.h.
#include "commands/cluster/tracked_sets.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "cluster/call_frames.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/reply_reader.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/task.h"
#include "replica/replication.h"
#include "store/store.h"

namespace cellar {
namespace {

// In a reply.
constexpr size_t kNamesMax{512};
constexpr size_t kNameBytesMax{64 << 10};
// An owner that has nothing to tell says so that often; one that says nothing for so long is lost.
constexpr int64_t kQuietMicros{1'000'000};
constexpr int64_t kSilentMicros{4'000'000};
constexpr int64_t kRetryMicros{100'000};
constexpr std::string_view kNoEpoch{"-"};

class ChangedTask final : public Task {
 public:
  ChangedTask(Host& host, std::string_view epoch, uint64_t number)
      : host_(host),
        epoch_(epoch),
        number_(number),
        until_micros_(host.clock().MonotonicMicros() + kQuietMicros) {
    Ask();
  }

  TaskProgress Step(TaskContext& context) override {
    const int64_t now = Ask();
    ChangeNews& news = host_.services().tracking.news();
    const bool is_known = news.Knows(epoch_, number_);
    const bool waits = is_known && number_ == news.end() && now < until_micros_;
    if (waits && !context.budget.unlimited()) {
      news.AwaitNext();
      return TaskProgress::kWaiting;
    }
    // What it tells of must not be undone.
    context.depends_on = host_.last_lsn();
    uint64_t end = is_known ? number_ : news.end();
    for (size_t bytes = 0; end < news.end() && end - number_ < kNamesMax && bytes < kNameBytesMax;)
      bytes += news.at(end++).size();
    const uint64_t begin = is_known ? number_ : end;
    context.reply.Array(3 + (end - begin));
    context.reply.Bulk(news.epoch());
    context.reply.Unsigned(end);
    context.reply.Integer(is_known ? 0 : 1);
    for (uint64_t at = begin; at < end; ++at) context.reply.Bulk(news.at(at));
    news.NoteTold(end);
    return TaskProgress::kDone;
  }

 private:
  // Returns the time.
  int64_t Ask() {
    const int64_t now = host_.clock().MonotonicMicros();
    Services& services = host_.services();
    services.tracking.news().Ask(now, host_.replication().term(), services.run_id);
    return now;
  }

  Host& host_;
  const std::string epoch_;
  const uint64_t number_;
  const int64_t until_micros_;  // monotonic
};

struct Changed {
  std::string_view epoch;
  uint64_t next{0};
  bool missed{false};
  std::vector<std::string_view> names;
};

bool ReadChanged(const RemoteCalls::Answer& answer, Changed* changed) {
  ReplyReader reader(answer.bytes);
  uint64_t elements = 0;
  uint64_t missed = 0;
  const bool is_reply = answer.state == RemoteCalls::State::kAnswered && reader.Array(&elements) &&
                        elements >= 3 && reader.Bulk(&changed->epoch) &&
                        reader.Unsigned(&changed->next) && reader.Unsigned(&missed);
  if (!is_reply) return false;
  changed->missed = missed != 0;
  for (uint64_t i = 3; i < elements; ++i) {
    if (!reader.Bulk(&changed->names.emplace_back())) return false;
  }
  return reader.done();
}

// Of a change of everything the name is empty.
bool Concerns(std::string_view changed, std::string_view read) {
  if (changed.empty()) return true;
  const auto table_of = [](std::string_view name) { return name.substr(0, name.find(':')); };
  if (table_of(changed) != table_of(read)) return false;
  const bool is_row = changed.size() != table_of(changed).size();
  const bool reads_row = read.size() != table_of(read).size();
  return !is_row || !reads_row || changed == read;
}

}  // namespace

bool IsChangedCall(std::span<const std::string_view> words) {
  return words.size() == 4 && words[0] == "CLUSTER" && words[1] == "CHANGED";
}

void CmdClusterChanged(CommandContext& ctx) {
  if (!ClusterPart::IsOfCluster(ctx)) return;
  uint64_t number = 0;
  if (ParseUint64(ctx.args[3], &number) != NumberError::kNone)
    return ctx.Fail("ERR value is not an integer or out of range");
  ctx.Continue(std::make_unique<ChangedTask>(ctx.host, ctx.args[2], number));
}

void TrackedSets::OnTurn(Host& host, const Session& asker) {
  const Services& services = host.services();
  if (services.tracking.clients() == 0 && parts_.empty()) return;
  const ClusterView& view = services.cluster_view;
  const bool asks = services.tracking.clients() > 0 && host.routes() && !host.loading() &&
                    services.remote != nullptr;
  if (!asks || !view.KnowsSets(host.store().engine().cluster().set)) return Clear(host);
  const uint64_t own = host.store().engine().cluster().set;
  for (auto at = parts_.begin(); at != parts_.end();) {
    const bool is_gone = view.sets.Find(at->first) == nullptr;
    if (is_gone) Forget(host, &at->second);
    // Its last news may not have come.
    if (is_gone && at->second.tells) Gap(host);
    at = is_gone ? parts_.erase(at) : std::next(at);
  }
  const int64_t now = host.clock().MonotonicMicros();
  is_whole_ = true;
  for (const auto& [number, set] : view.sets.sets()) {
    if (number == own) continue;
    Part& part = parts_[number];
    if (part.ticket != 0) Take(host, &part, now);
    const bool is_lost =
        part.tells && (part.leader != set.leader || now - part.heard_micros > kSilentMicros);
    if (is_lost) Lose(host, &part, now);
    if (part.ticket == 0 && now >= part.retry_micros) Ask(host, asker, number, set.leader, &part);
    is_whole_ = is_whole_ && part.tells;
  }
}

void TrackedSets::Clear(Host& host) {
  if (parts_.empty()) return;
  for (auto& [set, part] : parts_) Forget(host, &part);
  parts_.clear();
  is_whole_ = false;
  recent_.clear();
  recent_bytes_ = 0;
  Gap(host);
}

void TrackedSets::Forget(Host& host, Part* part) const {
  RemoteCalls* const remote = host.services().remote;
  if (part->ticket != 0 && remote != nullptr) remote->Forget(part->ticket);
  part->ticket = 0;
}

void TrackedSets::Ask(Host& host, const Session& asker, uint64_t set, uint64_t leader,
                      Part* part) const {
  const std::string number = std::to_string(part->next);
  const std::string_view epoch = part->epoch.empty() ? kNoEpoch : std::string_view(part->epoch);
  const std::string_view words[] = {"CLUSTER", "CHANGED", epoch, number};
  part->leader = leader;
  part->ticket = host.services().remote->AskToWait(asker, set, CallOf(words));
}

void TrackedSets::Take(Host& host, Part* part, int64_t now) {
  const RemoteCalls::Answer& answer = host.services().remote->AnswerTo(part->ticket);
  if (answer.state == RemoteCalls::State::kPending) return;
  Changed changed;
  if (!ReadChanged(answer, &changed)) return Lose(host, part, now);
  const bool goes_on = part->tells && !changed.missed && changed.epoch == part->epoch;
  part->tells = true;
  part->epoch = changed.epoch;
  part->next = changed.next;
  part->heard_micros = now;
  if (goes_on)
    Tell(host, changed.names);
  else
    Gap(host);
  Forget(host, part);
}

void TrackedSets::Lose(Host& host, Part* part, int64_t now) {
  Forget(host, part);
  part->retry_micros = now + kRetryMicros;
  if (std::exchange(part->tells, false)) Gap(host);
}

void TrackedSets::Gap(Host& host) {
  ++generation_;
  Tracking& tracking = host.services().tracking;
  host.ForEachSession([&](const Session& session) {
    if (session.tracking != nullptr) tracking.TellEverything(host, session);
  });
}

void TrackedSets::Tell(Host& host, std::span<const std::string_view> names) {
  if (names.empty()) return;
  std::vector<Tracking::Change> changes;
  changes.reserve(names.size());
  for (const std::string_view name : names) {
    using Extent = Tracking::Extent;
    const Extent extent = name.empty()                               ? Extent::kAll
                          : name.find(':') != std::string_view::npos ? Extent::kRow
                                                                     : Extent::kTable;
    changes.push_back({extent, std::string(name), {}});
    recent_.emplace_back(name);
    recent_bytes_ += name.size();
  }
  told_ += names.size();
  while (recent_.size() > kRecentMax || recent_bytes_ > kRecentBytesMax) {
    recent_bytes_ -= recent_.front().size();
    recent_.pop_front();
  }
  host.services().tracking.Tell(host, changes);
}

bool TrackedSets::HasChanged(uint64_t since, std::string_view name) const {
  CELLAR_ASSERT(since <= told_);
  if (told_ - since > recent_.size()) return true;
  return std::any_of(recent_.end() - static_cast<std::ptrdiff_t>(told_ - since), recent_.end(),
                     [name](const std::string& changed) { return Concerns(changed, name); });
}

void TrackedSets::EndRead(Host& host, Session& session, const Mark& mark,
                          const std::vector<Tracking::ReadName>& names) {
  if (session.tracking == nullptr || names.empty()) return;
  Tracking& tracking = host.services().tracking;
  if (mark.generation == 0 || mark.generation != Now().generation)
    return tracking.TellEverything(host, session);
  std::vector<Tracking::ReadName> changed;
  for (const Tracking::ReadName& read : names) {
    // Another read of it, which is under way, may have remembered it since.
    const bool is_told = HasChanged(mark.told, read.name) ||
                         (!session.tracking->bcast && !tracking.Remembers(session, read.name));
    if (is_told) changed.push_back(read);
  }
  // Prefixes say what a client in BCAST mode keeps, and not what it reads.
  if (session.tracking->bcast && !changed.empty()) return tracking.TellEverything(host, session);
  tracking.TellNames(host, session, changed);
}

size_t TrackedSets::memory_bytes() const {
  return recent_bytes_ + recent_.size() * sizeof(std::string);
}

}  // namespace cellar
