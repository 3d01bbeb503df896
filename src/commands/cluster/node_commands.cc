// See node_commands.h.
//
// The command is carried out at the node as one of the same user that came to it, whether the node
// leads or not, and judged there. Only commands about a node itself are taken: what concerns tables
// any node passes on by itself, and what concerns a connection has none there.
#include "commands/cluster/node_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/text/ascii.h"
#include "base/text/quote.h"
#include "cluster/call_frames.h"
#include "cluster/set_directory.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/catalog/command_table.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/reply_reader.h"
#include "commands/reports/cluster_report.h"
#include "commands/session/command_context.h"
#include "commands/session/remote_calls.h"
#include "commands/session/services.h"
#include "commands/session/task.h"

namespace cellar {
namespace {

constexpr int64_t kNodePatienceMicros{2'000'000};

struct AskedNode {
  uint64_t node;
  std::string address;  // h:p
};

class NodesTask final : public Task {
 public:
  enum class Form : uint8_t { kOne, kMap, kJoined };

  NodesTask(CommandContext& ctx, std::vector<AskedNode> nodes, const std::string& text, Form form)
      : host_(ctx.host),
        form_(form),
        deadline_micros_(ctx.host.clock().MonotonicMicros() + kNodePatienceMicros) {
    RemoteCalls& remote = *host_.services().remote;
    for (AskedNode& node : nodes)
      asked_.push_back({std::move(node.address), remote.AskNode(ctx.session, node.node, text), {}});
  }
  ~NodesTask() override {
    for (const Asked& each : asked_)
      if (each.ticket) host_.services().remote->Forget(*each.ticket);
  }

  TaskProgress Step(TaskContext& context) override {
    const bool late = host_.clock().MonotonicMicros() >= deadline_micros_;
    bool waits = false;
    for (Asked& each : asked_) {
      if (!each.ticket) continue;
      Take(&each, late || context.budget.unlimited());
      waits = waits || each.ticket;
    }
    if (waits) return TaskProgress::kWaiting;
    if (form_ == Form::kJoined) {
      Join(context);
      return TaskProgress::kDone;
    }
    if (form_ == Form::kOne) {
      const std::string& reply = asked_.front().reply;
      if (reply.starts_with('-'))
        context.Fail(ErrorLineOf(reply));
      else
        context.reply.Raw(reply);
      return TaskProgress::kDone;
    }
    context.reply.Map(asked_.size());
    for (const Asked& each : asked_) {
      context.reply.Bulk(each.address);
      context.reply.Raw(each.reply);
    }
    return TaskProgress::kDone;
  }
  size_t memory_bytes() const override {
    size_t bytes = 0;
    for (const Asked& each : asked_) bytes += sizeof(each) + each.reply.capacity();
    return bytes;
  }

 private:
  struct Asked {
    std::string address;
    std::optional<uint64_t> ticket;
    std::string reply;
  };

  void Join(TaskContext& context) {
    std::string elements;
    uint64_t count = 0;
    for (const Asked& each : asked_) {
      uint64_t more = 0;
      ReplyReader reader(each.reply);
      if (each.reply.starts_with('-')) return context.Fail(ErrorLineOf(each.reply));
      if (!reader.Array(&more)) continue;
      count += more;
      elements += std::string_view(each.reply).substr(reader.position());
    }
    if (elements.empty()) return context.reply.Raw(asked_.front().reply);
    context.reply.Array(count);
    context.reply.Raw(elements);
  }

  void Take(Asked* asked, bool late) {
    RemoteCalls& remote = *host_.services().remote;
    const RemoteCalls::Answer& answer = remote.AnswerTo(*asked->ticket);
    if (answer.state == RemoteCalls::State::kPending && !late) return;
    asked->reply = answer.state == RemoteCalls::State::kAnswered
                       ? answer.bytes
                       : fmt::format("-CLUSTERDOWN {} does not answer{}\r\n", asked->address,
                                     answer.state == RemoteCalls::State::kFailed
                                         ? ""
                                         : "; whether it has done it nobody can say");
    remote.Forget(*asked->ticket);
    asked->ticket.reset();
  }

