// See set_users.h.
#include "commands/clients/set_users.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/os/log.h"
#include "base/text/quote.h"
#include "commands/acl/acl.h"
#include "commands/catalog/command_table.h"
#include "commands/clients/acl_sessions.h"
#include "commands/config/config.h"
#include "commands/session/command_context.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "commands/session/task.h"
#include "replica/replication.h"
#include "replica/set_node.h"

namespace cellar {
namespace {

constexpr int64_t kPatienceMicros{10'000'000};

// What is to be done to the users that there are.
struct UsersChange {
  std::string name;                // of the one that is made or changed; empty: some are deleted
  std::vector<std::string> words;  // its rules, or who is deleted
};

// A user, as a line of an aclfile.
struct UserLine {
  std::string name;
  std::string text;
};

std::string NameOf(std::string_view line) {
  const size_t space = line.find(' ');
  if (space != std::string_view::npos) line.remove_prefix(space + 1);
  return std::string(line.substr(0, line.find(' ')));
}

std::vector<UserLine> LinesOf(std::string_view text) {
  std::vector<UserLine> lines;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    lines.push_back({NameOf(line), std::string(line)});
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  }
  return lines;
}

std::vector<UserLine> LinesOf(const Acl& acl) {
  std::vector<UserLine> lines;
  for (const auto& [name, user] : acl.users()) lines.push_back({name, Acl::Line(*user)});
  return lines;
}

std::string TextOf(const std::vector<UserLine>& lines) {
  std::string text;
  for (const UserLine& line : lines) text.append(line.text).append("\n");
  return text;
}

// What the next change is made of: the newest users that the log has, committed or not, and
// whatever this node goes by; if it has none, this node's own.
std::vector<UserLine> NewestLines(Host& host) {
  const std::string& logged = host.replication().set()->users();
  return logged.empty() ? LinesOf(host.services().acl) : LinesOf(logged);
}

// All users as they are to be, and how many are gone. Lines that nobody has changed stay as they
// are, also those that a later version has written.
Result<std::string> Carried(Host& host, const UsersChange& change, int64_t* deleted) {
  const Acl& acl = host.services().acl;
  std::vector<UserLine> lines = NewestLines(host);
  if (change.name.empty()) {
    *deleted = static_cast<int64_t>(std::erase_if(lines, [&change](const UserLine& line) {
      return std::find(change.words.begin(), change.words.end(), line.name) != change.words.end();
    }));
    return TextOf(lines);
  }
  const auto known = std::find_if(lines.begin(), lines.end(), [&change](const UserLine& line) {
    return line.name == change.name;
  });
  Acl::Users before;
  if (known != lines.end()) {
    ASSIGN_OR_RETURN(before, acl.ReadFile(known->text, "the replica set"));
  }
  ASSIGN_OR_RETURN(const User user,
                   acl.Changed(before.empty() ? nullptr : before.begin()->second.get(), change.name,
                               {change.words.begin(), change.words.end()}));
  if (known != lines.end()) {
    known->text = Acl::Line(user);
  } else {
    lines.push_back({user.name, Acl::Line(user)});
  }
  return TextOf(lines);
}

// One change comes behind the other: it waits until the one before is committed, and ends when its
// own is, so that what the connection asks next sees it.
class UsersTask final : public Task {
 public:
  UsersTask(Host& host, UsersChange change, int64_t deadline_micros)
      : host_(host), change_(std::move(change)), deadline_micros_(deadline_micros) {}

  TaskProgress Step(TaskContext& context) override {
    SetNode* const set = host_.replication().set();
    if (set == nullptr || !set->open()) {
      if (written_ != Lsn{}) {
        context.Fail("ERR the leader has changed: whether the users have is not known");
        return TaskProgress::kDone;
      }
      context.Fail("CLUSTERDOWN no leader: " +
                   (set == nullptr ? std::string("no set") : set->NoLeaderText()));
      return TaskProgress::kDone;
    }
    if (written_ == Lsn{} && Write(*set, context) == TaskProgress::kDone)
      return TaskProgress::kDone;
    if (written_ == Lsn{} || !IsInForce(*set)) return TaskProgress::kWaiting;
    context.depends_on = written_;
    if (const std::optional<std::string> lacks = WhoLacks(); lacks) {
      if (context.now_micros < deadline_micros_ && !context.budget.unlimited())
        return TaskProgress::kWaiting;
      context.Fail("TRYAGAIN the users are changed; " + *lacks + " does not go by them yet");
      return TaskProgress::kDone;
    }
    if (change_.name.empty()) {
      context.reply.Integer(deleted_);
    } else {
      context.reply.Ok();
    }
    return TaskProgress::kDone;
  }

