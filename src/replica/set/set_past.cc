// See set_past.h.
#include "replica/set/set_past.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "replica/links/frame.h"
#include "replica/set/set_message.h"

namespace cellar {
namespace {

constexpr uint8_t kHelloVersion{1};
constexpr uint8_t kLazy{1};
constexpr uint8_t kSound{2};
constexpr uint8_t kExact{4};
constexpr uint32_t kMemoryVersion{1};
constexpr size_t kPeersMax{2 * kSetMembersMax};

void PutPlace(std::string* text, const PeerPlace& place) {
  PutLsn(text, place.acknowledged);
  PutFixed32(text, place.epoch);
  PutLsn(text, place.led);
  PutFixed64(text, place.boot);
  text->push_back(static_cast<char>(place.lazy ? kLazy : 0));
}

PeerPlace ReadPlace(BodyReader* body) {
  PeerPlace place;
  place.acknowledged = body->ReadLsn();
  place.epoch = body->U32();
  place.led = body->ReadLsn();
  place.boot = body->U64();
  place.lazy = (body->Byte() & kLazy) != 0;
  return place;
}

std::string PlaceText(Lsn place) {
  return fmt::format("record {} in term {}", place.seq, place.epoch);
}

}  // namespace

// Of the later acknowledgement: whether it was synced.
void PeerPlace::Merge(const PeerPlace& other) {
  led = std::max(led, other.led);
  if (other.acknowledged < acknowledged) return;
  acknowledged = other.acknowledged;
  epoch = other.epoch;
  boot = other.boot;
  lazy = other.lazy;
}

std::string EncodeMemory(const MemberMemory& memory) {
  std::string text;
  PutFixed32(&text, kMemoryVersion);
  PutFixed64(&text, memory.cluster);
  PutFixed64(&text, memory.start);
  text.push_back(memory.closed ? '\1' : '\0');
  text.push_back(memory.whole ? '\1' : '\0');
  PutFixed32(&text, static_cast<uint32_t>(memory.peers.size()));
  for (const auto& [node, past] : memory.peers) {
    PutFixed64(&text, node);
    PutFixed64(&text, past.start);
    text.push_back(past.certain ? '\1' : '\0');
    PutPlace(&text, past.now);
    PutPlace(&text, past.before);
  }
  return text;
}

bool DecodeMemory(std::string_view text, MemberMemory* memory) {
  *memory = {};
  BodyReader body(text);
  if (body.U32() != kMemoryVersion) return false;
  memory->cluster = body.U64();
  memory->start = body.U64();
  memory->closed = body.Byte() != 0;
  memory->whole = body.Byte() != 0;
  const uint32_t count = body.U32();
  if (count > kPeersMax) return false;
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t node = body.U64();
    PeerPast& past = memory->peers[node];
    past.start = body.U64();
    past.certain = body.Byte() != 0;
    past.now = ReadPlace(&body);
    past.before = ReadPlace(&body);
  }
  return body.ok() && body.at_end();
}

// --- starting

SetPast::Verdict SetPast::Refuse(std::string why) {
  why_ = std::move(why);
  return Verdict::kRefuse;
}

void SetPast::StartAfresh(Begin begin) {
  begin_ = std::move(begin);
  tie_ = {.start = begin_.start, .boot = begin_.boot, .lazy = begin_.lazy};
  tie_.mark = begin_.mark;
  peers_.clear();
  fresh_ = goes_ = was_closed_ = whole_ = true;
}

SetPast::Verdict SetPast::Start(Begin begin) {
  begin_ = std::move(begin);
  const MemberTie& tie = begin_.tie;
  const MemberMemory& memory = begin_.memory;
  tie_ = tie;
  tie_.boot = begin_.boot;
  tie_.lazy = begin_.lazy;
  // Another set's: what has been recovered begins anew.
  if (memory.cluster == begin_.cluster) peers_ = memory.peers;
  const bool was_next = tie.next_start != 0 && tie.next_start == memory.start;
  if (keeps() && tie.start != memory.start && !was_next)
    return Refuse("cellar.replica and cellar.member are of different times");
  const bool is_certain = !tie.lazy || (tie.boot != 0 && tie.boot == begin_.boot);
  if (is_certain && !Holds(tie.acknowledged, tie.epoch)) {
    return Refuse(fmt::format("it has acknowledged {}, and has {} in term {}",
                              PlaceText(tie.acknowledged), begin_.last.seq, begin_.term));
  }
  copy_ = tie.mark.known() && begin_.mark.known() && tie.mark != begin_.mark;
  if (copy_ && !keeps()) return Refuse("it is a copy, and cellar.member cannot be written");
  was_closed_ = tie.closed && memory.closed;
  whole_ = was_closed_ && memory.whole;
  for (auto& [node, past] : peers_) past.certain = past.certain && was_closed_;
  return Verdict::kWait;
}