  Host& host_;
  const Form form_;
  const int64_t deadline_micros_;
  std::vector<Asked> asked_;
};

// Of a node itself, and not of a connection to it.
bool IsOfNode(const CommandEntry& command) {
  constexpr std::string_view kNot[]{"monitor", "shutdown", "sync",      "psync",
                                    "reset",   "failover", "replicaof", "slaveof"};
  constexpr std::string_view kToo[]{"ping",         "acl|log",      "client|list",
                                    "client|kill",  "client|pause", "client|unpause",
                                    "cluster|info", "cluster|sets"};
  const auto is_among = [&command](std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), command.full_name) != names.end();
  };
  if (is_among(kToo)) return true;
  return command.reach == CommandReach::kNode && command.row->group == "server" &&
         command.row->keys.none() && !is_among(kNot);
}

// Null: it has been answered.
const CommandEntry* FindOfNode(CommandContext& ctx, Arguments words) {
  const CommandEntry* command = ctx.host.services().commands.Find(words[0]);
  if (command != nullptr && !command->subcommands.empty())
    command = words.size() < 2 ? nullptr : CommandTable::FindSubcommand(*command, words[1]);
  if (command != nullptr && IsOfNode(*command)) return command;
  ctx.Fail(fmt::format("ERR CLUSTER ON takes commands about a node, such as INFO or CONFIG, not {}",
                       Quote(words[0])));
  return nullptr;
}

std::string AddressOf(const ClusterMember& member) {
  return fmt::format("{}:{}", member.host, member.port);
}

}  // namespace

bool IsOfAllNodes(const CommandContext& ctx) {
  return ctx.host.routes() && ctx.host.services().remote != nullptr &&
         !EqualsIgnoreCase(ctx.args.back(), "LOCAL");
}

bool AskAllNodes(CommandContext& ctx) {
  if (!IsOfAllNodes(ctx)) return false;
  SetDirectory sets = ctx.host.services().cluster_view.sets;
  (void)sets.Put(OwnClusterSet(ctx.host));
  std::vector<AskedNode> nodes;
  for (const auto& [number, set] : sets.sets())
    for (const ClusterMember& member : set.members)
      nodes.push_back({member.node, AddressOf(member)});
  std::vector<std::string_view> words(ctx.args.begin(), ctx.args.end());
  words.emplace_back("LOCAL");
  ctx.Continue(
      std::make_unique<NodesTask>(ctx, std::move(nodes), CallOf(words), NodesTask::Form::kJoined));
  return true;
}

void CmdClusterOn(CommandContext& ctx) {
  if (!ClusterPart::IsOfSet(ctx)) return;
  const std::string_view target = ctx.args[2];
  const bool all = EqualsIgnoreCase(target, "ALL");
  const bool one_set = EqualsIgnoreCase(target, "SET");
  const size_t first_word = one_set ? 4 : 3;
  if (ctx.args.size() <= first_word) return ctx.SyntaxError();
  uint64_t number = 0;
  if (one_set) {
    ASSIGN_OR_REPLY(ctx, number, ParseCount("set", ctx.args[3], 0));
  }
  const Arguments words = ctx.args.subspan(first_word);
  if (FindOfNode(ctx, words) == nullptr) return;
  SetDirectory sets = ctx.host.services().cluster_view.sets;
  (void)sets.Put(OwnClusterSet(ctx.host));
  std::vector<AskedNode> nodes;
  for (const auto& [set_number, set] : sets.sets()) {
    if (one_set && set_number != number) continue;
    for (const ClusterMember& member : set.members)
      if (all || one_set || AddressOf(member) == target ||
          fmt::format("{:016x}", member.node) == target)
        nodes.push_back({member.node, AddressOf(member)});
  }
  if (nodes.empty())
    return ctx.Fail(one_set ? fmt::format("ERR no set {}", number)
                            : "ERR no node " + Quote(target));
  const auto form = all || one_set ? NodesTask::Form::kMap : NodesTask::Form::kOne;
  ctx.Continue(std::make_unique<NodesTask>(ctx, std::move(nodes), CallOf(words), form));
}

}  // namespace cellar
