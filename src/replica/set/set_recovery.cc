// See set_recovery.h.
#include "replica/set/set_recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "replica/links/identity_file.h"
#include "replica/set/entry_log.h"
#include "replica/set/member_file.h"
#include "replica/set/refused.h"
#include "replica/set/set_members.h"
#include "replica/set/set_message.h"
#include "store/store.h"

namespace cellar {
namespace {

std::string_view KindWord(MemberKind kind) {
  constexpr std::string_view kWords[] = {"joining", "voter", "witness", "standby"};
  return kWords[static_cast<size_t>(kind)];
}

std::string TextOf(const SetMember& member) {
  return fmt::format("{}:{} ({:016x}, {})", member.host, member.port, member.id,
                     KindWord(member.kind));
}

std::string ListOf(const SetMembers& members) {
  std::vector<std::string> texts;
  for (const SetMember& member : members.list) texts.push_back(TextOf(member));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Status NoMember(const std::string& directory) {
  return Refused(directory + " is no member of a replica set: there is nothing to recover from");
}

// A clause for what is in the log and not known to be on a majority.
std::string OpenText(const CheckedMember& member) {
  if (member.last.seq <= member.committed.seq) return "all is committed";
  return fmt::format("committed up to {}, as far as it knows; {} behind it may be, or not",
                     FormatLsn(member.committed), member.last.seq - member.committed.seq);
}

// What is lost and what is not, before and when it is done.
void Warn(const Identity& identity, const SetMembers& members, std::ostream& out) {
  out << "\n"
         "*** ONLY FOR A REPLICA SET WHOSE MAJORITY IS LOST FOR GOOD ***\n"
         "What only the lost nodes had is lost, also what they have acknowledged.\n"
         "Of the nodes that are left take the one whose last record has the highest number.\n";
  out << fmt::format("This one is {:016x} of set {:016x}: {}\n", identity.node, identity.cluster,
                     ListOf(members));
  out << "It becomes the only member of a new set. Every other node of the old one must be\n"
         "emptied before it is started again; then it joins.\n\n";
}

// A new id, which no node of another set has.
uint64_t RandomId() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32 | device()) | 1;
}

// In the new set no vote of the old one counts: where that has come near the end of all terms, what
// the log says is enough. From the ceiling on terms are followed in steps of one, and there are
// more of them than elections in decades; it takes damage to come near their end.
Result<uint32_t> NextTerm(uint32_t stored, uint32_t in_log) {
  if (in_log > UINT32_MAX - kTermReach) {
    return Refused(
        fmt::format("its log has come to term {}, which leaves no room for elections: start it "
                    "without cluster-nodes, and copy its data with cellar-export",
                    in_log));
  }
  return (stored < kTermCeiling ? std::max(stored, in_log) : in_log) + 1;
}

StoreOptions OptionsOf(const std::string& directory, std::string* members) {
  StoreOptions options;
  options.journal.directory = directory;
  options.journal.sync_policy = SyncPolicy::kAlways;
  options.journal.wake = [] {};
  options.journal.set_member = true;
  options.journal.members = [members] { return *members; };
  options.following = true;
  return options;
}

}  // namespace

Status TellOfMember(FileSystem& files, const std::string& directory, const CheckedMember& member,
                    std::ostream& out) {
  ASSIGN_OR_RETURN(const std::optional<Identity> identity, IdentityFile::Read(files, directory));
  if (!identity && member.members.empty()) return Status::Ok();
  if (!identity) {
    return Status::Error(ErrorCode::kCorruption,
                         directory + " belongs to a member of a replica set, but its " +
                             std::string(kReplicaFileName) +
                             " is gone: empty it to join the set as a new node");
  }
  out << fmt::format(
      "{}: ok, node {:016x} of {:016x}, term {}, {}\n", kReplicaFileName, identity->node,
      identity->cluster, identity->term,
      identity->vote == 0 ? "no vote" : fmt::format("vote for {:016x}", identity->vote));
  if (member.members.empty()) return Status::Ok();
  SetMembers members;
  if (!DecodeMembers(member.members, &members))
    return Status::Error(ErrorCode::kCorruption, "the log names members that cannot be read");
  out << fmt::format("replica set: feature level {}, {}\n", members.feature_level, ListOf(members));
  if (members.Find(identity->node) == nullptr) out << "this node is not one of them\n";
  out << fmt::format("last record {}; {}\n", FormatLsn(member.last), OpenText(member));
  return Status::Ok();
}

