// See balance_plan.h.
#include "cluster/balance_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace cellar {
namespace {

// Early splits, and what is not worth a move: parts of split_bytes.
constexpr uint64_t kEarlyPart{16};
constexpr uint64_t kTinyPart{64};

class Planner {
 public:
  explicit Planner(const BalanceInput& input) : input_(input) {
    for (const BalanceInput::Set& set : input.sets) {
      sets_[set.number] = &set;
      bytes_[set.number] = 0;
      moving_[set.number] = set.moving;
    }
    for (const BalanceInput::Tablet& tablet : input.tablets)
      if (bytes_.contains(tablet.to)) bytes_[tablet.to] += tablet.bytes;
    taken_.resize(input.tablets.size());
    // The largest first; of equal ones that which stands first.
    order_.resize(input.tablets.size());
    for (size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    std::stable_sort(order_.begin(), order_.end(), [&input](size_t a, size_t b) {
      return input.tablets[a].bytes > input.tablets[b].bytes;
    });
  }

  std::vector<BalanceStep> Plan() {
    Drain();
    if (!input_.spreads) return std::move(steps_);
    Relieve();
    Split();
    Spread();
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
  // The emptiest set that takes so much; of equal ones the first.
  std::optional<uint64_t> Emptiest(uint64_t but, uint64_t bytes) const {
    std::optional<uint64_t> best;
    for (const auto& [number, set] : sets_) {
      if (number == but || set->draining || !Rests(number) || !HasRoom(number, bytes)) continue;
      if (!best || bytes_.at(number) < bytes_.at(*best)) best = number;
    }
    return best;
  }
  void Move(size_t i, uint64_t to, std::string reason) {
    const BalanceInput::Tablet& tablet = At(i);
    bytes_[tablet.set] -= std::min(bytes_[tablet.set], tablet.bytes);
    bytes_[to] += tablet.bytes;
    ++moving_[tablet.set];
    ++moving_[to];
    taken_[i] = true;
    steps_.push_back({BalanceStep::Kind::kMove, i, to, std::move(reason)});
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
      steps_.push_back({BalanceStep::Kind::kSplit, i, 0,
                        fmt::format("it has {} bytes", tablet.bytes) +
                            (early ? fmt::format(", and its table {} tablets for {} sets",
                                                 counts[tablet.table_id] - 1, sets_.size())
                                   : std::string())});
    }
  }

  void Spread() {
    while (SpreadOne()) {
    }
  }
  bool SpreadOne() {
    uint64_t total = 0;
    size_t count = 0;
    std::optional<uint64_t> most;
    std::optional<uint64_t> least;
    for (const auto& [number, set] : sets_) {
      if (set->draining || !set->answers) continue;
      total += bytes_[number];
      ++count;
      if (!most || bytes_[number] > bytes_[*most]) most = number;
      if (!least || bytes_[number] < bytes_[*least]) least = number;
    }
    if (count < 2 || *most == *least || !Rests(*most) || !Rests(*least)) return false;
    const uint64_t mean = total / count;
    const uint64_t above = bytes_[*most] - std::min(bytes_[*most], mean);
    const uint64_t below = mean - std::min(mean, bytes_[*least]);
    const uint64_t worst = std::max(above, below);
    if (worst * 100 <= mean * kSpreadPercent || worst <= input_.split_bytes / kTinyPart)
      return false;
    // What makes both the most equal, and by more than a twentieth of the mean.
    const uint64_t apart = bytes_[*most] - bytes_[*least];
    std::optional<size_t> best;
    uint64_t best_apart = apart - std::min(apart, mean / 20);
    for (const size_t i : order_) {
      const uint64_t bytes = At(i).bytes;
      if (At(i).set != *most || !MayMove(i) || bytes == 0 || bytes >= apart) continue;
      const uint64_t then = 2 * bytes > apart ? 2 * bytes - apart : apart - 2 * bytes;
      if (then >= best_apart || !HasRoom(*least, bytes)) continue;
      best = i;
      best_apart = then;
    }
    if (!best) {
      SplitFor(*most);
      return false;
    }
    Move(*best, *least,
         fmt::format("set {} has {} bytes, set {} {}", *most, bytes_[*most], *least,
                     bytes_[*least]));
    return true;
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
      steps_.push_back(
          {BalanceStep::Kind::kSplit, i, 0,
           fmt::format("it has {} bytes, too many to make the sets more even", tablet.bytes)});
      return;
    }
  }

  const BalanceInput& input_;
  std::map<uint64_t, const BalanceInput::Set*> sets_;
  std::map<uint64_t, uint64_t> bytes_;  // as they will be
  std::map<uint64_t, uint64_t> moving_;
  std::vector<bool> taken_;
  std::vector<size_t> order_;
  std::vector<BalanceStep> steps_;
};

}  // namespace

std::vector<BalanceStep> PlanBalance(const BalanceInput& input) { return Planner(input).Plan(); }

}  // namespace cellar
