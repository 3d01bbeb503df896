// See balance_plan.h.
#include "cluster/balance_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace cellar {
namespace {

// Early splits, and what is not worth a move: parts of split_bytes.
constexpr uint64_t kEarlyPart{16};
constexpr uint64_t kTinyPart{64};
// What is less, in permille of a core, is not worth a move or a split. A set with so many tablets
// is not cut any finer for its load.
constexpr uint64_t kLoadWorthIt{50};
constexpr size_t kLoadTabletsMax{1'000};
constexpr size_t kGatheredMax{4};  // pairs of one plan

class Planner {
 public:
  explicit Planner(const BalanceInput& input) : input_(input) {
    for (const BalanceInput::Set& set : input.sets) {
      sets_[set.number] = &set;
      bytes_[set.number] = loads_[set.number] = 0;
      loops_[set.number] = set.loop;
      moving_[set.number] = set.moving;
    }
    for (const BalanceInput::Tablet& tablet : input.tablets) {
      if (!bytes_.contains(tablet.to)) continue;
      bytes_[tablet.to] += tablet.bytes;
      loads_[tablet.to] += tablet.load;
      has_some_.insert(tablet.to);
    }
    taken_.resize(input.tablets.size());
    // The largest first; of equal ones that which stands first.
    order_.resize(input.tablets.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::stable_sort(order_.begin(), order_.end(), [&input](size_t a, size_t b) {
      return input.tablets[a].bytes > input.tablets[b].bytes;
    });
  }

  std::set<uint64_t> HotSets() const {
    const Ends ends = EndsOf(loads_, &BalanceInput::Set::has_loads);
    std::set<uint64_t> hot;
    for (const auto& [number, set] : sets_) {
      const bool is_hot = ends.may && !set->draining && set->has_loads &&
                          IsHot(number, ends.mean, kLoadSpreadPercent);
      if (is_hot) hot.insert(number);
    }
    return hot;
  }
  std::vector<BalanceStep> Plan() {
    Drain();
    if (!input_.spreads) return std::move(steps_);
    Relieve();
    Split();
    if (input_.by_load) SpreadLoad();
    Spread();
    Merge();
    return std::move(steps_);
  }

 private:
  const BalanceInput::Tablet& At(size_t i) const { return input_.tablets[i]; }
  bool MayMove(size_t i) const {
    const BalanceInput::Tablet& tablet = At(i);
    return !taken_[i] && !tablet.moves && !tablet.fixed && Rests(tablet.set);
  }
  bool Rests(uint64_t set) const {
    const auto found = sets_.find(set);
    return found != sets_.end() && found->second->answers && moving_.at(set) < input_.moves_max;
  }
  bool HasRoom(uint64_t set, uint64_t bytes) const {
    const uint64_t limit = sets_.at(set)->maxmemory;
    return limit == 0 || bytes_.at(set) + bytes <= limit / 100 * kFullPercent;
  }
  // Whether a tablet may go there.
  bool Takes(uint64_t set, uint64_t bytes) const {
    return Rests(set) && !sets_.at(set)->refuses && HasRoom(set, bytes);
  }
  // The emptiest set that takes so much; of equal ones the first.
  std::optional<uint64_t> Emptiest(uint64_t but, uint64_t bytes) const {
    std::optional<uint64_t> best;
    for (const auto& [number, set] : sets_) {
      if (number == but || set->draining || !Takes(number, bytes)) continue;
      if (!best || bytes_.at(number) < bytes_.at(*best)) best = number;
    }
    return best;
  }
  void Move(size_t i, uint64_t to, std::string reason) {
    const BalanceInput::Tablet& tablet = At(i);
    bytes_[tablet.set] -= std::min(bytes_[tablet.set], tablet.bytes);
    bytes_[to] += tablet.bytes;
    loads_[tablet.set] -= std::min(loads_[tablet.set], tablet.load);
    loads_[to] += tablet.load;
    loops_[tablet.set] -= std::min(loops_[tablet.set], tablet.load / 10);
    loops_[to] += tablet.load / 10;
    ++moving_[tablet.set];
    ++moving_[to];
    taken_[i] = true;
    steps_.push_back(
        {.kind = BalanceStep::Kind::kMove, .tablet = i, .to = to, .reason = std::move(reason)});
  }

  void Drain() {
    for (const size_t i : order_) {
      const auto set = sets_.find(At(i).set);
      if (set == sets_.end() || !set->second->draining || !MayMove(i)) continue;
      if (const auto to = Emptiest(At(i).set, At(i).bytes))
        Move(i, *to, fmt::format("set {} is draining", At(i).set));
    }
  }

  void Relieve() {
    for (const size_t i : order_) {
      const uint64_t set = At(i).set;
      if (!MayMove(i) || At(i).bytes == 0 || HasRoom(set, 0)) continue;
      if (const auto to = Emptiest(set, At(i).bytes))
        Move(i, *to, fmt::format("set {} is full", set));
    }
  }

  void Split() {
    std::map<uint64_t, size_t> counts;
    for (const BalanceInput::Tablet& tablet : input_.tablets) ++counts[tablet.table_id];
    for (const size_t i : order_) {
      const BalanceInput::Tablet& tablet = At(i);
      const bool may = !taken_[i] && !tablet.moves && !tablet.fixed && !tablet.whole &&
                       !tablet.middle.empty() && tablet.middle > tablet.tablet.begin;
      if (!may) continue;
      const bool few = sets_.size() > 1 && counts[tablet.table_id] < 2 * sets_.size();
      const bool early = few && tablet.bytes > input_.split_bytes / kEarlyPart;
      if (tablet.bytes <= input_.split_bytes && !early) continue;
      taken_[i] = true;
      ++counts[tablet.table_id];
      steps_.push_back({.kind = BalanceStep::Kind::kSplit,
                        .tablet = i,
                        .reason = fmt::format("it has {} bytes", tablet.bytes) +
                                  (early ? fmt::format(", and its table {} tablets for {} sets",
                                                       counts[tablet.table_id] - 1, sets_.size())
                                         : std::string())});
    }
  }

  // What has most and least of those that can be told; least, of those that tablets may go to.
  struct Ends {
    uint64_t most{0};
    uint64_t least{0};
    uint64_t mean{0};
    bool may{false};  // they are two
  };
  // `is_known`: of whom. A set that refuses tablets is one of them only if it has more than the
  // others: with less it would make all others look as if they had too much, and get nothing.
  Ends EndsOf(const std::map<uint64_t, uint64_t>& shares, bool BalanceInput::Set::*is_known) const {
    Ends ends;
    uint64_t total = 0;
    uint64_t count = 0;
    const auto add = [&](uint64_t number) {
      const uint64_t share = shares.at(number);
      total += share;
      if (count++ == 0 || share > shares.at(ends.most)) ends.most = number;
    };
    const auto is_of = [&](const BalanceInput::Set& set, bool refuses) {
      return !set.draining && set.*is_known && set.refuses == refuses;
    };
    for (const auto& [number, set] : sets_) {
      if (!is_of(*set, false)) continue;
      if (count == 0 || shares.at(number) < shares.at(ends.least)) ends.least = number;
      add(number);
    }
    if (count == 0) return ends;
    const uint64_t mean_of_others = total / count;
    for (const auto& [number, set] : sets_)
      if (is_of(*set, true) && shares.at(number) > mean_of_others) add(number);
    ends.may = ends.most != ends.least;
    ends.mean = total / count;
    return ends;
  }

  void SpreadLoad() {
    while (SpreadLoadOne()) {
    }
  }
  bool IsHot(uint64_t set, uint64_t mean, uint64_t percent) const {
    const uint64_t load = loads_.at(set);
    return sets_.at(set)->busy && load >= kLoadWorthIt && load > mean &&
           (load - mean) * 100 > mean * percent;
  }
  bool SpreadLoadOne() {
    const Ends ends = EndsOf(loads_, &BalanceInput::Set::has_loads);
    if (!ends.may || !Rests(ends.most) || !Rests(ends.least)) return false;
    const bool for_long = input_.hot_for_long.contains(ends.most);
    if (!IsHot(ends.most, ends.mean, for_long ? kLoadSpreadPercent : kLoadAtOncePercent))
      return false;
    const uint64_t most = loads_[ends.most];
    const uint64_t least = loads_[ends.least];
    const uint64_t apart = most - least;
    std::optional<size_t> best;
    uint64_t best_apart = apart - std::min(apart, ends.mean / 10);
    for (size_t i = 0; i < input_.tablets.size(); ++i) {
      const uint64_t load = At(i).load;
      const bool may_go = At(i).set == ends.most && MayMove(i) && MayLeave(i, ends.least);
      if (!may_go || load == 0 || load >= apart) continue;
      if (loops_[ends.least] + load / 10 > loops_[ends.most]) continue;
      const uint64_t then = 2 * load > apart ? 2 * load - apart : apart - 2 * load;
      if (then >= best_apart || !HasRoom(ends.least, At(i).bytes)) continue;
      best = i;
      best_apart = then;
    }
    if (!best) {
      SplitForLoad(ends.most);
      return false;
    }
    Move(*best, ends.least,
         fmt::format("rows of set {} take {} % of a core, of set {} {} %, of the tablet {} %",
                     ends.most, most / 10, ends.least, least / 10, At(*best).load / 10));
    steps_.back().for_load = true;
    return true;
  }

  // The hottest tablet of it that can be becomes two.
  void SplitForLoad(uint64_t set) {
    std::vector<size_t> hot;
    size_t tablets = 0;
    for (size_t i = 0; i < input_.tablets.size(); ++i) {
      const BalanceInput::Tablet& tablet = At(i);
      if (tablet.set != set) continue;
      ++tablets;
      const bool may = !taken_[i] && !tablet.moves && !tablet.fixed && !tablet.whole &&
                       tablet.load >= kLoadWorthIt && !tablet.load_middle.empty();
      if (may) hot.push_back(i);
    }
    if (tablets >= kLoadTabletsMax) return;
    std::stable_sort(hot.begin(), hot.end(),
                     [this](size_t a, size_t b) { return At(a).load > At(b).load; });
    for (const size_t i : hot) {
      const BalanceInput::Tablet& tablet = At(i);
      BalanceStep step{.kind = BalanceStep::Kind::kHotRow, .tablet = i, .for_load = true};
      if (tablet.top_percent > 50) {
        step.reason = fmt::format("it has {} % of what its tablet takes, {} % of a core",
                                  tablet.top_percent, tablet.load / 10);
        steps_.push_back(std::move(step));
        continue;
      }
      if (tablet.load_middle <= tablet.tablet.begin) continue;
      taken_[i] = true;
      step.kind = BalanceStep::Kind::kSplit;
      step.reason = fmt::format("its rows take {} % of a core", tablet.load / 10);
      steps_.push_back(std::move(step));
      return;
    }
  }

  void Spread() {
    while (SpreadOne()) {
    }
  }
  bool SpreadOne() {
    const auto [most, least, mean, may] = EndsOf(bytes_, &BalanceInput::Set::answers);
    if (!may || !Rests(most) || !Rests(least)) return false;
    const uint64_t above = bytes_[most] - std::min(bytes_[most], mean);
    const uint64_t below = mean - std::min(mean, bytes_[least]);
    const uint64_t worst = std::max(above, below);
    if (worst * 100 <= mean * kSpreadPercent || worst <= input_.split_bytes / kTinyPart)
      return false;
    // What makes both the most equal, and by more than a twentieth of the mean.
    const uint64_t apart = bytes_[most] - bytes_[least];
    std::optional<size_t> best;
    uint64_t best_apart = apart - std::min(apart, mean / 20);
    for (const size_t i : order_) {
      const uint64_t bytes = At(i).bytes;
      const bool may_go =
          At(i).set == most && MayMove(i) && MayLeave(i, least) && !IsTooHot(i, least);
      if (!may_go || bytes == 0 || bytes >= apart) continue;
      const uint64_t then = 2 * bytes > apart ? 2 * bytes - apart : apart - 2 * bytes;
      if (then >= best_apart || !HasRoom(least, bytes)) continue;
      best = i;
      best_apart = then;
    }
    if (!best) {
      SplitFor(most);
      return false;
    }
    Move(*best, least,
         fmt::format("set {} has {} bytes, set {} {}", most, bytes_[most], least, bytes_[least]));
    return true;
  }
  // Nothing rests for a set that has come to help.
  bool MayLeave(size_t i, uint64_t to) const { return !At(i).rests || !has_some_.contains(to); }
  // What makes bytes even must not make loads uneven.
  bool IsTooHot(size_t i, uint64_t to) const {
    const uint64_t load = At(i).load;
    if (!input_.by_load || load < kLoadWorthIt) return false;
    const uint64_t mean = EndsOf(loads_, &BalanceInput::Set::has_loads).mean;
    return loads_.at(to) + load > mean + mean * kLoadSpreadPercent / 100;
  }

  // No tablet of it is small enough to make anything more even: its largest becomes two.
  void SplitFor(uint64_t set) {
    for (const size_t i : order_) {
      const BalanceInput::Tablet& tablet = At(i);
      const bool may = tablet.set == set && !taken_[i] && !tablet.moves && !tablet.fixed &&
                       !tablet.whole && tablet.middle > tablet.tablet.begin &&
                       tablet.bytes > input_.split_bytes / kEarlyPart;
      if (!may) continue;
      taken_[i] = true;
      steps_.push_back({.kind = BalanceStep::Kind::kSplit,
                        .tablet = i,
                        .reason = fmt::format(
                            "it has {} bytes, too many to make the sets more even", tablet.bytes)});
      return;
    }
  }

  bool MayMerge(size_t i) const {
    const BalanceInput::Tablet& tablet = At(i);
    const auto set = sets_.find(tablet.set);
    return !taken_[i] && tablet.quiet && !tablet.moves && !tablet.fixed && set != sets_.end() &&
           set->second->answers && !set->second->draining;
  }
  struct Has {
    size_t tablets{0};
    uint64_t rows{0};
  };
  // A table without rows, as far as they are told, keeps what it was cut into for those that are to
  // come.
  bool AreForOne(size_t i, const Has& has) const {
    const BalanceInput::Tablet& tablet = At(i);
    const BalanceInput::Tablet& next = At(i + 1);
    return tablet.table_id == next.table_id && !next.tablet.begin.empty() &&
           tablet.tablet.end == next.tablet.begin && has.rows > 0 &&
           has.tablets > kTabletsKept * sets_.size() && MayMerge(i) && MayMerge(i + 1) &&
           tablet.bytes + next.bytes < std::min(input_.merge_bytes, input_.split_bytes / 2);
  }
  void Merge() {
    std::map<uint64_t, Has> tables;
    bool all_rest = steps_.empty();
    for (const BalanceInput::Tablet& tablet : input_.tablets) {
      ++tables[tablet.table_id].tablets;
      tables[tablet.table_id].rows += tablet.rows;
      all_rest = all_rest && !tablet.moves;
    }
    size_t merges = 0;
    for (size_t i = 0; i + 1 < input_.tablets.size() && merges < kMergesMax; ++i) {
      Has& has = tables[At(i).table_id];
      if (At(i).set != At(i + 1).set || !AreForOne(i, has)) continue;
      taken_[i] = taken_[i + 1] = true;
      ++merges;
      steps_.push_back({.kind = BalanceStep::Kind::kMerge, .tablet = i, .reason = WhyOne(i, has)});
      --has.tablets;
    }
    if (!all_rest || merges > 0) return;
    size_t gathered = 0;
    for (size_t i = 0; i + 1 < input_.tablets.size() && gathered < kGatheredMax; ++i) {
      Has& has = tables[At(i).table_id];
      if (!AreForOne(i, has) || !Gather(i, has)) continue;
      taken_[i] = taken_[i + 1] = true;
      ++gathered;
      --has.tablets;
    }
  }
  std::string WhyOne(size_t i, const Has& has) const {
    return fmt::format(
        "both have {} bytes, and next to no load; their table has {} tablets for {} sets",
        At(i).bytes + At(i + 1).bytes, has.tablets, sets_.size());
  }
  // Moves one of the two to the other's set.
  bool Gather(size_t i, const Has& has) {
    const size_t moved = At(i).bytes < At(i + 1).bytes ? i : i + 1;
    const size_t stays = moved == i ? i + 1 : i;
    for (const auto& [it, other] : {std::pair{moved, stays}, std::pair{stays, moved}}) {
      const uint64_t to = At(other).set;
      const bool may =
          MayMove(it) && Takes(to, At(it).bytes) && StaysEven(At(it).set, to, At(it).bytes);
      if (!may) continue;
      Move(it, to, "to become one with its neighbour: " + WhyOne(i, has));
      return true;
    }
    return false;
  }
  // Whether that leaves sets half as uneven as what is spread.
  bool StaysEven(uint64_t from, uint64_t to, uint64_t bytes) const {
    const uint64_t mean = EndsOf(bytes_, &BalanceInput::Set::answers).mean;
    const uint64_t more = bytes_.at(to) + bytes;
    const uint64_t less = bytes_.at(from) - std::min(bytes_.at(from), bytes);
    const uint64_t apart = std::max(more - std::min(more, mean), mean - std::min(mean, less));
    return apart * 200 <= mean * kSpreadPercent || apart * 2 <= input_.split_bytes / kTinyPart;
  }

  const BalanceInput& input_;
  std::map<uint64_t, const BalanceInput::Set*> sets_;
  std::map<uint64_t, uint64_t> bytes_;  // as they will be
  std::map<uint64_t, uint64_t> loads_;  // likewise
  std::map<uint64_t, uint64_t> loops_;  // likewise
  std::set<uint64_t> has_some_;         // sets that have tablets, or are about to
  std::map<uint64_t, uint64_t> moving_;
  std::vector<bool> taken_;
  std::vector<size_t> order_;
  std::vector<BalanceStep> steps_;
};

}  // namespace

std::set<uint64_t> HotSets(const BalanceInput& input) { return Planner(input).HotSets(); }

std::vector<BalanceStep> PlanBalance(const BalanceInput& input) { return Planner(input).Plan(); }

}  // namespace cellar
