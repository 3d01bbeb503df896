// See owner_link.h.
#include "cluster/owner_link.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {
namespace {

Status Wrong(const char* what) { return Status::Error(ErrorCode::kCorruption, what); }

}  // namespace

Status OwnerLink::OnFrame(const Frame& frame) {
  const CallBodyReader body(frame.body);
  switch (frame.kind) {
    case FrameKind::kChannel:
      return OnChannels(body);
    case FrameKind::kCall:
      return OnCalls(body);
    case FrameKind::kCancel:
      return OnCancels(body);
    case FrameKind::kCredit:
      return OnCredits(body);
    case FrameKind::kUnblock:
      return OnUnblocks(body);
    case FrameKind::kBegin:
      return OnBegins(body);
    case FrameKind::kAlive:
      (void)frames_.Body(FrameKind::kAlive);
      return frame.body.empty() ? Status::Ok() : Wrong("it asks for more than a sign of life");
    default:
      return Wrong("an entry does not say that");
  }
}

OwnerLink::Channel* OwnerLink::Find(uint64_t number) {
  const auto found = channels_.find(number);
  return found == channels_.end() ? nullptr : found->second.get();
}

// Whoever becomes another one has no call under way: none is carried out for the wrong one.
Status OwnerLink::OnChannels(CallBodyReader body) {
  uint64_t number = 0;
  CallIdentity identity;
  while (body.NextChannel(&number, &identity)) {
    if (Channel* const known = Find(number); known != nullptr) {
      if (known->servant == nullptr) continue;
      if (!known->queue.empty() || known->running) return Wrong("a client that changes in a call");
      known->servant->Become(identity);
      known->keyspace = identity.keyspace;
      continue;
    }
    if (channels_.size() >= kChannelsMax) return Wrong("too many clients");
    auto channel = std::make_unique<Channel>();
    channel->number = number;
    channel->servant = servants_.MakeServant(identity);
    channel->keyspace = identity.keyspace;
    channels_.emplace(number, std::move(channel));
  }
  return body.ok() ? Status::Ok() : Wrong("no channel");
}

size_t OwnerLink::LookAhead(CallBodyReader* ahead) {
  Call call;
  size_t seen = 0;
  while (seen < kAheadMax && ahead->NextCall(&call)) {
    ++seen;
    const Channel* const channel = Find(call.channel);
    if (channel != nullptr && channel->servant != nullptr)
      servants_.LookAhead(*channel->servant, call.text);
  }
  servants_.LookedAhead();
  return seen;
}

Status OwnerLink::OnCalls(CallBodyReader body) {
  Call call;
  CallBodyReader ahead = body;
  size_t seen = 0;
  for (; body.NextCall(&call); --seen) {
    if (seen == 0) seen = LookAhead(&ahead);
    Channel* const channel = Find(call.channel);
    if (channel == nullptr) return Wrong("a call on no channel");
    if (call.number != channel->received + 1) return Wrong("a call that is not its turn");
    RETURN_IF_ERROR(CheckCall(call.text));
    channel->received = call.number;
    ++calls_;
    if (channel->servant == nullptr) continue;  // it was told, or will hear, that this has moved
    Activate(channel);
    NoteEnd(channel);
    if (!channel->queue.empty() || !Try(channel, call.text, call.flags)) {
      if (channel->servant != nullptr)
        channel->queue.push_back({call.flags, std::string(call.text)});
    }
  }
  return body.ok() ? Status::Ok() : Wrong("no call");
}

Status OwnerLink::OnCancels(CallBodyReader body) {
  uint64_t number = 0;
  while (body.NextCancel(&number)) {
    Channel* const channel = Find(number);
    if (channel == nullptr) continue;
    if (channel->active) std::erase(active_, channel);
    channels_.erase(number);
  }
  return body.ok() ? Status::Ok() : Wrong("nothing to cancel");
}

Status OwnerLink::OnCredits(CallBodyReader body) {
  uint64_t number = 0;
  uint64_t bytes = 0;
  while (body.NextCredit(&number, &bytes)) {
    Channel* const channel = Find(number);
    if (channel == nullptr) continue;
    if (bytes > kChannelWindowBytes - channel->window) return Wrong("more credit than was used");
    channel->window += bytes;
    if (channel->servant != nullptr) Activate(channel);
  }
  return body.ok() ? Status::Ok() : Wrong("no credit");
}

// What runs is the last call that was begun; a reply that is on its way has crossed this.
Status OwnerLink::OnUnblocks(CallBodyReader body) {
  uint64_t number = 0;
  uint64_t call = 0;
  UnblockHow how{};
  while (body.NextUnblock(&number, &call, &how)) {
    Channel* const channel = Find(number);
    if (channel == nullptr) continue;
    const bool waits = channel->running && channel->executed == call && channel->servant != nullptr;
    PutUnblocked(number, call, waits && channel->servant->Unblock(how),
                 &frames_.Body(FrameKind::kUnblock));
  }
  return body.ok() ? Status::Ok() : Wrong("nothing to unblock");
}

// As with kUnblock; of a call whose turn has not come the entry asks again.
Status OwnerLink::OnBegins(CallBodyReader body) {
  uint64_t number = 0;
  uint64_t call = 0;
  while (body.NextBegin(&number, &call)) {
    Channel* const channel = Find(number);
    if (channel == nullptr || channel->servant == nullptr) continue;
    if (!channel->running || channel->executed != call) continue;
    channel->servant->BeginReply();
    channel->begins = true;
  }
  return body.ok() ? Status::Ok() : Wrong("no reply to begin");
}

void OwnerLink::Activate(Channel* channel) {
  if (channel->active) return;
  channel->active = true;
  active_.push_back(channel);
}

