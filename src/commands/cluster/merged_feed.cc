// See merged_feed.h.
#include "commands/cluster/merged_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"
#include "cluster/call_frames.h"
#include "commands/cluster/reply_reader.h"
#include "commands/feeds/feed_reader.h"
#include "commands/session/remote_calls.h"
#include "commands/session/services.h"
#include "engine/feeds/merged_id.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr size_t kEntryBytes{sizeof(MergedFeed::Entry) + 32};
constexpr int64_t kLateMicros{500'000};
constexpr uint64_t kSpareEntries{16};

}  // namespace

bool MergedFeed::RefusesExec(TaskContext& context) {
  if (!context.budget.unlimited()) return false;
  context.Fail("CROSSSET a feed is read of all sets, which no EXEC does");
  return true;
}

MergedFeed::MergedFeed(Host& host, Session& session, std::string_view word)
    : host_(host), session_(session), word_(word), is_merged_(word.find('@') == word.npos) {
  const std::optional<FeedWord> named = ParseFeedWord(word);
  CELLAR_ASSERT(named && named->set.has_value() != is_merged_);
  if (named->set)
    AddPart(*named->set);
  else
    AddNewSets();
}

void MergedFeed::AddPart(uint64_t set) {
  Part& part = parts_.emplace_back();
  part.set = set;
  part.name = is_merged_ ? fmt::format("{}@{}", word_, set) : word_;
}

// One that has come since has nothing that was told.
void MergedFeed::AddNewSets() {
  const ClusterView& view = host_.services().cluster_view;
  knows_sets_ = view.KnowsSets(host_.store().engine().cluster().set);
  for (const auto& [number, set] : view.sets.sets()) {
    const bool is_there = std::any_of(parts_.begin(), parts_.end(),
                                      [number = number](const auto& p) { return p.set == number; });
    if (is_there) continue;
    AddPart(number);
    BeginPart(&parts_.back());
    if (at_end_) parts_.back().from_oldest = true;
  }
}

// Of a set that is of the cluster no more there is nothing but what it has said: nobody waits for
// an answer of it.
void MergedFeed::DropGone() {
  const ClusterView& view = host_.services().cluster_view;
  if (!is_merged_ || !view.KnowsSets(host_.store().engine().cluster().set)) return;
  std::erase_if(parts_, [&](Part& part) {
    if (view.sets.Find(part.set) != nullptr) return false;
    if (std::exchange(part.asked, Asked::kNothing) != Asked::kNothing)
      host_.services().remote->Forget(part.ticket);
    part.is_resolved = part.complete = true;
    return part.entries.empty();
  });
}

MergedFeed::MergedFeed(MergedFeed&& other) noexcept
    : host_(other.host_),
      session_(other.session_),
      word_(std::move(other.word_)),
      is_merged_(other.is_merged_),
      parts_(std::exchange(other.parts_, {})),
      knows_sets_(other.knows_sets_),
      range_(other.range_),
      at_end_(other.at_end_),
      begun_micros_(other.begun_micros_),
      begun_wall_(other.begun_wall_),
      lacks_(other.lacks_),
      end_(other.end_),
      reverse_(other.reverse_),
      is_away_(other.is_away_),
      count_(other.count_),
      bytes_(other.bytes_) {}

MergedFeed::~MergedFeed() { ForgetCalls(); }

void MergedFeed::ForgetCalls() {
  for (Part& part : parts_) {
    if (std::exchange(part.asked, Asked::kNothing) != Asked::kNothing)
      host_.services().remote->Forget(part.ticket);
  }
}

FeedId MergedFeed::IdOf(const Part& part, const FeedId& own) const {
  return is_merged_ ? MergedIdOf(part.set, own) : own;
}

void MergedFeed::BeginPart(Part* part) const {
  CELLAR_ASSERT(part->asked == Asked::kNothing);
  part->after = OwnIdUpTo(part->set, range_.after);
  part->to = range_.to == FeedId::Max() ? range_.to : OwnIdUpTo(part->set, range_.to);
  part->from_oldest = range_.from_oldest;
  part->from_end = part->is_resolved = part->was_asked_now = false;
  part->complete = range_.empty;
  part->looked_to = {};
  part->entries.clear();
}

void MergedFeed::Begin(const FeedRange& range, bool reverse, uint64_t count) {
  range_ = range;
  reverse_ = reverse;
  count_ = std::max<uint64_t>(count, 1);
  at_end_ = false;
  bytes_ = 0;
  ForgetCalls();
  for (Part& part : parts_) BeginPart(&part);
}

void MergedFeed::BeginAtEnd(uint64_t count) {
  Begin({}, false, count);
  at_end_ = true;
  begun_micros_ = host_.clock().MonotonicMicros();
  begun_wall_ = host_.clock().WallMicros();
  for (Part& part : parts_) part.from_end = true;
}

