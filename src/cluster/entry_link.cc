// See entry_link.h.
#include "cluster/entry_link.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace cellar {

CallClient::~CallClient() {
  if (link_ != nullptr) link_->Leave(this);
}

EntryLink::~EntryLink() {
  for (const auto& [channel, client] : clients_) {
    client->calls_.Drop();
    client->link_ = nullptr;
    client->owed_ = false;
  }
}

std::string* EntryLink::Begin(CallClient* client, const CallIdentityView& identity) {
  CELLAR_ASSERT(MayPass(*client));
  CELLAR_ASSERT(client->link_ == this || clients_.size() < kChannelsMax);
  if (client->link_ != nullptr && client->link_ != this) client->link_->Leave(client);
  const bool opens = client->link_ == nullptr;
  if (opens) {
    client->link_ = this;
    client->calls_.Begin(channel_next_++);
    clients_.emplace(client->calls_.channel(), client);
    client->uncredited_ = 0;
  }
  // Whoever has become another one has had its answers first, so nothing is carried out for the
  // wrong one.
  if (opens || !client->told_.Is(identity)) {
    CELLAR_ASSERT(client->calls_.empty());
    client->told_ = {std::string(identity.user), std::string(identity.keyspace),
                     std::string(identity.address), identity.version};
    PutChannel(client->calls_.channel(), identity, &frames_.Body(FrameKind::kChannel));
  }
  client->used_ = true;
  return client->calls_.text();
}

void EntryLink::Pass(CallClient* client, uint8_t flags) {
  CELLAR_ASSERT(client->link_ == this);
  const CallQueue::Added added = client->calls_.Add((flags & kCallWrites) != 0);
  call_bytes_ += added.text.size();
  PutCall({.channel = client->calls_.channel(),
           .number = added.number,
           .flags = flags,
           .text = added.text},
          &frames_.Body(FrameKind::kCall));
}

void EntryLink::Unblock(CallClient* client, UnblockHow how) {
  CELLAR_ASSERT(client->link_ == this);
  PutUnblock(client->calls_.channel(), client->calls_.first(), how,
             &frames_.Body(FrameKind::kUnblock));
}

void EntryLink::BeginReply(CallClient* client) {
  CELLAR_ASSERT(client->link_ == this);
  PutBegin(client->calls_.channel(), client->calls_.first(), &frames_.Body(FrameKind::kBegin));
}

void EntryLink::Leave(CallClient* client) {
  if (client->link_ != this) return;
  PutCancel(client->calls_.channel(), &frames_.Body(FrameKind::kCancel));
  Forget(client);
  client->calls_.Drop();
}

void EntryLink::Forget(CallClient* client) {
  CELLAR_ASSERT(client->link_ == this);
  (void)clients_.erase(client->calls_.channel());
  CELLAR_ASSERT(client->calls_.bytes() <= call_bytes_);
  call_bytes_ -= client->calls_.bytes();
  if (std::exchange(client->owed_, false)) std::erase(owed_, client);
  all_busy_ = false;
  client->link_ = nullptr;
  client->uncredited_ = 0;
  client->keyspace_.clear();
}

CallClient* EntryLink::Find(uint64_t channel) const {
  const auto found = clients_.find(channel);
  return found == clients_.end() ? nullptr : found->second;
}

// What comes for a channel that has been left is nobody's any more.
Status EntryLink::OnFrame(const Frame& frame) {
  heard_ = true;
  switch (frame.kind) {
    case FrameKind::kReply:
      return OnReplies(CallBodyReader(frame.body));
    case FrameKind::kMore:
      return OnMore(CallBodyReader(frame.body));
    case FrameKind::kChannel:
      return OnKeyspaces(CallBodyReader(frame.body));
    case FrameKind::kMoved:
      return OnMoves(CallBodyReader(frame.body));
    case FrameKind::kWrote:
      return OnWritten(CallBodyReader(frame.body));
    case FrameKind::kUnblock:
      return OnUnblocks(CallBodyReader(frame.body));
    case FrameKind::kAlive:
      return Status::Ok();
    default:
      return Status::Error(ErrorCode::kCorruption, "an owner does not say that");
  }
}

