// What an operator has the set do. See set_order.h.
//
// An order is done when the members that are committed are such as it wants them; until then each
// step looks at what is so and does what is missing. So it does not matter what the leader does of
// itself meanwhile, nor whether the change was written before or by this order.
//
// A leader that is to leave, or to lose its vote, hands over first, and then asks the new one.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/coding.h"
#include "base/os/log.h"
#include "replica/set/refused.h"
#include "replica/set_links.h"

namespace cellar {
namespace {

constexpr int64_t kAskAgainMicros{500'000};
constexpr int64_t kAskMicros{30'000'000};
constexpr size_t kAskedOrdersMax{64};

// Of a kOrderAnswer.
constexpr uint8_t kRefused{0};
constexpr uint8_t kDone{1};
constexpr uint8_t kNotNow{2};

Status NotNow(std::string text) { return Status::Error(ErrorCode::kTryAgain, std::move(text)); }

Status UnderWay() { return NotNow("a member change is under way"); }

// As what it is to be a member in the end.
MemberKind KindOf(OrderKind kind) {
  if (kind == OrderKind::kAddWitness) return MemberKind::kWitness;
  return kind == OrderKind::kAddStandby ? MemberKind::kStandby : MemberKind::kVoter;
}

}  // namespace

const SetMember* SetNode::Find(const SetOrder& order) const {
  const SetMembers& members = set().members();
  if (order.node != 0) return members.Find(order.node);
  // Of two at one address the one that came last: it takes the other's place.
  const SetMember* found = nullptr;
  for (const SetMember& member : members.list) {
    if (member.host == order.address.host && member.port == order.address.port) found = &member;
  }
  return found;
}

// --- beginning

// A failover asks whoever leads; all other orders come to the leader, one at a time. What is
// decided at once is noted under its ticket as well, so that callers ask for every outcome in one
// way.
Result<uint64_t> SetNode::BeginOrder(const SetOrder& order) {
  if (order.kind == OrderKind::kFailover && !open()) {
    const auto leader = KnownLeader();
    const Peer* const peer = PeerOf(set().leader());
    if (!leader || peer == nullptr || asked_orders_.size() >= kAskedOrdersMax)
      return Status::Error(ErrorCode::kErr, "no leader: " + NoLeaderText());
    if (peer->level < kStandbyLevel)
      return Refused("the leader's version must be asked itself: " + TextOf(*leader));
    const uint64_t ticket = order_next_++;
    const int64_t patience = 10 * owner_.options_.election_micros;
    asked_orders_.push_back(
        {.ticket = ticket, .order = order, .deadline_micros = now() + patience});
    StepAsked();
    return ticket;
  }
  if (order.kind == OrderKind::kFailover) {
    const uint64_t ticket = order_next_++;
    NoteResult(ticket, BeginFailover(std::nullopt, 0));
    return ticket;
  }
  if (!may_append()) return NotNow("the leader hands over");
  if (order_.ticket != 0 || !set().members_committed()) return UnderWay();
  RETURN_IF_ERROR(CheckOrder(order));
  const uint64_t ticket = order_next_++;
  const SetMember* const member = Find(order);
  const bool adds = IsAdd(order.kind);
  CELLAR_ASSERT(adds || member != nullptr);
  if (!adds && member->id == owner_.identity_.node) {
    RETURN_IF_ERROR(Leave(order));
    NoteResult(ticket, Status::Ok());
    return ticket;
  }
  order_ = {.ticket = ticket, .order = order};
  order_.begin_micros = now();
  order_.deadline_micros =
      now() + (order.kind == OrderKind::kPromote ? kPromotionMicros : kOrderMicros);
  // Whom it is about does not change with who is where.
  if (!adds) order_.order.node = member->id;
  StepOrder();
  return ticket;
}

// What can be seen before anything is done.
Status SetNode::CheckOrder(const SetOrder& order) {
  if (IsAdd(order.kind)) return CheckAdd(order);
  const SetMember* const member = Find(order);
  if (member == nullptr) {
    return Refused("there is no member " +
                   (order.node != 0 ? fmt::format("{:016x}", order.node) : TextOf(order.address)));
  }
  const std::string text = TextOf({member->host, member->port});
  if (order.kind == OrderKind::kPromote) {
    if (member->kind == MemberKind::kWitness)
      return Refused(text + " is a witness: it votes, and holds no data");
    if (member->votes()) return Refused(text + " is a voter already");
    if (PeerOf(member->id) == nullptr) return Refused(text + " is not connected");
    return Status::Ok();
  }
  SetMembers left = set().members();
  if (order.kind == OrderKind::kDemote) {
    if (member->kind == MemberKind::kStandby) return Refused(text + " is a standby already");
    if (member->kind == MemberKind::kWitness)
      return Refused(text + " is a witness: a standby holds data");
    RETURN_IF_ERROR(CheckLevel(kStandbyLevel));
    for (SetMember& each : left.list)
      if (each.id == member->id) each.kind = MemberKind::kStandby;
  } else {
    std::erase_if(left.list, [&](const SetMember& each) { return each.id == member->id; });
  }
  if (const SetMembers::Voters voters = left.CountVoters(); !voters.fit())
    return Refused(UnfitVoters(voters));
  return set().CheckQuorum(left, set().heard_since_micros());
}

Status SetNode::CheckAdd(const SetOrder& order) {
  const std::string text = TextOf(order.address);
  if (order.address == owner_.options_.self) return Refused(text + " is this node");
  const SetMember* const there = Find(order);
  const Peer* const peer = AnsweringPeer(order.address);
  // A node that was emptied is another one than the member.
  if (there != nullptr && (peer == nullptr || peer->node == there->id))
    return Refused(text + " is a member already");
  if (set().members().list.size() >= kSetMembersMax)
    return Refused(fmt::format("a set has {} members at most", kSetMembersMax));
  RETURN_IF_ERROR(CheckLevel(LevelOf(KindOf(order.kind))));
  RETURN_IF_ERROR(CheckVoters(set().members(), KindOf(order.kind), order.address));
  if (LearnPeer(order.address) == nullptr) return Refused("too many nodes are being asked");
  return Status::Ok();
}

// Without it a leader would not be heard of any more, and with it as one that does not vote there
// could be no leader.
Status SetNode::Leave(const SetOrder& order) {
  const std::string own = TextOf(owner_.options_.self);
  const Peer* const next = PeerOf(Successor());
  if (next == nullptr) return Refused(own + " leads, and nobody can take over from it");
  if (next->level < kStandbyLevel)
    return Refused(own + " leads, and hands over to an older version, which cannot go on with it");
  RETURN_IF_ERROR(BeginFailover(std::nullopt, 0));
  SetOrder asked = order;
  asked.node = owner_.identity_.node;
  asked_orders_.push_back({.ticket = order_next_++,
                           .order = asked,
                           .deadline_micros = now() + kAskMicros,
                           .leaves = true});
  return Status::Ok();
}

// --- carrying out

bool SetNode::IsDone(const SetOrder& order) const {
  if (!set().members_committed()) return false;
  const SetMember* const member = Find(order);
  switch (order.kind) {
    case OrderKind::kAdd:
    case OrderKind::kAddStandby:
    case OrderKind::kAddWitness: {
      const Peer* const peer = AnsweringPeer(order.address);
      return member != nullptr && peer != nullptr && peer->node == member->id;
    }
    case OrderKind::kRemove:
      return member == nullptr;
    case OrderKind::kPromote:
      return member != nullptr && member->votes();
    case OrderKind::kDemote:
      return member != nullptr && member->kind == MemberKind::kStandby;
    case OrderKind::kFailover:
      break;
  }
  return true;
}

// TRYAGAIN: something else must come first.
Status SetNode::NextMembers(const SetOrder& order, SetMembers* members) const {
  if (IsAdd(order.kind)) return NextAdded(order, members);
  const auto member = std::find_if(members->list.begin(), members->list.end(),
                                   [&](const SetMember& each) { return each.id == order.node; });
  if (member == members->list.end()) return Refused("the member has gone meanwhile");
  switch (order.kind) {
    case OrderKind::kRemove:
      members->list.erase(member);
      break;
    case OrderKind::kPromote: {
      // One that has to catch up first votes by itself when it has.
      const MemberKind next = IsNear(order.node) ? MemberKind::kVoter : MemberKind::kJoining;
      if (member->kind == next) return NotNow("it has not caught up");
      member->kind = next;
      break;
    }
    case OrderKind::kDemote:
      members->feature_level = std::max(members->feature_level, kStandbyLevel);
      member->kind = MemberKind::kStandby;
      break;
    default:
      CELLAR_ASSERT(false);
  }
  return Status::Ok();
}

Status SetNode::NextAdded(const SetOrder& order, SetMembers* members) const {
  const Peer* const peer = AnsweringPeer(order.address);
  if (peer == nullptr) return NotNow("it has not answered");
  const bool same = peer->cluster == owner_.identity_.cluster;
  if (peer->has == Has::kData)
    return Refused(peer->text + " holds data of no set: empty it to add it");
  if (peer->has == Has::kSet && !same)
    return Refused(peer->text + " belongs to another replica set");
  const MemberKind kind = KindOf(order.kind);
  const bool keeps_data = peer->wanted != MemberKind::kWitness;
  if (keeps_data == (kind == MemberKind::kWitness)) {
    return Refused(peer->text + (keeps_data ? " keeps data: a witness has replica-kind witness"
                                            : " is a witness: add it as WITNESS"));
  }
  const uint32_t level = std::max(members->feature_level, LevelOf(kind));
  if (peer->level < level)
    return Refused(fmt::format("{} has feature level {}, and the set is at {}", peer->text,
                               peer->level, level));
  members->feature_level = level;
  members->list.push_back({.id = peer->node,
                           .kind = kind == MemberKind::kStandby ? kind : MemberKind::kJoining,
                           .host = peer->address.host,
                           .port = peer->address.port});
  return Status::Ok();
}

void SetNode::StepOrder() {
  if (order_.ticket == 0 || !may_append()) return;
  const SetOrder order = order_.order;
  const bool adds = IsAdd(order.kind);
  if (IsDone(order)) return EndOrder(Status::Ok());
  Status step = NotNow("its record is not committed: it may be yet");
  if (set().members_committed()) {
    SetMembers members = set().members();
    step = NextMembers(order, &members);
    // Before the change: with it the core may step, and this would be asked again.
    if (step.ok()) {
      // Who was lost a moment ago still seems to be there.
      const Status heard = set().CheckQuorum(members, order_.begin_micros);
      if (!heard.ok() && now() - order_.begin_micros > owner_.options_.election_micros)
        return EndOrder(heard);
      if (!heard.ok()) return;
      if (adds) std::erase(removed_, members.list.back().id);
      if (order.kind == OrderKind::kRemove) removed_.push_back(order.node);
      step = member_.ChangeMembers(std::move(members));
      if (step.ok() || order_.ticket == 0) return;
    }
  }
  if (step.code() != ErrorCode::kTryAgain) return EndOrder(std::move(step));
  if (now() < order_.deadline_micros) return;
  if (order.kind == OrderKind::kPromote)
    return EndOrder(NotNow("it has not caught up yet; it votes once it has"));
  if (!adds || Find(order) != nullptr) return EndOrder(std::move(step));
  EndOrder(Refused(WhySilent(order.address)));
}

// Of a node that was to be added.
std::string SetNode::WhySilent(const NodeAddress& address) const {
  const auto asked = std::find_if(peers_.begin(), peers_.end(),
                                  [&](const auto& peer) { return peer->address == address; });
  const uint64_t node = asked == peers_.end() ? 0 : (*asked)->out->node();
  for (const auto& peer : peers_) {
    if (node != 0 && peer->answered && peer->node == node && peer->address != address)
      return TextOf(address) + " calls itself " + peer->text + ": add it by that";
  }
  std::string text = TextOf(address) + " does not answer as a node of a replica set";
  if (asked != peers_.end() && !(*asked)->out->stands() && !(*asked)->out->why().empty())
    text += ": " + (*asked)->out->why();
  return text;
}

void SetNode::EndOrder(Status status) {
  const RunningOrder done = std::exchange(order_, {});
  CELLAR_ASSERT(done.ticket != 0);
  if (done.from != 0) AnswerOrder(done.from, done.from_ticket, status);
  NoteResult(done.ticket, std::move(status));
}

void SetNode::NoteResult(uint64_t ticket, Status status) {
  order_results_.emplace_back(ticket, std::move(status));
  if (order_results_.size() > kOrderResultsMax) order_results_.pop_front();
  owner_.host_.WakeTasks();
}

std::optional<Status> SetNode::OrderResult(uint64_t ticket) {
  const auto found = std::find_if(order_results_.begin(), order_results_.end(),
                                  [ticket](const auto& each) { return each.first == ticket; });
  if (found != order_results_.end()) {
    Status status = std::move(found->second);
    order_results_.erase(found);
    return status;
  }
  const bool waits =
      order_.ticket == ticket ||
      std::any_of(asked_orders_.begin(), asked_orders_.end(),
                  [ticket](const AskedOrder& each) { return each.ticket == ticket; });
  if (waits) return std::nullopt;
  return NotNow("its outcome is not known any more");
}

// --- between nodes

// Asks the leader, again and again: frames are lost with links and leaders.
void SetNode::StepAsked() {
  for (size_t i = 0; i < asked_orders_.size(); ++i) {
    AskedOrder& asked = asked_orders_[i];
    const bool stays = asked.leaves && open() && failover_ == FailoverState::kNone;
    if (stays || now() >= asked.deadline_micros) {
      if (asked.leaves)
        Log(LogSeverity::kWarning, "This node stays what it is: nobody has taken over from it");
      NoteResult(asked.ticket, NotNow("the leader does not answer"));
      asked_orders_.erase(asked_orders_.begin() + static_cast<std::ptrdiff_t>(i--));
      continue;
    }
    // What has begun is not asked for twice.
    const bool again = asked.leaves && now() - asked.sent_micros >= kAskAgainMicros;
    Peer* const leader = set().leads() ? nullptr : PeerOf(set().leader());
    if ((asked.sent_micros != 0 && !again) || leader == nullptr) continue;
    if (leader->level < kStandbyLevel) continue;
    asked.sent_micros = now();
    std::string body;
    PutFixed64(&body, asked.ticket);
    body.push_back(static_cast<char>(asked.order.kind));
    PutFixed64(&body, asked.order.node);
    leader->out->Write(EncodeFrame(owner_.MakeHead(FrameKind::kOrder), body));
  }
}

// A member orders a hand-over, or what concerns itself.
void SetNode::OnOrder(uint64_t node, const Frame& frame) {
  BodyReader body(frame.body);
  const uint64_t ticket = body.U64();
  const uint8_t kind = body.Byte();
  SetOrder order{.kind = static_cast<OrderKind>(kind), .node = body.U64()};
  if (!body.ok()) return;
  // The answer was lost.
  const SetMember* const member = set().members().Find(node);
  const bool is_so = (order.kind == OrderKind::kRemove && member == nullptr) ||
                     (order.kind == OrderKind::kDemote && member != nullptr &&
                      member->kind == MemberKind::kStandby);
  if (open() && is_so && set().members_committed()) return AnswerOrder(node, ticket, Status::Ok());
  if (member == nullptr) return;
  if (!open()) return AnswerOrder(node, ticket, NotNow("this node does not lead"));
  if (order.kind == OrderKind::kFailover)
    return AnswerOrder(node, ticket, BeginFailover(std::nullopt, 0));
  const bool of_itself = order.kind == OrderKind::kRemove || order.kind == OrderKind::kDemote;
  if (!of_itself || order.node != node)
    return AnswerOrder(node, ticket, Refused("a node orders nothing like that"));
  const Result<uint64_t> begun = BeginOrder(order);
  if (!begun.ok()) return AnswerOrder(node, ticket, begun.status());
  if (order_.ticket == *begun) {
    order_.from = node;
    order_.from_ticket = ticket;
  }
}

void SetNode::AnswerOrder(uint64_t node, uint64_t ticket, const Status& status) {
  std::string body;
  PutFixed64(&body, ticket);
  body.push_back(static_cast<char>(status.ok()                             ? kDone
                                   : status.code() == ErrorCode::kTryAgain ? kNotNow
                                                                           : kRefused));
  const std::string text = status.ok() ? std::string() : status.text();
  PutLengthPrefixed(&body, std::string_view(text).substr(0, kPeerTextBytesMax));
  Send(node, EncodeFrame(owner_.MakeHead(FrameKind::kOrderAnswer), body));
}

void SetNode::OnOrderAnswer(const Frame& frame) {
  BodyReader body(frame.body);
  const uint64_t ticket = body.U64();
  const uint8_t outcome = body.Byte();
  const std::string text = PrintableText(body.Prefixed());
  if (!body.ok()) return;
  const auto asked =
      std::find_if(asked_orders_.begin(), asked_orders_.end(),
                   [ticket](const AskedOrder& each) { return each.ticket == ticket; });
  if (asked == asked_orders_.end() || (asked->leaves && outcome == kNotNow)) return;
  if (asked->leaves && outcome != kDone) {
    // Who has just taken over may not have heard of all others yet: it is asked once more.
    if (asked->refused_micros == 0) asked->refused_micros = now();
    if (now() - asked->refused_micros < owner_.options_.election_micros) return;
  }
  if (asked->leaves) {
    const bool gone = asked->order.kind == OrderKind::kRemove;
    Log(LogSeverity::kNotice, outcome != kDone ? "This node stays what it is: " + text
                              : gone ? "This node is no member of its replica set any more"
                                     : std::string("This node is a standby from now on"));
  }
  asked_orders_.erase(asked);
  NoteResult(ticket, outcome == kDone     ? Status::Ok()
                     : outcome == kNotNow ? NotNow(text)
                                          : Refused(text));
}

}  // namespace cellar
