// See whole_groups.h.
#include "commands/cluster/whole_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/text/quote.h"
#include "cluster/call_frames.h"
#include "commands/arguments/feed_arguments.h"
#include "commands/cluster/merged_feed.h"
#include "commands/cluster/part_calls.h"
#include "commands/cluster/reply_reader.h"
#include "commands/feeds/feed_access.h"
#include "commands/session/host.h"
#include "commands/session/remote_calls.h"
#include "commands/session/services.h"
#include "engine/feeds/feed_group.h"
#include "engine/feeds/merged_id.h"
#include "store/store.h"

namespace cellar {
namespace {

// The fields of an entry as a reply has them.
bool ReadFields(std::string_view reply, FeedEntry* entry) {
  ReplyReader reader(reply);
  uint64_t elements = 0;
  if (!reader.Array(&elements) || elements % 2 != 0) return false;
  entry->pairs = static_cast<uint32_t>(elements / 2);
  entry->fields = reply.substr(reader.position());
  return true;
}

// Entries of all sets by their ids. Of a set that is gone nothing is there; whether it is, set 0
// knows.
class WholeFinder final : public EntryFinder {
  static constexpr size_t kIdsAtOnce{1'000};
  static constexpr uint64_t kSetsAsked{UINT64_MAX};  // no set: the key of set 0's other reply

 public:
  WholeFinder(Host& host, Session& session, std::string_view word, FeedDecoder::Fields fields)
      : host_(host), word_(word), fields_(fields), calls_(host, session) {}

  Result<bool> Look(const Feed&, const std::vector<FeedId>& ids, size_t* next, FeedSink* sink,
                    const TaskBudget&) override {
    while (*next < ids.size() && !full_) {
      if (!calls_.begun()) RETURN_IF_ERROR(Ask(ids, *next));
      ASSIGN_OR_RETURN(const bool all, calls_.Take());
      if (!all) return false;
      RETURN_IF_ERROR(CheckGone());
      std::map<FeedId, FeedEntry> found;
      size_t end = end_;
      for (const auto& [set, asked] : asked_) {
        const std::string* const reply = calls_.ReplyOf(set);
        CELLAR_ASSERT(reply != nullptr);
        uint64_t looked = 0;
        if (!Read(*reply, set, &looked, &found) || looked > asked.size()) return SomethingElse();
        if (looked < asked.size()) end = std::min(end, asked[looked]);
      }
      if (end == *next) return SomethingElse();
      while (*next < end && !full_) {
        const auto entry = found.find(ids[(*next)++]);
        if (entry != found.end()) full_ = !sink->OnEntry(entry->second);
      }
      calls_.Forget();
    }
    return true;
  }
  void ForgetPlace() override {}
  size_t memory_bytes() const override { return calls_.memory_bytes(); }

 private:
  Status Ask(const std::vector<FeedId>& ids, size_t from) {
    const ClusterView& view = host_.services().cluster_view;
    if (!view.KnowsSets(host_.store().engine().cluster().set))
      return StatusOfLine(ClusterView::kSetsUnknown);
    end_ = std::min(ids.size(), from + kIdsAtOnce);
    asked_.clear();
    gone_.clear();
    std::map<uint64_t, std::vector<std::string>> words;
    for (size_t i = from; i < end_; ++i) {
      const std::optional<std::pair<uint64_t, FeedId>> own = OwnOf(ids[i]);
      if (!own) continue;
      if (view.sets.Find(own->first) == nullptr) {
        gone_.push_back(own->first);
        continue;
      }
      asked_[own->first].push_back(i);
      words[own->first].push_back(own->second.text());
    }
    calls_.Begin();
    for (const auto& [set, texts] : words) {
      const std::string name = PartName(word_, set);
      std::vector<std::string_view> call{"FEED", "ENTRIES", name};
      if (fields_ == FeedDecoder::Fields::kNo) call.emplace_back("JUSTID");
      call.insert(call.end(), texts.begin(), texts.end());
      calls_.Ask(set, call);
    }
    if (!gone_.empty()) {
      const std::string name = PartName(word_, 0);
      calls_.Ask(kSetsAsked, 0, {"FEED", "RESOLVED", name});
    }
    return Status::Ok();
  }

  static std::optional<std::pair<uint64_t, FeedId>> OwnOf(const FeedId& id) {
    if (IsOwnId(id) || !IsMergedId(id)) return std::nullopt;
    const uint64_t set = SetOfMerged(id);
    const FeedId own = OwnIdUpTo(set, id);
    return MergedIdOf(set, own) == id ? std::optional(std::pair(set, own)) : std::nullopt;
  }

  Status CheckGone() const {
    if (gone_.empty()) return Status::Ok();
    ReplyFields fields;
    uint64_t count = 0;
    const std::string* const reply = calls_.ReplyOf(kSetsAsked);
    if (!ReadReplyFields(*reply, &fields) || fields.size() != 3) return SomethingElse();
    ReplyReader sets(fields[2].second);
    if (!sets.Array(&count)) return SomethingElse();
    for (uint64_t number = 0; count > 0; --count) {
      if (!sets.Unsigned(&number)) return SomethingElse();
      if (std::find(gone_.begin(), gone_.end(), number) == gone_.end()) continue;
      return Status::Error(ErrorCode::kTryAgain,
                           fmt::format("this node does not know of set {} yet", number));
    }
    return Status::Ok();
  }

  bool Read(std::string_view reply, uint64_t set, uint64_t* looked,
            std::map<FeedId, FeedEntry>* found) const {
    ReplyFields fields;
    if (!ReadReplyFields(reply, &fields)) return false;
    for (const auto& [name, value] : fields) {
      ReplyReader reader(value);
      uint64_t entries = 0;
      if (name == "looked" && !reader.Unsigned(looked)) return false;
      if (name != "entries") continue;
      if (!reader.Array(&entries)) return false;
      for (uint64_t i = 0; i < entries; ++i) {
        uint64_t two = 0;
        std::string_view text;
        FeedId own;
        FeedEntry entry;
        if (!reader.Array(&two) || two != 2 || !reader.Bulk(&text) || !ReadOwnId(text, &own))
          return false;
        const size_t begin = reader.position();
        if (!reader.Skip() || !ReadFields(value.substr(begin, reader.position() - begin), &entry))
          return false;
        entry.id = MergedIdOf(set, own);
        found->emplace(entry.id, std::move(entry));
      }
    }
    return true;
  }

  Host& host_;
  const std::string word_;
  const FeedDecoder::Fields fields_;
  PartCalls calls_;
  std::map<uint64_t, std::vector<size_t>> asked_;  // by set: which of the ids
  std::vector<uint64_t> gone_;                     // sets that this node does not know
  size_t end_{0};                                  // so far they are asked for
  bool full_{false};
};

class WholeGroups final : public GroupSource {
 public:
  WholeGroups(CommandContext& ctx, std::string_view word)
      : host_(ctx.host),
        session_(ctx.session),
        word_(word),
        feed_(ctx.host, ctx.session, word),
        dropped_calls_(ctx.host, ctx.session) {}

