// See merged_heat.h.
#include "commands/cluster/merged_heat.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/cluster/command_route.h"
#include "commands/cluster/part_calls.h"
#include "commands/cluster/reply_reader.h"
#include "commands/session/services.h"
#include "commands/session/task.h"
#include "heat/heat_counts.h"
#include "heat/heat_map.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr std::array<std::string_view, kHeatMetrics> kMetricNames{"reads", "writes", "bytes"};
// Two weeks of minutes are 20,160 steps; what a set says to the contrary is not believed.
constexpr uint64_t kStepsMax{20'161};
constexpr size_t kLargeMax{16};
// Of a reply, or of several: between two looks at the clock.
constexpr size_t kSliceSteps{16};

class MergedHeat final : public Task {
 public:
  MergedHeat(CommandContext& ctx, const Table& table, const HeatQuery& query)
      : host_(ctx.host),
        word_(ctx.args[1]),
        name_(table.name()),
        table_id_(table.id()),
        order_(table.schema().key),
        depends_on_(table.last_lsn()),
        query_(query),
        to_micros_(query.to_micros.value_or(ctx.now_micros)),
        calls_(ctx.host, ctx.session) {
    for (const auto& [number, set] : host_.services().cluster_view.sets.sets())
      parts_.try_emplace(number);
  }

  TaskProgress Step(TaskContext& context) override {
    context.depends_on = depends_on_;
    if (!calls_.begun()) AskHeads();
    if (state_ == State::kHeads || state_ == State::kCounts) {
      const Result<bool> taken = calls_.Take();
      if (!taken.ok()) return Fail(context, taken.status());
      if (!*taken) return TaskProgress::kWaiting;
      if (state_ == State::kHeads) {
        if (!TakeHeads()) return Fail(context, SomethingElse());
        if (query_.head_only) {
          context.reply.Map(5);
          ReplyHead(context.reply);
          context.reply.Bulk("fine");
          context.reply.Integer(fine_s_);
          return TaskProgress::kDone;
        }
        AskCounts();
        state_ = State::kCounts;
        return TaskProgress::kWaiting;
      }
      state_ = State::kBegin;
    }
    if (state_ == State::kBegin) {
      const std::optional<bool> begun = Begin(context.budget);
      if (!begun) return Fail(context, SomethingElse());
      if (!*begun) return TaskProgress::kMore;
      state_ = State::kSum;
    }
    if (state_ == State::kSum) {
      const std::optional<bool> summed = Sum(context.budget);
      if (!summed) return Fail(context, SomethingElse());
      if (!*summed) return TaskProgress::kMore;
      state_ = State::kReply;
      calls_.Forget();
      calls_.Begin();
    }
    return Reply(context) ? TaskProgress::kDone : TaskProgress::kMore;
  }
  bool Streams() const override { return state_ == State::kReply; }
  size_t memory_bytes() const override {
    return calls_.memory_bytes() + kHeatMetrics * counts_[0].capacity() * sizeof(uint64_t);
  }

 private:
  enum class State : uint8_t { kHeads, kCounts, kBegin, kSum, kReply };
  // What a set has answered.
  struct Part {
    ReplyFields fields;
    bool begun{false};
    uint64_t first_step{0};  // of all
    size_t metric{0};        // that is being read
    uint64_t step{0};        // likewise
    uint64_t steps{0};
    size_t position{0};  // in its value
  };

  static TaskProgress Fail(TaskContext& context, const Status& status) {
    context.Fail(status);
    return TaskProgress::kDone;
  }

  void Ask(const std::vector<std::string>& more) {
    std::vector<std::string> words{"HEAT", word_};
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("LOCAL");
    const std::vector<std::string_view> views(words.begin(), words.end());
    for (const auto& [set, part] : parts_) calls_.Ask(set, views);
  }

  std::vector<std::string> Times(std::optional<int64_t> from_micros) const {
    std::vector<std::string> words{"TO", std::to_string(to_micros_), "STEP",
                                   fmt::format("{}m", query_.step_minutes)};
    if (from_micros) words.insert(words.end(), {"FROM", std::to_string(*from_micros)});
    return words;
  }

  void AskHeads() {
    std::vector<std::string> words = Times(query_.from_micros);
    words.insert(words.end(), {"RANGES", std::to_string(HeatMap::kRangesMax), "HEAD"});
    Ask(words);
  }

  // Whether that set owns the row, as far as this node knows.
  bool IsOf(uint64_t set, std::string_view key) const {
    const MapTable* const map = MapOf(host_).Find(table_id_);
    if (map == nullptr) return true;
    const auto& tablets = map->tablets;
    auto at = std::upper_bound(
        tablets.begin(), tablets.end(), key,
        [](std::string_view sought, const MapEntry& entry) { return sought < entry.begin; });
    if (at == tablets.begin()) return false;
    --at;
    return at->set == set && (at->end.empty() || key < at->end);
  }

  // Where the owner changes.
  void AddEdges(std::vector<std::string>* keys) const {
    const MapTable* const map = MapOf(host_).Find(table_id_);
    if (map == nullptr) return;
    uint64_t set = UINT64_MAX;
    for (const MapEntry& entry : map->tablets) {
      std::string text;
      const bool is_row = order_.EncodedSize(entry.begin) == entry.begin.size();
      if (std::exchange(set, entry.set) != entry.set && is_row) keys->push_back(entry.begin);
    }
  }

  bool TakeHeads() {
    from_s_ = INT64_MAX;
    const int64_t step_s = query_.step_minutes * 60;
    const int64_t to_s = to_micros_ / 1'000'000;
    std::vector<std::string> keys(1);
    for (const auto& [set, part] : parts_) {
      const std::string* const reply = calls_.ReplyOf(set);
      ReplyFields fields;
      uint64_t from = 0;
      uint64_t fine = 0;
      uint64_t count = 0;
      if (reply == nullptr || !ReadReplyFields(*reply, &fields) ||
          !ReplyReader(ValueOf(fields, "from")).Unsigned(&from) ||
          !ReplyReader(ValueOf(fields, "fine")).Unsigned(&fine) ||
          from > static_cast<uint64_t>(to_s) || fine > static_cast<uint64_t>(INT64_MAX / 1000))
        return false;
      fine_s_ = std::max(fine_s_, static_cast<int64_t>(fine));
      from_s_ = std::min(from_s_, static_cast<int64_t>(from));
      ReplyReader reader(ValueOf(fields, "keys"));
      if (!reader.Array(&count)) return false;
      for (uint64_t i = 0; i < count; ++i) {
        std::string_view text;
        std::string key;
        if (!reader.Bulk(&text)) return false;
        // The first one of each is the front of the table.
        if (i == 0 || !order_.Encode(text, &key).ok() || !IsOf(set, key)) continue;
        keys.push_back(std::move(key));
      }
    }
    // Where all is so little that nobody cuts it, it is not cut here either.
    if (keys.size() > 1) AddEdges(&keys);
    // Without FROM as far back as all have single minutes.
    if (!query_.from_micros) from_s_ = std::min(std::max(from_s_, fine_s_), to_s) / step_s * step_s;
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    keys_ = HeatCut(std::move(keys), nullptr).Fewer(query_.ranges);
    if (query_.keys) {
      keys_.resize(1);
      keys_.insert(keys_.end(), query_.keys->begin(), query_.keys->end());
    }
    for (const std::string& key : keys_) {
      std::string scratch;
      texts_.emplace_back(key.empty() ? "-" : order_.TextOf(key, &scratch));
    }
    return true;
  }

  void AskCounts() {
    calls_.Forget();
    std::vector<std::string> words = Times(from_s_ * 1'000'000);
    words.insert(words.end(), {"KEYS", std::to_string(texts_.size() - 1)});
    words.insert(words.end(), texts_.begin() + 1, texts_.end());
    Ask(words);
  }

  // All has been answered: room for the sums. False: the time is over. Nothing: as Sum.
  std::optional<bool> Begin(const TaskBudget& budget) {
    const int64_t step_s = query_.step_minutes * 60;
    for (auto& [set, part] : parts_) {
      if (std::exchange(part.begun, true)) continue;
      const std::string* const reply = calls_.ReplyOf(set);
      uint64_t from = 0;
      if (reply == nullptr || !ReadReplyFields(*reply, &part.fields) ||
          !ReplyReader(ValueOf(part.fields, "from")).Unsigned(&from) ||
          from > static_cast<uint64_t>(to_micros_ / 1'000'000))
        return std::nullopt;
      // Its oldest may have gone meanwhile, but there is nothing before what was the oldest.
      const auto from_s = std::max(from_s_, static_cast<int64_t>(from));
      part.first_step = static_cast<uint64_t>((from_s - from_s_) / step_s);
      uint64_t count = 0;
      if (!ReplyReader(ValueOf(part.fields, kMetricNames[0])).Array(&count) || count > kStepsMax ||
          part.first_step + count > kStepsMax || !TakeLarge(ValueOf(part.fields, "large")))
        return std::nullopt;
      steps_ = std::max(steps_, part.first_step + count);
      if (budget.Spent()) return false;
    }
    for (std::vector<uint64_t>& counts : counts_) counts.resize(steps_ * texts_.size());
    return true;
  }

  bool TakeLarge(std::string_view value) {
    ReplyReader reader(value);
    uint64_t count = 0;
    if (!reader.Array(&count)) return false;
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t two = 0;
      uint64_t bytes = 0;
      std::string_view row;
      if (!reader.Array(&two) || two != 2 || !reader.Bulk(&row) || !reader.Unsigned(&bytes))
        return false;
      uint64_t& known = large_[std::string(row)];
      known = std::max(known, bytes);
    }
    return true;
  }

  // Nothing: they are no counts.
  std::optional<bool> Sum(const TaskBudget& budget) {
    size_t done = 0;
    for (auto& [set, part] : parts_) {
      for (; part.metric < kHeatMetrics; ++part.metric, part.step = 0) {
        const std::string_view value = ValueOf(part.fields, kMetricNames[part.metric]);
        ReplyReader reader(value.substr(part.step == 0 ? 0 : part.position));
        const size_t begin = part.step == 0 ? 0 : part.position;
        if (part.step == 0 && !reader.Array(&part.steps)) return std::nullopt;
        if (part.first_step + part.steps > steps_) return std::nullopt;
        while (part.step < part.steps) {
          if (!AddStep(&reader, &part)) return std::nullopt;
          ++part.step;
          part.position = begin + reader.position();
          if (++done % kSliceSteps == 0 && budget.Spent()) return false;
        }
      }
    }
    return true;
  }

  bool AddStep(ReplyReader* reader, const Part* part) {
    uint64_t ranges = 0;
    if (!reader->Array(&ranges) || ranges != texts_.size()) return false;
    uint64_t* const to = &counts_[part->metric][(part->first_step + part->step) * ranges];
    for (uint64_t i = 0; i < ranges; ++i) {
      uint64_t count = 0;
      if (!reader->Unsigned(&count)) return false;
      to[i] += count;
    }
    return true;
  }

  void ReplyHead(ReplyWriter& reply) const {
    reply.Bulk("table");
    reply.Bulk(name_);
    reply.Bulk("from");
    reply.Integer(from_s_);
    reply.Bulk("step");
    reply.Integer(query_.step_minutes * 60);
    reply.Bulk("keys");
    reply.Array(texts_.size());
    for (const std::string& text : texts_) reply.Bulk(text);
  }

  // True when all has been written.
  bool Reply(TaskContext& context) {
    ReplyWriter& reply = context.reply;
    if (!begun_) {
      reply.Map(8);
      ReplyHead(reply);
      begun_ = true;
    }
    for (; metric_ < kHeatMetrics; ++metric_, step_ = 0) {
      if (step_ == 0) {
        reply.Bulk(kMetricNames[metric_]);
        reply.Array(steps_);
      }
      while (step_ < steps_) {
        const uint64_t* const from = &counts_[metric_][step_ * texts_.size()];
        reply.Array(texts_.size());
        for (size_t i = 0; i < texts_.size(); ++i) reply.Unsigned(from[i]);
        if (++step_ % kSliceSteps == 0 && context.budget.Spent()) return false;
      }
    }
    reply.Bulk("large");
    reply.Array(std::min(large_.size(), kLargeMax));
    std::vector<std::pair<uint64_t, std::string_view>> largest;
    for (const auto& [row, bytes] : large_) largest.emplace_back(bytes, row);
    std::sort(largest.begin(), largest.end(), std::greater<>());
    if (largest.size() > kLargeMax) largest.resize(kLargeMax);
    for (const auto& [bytes, row] : largest) {
      reply.Array(2);
      reply.Bulk(row);
      reply.Unsigned(bytes);
    }
    return true;
  }

  Host& host_;
  const std::string word_;  // as the client wrote it
  const std::string name_;
  const uint64_t table_id_;
  const Order order_;
  const Lsn depends_on_;
  const HeatQuery query_;
  const int64_t to_micros_;
  PartCalls calls_;
  State state_{State::kHeads};
  std::map<uint64_t, Part> parts_;  // by set
  int64_t from_s_{0};
  int64_t fine_s_{0};               // from there on all have single minutes
  std::vector<std::string> keys_;   // encoded, the first one is empty
  std::vector<std::string> texts_;  // of these
  uint64_t steps_{0};
  std::array<std::vector<uint64_t>, kHeatMetrics> counts_;  // by step and range
  std::map<std::string, uint64_t> large_;
  bool begun_{false};
  size_t metric_{0};  // to be told next
  uint64_t step_{0};
};

}  // namespace

bool IsHeatOfSets(const CommandContext& ctx) {
  const Services& services = ctx.host.services();
  return ctx.host.routes() && services.remote != nullptr && services.cluster_view.has_others() &&
         !ctx.session.exec_running;
}

void RunMergedHeat(CommandContext& ctx, const Table& table, const HeatQuery& query) {
  const ClusterView& view = ctx.host.services().cluster_view;
  if (!view.KnowsSets(ctx.store().engine().cluster().set)) return ctx.Fail(view.kSetsUnknown);
  if (query.from_micros && *query.from_micros > query.to_micros.value_or(ctx.now_micros))
    return ctx.Fail("ERR FROM is behind TO");
  ctx.Continue(std::make_unique<MergedHeat>(ctx, table, query));
}

}  // namespace cellar
