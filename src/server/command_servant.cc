// See command_servant.h.
#include "server/command_servant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "base/assert.h"
#include "commands/catalog/command_table.h"
#include "commands/clients/acl_sessions.h"
#include "commands/clients/set_users.h"
#include "commands/cluster/alter_wait.h"
#include "commands/cluster/command_route.h"
#include "commands/cluster/cursor_scan.h"
#include "commands/cluster/row_place.h"
#include "commands/cluster/tracked_sets.h"
#include "commands/cluster/type_part_call.h"
#include "commands/dispatch/dispatch.h"
#include "commands/dispatch/row_prefetch.h"
#include "commands/session/parsed_command.h"
#include "commands/session/services.h"
#include "commands/session/transaction.h"
#include "replica/replication.h"
#include "replica/set_node.h"
#include "server/local_reads.h"
#include "server/move_calls.h"

namespace cellar {
namespace {

// Of what is carried out now; it keeps its memory.
ParsedCommand& Parsed() {
  thread_local ParsedCommand parsed;
  return parsed;
}

}  // namespace

CommandServant::CommandServant(Host& host, CommandServantHost& keeper, uint64_t id,
                               const CallingNode& from, const CallIdentity& identity)
    : host_(host), keeper_(keeper), from_(from.address) {
  session_.id = id;
  session_.switches.queues_judged = true;
  session_.name = fmt::format("@{:016x}", from.id);
  session_.created_micros = host_.now_micros();
  // Nothing of it is flushed but by the link.
  session_.flush_pending = true;
  Become(identity);
  keeper_.AddServant(this);
}

CommandServant::~CommandServant() {
  keeper_.RemoveServant(this);
  if (session_.task != nullptr) session_.task->work->Abandon();
  session_.task.reset();
  DiscardTransaction(host_, session_);
}

void CommandServant::Become(const CallIdentity& identity) {
  Acl& acl = host_.services().acl;
  const User* const user = acl.Find(identity.user);
  unknown_user_ = user == nullptr;
  BecomeUser(session_, unknown_user_ ? acl.default_user() : *user);
  session_.user_name = identity.user;
  session_.authenticated = true;
  session_.keyspace = identity.keyspace;
  session_.version = identity.version == 3 ? RespVersion::k3 : RespVersion::k2;
  session_.address = identity.address + "/" + from_;
}

// Who leads no more says so before anything is done; while the set holds writes they wait.
CallServant::Readiness CommandServant::MayExecute(std::string_view text, uint8_t flags) {
  has_row_ = false;
  const SetNode* const set = host_.replication().set();
  // One that was ended, as its user was, is begun anew by its node.
  if (set == nullptr || session_.ending()) return Readiness::kNever;
  if ((flags & kCallHere) != 0) return Readiness::kNow;
  if (set->is_witness()) return Readiness::kNever;
  if (!set->open()) return set->set().leads() ? Readiness::kLater : Readiness::kNever;
  if (host_.routes()) {
    has_row_ = HasRow(text);
    const Look look = has_row_ ? Look{} : LookAt(text);
    if (!look.is_owners) return Readiness::kOtherSet;
    if (WaitsForSchema(look.schema_waits)) return Readiness::kLater;
  }
  if (session_.output.size() - head_ >= Session::kOutputPauseBytes) return Readiness::kLater;
  const bool writes = (flags & kCallWrites) != 0;
  if (host_.all_paused() || (writes && host_.writes_paused())) return Readiness::kLater;
  return set->may_append() ? Readiness::kNow : Readiness::kLater;
}

bool CommandServant::HasRow(std::string_view text) {
  ParsedCommand& parsed = Parsed();
  if (!ReadOneCommand(text, &parsed.args)) return false;
  parsed.entry = host_.services().commands.Find(parsed.args[0]);
  const bool is_of_row = parsed.entry != nullptr && parsed.entry->reach == CommandReach::kRow &&
                         parsed.entry->Is(CommandRole::kNone) &&
                         parsed.entry->Takes(parsed.args.size());
  if (!is_of_row) return false;
  thread_local RowPlace place;
  const RowSources truth{
      .map = nullptr, .own_set = host_.store().engine().cluster().set, .leads = true};
  return place.Find(host_.store(), session_.keyspace, *parsed.entry, parsed.args, truth);
}

bool CommandServant::WaitsForSchema(bool schema_waits) {
  if (!schema_waits && schema_since_micros_ == 0) [[likely]]
    return false;
  const int64_t now = host_.clock().MonotonicMicros();
  if (!schema_waits || schema_since_micros_ == 0) schema_since_micros_ = schema_waits ? now : 0;
  return schema_waits && now - schema_since_micros_ < host_.services().config.cluster_wait * 1000;
}

// Of several commands, each: an EXEC is carried out whole or not at all.
CommandServant::Look CommandServant::LookAt(std::string_view text) const {
  Look look;
  bool is_piece = false;
  std::optional<std::string> selected;
  const Status read = VisitCall(text, [&](std::span<const std::string_view> words, bool last) {
    const CommandEntry* const command = CommandOf(words);
    look.schema_waits =
        look.schema_waits || (command != nullptr && !WhySchemaWaits(host_, *command).empty());
    // Whether it has the rows of a piece, whoever carries it out asks.
    const bool in_piece = std::exchange(is_piece, CallPiece::Is(words));
    if (is_piece || in_piece) return;
    if (command == nullptr || !command->Takes(words.size())) return;
    const std::string& keyspace = selected ? *selected : session_.keyspace;
    look.is_owners = look.is_owners && BelongsToOwnSet(host_, keyspace, *command, words);
    if (last) return;
    if (!selected) selected = session_.keyspace;
    FollowSelect(host_.store(), *command, words, &*selected);
  });
  look.is_owners = look.is_owners && read.ok();
  return look;
}

void CommandServant::LookAhead(std::string_view text, RowPrefetch* prefetch) const {
  prefetch->Begin(session_);
  if (session_.ended()) return;
  // Of several commands, none: they are rare.
  std::vector<std::string_view>& words = Parsed().args;
  if (ReadOneCommand(text, &words)) prefetch->Add(host_.services().commands.Find(words[0]), words);
}

bool CommandServant::Execute(std::string_view text, uint8_t flags) {
  CELLAR_ASSERT(session_.task == nullptr);
  const size_t position = session_.output.size();
  session_.last_activity_micros = host_.now_micros();
  session_.reply_mode = (flags & kCallMute) != 0 ? ReplyMode::kOff : ReplyMode::kOn;
  if (unknown_user_) {
    session_.writer().Error(
        fmt::format("NOPERM user '{}' is not known at the owner of the row", session_.user_name));
    return true;
  }
  bool done = true;
  tells_ = (flags & kCallTells) != 0;
  is_to_tell_ = is_to_tell_ || tells_;
  const int64_t before_micros = LastStep();
  if (std::exchange(has_row_, false)) {
    done = RunParsed();
    NoteDependence();
    NoteWritten(before_micros);
    return done;
  }
  if (FeedsLag(text)) {
    if (!WaitsTooLong()) return false;
    DiscardTransaction(host_, session_);
    session_.writer().Error(
        "TRYAGAIN what this connection has been told of is not told by feeds yet");
    NoteDependence();
    return true;
  }
  lags_since_micros_ = 0;
  std::optional<CallPiece> piece;
  const Status read = VisitCall(text, [&](std::span<const std::string_view> words, bool last) {
    if (!done) return;
    if (MoveCalls::Is(words)) return MoveCalls::Run(host_, session_, words);
    if (CallPiece::Is(words)) {
      piece = CallPiece::Parse(words);
      return;
    }
    if (IsCursorCall(words) || IsSettledCall(words) || IsChangedCall(words)) {
      done = RunUnjudged(words);
      return;
    }
    done = piece ? RunPiece(*std::exchange(piece, std::nullopt), words) : Run(words);
    // Of several commands only the last one is answered.
    if (!last) session_.output.Truncate(position);
  });
  CELLAR_ASSERT(read.ok());  // the link has checked it
  if (!done) {
    session_.output.Truncate(position);
    DiscardTransaction(host_, session_);
  }
  NoteDependence();
  NoteWritten(before_micros);
  return done;
}

bool CommandServant::RunPiece(const CallPiece& piece, std::span<const std::string_view> words) {
  const PieceScope scope(host_, piece);
  if (scope.owned()) return IsTypesCall(words) ? RunUnjudged(words) : Run(words);
  session_.output.Append(kMovedPiece);
  return true;
}

// The client's node has asked what this user may do, and asks for a part of that.
bool CommandServant::RunUnjudged(std::span<const std::string_view> words) {
  const bool was_restricted = std::exchange(session_.restricted, false);
  const bool done = Run(words);
  session_.restricted = was_restricted;
  return done;
}

bool CommandServant::Run(std::span<const std::string_view> words) {
  const CommandEntry* const command = CommandOf(words);
  if (IsOfOthersUsers(command)) {
    session_.writer().Error(
        "ERR the users of the set cannot be changed: its leader has users of its own "
        "(cluster-acl no)");
    return true;
  }
  ParsedCommand& parsed = Parsed();
  parsed.args.assign(words.begin(), words.end());
  parsed.entry = host_.services().commands.Find(words[0]);
  return RunParsed();
}

bool CommandServant::RunParsed() {
  (void)host_.dispatcher().ExecuteInOrder(session_, {&Parsed(), 1});
  return !std::exchange(session_.postponed, false);
}

// A node that goes by the users of the set passes their changes on to a leader that does not: that
// one would change its own alone.
bool CommandServant::IsOfOthersUsers(const CommandEntry* command) const {
  return command != nullptr && SetUsers::IsChange(*command) && !host_.services().config.cluster_acl;
}

// The subcommand, if there is one; null: none of that name.
const CommandEntry* CommandServant::CommandOf(std::span<const std::string_view> words) const {
  const CommandEntry* const command = host_.services().commands.Find(words[0]);
  if (command == nullptr || command->subcommands.empty() || words.size() < 2) return command;
  return CommandTable::FindSubcommand(*command, words[1]);
}

// Others may have on their disks what this node has not on its own. It is asked before anything of
// the call is carried out: what has been watched for an EXEC is watched for as long as that waits.
bool CommandServant::FeedsLag(std::string_view text) const {
  if (depends_on_.seq == 0 || depends_on_.seq <= ShownByFeeds(host_.store()).seq) return false;
  bool reads = false;
  const Status read = VisitCall(text, [&](std::span<const std::string_view> words, bool) {
    const CommandEntry* const command = CommandOf(words);
    reads = reads || (command != nullptr && ReadsFeeds(session_, *command));
  });
  CELLAR_ASSERT(read.ok());  // the link has checked it
  return reads;
}

// As long as at the client's own node.
bool CommandServant::WaitsTooLong() {
  const int64_t now = host_.clock().MonotonicMicros();
  if (lags_since_micros_ == 0) lags_since_micros_ = now;
  if (now - lags_since_micros_ >= host_.services().config.cluster_wait * 1000) {
    lags_since_micros_ = 0;
    return true;
  }
  keeper_.AskForSync(lags_since_micros_);
  return false;
}

// What waits for no record may have been read in any that is released.
void CommandServant::NoteDependence() {
  const Lsn depends_on = session_.gates.empty() ? host_.released_lsn() : session_.gates.back().lsn;
  depends_on_ = std::max(depends_on_, depends_on);
  session_.gate_grows = false;  // each call has a gate of its own: none waits for a later one
}

// Nodes of a version before the users of a set do not know that frame, and would close the link.
std::string_view CommandServant::keyspace() const {
  const SetNode* const set = host_.replication().set();
  return set != nullptr && set->may_have_users() ? session_.keyspace : std::string_view();
}

bool CommandServant::EndIfWaiting() {
  if (session_.task == nullptr || !session_.output.empty()) return false;
  if (!session_.task->work->Unblock(UnblockReason::kTimeout)) return false;
  session_.task->work->Abandon();
  session_.task.reset();
  return true;
}

std::string_view CommandServant::Released() {
  const Lsn released = keeper_.released();
  size_t passed = 0;
  size_t bytes = session_.output.size();
  for (const ReplyGate& gate : session_.gates) {
    if (gate.lsn > released) {
      bytes = gate.position;
      break;
    }
    ++passed;
  }
  session_.gates.erase(session_.gates.begin(),
                       session_.gates.begin() + static_cast<std::ptrdiff_t>(passed));
  return session_.output.view().substr(head_, bytes - head_);
}

// What is sent is moved away once it is as much as what is left: a long reply is not moved for each
// of its parts.
void CommandServant::Sent(size_t bytes) {
  OutputBuffer& output = session_.output;
  sent_bytes_ += bytes;
  head_ += bytes;
  CELLAR_ASSERT(head_ <= output.size());
  if (2 * head_ >= output.size()) {
    for (ReplyGate& gate : session_.gates) gate.position -= head_;
    if (head_ == output.size() && output.capacity() > Session::kOutputPauseBytes) {
      output.Free();
    } else {
      output.Replace(0, std::exchange(head_, 0), {});
    }
    head_ = 0;
  }
  session_.WakeTask();  // one that writes its reply in parts may go on
}

void CommandServant::Step(const TaskBudget& budget) {
  const int64_t before_micros = LastStep();
  (void)host_.dispatcher().StepTask(session_, budget);
  NoteDependence();
  NoteWritten(before_micros);
}

int64_t CommandServant::LastStep() const {
  return tells_ ? host_.store().journal().last_commit_micros() : 0;
}

void CommandServant::NoteWritten(int64_t before_micros) {
  if (!tells_) [[likely]]
    return;
  const int64_t last_micros = LastStep();
  if (last_micros == before_micros) return;
  const Lsn last = host_.store().last_lsn();
  if (!written_.empty() && written_.back().steps.last_micros == before_micros) {
    written_.back() = {{written_.back().steps.first_micros, last_micros}, last};
    return;
  }
  if (written_.size() == kWrittenMax) written_.pop_front();
  written_.push_back({{before_micros + 1, last_micros}, last});
}

bool CommandServant::TakeWritten(int64_t* told_micros, std::vector<WrittenSteps>* steps) {
  if (!is_to_tell_) [[likely]]
    return false;
  while (!written_.empty() && written_.front().last <= keeper_.released()) {
    steps->push_back(written_.front().steps);
    written_.pop_front();
  }
  // Who is the owner of nothing more than that writes behind the last step.
  *told_micros = written_.empty() ? host_.store().journal().last_commit_micros()
                                  : written_.front().steps.first_micros - 1;
  is_to_tell_ = !written_.empty() || session_.task != nullptr;
  return true;
}

bool CommandServant::Unblock(UnblockHow how) {
  const UnblockReason reason =
      how == UnblockHow::kError ? UnblockReason::kError : UnblockReason::kTimeout;
  if (session_.task == nullptr || !session_.task->work->Unblock(reason)) return false;
  host_.WakeTasks();
  return true;
}

}  // namespace cellar