  uint64_t GroupsOf(const Feed& feed) const override { return WholeFeedGroups(feed.id); }
  Status CheckHere(const Feed& feed) const override { return CheckGroupsHere(host_, feed, word_); }
  // What was given out while there was one set was set 0's own.
  FeedId IdOf(const FeedId& id) const override { return WholeIdOf(id); }
  TaskProgress unfinished() const override { return TaskProgress::kWaiting; }
  bool TakeIsAway() override { return std::exchange(is_away_, false); }

  Result<bool> Settle(const Feed&, const TaskBudget&) override { return true; }

  Result<bool> SettleDropped(const Feed&, const TaskBudget&) override {
    if (!dropped_calls_.begun()) {
      const ClusterView& view = host_.services().cluster_view;
      if (!view.KnowsSets(host_.store().engine().cluster().set))
        return StatusOfLine(ClusterView::kSetsUnknown);
      for (const auto& [number, set] : view.sets.sets()) {
        const std::string name = PartName(word_, number);
        dropped_calls_.Ask(number, {"FEED", "ENTRIES", name});
      }
    }
    ASSIGN_OR_RETURN(const bool all, dropped_calls_.Take());
    if (!all) return false;
    for (const auto& [number, set] : host_.services().cluster_view.sets.sets()) {
      const std::string* const reply = dropped_calls_.ReplyOf(number);
      ReplyFields fields;
      std::string_view text;
      FeedId own;
      if (reply == nullptr) continue;
      if (!ReadReplyFields(*reply, &fields) || fields.empty() || fields[0].first != "dropped" ||
          !ReplyReader(fields[0].second).Bulk(&text) || !ReadOwnId(text, &own))
        return SomethingElse();
      dropped_[number] = own;
    }
    dropped_calls_.Forget();
    return true;
  }
  bool HasDropped(const Feed&, const FeedId& id) const override {
    if (!IsMergedId(id)) return true;
    const uint64_t set = SetOfMerged(id);
    const auto dropped = dropped_.find(set);
    return dropped != dropped_.end() && OwnIdUpTo(set, id) <= dropped->second;
  }
  FeedId DroppedOf(const Feed&) const override {
    FeedId last;
    for (const auto& [set, dropped] : dropped_)
      if (dropped != FeedId{}) last = std::max(last, MergedIdOf(set, dropped));
    return last;
  }
  // Each set says so of its part when it is read.
  Status CheckKept(const Feed&, std::string_view, const FeedId&) const override {
    return Status::Ok();
  }