// A term is saved before anything is acknowledged in it, and in one term a follower never drops
// what it has acknowledged.
bool SetPast::Holds(Lsn place, uint32_t epoch) const {
  if (begin_.term != place.epoch) return begin_.term > place.epoch;
  if (begin_.last.seq < place.seq) return false;
  // What stands there may be what the acknowledged record has taken the place of.
  const uint32_t there = goes_ || epoch == 0 || !begin_.epoch_of ? 0 : begin_.epoch_of(place.seq);
  return there == 0 || there == epoch;
}

// What is missing of what another one remembers; empty: nothing that is known.
std::string SetPast::LossBy(const PeerPlace& remembered) const {
  if (begin_.term < remembered.led.epoch)
    return fmt::format("it has led term {}, and knows of term {}", remembered.led.epoch,
                       begin_.term);
  const Lsn place = remembered.acknowledged;
  const bool is_certain =
      !remembered.lazy || (remembered.boot != 0 && remembered.boot == begin_.boot);
  if (is_certain ? Holds(place, remembered.epoch) : begin_.term >= place.epoch) return {};
  return fmt::format("it has acknowledged {}, and has {} in term {}", PlaceText(place),
                     begin_.last.seq, begin_.term);
}

// Of a copy. Where its log is as new as the other's, it has all that this one has and that counts.
// Else what the other one remembers decides, if it is certain to be all.
bool SetPast::MayGoOn(const Answer& answer) const {
  if (begin_.last >= answer.last) return true;
  return was_closed_ && answer.sound &&
         Holds(answer.remembered.acknowledged, answer.remembered.epoch) &&
         Holds(answer.remembered.led, 0);
}

SetPast::Verdict SetPast::Judge(const SetMembers& members, bool patient) {
  if (!why_.empty()) return Verdict::kRefuse;
  if (goes_) return Verdict::kGo;
  if (!claims_.empty()) return Verdict::kWait;
  uint64_t newest = begin_.term;
  for (const auto& [node, answer] : answers_) newest = std::max<uint64_t>(newest, answer.term);
  newest_term_ = static_cast<uint32_t>(TermTowards(begin_.term, newest));
  bool all = true;
  for (const SetMember& member : members.list) {
    if (member.id == begin_.node || !member.votes()) continue;
    all = all && (answers_.contains(member.id) || (!copy_ && silent_.contains(member.id)));
  }
  if (!all && (copy_ || patient)) return Verdict::kWait;
  goes_ = true;
  tie_.mark = begin_.mark;
  return Verdict::kGo;
}

std::string SetPast::WaitsFor(const SetMembers& members) const {
  std::string text;
  for (const SetMember& member : members.list) {
    if (member.id == begin_.node || !member.votes() || answers_.contains(member.id)) continue;
    text += fmt::format("{}{}:{}", text.empty() ? "" : ", ", member.host, member.port);
  }
  return text;
}

// --- greetings

std::string SetPast::Hello(uint64_t node, uint32_t term, Lsn last) const {
  if (!keeps()) return {};
  const auto known = peers_.find(node);
  const PeerPast past = known == peers_.end() ? PeerPast{.certain = whole_} : known->second;
  // A copy may be older than what it should remember.
  const bool is_sound = past.certain && (goes_ || !copy_);
  const bool is_exact = was_closed_ && (goes_ || !copy_);
  std::string text(1, static_cast<char>(kHelloVersion));
  text.push_back(static_cast<char>((tie_.lazy ? kLazy : 0) | (is_sound ? kSound : 0) |
                                   (is_exact ? kExact : 0)));
  PutFixed64(&text, begin_.start);
  PutFixed64(&text, begin_.boot);
  PutLsn(&text, begin_.tie.acknowledged);
  PutFixed32(&text, begin_.tie.epoch);
  PutFixed32(&text, term);
  PutLsn(&text, last);
  PutFixed64(&text, past.start);
  PutPlace(&text, past.before);
  return text;
}

