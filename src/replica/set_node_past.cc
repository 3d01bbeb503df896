// Whether this node holds what it has acknowledged. See set_node.h and set/set_past.h.
#include <fmt/format.h>

#include <string>

#include "base/os/file_mark.h"
#include "base/os/log.h"
#include "replica/set_node.h"

namespace cellar {
namespace {

// For so many election timeouts a start waits for members that do not answer.
constexpr int64_t kPatienceTimeouts{3};
constexpr int64_t kTellMicros{10'000'000};

}  // namespace

std::string SetNode::OlderText() const {
  return fmt::format(
      "{} holds less than it acknowledged: empty it, and the node joins its replica set anew ({})",
      owner_.directory_, set().past().why());
}

// Both files name the new start before anything is promised in it. Where they cannot be written the
// node goes on as one of which nothing is known, since a full disk is no reason not to start.
Status SetNode::BeginPast(ReplicaSet::Begins begins) {
  SetPast::Begin begin;
  begin.node = owner_.identity_.node;
  begin.cluster = owner_.identity_.cluster;
  begin.start = owner_.random_.Next() | 1;
  begin.boot = BootId();
  begin.lazy = store_.journal().Stats().sync_policy != SyncPolicy::kAlways;
  begin.mark = MarkOfFile(JoinPath(owner_.directory_, kReplicaFileName));
  begin.term = set().term();
  begin.last = set().log().last();
  begin.epoch_of = [this](uint64_t seq) { return set().log().TermOf(seq); };
  auto opened = MemberFile::Open(owner_.files_, owner_.directory_, begin.boot);
  auto tied = TieFile::Open(owner_.files_, owner_.directory_, begin.boot);
  for (const Status& status : {opened.status(), tied.status()}) {
    if (!status.ok() && status.code() == ErrorCode::kCorruption)
      return Status::Error(ErrorCode::kErr,
                           fmt::format("{}. Restore the file, or empty {}: then the node joins its "
                                       "replica set anew",
                                       status.text(), owner_.directory_));
  }
  if (opened.ok() && tied.ok()) {
    member_file_ = *std::move(opened);
    tie_file_ = *std::move(tied);
    begin.memory = member_file_->memory();
    begin.tie = tie_file_->tie();
  } else {
    begin.start = 0;
  }
  SetPast& past = member_.set().past();
  held_until_micros_ = now() + kPatienceTimeouts * owner_.options_.election_micros;
  if (begins == ReplicaSet::Begins::kAtOnce) {
    past.StartAfresh(std::move(begin));
  } else if (past.Start(std::move(begin)) == SetPast::Verdict::kRefuse) {
    return Status::Error(ErrorCode::kErr, OlderText());
  }
  if (const Status written = WritePast(); !written.ok()) {
    Log(LogSeverity::kWarning, "what this member acknowledges cannot be noted: " + written.text());
    member_file_.reset();
  }
  return Status::Ok();
}

Status SetNode::WritePast() {
  if (member_file_ == nullptr) return Status::Ok();
  const SetPast& past = set().past();
  MemberTie tie = tie_file_->tie();
  tie.start = member_file_->memory().start;
  tie.next_start = past.Tie(false).start;
  tie.closed = false;
  RETURN_IF_ERROR(tie_file_->Write(tie, Durable::kYes));
  RETURN_IF_ERROR(member_file_->Write(past.Memory(false), Durable::kYes));
  return tie_file_->Write(past.Tie(false), Durable::kYes);
}

// At the start until it is judged, and then whenever another member has something to say of it.
void SetNode::StepPast() {
  if (!member_.started()) return;
  ReplicaSet& set = member_.set();
  SetPast& past = set.past();
  switch (past.Judge(set.members(), now() < held_until_micros_)) {
    case SetPast::Verdict::kRefuse:
      return Refuse(OlderText());
    case SetPast::Verdict::kGo:
      if (!set.held()) return;
      if (past.is_copy() && member_file_ != nullptr) {
        // It is no copy from now on.
        (void)tie_file_->Write(past.Tie(false), Durable::kYes);
        Log(LogSeverity::kNotice, owner_.directory_ +
                                      " is a copy, and all other voters say that it holds what "
                                      "this node has acknowledged: it takes part");
      }
      set.Release(past.is_copy() ? past.newest_term() : 0);
      owner_.host_.OnRoleChanged();
      return;
    case SetPast::Verdict::kWait:
      if (now() < held_until_micros_ || now() - held_told_micros_ < kTellMicros) return;
      held_told_micros_ = now();
      Log(LogSeverity::kWarning,
          fmt::format("{} is a copy, which may hold less than this node has acknowledged: it takes "
                      "no part before {} can be asked. If none of them comes back, see "
                      "--replica-recover",
                      owner_.directory_, past.WaitsFor(set.members())));
      return;
  }
}

// Not waited for: it is what the end of this process leaves behind, not that of the machine.
void SetNode::KeepPast() {
  if (member_file_ == nullptr || !member_.started()) return;
  SetPast& past = member_.set().past();
  past.Forget(set().members());
  if (store_.journal().Stats().sync_policy != SyncPolicy::kAlways) past.SetLazy();
  const MemberTie tie = past.Tie(false);
  if (tie != tie_file_->tie()) (void)tie_file_->Write(tie, Durable::kNo);
  const MemberMemory memory = past.Memory(false);
  if (memory != member_file_->memory()) (void)member_file_->Write(memory, Durable::kNo);
}

void SetNode::ClosePast() {
  if (member_file_ == nullptr || !member_.started()) return;
  const SetPast& past = set().past();
  (void)member_file_->Write(past.Memory(true), Durable::kYes);
  (void)tie_file_->Write(past.Tie(true), Durable::kYes);
}

}  // namespace cellar