  Result<bool> FindLast(const Feed&, FeedId* last, const TaskBudget&) override {
    if (!std::exchange(looks_back_, true)) feed_.Begin({.after = {}, .from_oldest = true}, true, 1);
    MergedFeed::Entry entry;
    std::string error;
    const MergedFeed::Came came = feed_.Next(&entry, &error);
    if (came == MergedFeed::Came::kNothing) return false;
    if (came == MergedFeed::Came::kError) return StatusOfLine(error);
    *last = came == MergedFeed::Came::kEntry ? entry.id : FeedId{};
    return true;
  }

  Result<FeedLog::Behind> LookBehind(const Feed&, const FeedId&) override {
    const int64_t now = host_.clock().MonotonicMicros();
    if (now < look_micros_ || !feed_.MayHaveMore()) return FeedLog::Behind::kNothing;
    look_micros_ = now + kLookMicros;
    feed_.LookAgain();
    return FeedLog::Behind::kPerhaps;
  }

  Result<bool> ReadBehind(const Feed&, const FeedId& last, uint64_t count, FeedReplySink* sink,
                          const TaskBudget&) override {
    // Somebody has set the group back.
    if (!has_begun_ || last < passed_) {
      feed_.Begin({.after = last, .from_oldest = last == FeedId{}}, false, count);
      entries_.clear();
      bytes_ = 0;
      passed_ = last;
      has_begun_ = true;
    }
    for (;;) {
      MergedFeed::Came came = MergedFeed::Came::kEntry;
      std::string error;
      while (entries_.size() < count && bytes_ < kFeedReplyBytesMax &&
             came == MergedFeed::Came::kEntry) {
        MergedFeed::Entry entry;
        came = feed_.Next(&entry, &error);
        if (came == MergedFeed::Came::kEntry) Keep(std::move(entry));
      }
      // Others have got these meanwhile.
      while (!entries_.empty() && entries_.front().id <= last) Pass();
      if (came == MergedFeed::Came::kNothing) return false;
      if (came == MergedFeed::Came::kError && entries_.empty()) {
        is_away_ = feed_.may_come_back();
        return StatusOfLine(error);
      }
      if (came != MergedFeed::Came::kEntry || !entries_.empty()) break;
    }
    while (!entries_.empty() && !sink->full()) {
      FeedEntry entry;
      entry.id = entries_.front().id;
      if (!ReadFields(entries_.front().fields, &entry)) return SomethingElse();
      (void)sink->OnEntry(entry);
      Pass();
    }
    return true;
  }
  std::unique_ptr<EntryFinder> NewFinder(FeedDecoder::Fields fields) override {
    return std::make_unique<WholeFinder>(host_, session_, word_, fields);
  }
  void ForgetPlaces() override {}
  size_t memory_bytes() const override {
    return bytes_ + feed_.memory_bytes() + dropped_calls_.memory_bytes();
  }

 private:
  // No reader that waits asks all sets more often.
  static constexpr int64_t kLookMicros{25'000};

  void Keep(MergedFeed::Entry entry) {
    bytes_ += entry.fields.size() + sizeof(entry);
    entries_.push_back(std::move(entry));
  }
  void Pass() {
    bytes_ -= entries_.front().fields.size() + sizeof(MergedFeed::Entry);
    passed_ = std::max(passed_, entries_.front().id);
    entries_.pop_front();
  }

  Host& host_;
  Session& session_;
  const std::string word_;
  MergedFeed feed_;
  PartCalls dropped_calls_;
  std::map<uint64_t, FeedId> dropped_;  // by set, as it has it
  bool looks_back_{false};
  // What has been read behind `passed_`, and not given out.
  std::deque<MergedFeed::Entry> entries_;
  size_t bytes_{0};
  FeedId passed_;
  bool has_begun_{false};
  bool is_away_{false};
  int64_t look_micros_{0};
};

}  // namespace

Result<std::unique_ptr<GroupSource>> OpenGroups(CommandContext& ctx, const Feed& feed,
                                                std::string_view word) {
  if (!IsWholeFeed(ctx.host, feed, word)) return OpenOwnGroups(ctx.host, word);
  if (ctx.session.exec_running) {
    return Status::Error(ErrorCode::kCrossSet, "feed " + Quote(word) +
                                                   " is read of all sets, which no EXEC does; "
                                                   "nothing was done by this command");
  }
  return std::unique_ptr<GroupSource>(std::make_unique<WholeGroups>(ctx, word));
}

}  // namespace cellar