bool MergedFeed::MayHaveMore() {
  const ClusterView& view = host_.services().cluster_view;
  bool may = is_away_ || lacks_ != 0 || !knows_sets_ ||
             (is_merged_ && view.sets.sets().size() != parts_.size());
  for (Part& part : parts_) {
    const bool rests = part.asked == Asked::kNothing && part.entries.empty() && part.is_resolved;
    may = may || !rests;
    if (may) break;
    if (part.look == nullptr) {
      part.look = FeedLook::Join(host_, session_, part.set, part.name, part.resolved);
      part.news_seen = part.look->News(session_);
      may = part.resolved < part.look->past();
    }
    may = may || part.look->News(session_) != part.news_seen;
  }
  return may;
}

void MergedFeed::LookAgain() {
  is_away_ = false;
  lacks_ = 0;
  DropGone();
  if (is_merged_) AddNewSets();
  for (Part& part : parts_) {
    if (part.look != nullptr) part.news_seen = part.look->News(session_);
    if (part.asked == Asked::kNothing && part.entries.empty()) {
      part.is_resolved = part.was_asked_now = false;
      part.complete = part.to <= part.after;
    }
  }
}

void MergedFeed::Ask(Part* part, Asked what) {
  std::vector<std::string_view> words{"FEED", "RESOLVED", part->name};
  if (what == Asked::kNow) words.emplace_back("NOW");
  part->ticket = host_.services().remote->Ask(session_, part->set, CallOf(words), false);
  part->asked = what;
  part->was_asked_now = what == Asked::kNow;
}

void MergedFeed::AskEntries(Part* part) {
  const FeedId upper =
      std::min(part->to, reverse_ ? std::min(part->resolved, end_) : part->resolved);
  if (upper <= std::max(part->after, part->looked_to)) {
    part->complete = true;
    return;
  }
  const std::string begin =
      part->from_oldest && part->after == FeedId{} ? std::string("-") : "(" + part->after.text();
  const std::string end = upper.text();
  // What all of them tell together is enough; one that tells most of it is asked again.
  part->wanted = std::min(count_, count_ / parts_.size() + kSpareEntries);
  const std::string count = std::to_string(part->wanted);
  const std::string_view words[] = {reverse_ ? "XREVRANGE" : "XRANGE",
                                    part->name,
                                    reverse_ ? end : begin,
                                    reverse_ ? begin : end,
                                    "COUNT",
                                    count};
  part->ticket = host_.services().remote->Ask(session_, part->set, CallOf(words), false);
  part->asked = Asked::kEntries;
}

bool MergedFeed::TakeEntries(Part* part, std::string_view reply) {
  ReplyReader reader(reply);
  uint64_t entries = 0;
  if (!reader.Array(&entries)) return false;
  for (uint64_t i = 0; i < entries; ++i) {
    uint64_t two = 0;
    std::string_view text;
    FeedId own;
    if (!reader.Array(&two) || two != 2 || !reader.Bulk(&text) || !ReadOwnId(text, &own))
      return false;
    const bool fits = own > part->after && own <= std::min(part->to, part->resolved);
    const size_t begin = reader.position();
    if (!fits || !reader.Skip()) return false;
    part->entries.push_back(
        {.id = IdOf(*part, own),
         .own = own,
         .fields = std::string(reply.substr(begin, reader.position() - begin))});
    bytes_ += kEntryBytes + part->entries.back().fields.size();
    if (reverse_)
      part->to = own.Previous();
    else
      part->after = own;
  }
  // Its reply has so many entries, or so many bytes, or else it was all.
  part->complete = entries < part->wanted && reply.size() < kFeedReplyBytesMax / 2;
  if (part->complete && !reverse_) part->looked_to = std::min(part->to, part->resolved);
  return reader.done();
}

// Set 0 knows of all sets: what one has that this node does not know of yet may be missing.
bool MergedFeed::TakeResolved(Part* part, std::string_view reply) {
  ReplyFields fields;
  std::string_view text;
  uint64_t now = 0;
  if (!ReadReplyFields(reply, &fields) || fields.size() != 3 ||
      !ReplyReader(fields[0].second).Bulk(&text) || !ReadOwnId(text, &part->resolved) ||
      !ReplyReader(fields[1].second).Unsigned(&now))
    return false;
  part->is_resolved = true;
  part->complete = false;
  // What a set that was away has written since it came back is behind the end, too.
  if (std::exchange(part->from_end, false)) {
    const int64_t late = host_.clock().MonotonicMicros() - begun_micros_;
    // An answer that was held back is of a time that is not so long ago: unless clocks differ, it
    // began when the own clock said so.
    const auto its_now = static_cast<int64_t>(now);
    const int64_t then =
        std::max<int64_t>({its_now - late, std::min(begun_wall_, its_now), int64_t{0}});
    part->after =
        late > kLateMicros ? std::min(FeedId::LastOf(then), part->resolved) : part->resolved;
  }
  if (part->set != 0 || !is_merged_) return true;
  ReplyReader sets(fields[2].second);
  uint64_t count = 0;
  if (!sets.Array(&count)) return false;
  for (uint64_t number = 0; count > 0; --count) {
    if (!sets.Unsigned(&number)) return false;
    const bool is_known = std::any_of(parts_.begin(), parts_.end(),
                                      [number](const Part& each) { return each.set == number; });
    if (!is_known) lacks_ = number;
  }
  return true;
}