bool SetPast::OnHello(uint64_t node, std::string_view text) {
  if (!keeps()) return false;
  if (text.empty()) {
    silent_[node] = true;
    return false;
  }
  BodyReader body(text);
  Answer answer;
  const bool is_known = body.Byte() == kHelloVersion;
  const uint8_t flags = body.Byte();
  const uint64_t start = body.U64();
  const uint64_t boot = body.U64();
  PeerPlace told;
  told.boot = boot;
  told.lazy = (flags & kLazy) != 0;
  told.acknowledged = body.ReadLsn();
  told.epoch = body.U32();
  answer.term = body.U32();
  answer.last = body.ReadLsn();
  const uint64_t own = body.U64();
  answer.remembered = ReadPlace(&body);
  answer.sound = (flags & kSound) != 0;
  if (!is_known || !body.ok() || start == 0) return false;
  bool is_new = false;
  if (peers_.size() < kPeersMax || peers_.contains(node)) {
    PeerPast& past = peers_.try_emplace(node, PeerPast{.certain = whole_}).first->second;
    is_new = past.start != start;
    // Greeted, it says it again.
    if (is_new && !BelieveStart(node, &past, {start, (flags & kExact) != 0, told, {}})) return true;
    if (const auto other = newcomers_.find(node); other != newcomers_.end()) {
      past.now.Merge(other->second.now);
      newcomers_.erase(other);
    }
    past.now.boot = boot;
    past.now.lazy = past.now.lazy || (flags & kLazy) != 0;
  }
  // Of another start than this one it speaks before it has heard of this one.
  if (own != begin_.start) return true;
  if (!goes_) answers_[node] = answer;
  NoteClaim(node, LossBy(answer.remembered), answer);
  return is_new;
}

// Whether what a greeting says of a start that is not known is taken over.
bool SetPast::BelieveStart(uint64_t node, PeerPast* past, const Newcomer& said) {
  Newcomer& known = newcomers_[node];
  const bool is_same =
      known.start == said.start && known.exact == said.exact && known.told == said.told;
  if (!is_same && !one_greeting_) {
    const PeerPlace now = known.now;
    known = said;
    known.now = now;
    return false;
  }
  past->before.Merge(std::exchange(past->now, {}));
  past->start = said.start;
  if (said.exact) {
    past->before.Merge(said.told);
    past->certain = true;
  }
  return true;
}

// One frame ends no process: a node must say the same thing several times, one after the other. Who
// has only now begun to be a member has nothing to lose.
void SetPast::NoteClaim(uint64_t node, std::string loss, const Answer& answer) {
  if (fresh_ || !why_.empty()) return;
  if (loss.empty() && copy_ && !goes_ && !MayGoOn(answer)) {
    loss = fmt::format(
        "it is a copy, and node {:016x} has records that this one may have acknowledged", node);
  }
  if (loss.empty()) {
    claims_.erase(node);
    return;
  }
  Claim& claim = claims_[node];
  claim.times = claim.text == loss ? claim.times + 1 : 1;
  claim.text = std::move(loss);
  if (claim.times >= kClaimTimes) (void)Refuse(claim.text);
}

// --- what is remembered

void SetPast::NoteOwn(Lsn place, uint32_t epoch) {
  if (place < tie_.acknowledged) return;
  tie_.acknowledged = place;
  tie_.epoch = epoch;
}

// Since its last start, or the one that it has just begun to speak of. Null: it is not known.
PeerPlace* SetPast::NowOf(uint64_t node) {
  if (const auto other = newcomers_.find(node); other != newcomers_.end())
    return &other->second.now;
  const auto known = peers_.find(node);
  return known == peers_.end() ? nullptr : &known->second.now;
}

void SetPast::NoteAcknowledged(uint64_t node, Lsn place, uint32_t epoch) {
  if (PeerPlace* const now = NowOf(node); now != nullptr && place >= now->acknowledged) {
    now->acknowledged = place;
    now->epoch = epoch;
  }
}

void SetPast::NoteLed(uint64_t node, Lsn place) {
  if (PeerPlace* const now = NowOf(node); now != nullptr) now->led = std::max(now->led, place);
}

void SetPast::Forget(const SetMembers& members) {
  if (peers_.size() < kSetMembersMax) return;
  std::erase_if(peers_, [&](const auto& each) { return members.Find(each.first) == nullptr; });
}

MemberTie SetPast::Tie(bool closed) const {
  MemberTie tie = tie_;
  tie.start = begin_.start;
  tie.next_start = 0;
  tie.closed = closed && (goes_ || was_closed_);
  return tie;
}

MemberMemory SetPast::Memory(bool closed) const {
  return {.cluster = begin_.cluster,
          .start = begin_.start,
          .closed = closed && (goes_ || was_closed_),
          .whole = whole_,
          .peers = peers_};
}

}  // namespace cellar
