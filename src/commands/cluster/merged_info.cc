// See merged_info.h.
#include "commands/cluster/merged_info.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/call_frames.h"
#include "commands/arguments/feed_arguments.h"
#include "commands/cluster/merged_feed.h"
#include "commands/cluster/reply_reader.h"
#include "commands/feeds/feed_access.h"
#include "commands/session/command_context.h"
#include "commands/session/remote_calls.h"
#include "commands/session/services.h"
#include "engine/feeds/merged_id.h"
#include "store/store.h"

namespace cellar {
namespace {

// Fields of which the values of all sets are added, the first id counts, or the last one. Others
// are the same everywhere.
constexpr std::string_view kSums[]{"length", "entries-added", "bytes"};
constexpr std::string_view kFirsts[]{"first", "recorded-first-entry-id"};
constexpr std::string_view kLasts[]{"last", "dropped", "last-generated-id", "max-deleted-entry-id"};

template <size_t count>
bool IsOne(const std::string_view (&names)[count], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// An entry in front of `reply`: its id, and its fields as they are.
bool ReadEntry(std::string_view reply, FeedId* id, std::string_view* fields) {
  ReplyReader reader(reply);
  uint64_t two = 0;
  std::string_view text;
  if (!reader.Array(&two) || two != 2 || !reader.Bulk(&text) || !ReadOwnId(text, id)) return false;
  *fields = reply.substr(reader.position());
  return true;
}

// As long as a set may be away before it is told that it holds the feed back.
constexpr int64_t kAwayMicros{1'000'000};

class MergedInfoTask final : public Task {
 public:
  // `home`: the set that has the feed's groups.
  MergedInfoTask(CommandContext& ctx, std::string_view feed, uint64_t home)
      : host_(ctx.host),
        of_feed_(ctx.command.full_name != "xinfo|stream"),
        home_(home),
        deadline_micros_(ctx.host.clock().MonotonicMicros() + kAwayMicros) {
    for (const auto& [number, set] : host_.services().cluster_view.sets.sets()) {
      const std::string name = std::string(feed) + "@" + std::to_string(number);
      Part& part = parts_[number];
      Ask(ctx.session, number, {of_feed_ ? "FEED" : "XINFO", of_feed_ ? "INFO" : "STREAM", name},
          &part.info);
      Ask(ctx.session, number, {"FEED", "RESOLVED", name, "NOW"}, &part.resolved);
    }
    const std::string name = std::string(feed) + "@" + std::to_string(home_);
    Ask(ctx.session, home_, {"FEED", "ENTRIES", name}, &groups_);
  }
  ~MergedInfoTask() override {
    for (auto& [number, part] : parts_) {
      for (Asked* const asked : {&part.info, &part.resolved})
        if (!asked->answered) host_.services().remote->Forget(asked->ticket);
    }
    if (!groups_.answered) host_.services().remote->Forget(groups_.ticket);
  }

  TaskProgress Step(TaskContext& context) override {
    context.depends_on = host_.store().schema_lsn();
    if (MergedFeed::RefusesExec(context)) return TaskProgress::kDone;
    bool waits = !Take(&groups_);
    for (auto& [number, part] : parts_) {
      waits = !Take(&part.info) || waits;
      waits = !Take(&part.resolved) || waits;
    }
    if (waits && host_.clock().MonotonicMicros() < deadline_micros_) return TaskProgress::kWaiting;
    std::string line("CLUSTERDOWN no set has answered");
    if (!Reply(context, &line)) context.Fail(line);
    return TaskProgress::kDone;
  }

 private:
  struct Asked {
    uint64_t ticket{0};
    bool answered{false};
    std::string reply;  // empty: its set is away
    std::string refusal;
  };
  struct Part {
    Asked info;
    Asked resolved;
    ReplyFields fields;
    std::optional<FeedId> resolved_id;
  };

  void Ask(Session& session, uint64_t set, const std::vector<std::string_view>& words,
           Asked* asked) {
    asked->ticket = host_.services().remote->Ask(session, set, CallOf(words), false);
  }

  bool Take(Asked* asked) {
    if (asked->answered) return true;
    RemoteCalls& remote = *host_.services().remote;
    const RemoteCalls::Answer& answer = remote.AnswerTo(asked->ticket);
    if (answer.state == RemoteCalls::State::kPending) return false;
    if (answer.state == RemoteCalls::State::kAnswered) {
      if (answer.bytes.starts_with('-'))
        asked->refusal = ErrorLineOf(answer.bytes);
      else
        asked->reply = answer.bytes;
    }
    asked->answered = true;
    remote.Forget(asked->ticket);
    const auto begins = [&](std::string_view word) { return asked->refusal.starts_with(word); };
    if (begins("CLUSTERDOWN") || begins("TRYAGAIN") || begins("LOADING")) asked->refusal.clear();
    return true;
  }

  // False: *line says why not.
  bool Read(std::string* line) {
    bool is_any = false;
    for (auto& [number, part] : parts_) {
      for (const Asked* const asked : {&part.info, &part.resolved}) {
        if (asked->refusal.empty()) continue;
        *line = asked->refusal;
        return false;
      }
      ReplyFields resolved;
      std::string_view text;
      FeedId id;
      const bool fits =
          (part.info.reply.empty() || ReadReplyFields(part.info.reply, &part.fields)) &&
          (part.resolved.reply.empty() ||
           (ReadReplyFields(part.resolved.reply, &resolved) && !resolved.empty() &&
            ReplyReader(resolved[0].second).Bulk(&text) && ReadOwnId(text, &id)));
      if (!fits) {
        *line = kSomethingElse;
        return false;
      }
      if (!part.resolved.reply.empty()) part.resolved_id = id;
      is_any = is_any || !part.fields.empty();
    }
    return is_any;
  }

  void ReplySum(ReplyWriter& reply, std::string_view name) const {
    uint64_t sum = 0;
    for (const auto& [number, part] : parts_) {
      uint64_t count = 0;
      if (part.fields.empty()) continue;
      // Who may not see it is told null by all.
      if (!ReplyReader(ValueOf(part.fields, name)).Unsigned(&count)) return reply.Null();
      sum += count;
    }
    reply.Unsigned(sum);
  }

  void ReplyId(ReplyWriter& reply, std::string_view name, bool last) const {
    FeedId found;
    for (const auto& [number, part] : parts_) {
      std::string_view text;
      FeedId own;
      if (!ReplyReader(ValueOf(part.fields, name)).Bulk(&text) || !ReadOwnId(text, &own) ||
          own == FeedId{})
        continue;
      const FeedId id = MergedIdOf(number, own);
      const bool is_it = found == FeedId{} || (last ? found < id : id < found);
      if (is_it) found = id;
    }
    reply.Bulk(found.text());
  }

  void ReplyEntry(ReplyWriter& reply, std::string_view name, bool last) const {
    FeedId found;
    std::string_view of_found;
    for (const auto& [number, part] : parts_) {
      FeedId own;
      std::string_view fields;
      if (!ReadEntry(ValueOf(part.fields, name), &own, &fields)) continue;
      const FeedId id = MergedIdOf(number, own);
      if (!of_found.empty() && (last ? id < found : found < id)) continue;
      found = id;
      of_found = fields;
    }
    if (of_found.empty()) return reply.Null();
    reply.Array(2);
    reply.Bulk(found.text());
    reply.Raw(of_found);
  }

  // Which set is behind, by more than a moment, and since when; of one that is away nobody knows.
  void ReplyHolding(ReplyWriter& reply, int64_t now_micros) const {
    int64_t resolved_micros = now_micros;
    std::optional<uint64_t> holding;
    bool is_away = false;
    for (const auto& [number, part] : parts_) {
      if (!part.resolved_id) {
        if (!is_away) holding = number;
        is_away = true;
        continue;
      }
      const int64_t micros = part.resolved_id->micros();
      if (!is_away && micros < resolved_micros && now_micros - micros > kAwayMicros)
        holding = number;
      resolved_micros = std::min(resolved_micros, micros);
    }
    reply.Bulk("resolved-ms");
    reply.Integer(is_away ? -1 : resolved_micros / 1000);
    reply.Bulk("held-back-by");
    reply.Integer(holding ? static_cast<int64_t>(*holding) : -1);
    reply.Bulk("held-back-s");
    reply.Integer(!holding || is_away ? -1 : (now_micros - resolved_micros) / 1'000'000);
  }

  // Nobody but its home knows.
  void ReplyGroups(ReplyWriter& reply) const {
    ReplyFields fields;
    uint64_t count = 0;
    if (!groups_.reply.empty()) (void)ReadReplyFields(groups_.reply, &fields);
    for (const auto& [name, value] : fields)
      if (name == "groups" && ReplyReader(value).Unsigned(&count)) return reply.Unsigned(count);
    reply.Null();
  }

  bool Reply(TaskContext& context, std::string* line) {
    if (!Read(line)) return false;
    const auto first = std::find_if(parts_.begin(), parts_.end(),
                                    [](const auto& part) { return !part.second.fields.empty(); });
    ReplyWriter& reply = context.reply;
    reply.Map(first->second.fields.size() + 3 + (of_feed_ ? 1 : 0));
    for (const auto& [name, value] : first->second.fields) {
      reply.Bulk(name);
      if (name == "groups")
        ReplyGroups(reply);
      else if (IsOne(kSums, name))
        ReplySum(reply, name);
      else if (IsOne(kFirsts, name) || IsOne(kLasts, name))
        ReplyId(reply, name, IsOne(kLasts, name));
      else if (name == "first-entry" || name == "last-entry")
        ReplyEntry(reply, name, name == "last-entry");
      else
        reply.Raw(value);
    }
    ReplyHolding(reply, context.now_micros);
    if (!of_feed_) return true;
    reply.Bulk("home");
    reply.Unsigned(home_);
    return true;
  }

  Host& host_;
  const bool of_feed_;
  const uint64_t home_;
  std::map<uint64_t, Part> parts_;
  Asked groups_;
  const int64_t deadline_micros_;
};

}  // namespace

void BeginMergedInfo(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const Feed* const feed, FindFeed(ctx, ctx.args[2]));
  const ClusterView& view = ctx.host.services().cluster_view;
  if (!view.KnowsSets(ctx.store().engine().cluster().set)) return ctx.Fail(view.kSetsUnknown);
  ctx.Continue(std::make_unique<MergedInfoTask>(ctx, ctx.args[2], feed->home.set));
}

}  // namespace cellar
