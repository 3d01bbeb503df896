// CommandLinks: commands of one client that several sets carry out beside one another.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "cluster/lost_rows.h"
#include "commands/catalog/command_table.h"
#include "commands/cluster/reply_reader.h"
#include "commands/config/config.h"
#include "commands/session/services.h"
#include "replica/set_node.h"
#include "server/command_link_ends.h"
#include "server/command_links.h"
#include "server/passed_client.h"

namespace cellar {
namespace {

// Of an array of texts, which are views of it.
std::vector<std::string_view> WordsOf(std::string_view request) {
  ReplyReader reader(request);
  uint64_t count = 0;
  const bool is_array = reader.Array(&count);
  CELLAR_ASSERT(is_array);
  std::vector<std::string_view> words(static_cast<size_t>(count));
  for (std::string_view& word : words) {
    const bool is_text = reader.Bulk(&word);
    CELLAR_ASSERT(is_text);
  }
  return words;
}

}  // namespace

// Whoever tracks or watches is told of things in their order with replies.
bool CommandLinks::IsPlain(const Session& session, const CommandEntry& command) {
  return command.reach == CommandReach::kRow && command.Is(CommandRole::kNone) &&
         !command.Has(kBlocking) && session.transaction == nullptr && session.tracking == nullptr &&
         session.reply_mode == ReplyMode::kOn && !session.switches.redirects;
}

bool CommandLinks::GoesBeside(const PassedClient& client, const Session& session,
                              const CommandEntry& command, const CommandRoute& route) const {
  return client.under_way() && client.takes_beside() && route.table != nullptr &&
         route.Is(CommandRoute::Kind::kSet) && route.set == own_set() && set()->open() &&
         IsPlain(session, command) && !client.has_watched();
}

bool CommandLinks::MayGoBeside(PassedClient* client, const Session& session,
                               const CommandEntry& command, const CommandRoute& route) {
  if (!host_.routes()) return false;
  if (!client->under_way()) client->window.Begin();
  return route.Is(CommandRoute::Kind::kSet) && IsPlain(session, command) &&
         !client->has_watched() && client->window.Note(route.table, MapOf(host_).version());
}

void CommandLinks::NoteBack(PassedClient* client) {
  if (std::find(sent_back_.begin(), sent_back_.end(), client) == sent_back_.end())
    sent_back_.push_back(client);
}

void CommandLinks::NoteUnsent(PassedClient* client) {
  if (std::exchange(client->unsent, true)) return;
  unsent_.push_back(client);
}

void CommandLinks::ForgetBeside(PassedClient* client) {
  if (std::exchange(client->unsent, false)) std::erase(unsent_, client);
  if (!sent_back_.empty()) [[unlikely]]
    std::erase(sent_back_, client);
}

void CommandLinks::SendUnsent() {
  for (PassedClient* client : std::exchange(unsent_, {})) {
    client->unsent = false;
    host_.ScheduleFlush(client->connection().session);
  }
}

// Not while this node leaves, nor while its store is taken from another one.
void CommandLinks::AskAllAgain() {
  if (sent_back_.empty() || leave_by_micros_ != 0 || host_.loading()) [[likely]]
    return;
  const std::vector<PassedClient*> clients = sent_back_;
  for (PassedClient* client : clients) AskAgain(client);
}

// All that is asked at once was found by the same map.
void CommandLinks::AskAgain(PassedClient* client) {
  if (client->order.pending() || client->connection().session.ended()) return;
  client->window.Begin();
  while (client->order.has_back() && AskOneAgain(client)) {
  }
  if (client->order.has_back()) return;
  client->back_since_micros = 0;
  client->misled = false;
  std::erase(sent_back_, client);
}

bool CommandLinks::AskOneAgain(PassedClient* client) {
  const Session& session = client->connection().session;
  const std::vector<std::string_view> words = WordsOf(client->order.back());
  const CommandEntry* const command = host_.services().commands.Find(words[0]);
  CELLAR_ASSERT(command != nullptr);  // it has been passed on before
  CommandRoute route = RouteOf(host_, session, *command, words);
  if (route.Is(CommandRoute::Kind::kLost)) {
    client->RefuseBack(route.error);
    return true;
  }
  const CommandPassing::Doing doing{.writes = command->Has(kWrite),
                                    .reads = command->Has(kReadonly)};
  const uint64_t number = IsAway(route) ? route.set : kOwnSet;
  const bool is_known = !route.Is(CommandRoute::Kind::kUnknown);
  const int64_t patience_micros = host_.services().config.cluster_wait * 1000;
  if (now() - client->back_since_micros >= patience_micros) {
    client->RefuseBack(is_known ? LateText(*client, number, doing) : route.error);
    return true;
  }
  if (!is_known) return false;
  EntryLink* const link = AnyLinkTo(route.Is(CommandRoute::Kind::kSet) ? route.set : own_set());
  PassedChannel& channel = client->ChannelTo(number);
  const bool may_pass = link != nullptr && link->MayPass(channel) && link->MakeRoom(channel);
  if (!may_pass) return false;
  // If its table is gone, there is nothing whose order it could have.
  (void)client->window.Note(route.table, MapOf(host_).version());
  PutCall(link, &channel, session, *command, words, doing);
  client->order.AskedAgain(&channel);
  ++figures_.calls_out;
  return true;
}

}  // namespace cellar