Status EntryLink::OnReplies(CallBodyReader body) {
  CallReply reply;
  while (body.NextReply(&reply)) {
    CallClient* const client = Find(reply.channel);
    if (client == nullptr) continue;
    const size_t bytes_before = client->calls_.bytes();
    RETURN_IF_ERROR(client->calls_.Answer(reply.first, reply.count));
    call_bytes_ -= bytes_before - client->calls_.bytes();
    if (client->calls_.empty() && !client->keyspace_.empty()) [[unlikely]] {
      client->told_.keyspace = std::exchange(client->keyspace_, {});
      client->OnKeyspace(client->told_.keyspace);
    }
    if (client->calls_.empty()) all_busy_ = false;
    TakeReply(client, reply.bytes, static_cast<size_t>(reply.count), reply.lsn);
    GiveBackIfDue(client);
  }
  return body.ok() ? Status::Ok() : Status::Error(ErrorCode::kCorruption, "no replies");
}

Status EntryLink::OnMore(CallBodyReader body) {
  uint64_t channel = 0;
  uint64_t number = 0;
  std::string_view bytes;
  while (body.NextMore(&channel, &number, &bytes)) {
    CallClient* const client = Find(channel);
    if (client == nullptr) continue;
    RETURN_IF_ERROR(client->calls_.Begun(number));
    TakeReply(client, bytes, 0, {});
  }
  return body.ok() ? Status::Ok() : Status::Error(ErrorCode::kCorruption, "no part of a reply");
}

// The owner's session is what it was told it is, and what EXEC has made of it: from the reply on
// that comes behind this.
Status EntryLink::OnKeyspaces(CallBodyReader body) {
  uint64_t channel = 0;
  std::string_view keyspace;
  while (body.NextKeyspace(&channel, &keyspace)) {
    CallClient* const client = Find(channel);
    if (client == nullptr) continue;
    if (client->calls_.empty())
      return Status::Error(ErrorCode::kCorruption, "a keyspace that nobody has asked for");
    client->keyspace_ = keyspace;
  }
  return body.ok() ? Status::Ok() : Status::Error(ErrorCode::kCorruption, "no keyspace");
}

Status EntryLink::OnMoves(CallBodyReader body) {
  uint64_t channel = 0;
  uint64_t number = 0;
  MovedHow how{};
  while (body.NextMoved(&channel, &number, &how)) {
    if (how != MovedHow::kOtherSet) ++refusals_;
    CallClient* const client = Find(channel);
    if (client == nullptr) continue;
    RETURN_IF_ERROR(client->calls_.Moved(number));
    bounced_ += client->calls_.moved_calls();
    if (how == MovedHow::kOtherSet) client->OnOtherSet();
    if (how == MovedHow::kLost) {
      End(client, client->calls_.Fate());
    } else {
      GiveBackIfDue(client);
    }
  }
  return body.ok() ? Status::Ok() : Status::Error(ErrorCode::kCorruption, "nothing has moved");
}

Status EntryLink::OnWritten(CallBodyReader body) {
  uint64_t channel = 0;
  int64_t told_micros = 0;
  while (body.NextWrote(&channel, &told_micros, &written_)) {
    CallClient* const client = Find(channel);
    if (client != nullptr) client->OnWrote(told_micros, written_);
  }
  return body.ok() ? Status::Ok() : Status::Error(ErrorCode::kCorruption, "nothing written");
}

Status EntryLink::OnUnblocks(CallBodyReader body) {
  uint64_t channel = 0;
  uint64_t number = 0;
  bool done = false;
  while (body.NextUnblocked(&channel, &number, &done)) {
    CallClient* const client = Find(channel);
    if (client != nullptr) client->OnUnblocked(number, done);
  }
  return body.ok() ? Status::Ok() : Status::Error(ErrorCode::kCorruption, "nobody is unblocked");
}