bool MergedFeed::TakeAnswers(std::string* error) {
  RemoteCalls& remote = *host_.services().remote;
  for (Part& part : parts_) {
    if (part.asked == Asked::kNothing) continue;
    const RemoteCalls::Answer& answer = remote.AnswerTo(part.ticket);
    if (answer.state == RemoteCalls::State::kPending) continue;
    const Asked asked = std::exchange(part.asked, Asked::kNothing);
    const bool is_reply =
        answer.state == RemoteCalls::State::kAnswered && !answer.bytes.starts_with('-');
    bool fits = true;
    if (!is_reply) {
      *error = FailureOf(answer);
      // It was dropped; the client has not named its parts.
      if (is_merged_ && error->starts_with("NOFEED"))
        *error = "NOFEED no feed " + Quote(word_) + " any more";
      is_away_ = error->starts_with("CLUSTERDOWN") || error->starts_with("TRYAGAIN") ||
                 error->starts_with("LOADING");
    } else if (asked == Asked::kEntries) {
      fits = TakeEntries(&part, answer.bytes);
    } else {
      fits = TakeResolved(&part, answer.bytes);
    }
    remote.Forget(part.ticket);
    if (!fits) *error = kSomethingElse;
    if (lacks_ != 0) {
      *error = fmt::format("TRYAGAIN this node does not know of set {} yet", lacks_);
      is_away_ = true;
    }
    if (!error->empty()) return false;
  }
  return true;
}

MergedFeed::Part* MergedFeed::First() {
  Part* first = nullptr;
  for (Part& part : parts_) {
    if (part.entries.empty()) continue;
    const bool is_first =
        first == nullptr || (reverse_ ? first->entries[0].id < part.entries[0].id
                                      : part.entries[0].id < first->entries[0].id);
    if (is_first) first = &part;
  }
  return first;
}

MergedFeed::Came MergedFeed::Prepare() {
  bool waits = false;
  for (Part& part : parts_) {
    if (!part.is_resolved && !part.complete && part.asked == Asked::kNothing)
      Ask(&part, reverse_ || part.from_end ? Asked::kNow : Asked::kResolved);
    waits = waits || part.asked == Asked::kResolved || part.asked == Asked::kNow;
  }
  // Backwards nothing can be asked before that is known of all.
  if (reverse_ && waits) return Came::kNothing;
  if (reverse_) {
    end_ = FeedId::Max();
    for (const Part& part : parts_)
      if (part.is_resolved) end_ = std::min(end_, part.resolved);
  }
  for (Part& part : parts_) {
    const bool lacks = part.entries.empty() && !part.complete && part.asked == Asked::kNothing;
    if (lacks && part.is_resolved) AskEntries(&part);
  }
  const Part* const first = First();
  bool is_held = false;
  for (Part& part : parts_) {
    if (part.entries.empty() && part.asked != Asked::kNothing) return Came::kNothing;
    const bool is_old = !reverse_ && first != nullptr && part.entries.empty() &&
                        part.after < part.to &&
                        part.resolved.micros() < first->entries[0].own.micros();
    if (!is_old) continue;
    is_held = is_held || part.was_asked_now;
    if (part.was_asked_now) continue;
    Ask(&part, Asked::kNow);
    waits = true;
  }
  if (waits) return Came::kNothing;
  return first == nullptr || is_held ? Came::kEnd : Came::kEntry;
}

MergedFeed::Came MergedFeed::Next(Entry* entry, std::string* error) {
  error->clear();
  if (!knows_sets_) {
    *error = ClusterView::kSetsUnknown;
    is_away_ = true;
  }
  DropGone();
  if (!error->empty() || !TakeAnswers(error)) return Came::kError;
  const Came came = Prepare();
  if (came != Came::kEntry) return came;
  Part* const first = First();
  *entry = std::move(first->entries.front());
  first->entries.pop_front();
  bytes_ -= std::min(bytes_, kEntryBytes + entry->fields.size());
  return Came::kEntry;
}

}  // namespace cellar
