// See passed_client.h.
#include "server/passed_client.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "commands/session/services.h"
#include "server/command_links.h"

namespace cellar {
namespace {

bool ReadsData(const TransactionState& transaction) {
  return std::any_of(transaction.queue.begin(), transaction.queue.end(),
                     [](const QueuedCommand& queued) { return queued.command->Has(kReadonly); });
}

}  // namespace

// --- PassedChannel

void PassedChannel::OnReply(std::string_view bytes, size_t calls, Lsn lsn) {
  client_.OnReply(*this, bytes, calls, lsn);
}

void PassedChannel::OnOtherSet() { client_.misled = true; }

void PassedChannel::OnMoved(std::string requests) { client_.OnMoved(*this, std::move(requests)); }

void PassedChannel::OnUnknown() { client_.OnUnknown(); }

void PassedChannel::OnKeyspace(std::string_view keyspace) {
  client_.connection_.session.keyspace = keyspace;
}

void PassedChannel::OnWrote(int64_t told_micros, std::span<const WrittenSteps> steps) {
  client_.OnWrote(told_micros, steps);
}

void PassedChannel::OnUnblocked(uint64_t number, bool done) {
  client_.TellAskers(client_.unblockings.Answered(number, done));
}

// What waits behind another one's reply is bounded, and must not hold that one up.
bool PassedChannel::TakesMore() const {
  const Session& session = client_.connection_.session;
  const ReplyOrder& order = client_.order;
  if (!order.empty() && !order.IsInFront(this) &&
      order.kept_bytes() >= Session::kOutputPauseBytes / 2)
    return false;
  return session.output.size() + session.output_in_flight < Session::kOutputPauseBytes / 2;
}

bool PassedChannel::WaitsForOthers() const { return client_.MayWaitForEver(); }

// --- PassedClient

PassedClient::~PassedClient() {
  links_.LetGo(this);
  links_.ForgetBeside(this);
  TellAskers(unblockings.Lost());
}

size_t PassedClient::memory_bytes() const {
  size_t bytes = sizeof(*this) + channels_.size() * sizeof(PassedChannel);
  for (const auto& channel : channels_) bytes += channel->calls().memory_bytes();
  bytes += watched.memory_bytes() + order.memory_bytes();
  for (const Tracking::ReadName& read : names_away) bytes += sizeof(read) + read.name.size();
  return bytes;
}

// Asked again and again, for the call that is the oldest then.
void PassedClient::BeginReply() {
  const Session& session = connection_.session;
  const bool tells = !session.output.empty() || session.output_in_flight > 0;
  // What goes over several channels is short.
  const bool waits_long = order.empty() && !current_->calls().begun() && !current_->calls().moved();
  if (tells || !waits_long) return;
  links_.BeginReply(current_);
}

PassedChannel& PassedClient::ChannelTo(uint64_t set) {
  const auto found = std::find_if(channels_.begin(), channels_.end(),
                                  [set](const auto& channel) { return channel->set() == set; });
  if (found != channels_.end()) return **found;
  channels_.push_back(std::make_unique<PassedChannel>(*this, set));
  return *channels_.back();
}

// Of a reply that has begun it is not known how much of it has come.
bool PassedClient::MayGo(const PassedChannel& channel, bool beside) const {
  if (!under_way() || (order.empty() && current_ == &channel)) return true;
  return beside && takes_beside_ && !order.has_back() &&
         (!order.empty() || !current_->calls().begun());
}

void PassedClient::Goes(PassedChannel* channel, bool beside) {
  CELLAR_ASSERT(MayGo(*channel, beside));
  if (!under_way()) {
    takes_beside_ = beside;
    current_ = channel;
  } else if (order.empty() && current_ == channel) {
    takes_beside_ = takes_beside_ && beside;
  } else {
    if (order.empty()) order.Begin(current_, current_->calls().size());
    order.Add(channel);
  }
}

// What is under way for the own set goes before.
bool PassedClient::MayKeep() const {
  const bool joins = order.empty() ? !current_->calls().begun() : !order.has_back();
  return takes_beside_ && joins &&
         std::none_of(channels_.begin(), channels_.end(), [](const auto& channel) {
           return channel->is_own() && !channel->calls().empty();
         });
}

void PassedClient::Keep(std::string_view reply, Lsn gate) {
  if (order.empty()) order.Begin(current_, current_->calls().size());
  order.Keep(reply, gate);
}

bool PassedClient::watches() const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel->watches; });
}

bool PassedClient::WatchesOn(uint64_t set) const {
  return std::any_of(channels_.begin(), channels_.end(), [set](const auto& channel) {
    return channel->watches && channel->set() == set;
  });
}

bool PassedClient::WatchesAway() const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel->watches && !channel->is_own(); });
}

void PassedClient::EndWatches() {
  CELLAR_ASSERT(!under_way());
  watches_lost = false;
  watched.Clear();
  for (const auto& channel : channels_) {
    if (!std::exchange(channel->watches, false)) continue;
    if (channel->link() != nullptr) channel->link()->Leave(channel.get());
  }
}

// Messages that came in the middle of a reply leave behind it (PushTarget).
void PassedClient::Emit(std::string_view bytes, bool whole, Lsn gate) {
  Session& session = connection_.session;
  if (gate != Lsn{}) session.AddGate(session.output.size(), gate);
  session.output.Append(bytes);
  session.in_command = !whole;
  if (!whole || session.pushes == nullptr) return;
  session.AddGate(session.output.size(), std::exchange(session.pushes_depend_on, Lsn{}));
  session.output.Append(session.pushes->view());
  session.pushes.reset();
}

