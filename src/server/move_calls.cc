// See move_calls.h.
#include "server/move_calls.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "cluster/call_frames.h"
#include "commands/cluster/reply_reader.h"
#include "commands/cluster/tablet_loads.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "replica/replication.h"
#include "replica/set_node.h"
#include "server/feed_homes.h"
#include "server/own_tablets.h"
#include "server/store_party.h"
#include "store/store.h"
#include "store/tablet_changes.h"
#include "store/tablet_sizes.h"

namespace cellar {
namespace {

constexpr std::string_view kContainerWord{"CLUSTER"};
constexpr std::string_view kStepWord{"STEP"};

Status ChangeBound(Store& store, const MoveStep& step) {
  Table* const table = store.TableById(step.out.table_id);
  if (table == nullptr) return Status::Error(ErrorCode::kNoTable, "the table is gone");
  TabletChanges changes(store);
  return step.kind == MoveStep::Kind::kSplit ? changes.SplitAt(*table, step.out.tablet, step.ops)
                                             : changes.MergeAt(*table, step.out.tablet, step.ops);
}

MoveAnswer AnswerBoundChange(Store& store, const MoveStep& step) {
  MoveAnswer answer;
  const Status status = ChangeBound(store, step);
  if (status.ok()) return answer;
  answer.code = MoveAnswer::Code::kWait;
  answer.text = status.text();
  return answer;
}

// Sooner than one who asks for it by hand would, it goes on leading where the other does not come.
constexpr int64_t kHandOverMicros{1'000'000};

MoveAnswer AnswerLead(Host& host, const MoveStep& step) {
  MoveAnswer answer{.code = MoveAnswer::Code::kWait, .text = "no such member is near enough"};
  SetNode* const set = host.replication().set();
  if (set == nullptr || !set->open()) return answer;
  // It has come again, to who leads by now.
  if (host.replication().node() == step.job) return {};
  for (const MemberFigures& member : set->Members()) {
    const bool is_near = member.state == "online" ||
                         (member.state == "behind" && member.lag_micros < kHandOverMicros);
    const bool may = member.node == step.job && member.kind == "voter" && is_near && member.room;
    if (!may) continue;
    const Status begun = host.replication().BeginFailover(member.address, kHandOverMicros, false);
    answer.code = begun.ok() ? MoveAnswer::Code::kOk : MoveAnswer::Code::kWait;
    answer.text = begun.ok() ? std::string() : begun.text();
    break;
  }
  return answer;
}

MoveAnswer Answer(Host& host, const MoveStep& step) {
  Store& store = host.store();
  const ClusterState& cluster = store.engine().cluster();
  const bool is_own = cluster.active() && step.cluster_id == cluster.cluster_id;
  if (is_own && step.kind == MoveStep::Kind::kSizes) {
    MoveAnswer answer;
    std::vector<TabletSize> sizes = TabletSizesOf(store.engine());
    const bool loads = step.job == kSizesAndLoads;
    if (loads) AddTabletLoads(host, &sizes);
    EncodeTabletSizes(sizes, loads, &answer.text);
    return answer;
  }
  const bool is_bound = step.kind == MoveStep::Kind::kSplit || step.kind == MoveStep::Kind::kMerge;
  if (is_own && is_bound) return AnswerBoundChange(store, step);
  if (is_own && step.kind == MoveStep::Kind::kLead) return AnswerLead(host, step);
  const bool of_feed =
      step.kind == MoveStep::Kind::kGroups || step.kind == MoveStep::Kind::kArrived;
  if (host.closed() || (of_feed && !is_own)) {
    MoveAnswer answer;
    answer.code = MoveAnswer::Code::kWait;
    answer.text = host.services().cluster_view.closed;
    return answer;
  }
  if (is_own && step.kind == MoveStep::Kind::kOwned) {
    MoveAnswer answer;
    EncodeClusterState(cluster, OwnTablets(store.engine()), &answer.text);
    return answer;
  }
  if (of_feed) return FeedHomes::Answer(store, step);
  StoreParty party(host);
  return AnswerMoveStep(party, step);
}

}  // namespace

bool MoveCalls::Is(std::span<const std::string_view> words) {
  return words.size() == 3 && words[0] == kContainerWord && words[1] == kStepWord;
}

void MoveCalls::Run(Host& host, Session& session, std::span<const std::string_view> words) {
  CELLAR_ASSERT(Is(words));
  const size_t position = session.output.size();
  MoveStep step;
  if (!DecodeMoveStep(words[2], &step)) {
    session.writer().Error("ERR that is no step of a move");
    return;
  }
  MoveAnswer answer = Answer(host, step);
  MoveDesk* const desk = host.services().moves;
  if (step.kind == MoveStep::Kind::kJob && desk != nullptr) {
    if (const auto progress = desk->DonorProgress(step.job); progress) {
      answer.state = progress->state;
      answer.bytes = progress->bytes;
      answer.behind = progress->behind;
      answer.text = progress->why;
    }
    desk->NoteRate(step.rate);
    desk->Wake();
  }
  std::string bytes;
  EncodeMoveAnswer(answer, &bytes);
  session.writer().Bulk(bytes);
  // What it tells of may have been logged before it came.
  Lsn gate = host.last_lsn();
  // That nothing is here who leads no more may believe, and logs nothing: as a read, it waits until
  // the others have said that this node leads.
  SetNode* const set = host.replication().set();
  const bool is_asked = step.kind == MoveStep::Kind::kHolds || step.kind == MoveStep::Kind::kOwned;
  if (is_asked && set != nullptr && set->floor() != Lsn{}) {
    gate = std::max(gate, set->floor());
    set->OnRepliesWait(set->floor());
  }
  session.AddGate(position, gate);
}

MoveCalls::MoveCalls(Host& host) : host_(host) {}

RemoteCalls& MoveCalls::remote() const {
  CELLAR_ASSERT(host_.services().remote != nullptr);
  return *host_.services().remote;
}

uint64_t MoveCalls::Ask(uint64_t set, const MoveStep& step) {
  std::string bytes;
  EncodeMoveStep(step, &bytes);
  const std::string_view words[] = {kContainerWord, kStepWord, bytes};
  return remote().Ask(session_, set, CallOf(words), false);
}

bool MoveCalls::IsPending(uint64_t ticket) const {
  return remote().AnswerTo(ticket).state == RemoteCalls::State::kPending;
}

std::optional<MoveAnswer> MoveCalls::Take(uint64_t ticket) {
  const RemoteCalls::Answer& answer = remote().AnswerTo(ticket);
  CELLAR_ASSERT(answer.state != RemoteCalls::State::kPending);
  std::optional<MoveAnswer> taken;
  if (answer.state == RemoteCalls::State::kAnswered) {
    ReplyReader reader(answer.bytes);
    std::string_view bytes;
    MoveAnswer read;
    if (reader.Bulk(&bytes) && DecodeMoveAnswer(bytes, &read)) taken = std::move(read);
  }
  remote().Forget(ticket);
  return taken;
}

void MoveCalls::Forget(uint64_t ticket) { remote().Forget(ticket); }

}  // namespace cellar