bool OwnerLink::Rests(const Channel& channel) {
  return channel.servant == nullptr ||
         (channel.queue.empty() && !channel.running && channel.answered == channel.executed);
}

void OwnerLink::NoteEnd(Channel* channel) {
  if (!channel->running || channel->servant->running()) return;
  channel->running = channel->begins = false;
  channel->ends.push_back(channel->servant->made_bytes());
}

bool OwnerLink::Try(Channel* channel, std::string_view text, uint8_t flags) {
  if (channel->running) return false;
  channel->leaves = false;
  switch (channel->servant->MayExecute(text, flags)) {
    case CallServant::Readiness::kNow:
      break;
    case CallServant::Readiness::kLater:
      return false;
    case CallServant::Readiness::kNever:
      Move(channel, MovedHow::kOwner);
      return false;
    case CallServant::Readiness::kOtherSet:
      // What was executed is answered first, so that nothing of it is lost.
      channel->leaves = true;
      MoveIfDue(channel);
      return false;
  }
  if (!channel->servant->Execute(text, flags)) return false;
  ++channel->executed;
  channel->running = true;
  NoteEnd(channel);
  return true;
}

void OwnerLink::Pump(Channel* channel) {
  if (channel->servant == nullptr) return;
  NoteEnd(channel);
  while (channel->servant != nullptr && !channel->queue.empty()) {
    const Queued& next = channel->queue.front();
    if (!Try(channel, next.text, next.flags)) break;
    channel->queue.pop_front();
  }
  if (channel->servant != nullptr) Answer(channel);
  MoveIfDue(channel);
}

void OwnerLink::MoveIfDue(Channel* channel) {
  const bool due = channel->servant != nullptr && channel->leaves && !channel->running &&
                   channel->answered == channel->executed;
  if (due) Move(channel, MovedHow::kOtherSet);
}

// Replies leave whole, so that a read whose owner dies can be asked again; but for one that is long
// or does not fit into what the client has room for, and what is to tell whether the client is
// there.
void OwnerLink::Answer(Channel* channel) {
  CallServant& servant = *channel->servant;
  if (servant.ended()) return Move(channel, MovedHow::kOwner);
  const std::string_view released = servant.Released();
  const size_t sendable = std::min(released.size(), channel->window);
  size_t whole_bytes = 0;
  uint64_t count = 0;
  while (count < channel->ends.size() && channel->ends[count] - channel->sent_bytes <= sendable) {
    whole_bytes = static_cast<size_t>(channel->ends[count++] - channel->sent_bytes);
  }
  if (count > 0) {
    TellWritten(*channel);
    const std::string_view keyspace = servant.keyspace();
    if (!keyspace.empty() && keyspace != channel->keyspace) {
      channel->keyspace = keyspace;
      PutKeyspace(channel->number, keyspace, &frames_.Body(FrameKind::kChannel));
    }
    PutReply({.channel = channel->number,
              .first = channel->answered + 1,
              .count = count,
              .lsn = servant.depends_on(),
              .bytes = released.substr(0, whole_bytes)},
             &frames_.Body(FrameKind::kReply));
    channel->answered += count;
    channel->ends.erase(channel->ends.begin(),
                        channel->ends.begin() + static_cast<std::ptrdiff_t>(count));
  }
  size_t sent = whole_bytes;
  const size_t part = sendable - whole_bytes;
  const bool goes = part >= kPartBytes || released.size() > sendable || channel->begins;
  if (part > 0 && goes) {
    PutMore(channel->number, channel->answered + 1, released.substr(whole_bytes, part),
            &frames_.Body(FrameKind::kMore));
    channel->begins = false;
    sent += part;
  }
  if (sent == 0) return;
  channel->sent_bytes += sent;
  channel->window -= sent;
  servant.Sent(sent);
}

void OwnerLink::TellWritten(const Channel& channel) {
  int64_t told_micros = 0;
  written_.clear();
  if (!channel.servant->TakeWritten(&told_micros, &written_)) [[likely]]
    return;
  PutWrote(channel.number, told_micros, written_, &frames_.Body(FrameKind::kWrote));
}

// What was carried out and has not been answered is lost: what it depends on may never be.
void OwnerLink::Move(Channel* channel, MovedHow how) {
  if (channel->running && channel->servant->EndIfWaiting()) {
    --channel->executed;
    channel->running = false;
  }
  if (channel->answered != channel->executed) how = MovedHow::kLost;
  PutMoved(channel->number, channel->executed + 1, how, &frames_.Body(FrameKind::kMoved));
  channel->servant.reset();
  channel->queue.clear();
  channel->ends.clear();
}

void OwnerLink::OnTurn() {
  for (size_t i = 0; i < active_.size(); ++i) Pump(active_[i]);
  std::erase_if(active_, [](Channel* channel) {
    if (!Rests(*channel)) return false;
    channel->active = false;
    return true;
  });
}

size_t OwnerLink::memory_bytes() const {
  size_t bytes = frames_.memory_bytes() + active_.capacity() * sizeof(void*);
  for (const auto& [number, channel] : channels_) {
    bytes += sizeof(Channel) + channel->ends.size() * sizeof(uint64_t);
    for (const Queued& queued : channel->queue) bytes += sizeof(Queued) + queued.text.capacity();
  }
  return bytes;
}

void OwnerLink::OnOwnerNoMore() {
  for (const auto& [number, channel] : channels_) {
    if (channel->servant == nullptr) continue;
    Answer(channel.get());  // what may be told still is
    if (channel->servant != nullptr) Move(channel.get(), MovedHow::kOwner);
  }
}

}  // namespace cellar
