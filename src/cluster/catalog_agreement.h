// How the sets of a cluster agree on one schema. Its changes are numbered, and made at set 0:
//
//   set 0 logs change n, and holds replies behind it
//   when it is committed there the other sets are told, each in the order of numbers
//   each logs it, holds replies behind it, and answers when it is committed there
//   when all have answered, the holds end
//
// So what one set shows all sets have: no client sees a change before another one sees it not. A
// change that is committed at set 0 is not taken back; who takes over there goes on with it. A set
// that does not answer ends the holds after kHoldMicros: from then on it is behind, and told as
// soon as it answers again. tests/cluster/catalog_model.py is this as a model.
//
// Neither store nor sockets nor clocks: numbers and times go in, and what is to be done comes out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

namespace cellar {

// So long, at most, are replies held behind a change (SCALE: 500 ms).
inline constexpr int64_t kHoldMicros{500'000};
// A cut that is not good by then is bad.
inline constexpr int64_t kCutMicros{1'000'000};

// Set 0's part, at its leader.
class CatalogDirector {
 public:
  // What it has others do.
  class Teller {
   public:
    virtual ~Teller() = default;
    // Tells the set of the change of that number; 0: of the whole schema, as it is committed.
    virtual void TellChange(uint64_t set, uint64_t number) = 0;
    virtual void TellRelease(uint64_t set, uint64_t number) = 0;
  };

  explicit CatalogDirector(Teller& teller) : teller_(teller) {}

  // This node has become the leader; its log has changes up to `number`, and has told of them
  // nobody knows. `changed_micros`: when the last one was made.
  void Begin(uint64_t number, int64_t changed_micros, int64_t now_micros);
  void End();
  bool active() const { return active_; }

  // --- what happens
  // The own set has made changes up to `number`.
  void OnChanged(uint64_t number, int64_t now_micros);
  // ... and they are committed up to there. `kept`: from there on their changes can be told one by
  // one; a set that has not so many is told of the whole.
  void OnCommitted(uint64_t number, uint64_t kept);
  // The set belongs to the cluster.
  void AddSet(uint64_t set);
  // ... and does no more: nobody waits for it.
  void RemoveSet(uint64_t set);
  // Its leader is here, and has changes up to `number` committed; nothing: it has none of this
  // cluster's.
  void OnReport(uint64_t set, std::optional<uint64_t> number);
  void OnAnswer(uint64_t set, uint64_t number);
  void OnLost(uint64_t set);
  void OnTick(int64_t now_micros);
  // The last change is a cut; `fits`: at the own set. One that was open is bad then. REQUIRES:
  // OnChanged with its number has come, and OnCommitted has not.
  void OnCut(uint64_t number, bool fits, int64_t now_micros);
  // What a set says of its hold.
  void OnConfirmed(uint64_t set, uint64_t number, bool in_time);

  // --- what is so
  enum class Cut : uint8_t { kNone, kOpen, kGood, kBad };
  // Of the last one; kNone: that is another one, of another director perhaps.
  Cut cut(uint64_t number) const { return number == cut_number_ ? cut_ : Cut::kNone; }
  bool cut_is_open() const { return cut_ == Cut::kOpen; }
  // Replies are held that depend on the change of this number or a later one; 0: none are.
  uint64_t held_from() const { return held_from_; }
  // All sets have this number, as far as is known.
  uint64_t all_have() const;
  // The first set that has not `number`; nothing: all have.
  std::optional<uint64_t> WhoLacks(uint64_t number) const;
  uint64_t changed() const { return changed_; }
  uint64_t committed() const { return committed_; }

 private:
  struct Member {
    bool here{false};
    uint64_t have{0};
    uint64_t told{0};
    bool knows_nothing{false};  // it is to be told of the whole
  };
  void TellWhatLacks(uint64_t set, Member* member);
  void EndHoldIfDue();
  void JudgeCut();

  Teller& teller_;
  bool active_{false};
  uint64_t changed_{0};
  uint64_t committed_{0};
  uint64_t kept_{0};
  uint64_t released_{0};  // sets were told that all have this
  uint64_t held_from_{0};
  int64_t held_until_{0};
  std::map<uint64_t, Member> members_;
  Cut cut_{Cut::kNone};
  uint64_t cut_number_{0};
  int64_t cut_until_{0};
  bool own_lasted_{false};            // the own hold, until all had the cut
  std::set<uint64_t> unconfirmed_{};  // the sets that have said nothing yet
};

// Another set's part, at its leader.
class CatalogMember {
 public:
  // This node leads; its log has changes up to `number`, the last one made at `changed_micros`.
  void Begin(uint64_t number, int64_t changed_micros, int64_t now_micros);
  void End() { held_from_ = cut_number_ = 0; }

  // Whether the change is the next one: then it is to be logged, and OnChanged comes.
  bool Wants(uint64_t number) const { return number == changed_ + 1; }
  void OnChanged(uint64_t number, int64_t now_micros);
  // The last change is a cut. REQUIRES: OnChanged with its number has come.
  void OnCut(uint64_t number, bool fits);
  struct Confirmation {
    uint64_t number{0};
    bool in_time{false};
  };
  // All sets have these. What is to be answered: of a cut, the same each time.
  std::optional<Confirmation> OnRelease(uint64_t number);
  void OnTick(int64_t now_micros);

  uint64_t held_from() const { return held_from_; }
  uint64_t changed() const { return changed_; }

 private:
  uint64_t changed_{0};
  uint64_t held_from_{0};
  int64_t held_until_{0};
  // The last cut that this leader has logged; 0: none.
  uint64_t cut_number_{0};
  bool cut_fits_{false};
  std::optional<bool> cut_in_time_{};  // once it is known
};

}  // namespace cellar
