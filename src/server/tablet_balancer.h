// TabletBalancer: the director's rounds: what all sets say that their tablets have, every few
// seconds, and what PlanBalance makes of it (cluster/balance_plan.h) as jobs, splits and merges,
// each with its reason in CLUSTER EVENTS.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/balance_plan.h"
#include "cluster/tablet_memory.h"
#include "commands/session/host.h"
#include "server/move_calls.h"
#include "store/tablet_sizes.h"

namespace cellar {

class TabletBalancer {
 public:
  TabletBalancer(Host& host, MoveCalls& calls) : host_(host), calls_(calls) {}

  // REQUIRES: this node directs.
  void Step();
  // This node directs no more, or is a new director.
  void Stop();
  // A round is due, or under way.
  bool busy() const { return asking_ || now() >= next_micros_; }
  // Bytes a second that a donor copies.
  uint64_t rate() const { return Option("tablet-move-rate"); }
  // Whether anything is evened out at all.
  bool balances() const { return OptionText("tablet-balance") != "no"; }
  // Null: nobody has told. It dies with the next round.
  const TabletSize* SizeOf(uint64_t table_id, std::string_view begin) const;
  // At once: a set drains, a job has ended.
  void Hurry() { next_micros_ = std::min(next_micros_, now() + kHurryMicros); }

 private:
  static constexpr int64_t kRoundMicros{5'000'000};
  static constexpr int64_t kHurryMicros{300'000};
  static constexpr int64_t kAnswerMicros{2'000'000};
  // A set that had no room for a tablet gets none for so long.
  static constexpr int64_t kNoRoomMs{600'000};
  // A set is busy once it has been for so long.
  static constexpr int64_t kBusyMicros{5'000'000};
  // And takes more than the others for long once it has for so long.
  static constexpr int64_t kHotMicros{60'000'000};

  struct Asked {
    uint64_t ticket{0};
    std::optional<std::vector<TabletSize>> sizes{};
    bool loads{false};  // of these
  };
  int64_t now() const { return host_.clock().MonotonicMicros(); }
  void Ask();
  bool TakeAnswers();
  BalanceInput MakeInput();
  uint64_t Option(std::string_view name) const;
  std::string OptionText(std::string_view name) const;
  void Carry(const BalanceInput& input, const BalanceStep& step);
  bool Order(const BalanceInput::Tablet& tablet, const BalanceStep& step, std::string name);
  void Split(const BalanceInput::Tablet& tablet, const BalanceStep& step, const std::string& name);
  void Merge(const BalanceInput& input, const BalanceStep& step, const std::string& name);
  // Has who owns it split it, or merge it with the next one: `key` as the step has it.
  void AskFor(MoveStep::Kind kind, const BalanceInput::Tablet& tablet, const std::string& key,
              std::string what, const BalanceStep& step);
  void TakeBoundChanges();
  bool IsBusy(uint64_t set, uint64_t load_percent);
  void NoteHot(BalanceInput* input);

  Host& host_;
  MoveCalls& calls_;
  bool asking_{false};
  int64_t next_micros_{0};
  int64_t asked_micros_{0};
  std::map<uint64_t, Asked> asked_;                 // by set
  std::map<TabletMemory::Name, TabletSize> sizes_;  // as told in the last round
  std::map<uint64_t, int64_t> busy_micros_;         // sets: since then
  std::map<uint64_t, int64_t> hot_micros_;          // HotSets: since then
  TabletMemory memory_;
  // A split or a merge that an owner is asked for.
  struct BoundChange {
    TabletMemory::Name tablet;
    std::string what;
    std::string why;
  };
  std::map<uint64_t, BoundChange> bound_changes_;  // by ticket
};

}  // namespace cellar