 private:
  // kDone: there is nothing to wait for.
  TaskProgress Write(SetNode& set, TaskContext& context) {
    const Result<std::string> text = Carried(host_, change_, &deleted_);
    if (!text.ok()) {
      context.Fail(text.status());
      return TaskProgress::kDone;
    }
    if (change_.name.empty() && deleted_ == 0) {
      context.reply.Integer(0);
      return TaskProgress::kDone;
    }
    const Result<Lsn> at = set.ChangeUsers(*text);
    const bool later = !at.ok() && at.status().code() == ErrorCode::kTryAgain &&
                       context.now_micros < deadline_micros_ && !context.budget.unlimited();
    if (!at.ok() && !later) {
      context.Fail(at.status());
      return TaskProgress::kDone;
    }
    if (at.ok()) written_ = *at;
    return TaskProgress::kWaiting;
  }

  bool IsInForce(const SetNode& set) const {
    const Services& services = host_.services();
    return set.set().commit().seq >= written_.seq &&
           (!services.config.cluster_acl || services.acl.taken_over().index >= written_.seq);
  }

  // In a cluster all nodes that can be asked know of it before its OK leaves.
  std::optional<std::string> WhoLacks() const {
    const Services& services = host_.services();
    if (services.director == nullptr || !services.config.cluster_acl) return std::nullopt;
    return services.director->WhoLacksUsers();
  }

  Host& host_;
  const UsersChange change_;
  const int64_t deadline_micros_;
  Lsn written_;
  int64_t deleted_{0};
};

// What is wrong is told at once.
void Begin(CommandContext& ctx, UsersChange change) {
  if (ctx.session.exec_running)
    return ctx.Fail("ERR users of a replica set are not changed inside a transaction");
  const SetNode& set = *ctx.host.replication().set();
  if (!set.open()) {
    const auto leader = set.KnownLeader();
    if (!leader) return ctx.Fail("CLUSTERDOWN no leader: " + set.NoLeaderText());
    return ctx.Fail(fmt::format("READONLY users belong to the replica set, and the leader is {}:{}",
                                leader->host, leader->port));
  }
  REPLY_IF_ERROR(ctx, set.CheckUsersLevel());
  int64_t deleted = 0;
  REPLY_IF_ERROR(ctx, Carried(ctx.host, change, &deleted).status());
  ctx.Continue(
      std::make_unique<UsersTask>(ctx.host, std::move(change), ctx.now_micros + kPatienceMicros));
}

// From here on whoever the users let in is let in.
void LetIn(Host& host) {
  if (!std::exchange(host.services().acl.taken_over().holds, false)) return;
  host.ForEachSession([&host](Session& session) {
    const bool waits = !session.authenticated && session.peer == PeerRole::kNone &&
                       session.user_name == kDefaultUser;
    if (waits) BecomeDefaultUser(host, session);
  });
}

}  // namespace

bool SetUsers::AreOfSet(Host& host) {
  const SetNode* const set = host.replication().set();
  return host.services().config.cluster_acl && set != nullptr && set->may_have_users();
}

bool SetUsers::AreLogged(Host& host) {
  const SetNode* const set = host.replication().set();
  return host.services().config.cluster_acl && set != nullptr &&
         (!set->users().empty() || !host.services().acl.taken_over().text.empty());
}

bool SetUsers::AreKnown(Host& host) {
  const SetNode* const set = host.replication().set();
  return !host.services().config.cluster_acl || set == nullptr || set->is_outside() ||
         host.services().acl.taken_over().seen;
}