void EntryLink::TakeReply(CallClient* client, std::string_view bytes, size_t calls, Lsn lsn) {
  client->uncredited_ += bytes.size();
  client->OnReply(bytes, calls, lsn);
  if (client->uncredited_ > 0 && !client->owed_) {
    client->owed_ = true;
    owed_.push_back(client);
  }
}

void EntryLink::GiveBackIfDue(CallClient* client) {
  if (client->calls_.ready_to_ask_again()) End(client, client->calls_.Fate());
}

// What is unknown is dropped here and the client told; what is not is the client's again.
void EntryLink::End(CallClient* client, CallFate fate) {
  PutCancel(client->calls_.channel(), &frames_.Body(FrameKind::kCancel));
  Forget(client);
  if (fate == CallFate::kUnknown) {
    client->calls_.Drop();
    return client->OnUnknown();
  }
  client->OnMoved(client->calls_.TakeBack());
}

// Small replies are credited together: most channels never come near their window.
void EntryLink::Credit(CallClient* client) {
  PutCredit(client->calls_.channel(), client->uncredited_, &frames_.Body(FrameKind::kCredit));
  client->uncredited_ = 0;
}

void EntryLink::OnTurn() {
  if (owed_.empty()) return;
  std::erase_if(owed_, [this](CallClient* client) {
    const bool little = client->uncredited_ < kChannelWindowBytes / 4;
    if (little && !client->calls_.begun()) {
      // It is credited with what comes next.
      client->owed_ = false;
      return true;
    }
    if (!client->TakesMore()) return false;
    Credit(client);
    client->owed_ = false;
    return true;
  });
}

bool EntryLink::OwnerLives(int64_t now_micros, bool asks) {
  if (std::exchange(heard_, false) || heard_micros_ == 0 || call_bytes_ == 0 || !asks) {
    heard_micros_ = now_micros;
    is_asked_ = false;
  }
  const int64_t silent_micros = now_micros - heard_micros_;
  if (silent_micros >= kQuietMicros && !std::exchange(is_asked_, true))
    (void)frames_.Body(FrameKind::kAlive);
  return silent_micros < kSilentMicros;
}

void EntryLink::CloseResting(Unused unused) {
  std::vector<CallClient*> idle;
  for (const auto& [channel, client] : clients_) {
    const bool rests = client->calls_.empty() && !client->KeepsChannel();
    if (rests && (unused == Unused::kNow || !client->used_)) idle.push_back(client);
    if (unused == Unused::kForLong) client->used_ = false;
  }
  for (CallClient* client : idle) Leave(client);
}

// All that are idle go at once, so that room is rarely looked for.
bool EntryLink::MakeRoom(const CallClient& client) {
  if (client.link_ == this || clients_.size() < kChannelsMax) [[likely]]
    return true;
  if (all_busy_) return false;
  CloseResting(Unused::kNow);
  all_busy_ = clients_.size() >= kChannelsMax;
  return !all_busy_;
}

void EntryLink::OnLost() {
  const std::unordered_map<uint64_t, CallClient*> clients = std::move(clients_);
  clients_.clear();
  owed_.clear();
  call_bytes_ = 0;
  for (const auto& [channel, client] : clients) {
    client->owed_ = false;
    client->link_ = nullptr;
    client->uncredited_ = 0;
    client->keyspace_.clear();
    if (client->calls_.Fate() == CallFate::kUnknown) {
      client->calls_.Drop();
      client->OnUnknown();
    } else {
      client->OnMoved(client->calls_.TakeBack());
    }
  }
  frames_.Clear();
}

size_t EntryLink::call_memory_bytes() const {
  size_t bytes = 0;
  for (const auto& [channel, client] : clients_) bytes += client->calls_.memory_bytes();
  return bytes;
}

size_t EntryLink::calls_due() const {
  return static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(), [](const auto& each) {
    return !each.second->calls_.empty() && !each.second->WaitsForOthers();
  }));
}

size_t EntryLink::calls() const {
  return static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(), [](const auto& each) {
    return !each.second->calls_.empty();
  }));
}

}  // namespace cellar