Status LookForRecovery(FileSystem& files, const std::string& directory, std::ostream& out) {
  Engine engine;
  CheckedMember member;
  RETURN_IF_ERROR(CheckStore(files, directory, CheckMode::kLook, engine, out, &member));
  RETURN_IF_ERROR(TellOfMember(files, directory, member, out));
  ASSIGN_OR_RETURN(const std::optional<Identity> identity, IdentityFile::Read(files, directory));
  SetMembers members;
  if (!identity || !DecodeMembers(member.members, &members)) return NoMember(directory);
  Warn(*identity, members, out);
  out << "Nothing has been changed. `cellar --replica-recover " << directory
      << " --yes` does it.\n";
  return Status::Ok();
}

// All refusals come before the first write. From there on the order makes a crash harmless (see the
// header): it leaves a node that stands for no set, and the recovery can be run again.
Status RecoverSet(FileSystem& files, Clock& clock, const std::string& directory,
                  std::ostream& out) {
  ASSIGN_OR_RETURN(const std::optional<Identity> known, IdentityFile::Read(files, directory));
  if (!known) return NoMember(directory);
  std::string payload;
  const auto no_progress = [](const LoadProgress&) { return Status::Ok(); };
  ASSIGN_OR_RETURN(const auto store,
                   Store::Open(OptionsOf(directory, &payload), files, clock, no_progress));
  if (!store->names_members()) return NoMember(directory);
  const std::optional<EntryLog> log = EntryLog::Of(store->TakeShape());
  if (!log) return Status::Error(ErrorCode::kCorruption, "its members cannot be read");
  const SetMember* const own = log->members().Find(known->node);
  if (own == nullptr) {
    return Refused(fmt::format("{} is no member of its set any more: it may lack much. It names {}",
                               directory, ListOf(log->members())));
  }
  if (store->holds_log_only())
    return Refused(directory + " belongs to a witness, which holds no data: take another node");
  if (log->members().feature_level > kFeatureLevel)
    return Refused("the set has come to a feature level that this version does not know");
  Warn(*known, log->members(), out);
  Identity identity = *known;
  identity.cluster = RandomId();
  ASSIGN_OR_RETURN(identity.term, NextTerm(known->term, store->last_lsn().epoch));
  identity.vote = 0;
  ASSIGN_OR_RETURN(const auto file, IdentityFile::OpenAnew(files, directory, identity));
  RETURN_IF_ERROR(file->Write(identity));
  // What was acknowledged in the old set's terms says nothing in the new one's.
  RETURN_IF_ERROR(ForgetPast(files, directory));
  // The rest of the log counts from here on.
  RETURN_IF_ERROR(store->ApplyCommitted(store->last_lsn(), INT64_MAX).status());
  SetMembers alone{.index = store->last_lsn().seq + 1,
                   .feature_level = log->members().feature_level,
                   .list = {*own},
                   .users = log->members().users};
  alone.list[0].kind = MemberKind::kVoter;
  payload = EncodeMembers(alone);
  RETURN_IF_ERROR(store->journal().Reserve(payload.size() + kMarkBytesMax));
  store->AppendOwn(RecordKind::kMembers, identity.term, payload);
  CELLAR_ASSERT(store->last_lsn().seq == alone.index);
  RETURN_IF_ERROR(store->ReloadCommitted(store->last_lsn()));
  RETURN_IF_ERROR(store->journal().Close());
  out << fmt::format(
      "Done: set {:016x}, with {} alone, up to record {}.\nStart it with cluster-nodes that list "
      "it "
      "and the others, which have been emptied.\n",
      identity.cluster, TextOf(alone.list[0]), FormatLsn(store->last_lsn()));
  return Status::Ok();
}

}  // namespace cellar