bool SetUsers::IsChange(const CommandEntry& command) {
  return command.Is(CommandRole::kUserChange);
}

void SetUsers::Set(CommandContext& ctx) {
  const Arguments rules = ctx.args.subspan(3);
  Begin(ctx, {.name = std::string(ctx.args[2]), .words = {rules.begin(), rules.end()}});
}

void SetUsers::Delete(CommandContext& ctx) {
  const Arguments names = ctx.args.subspan(2);
  Begin(ctx, {.name = {}, .words = {names.begin(), names.end()}});
}

void SetUsers::Await(Host& host) {
  const Config& config = host.services().config;
  host.services().acl.taken_over().holds = config.cluster_acl && !config.cluster_nodes.empty();
}

// The log names other users only by a later record, but for a copy that was offered and did not
// come.
void SetUsers::TakeOver(Host& host) {
  Acl::TakenOver& taken = host.services().acl.taken_over();
  if (!host.services().config.cluster_acl) {
    taken = {.holds = taken.holds};
    return LetIn(host);
  }
  const SetNode& set = *host.replication().set();
  if (set.is_outside()) return LetIn(host);
  const SetMembers& members = set.committed_members();
  if (!taken.seen && !set.knows_users()) {
    // What is known to be committed may be older than what is in force. Other nodes, by which the
    // newer comes, log in by that: the files may lack what they log in with.
    if (members.users.empty() || members.index <= taken.index) return;
    taken.index = members.index;
    taken.text = members.users;
    return Install(host, taken.text, Sessions::kJudged);
  }
  if (taken.seen && members.index <= taken.index) return;
  // Who has come in by a file is no user of the set by its name alone.
  const bool is_first = !taken.seen || (taken.text.empty() && !set.open());
  const bool is_new = is_first || taken.text != members.users;
  taken.seen = true;
  taken.index = members.index;
  if (is_new) {
    taken.text = members.users;
    if (!taken.text.empty())
      Install(host, taken.text, is_first ? Sessions::kJudged : Sessions::kKept);
  }
  LetIn(host);
}

// A line that this version does not understand lets nobody in.
void SetUsers::Install(Host& host, const std::string& text, Sessions sessions) {
  Acl& acl = host.services().acl;
  std::set<std::string, std::less<>> named;
  std::vector<const User*> others;
  for (const UserLine& line : LinesOf(text)) {
    Result<Acl::Users> users = acl.ReadFile(line.text, "the replica set");
    if (!users.ok()) {
      Log(LogSeverity::kWarning, fmt::format("The user {} of the replica set is kept out: {}",
                                             Quote(line.name), users.status().text()));
      users = acl.ReadFile("user " + line.name + " off", "the replica set");
      if (!users.ok()) continue;
    }
    for (auto& [name, user] : *users) {
      named.insert(name);
      const User* const known = acl.Find(name);
      if (known != nullptr && known->Text() == user->Text()) continue;
      if (known != nullptr) others.push_back(known);  // it stays where it is
      std::vector<User> one;
      one.push_back(std::move(*user));
      PutUsers(host, std::move(one));
    }
  }
  if (sessions == Sessions::kJudged) EndUsers(host, others, UserEnd::kChanged);
  std::vector<std::string> gone;
  for (const auto& [name, user] : acl.users())
    if (name != kDefaultUser && !named.contains(name)) gone.push_back(name);
  // Sessions point to them until EndUsers has given them another one.
  std::vector<std::unique_ptr<User>> removed;
  std::vector<const User*> victims;
  for (const std::string& name : gone) {
    removed.push_back(acl.Remove(name));
    victims.push_back(removed.back().get());
  }
  EndUsers(host, victims, UserEnd::kGone);
}

void SetUsers::Found(Host& host) {
  if (!AreOfSet(host) || AreLogged(host)) return;
  SetNode& set = *host.replication().set();
  const Acl& acl = host.services().acl;
  if (!set.open() || acl.IsPlain()) return;
  if (set.ChangeUsers(TextOf(LinesOf(acl))).ok())
    Log(LogSeverity::kNotice, "The users of this node are those of the replica set from now on");
}

}  // namespace cellar