void PassedClient::OnReply(PassedChannel& channel, std::string_view bytes, size_t calls, Lsn lsn) {
  Session& session = connection_.session;
  // Of another set's records this node has none.
  if (channel.is_own() && lsn.seq > seen.seq) seen = lsn;
  if (session.ended() || lost_) return;
  session.last_activity_micros = links_.host_.now_micros();
  const bool whole = calls > 0;
  if (order.empty()) {
    CELLAR_ASSERT(&channel == current_);
    Emit(bytes, whole);
    TellAskers(unblockings.Replied(channel.calls().first()));
    if (channel.calls().empty()) OnAllAnswered(channel);
  } else {
    const bool fits = order.Answer(&channel, bytes, calls, Emitter());
    if (!fits) return OnUnknown();
    if (order.empty()) OnAllAnswered(channel);
  }
  if (whole) {
    since_micros = 0;
    misled = false;
    if (waits) links_.Wake(this);
  }
  if (!order.empty() && session.output.size() <= kUnsentBytesMax) return links_.NoteUnsent(this);
  links_.host_.ScheduleFlush(session);
}

void PassedClient::OnAllAnswered(PassedChannel& channel) {
  Session& session = connection_.session;
  // What was read in it this node does not know, so the client shall keep nothing of it.
  const bool read_unknown = transaction != nullptr && ReadsData(*transaction);
  if (transaction != nullptr) {
    channel.watches = false;
    watched.Clear();
  }
  if (read_unknown && session.tracking != nullptr)
    links_.host_.services().tracking.TellEverything(links_.host_, session);
  EndReads();
  transaction.reset();
  session.switches.waits_elsewhere = skips = false;
  EndHolding();
}

void PassedClient::EndReads() {
  Session& session = connection_.session;
  if (!names_away.empty())
    links_.host_.services().tracked_sets->EndRead(links_.host_, session, mark_away, names_away);
  names_away.clear();
}

void PassedClient::OnMoved(PassedChannel& channel, std::string requests) {
  Session& session = connection_.session;
  if (lost_) return;
  if (!order.empty()) {
    if (!order.GiveBack(&channel, requests)) return OnUnknown();
    if (!order.has_back()) return;
    ++links_.figures_.retried;
    if (back_since_micros == 0) back_since_micros = links_.now();
    return links_.NoteBack(this);
  }
  watches_lost = watches_lost || channel.watches;
  channel.watches = false;
  // One that nothing was under way on.
  if (&channel != current_) return;
  session.switches.waits_elsewhere = session.in_command = false;
  const bool reads_tracked = !names_away.empty();
  EndReads();
  TellAskers(unblockings.Lost());
  if (session.ended()) return;
  // CLIENT CACHING YES, behind which these were read, holds for what comes back: it was the first.
  if (reads_tracked && session.tracking != nullptr && session.tracking->optin)
    session.tracking->caching = true;
  EndHolding();
  // It stands alone, and goes without a reply the next time too.
  if (std::exchange(skips, false) && !requests.empty()) session.reply_mode = ReplyMode::kSkipping;
  if (transaction != nullptr) {
    CELLAR_ASSERT(session.transaction == nullptr);
    session.transaction = std::move(transaction);
    requests = "*1\r\n$4\r\nEXEC\r\n";
  }
  connection_.GiveBack(requests);
  if (requests.empty()) return links_.Wake(this);
  // Who leads now, or who has it, may not be known yet: a moment later it is tried again, not for
  // ever.
  ++links_.figures_.retried;
  if (since_micros == 0) since_micros = links_.now();
  session.postponed = true;
  links_.Hold(this);
}

void PassedClient::OnUnknown() {
  if (std::exchange(lost_, true)) return;
  Session& session = connection_.session;
  ++links_.figures_.closed;
  TellAskers(unblockings.Lost());
  // Behind the replies that are complete.
  if (std::exchange(session.in_command, false)) session.End();
  session.EndAfterReplies();
  transaction.reset();
  order.Clear();
  links_.ForgetBeside(this);
  links_.host_.ScheduleFlush(session);
}

void PassedClient::RefuseBack(std::string_view error) {
  Session& session = connection_.session;
  OutputBuffer reply;
  ReplyWriter(&reply, session.version).Error(error);
  order.Refuse(reply.view(), Emitter());
  links_.host_.ScheduleFlush(session);
  if (!order.empty()) return;
  OnAllAnswered(*current_);
  if (waits) links_.Wake(this);
}

void PassedClient::OnWrote(int64_t told_micros, std::span<const WrittenSteps> steps) {
  Session& session = connection_.session;
  if (session.tracking == nullptr) return;
  session.tracking->passed.Add(told_micros, steps);
  links_.host_.services().tracking.TellHeld(links_.host_, session);
}

void PassedClient::EndHolding() {
  Session& session = connection_.session;
  if (session.tracking == nullptr) return;
  session.tracking->passed.End();
  links_.host_.services().tracking.TellHeld(links_.host_, session);
}

void PassedClient::TellAskers(const std::vector<Unblockings::Told>& told) {
  using Unblocked = CommandLinks::Unblocked;
  for (const Unblockings::Told& each : told)
    links_.AnswerUnblocking(each.ticket, each.done ? Unblocked::kYes : Unblocked::kNo);
}

}  // namespace cellar
