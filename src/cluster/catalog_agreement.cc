// See catalog_agreement.h.
#include "cluster/catalog_agreement.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {

void CatalogDirector::Begin(uint64_t number, int64_t changed_micros, int64_t now_micros) {
  active_ = true;
  changed_ = number;
  committed_ = kept_ = released_ = 0;
  held_from_ = 0;
  held_until_ = changed_micros + kHoldMicros;
  // Who led before may not have heard that all have the last one.
  if (number > 0 && now_micros < held_until_) held_from_ = number;
  members_.clear();
  cut_ = Cut::kNone;
  cut_number_ = 0;
}

void CatalogDirector::End() {
  active_ = false;
  held_from_ = 0;
  members_.clear();
  cut_ = Cut::kNone;
  cut_number_ = 0;
}

void CatalogDirector::OnChanged(uint64_t number, int64_t now_micros) {
  CELLAR_ASSERT(number > changed_);
  // One behind another does not lengthen it: no reply waits for longer than one hold lasts.
  if (held_from_ == 0) {
    held_from_ = changed_ + 1;
    held_until_ = now_micros + kHoldMicros;
  }
  changed_ = number;
}

void CatalogDirector::OnCommitted(uint64_t number, uint64_t kept) {
  CELLAR_ASSERT(number <= changed_);
  kept_ = kept;
  if (number <= committed_) return;
  committed_ = number;
  for (auto& [set, member] : members_) TellWhatLacks(set, &member);
  EndHoldIfDue();
}

void CatalogDirector::AddSet(uint64_t set) { members_.try_emplace(set); }

// In order, each once: links keep the order, and who comes back says what he has.
void CatalogDirector::TellWhatLacks(uint64_t set, Member* member) {
  if (!member->here || committed_ == 0) return;
  if (member->knows_nothing || member->told + 1 < kept_) {
    // What is not committed is in the schema already.
    if (member->told == committed_ || changed_ != committed_) return;
    member->told = committed_;
    member->knows_nothing = false;
    return teller_.TellChange(set, 0);
  }
  while (member->told < committed_) teller_.TellChange(set, ++member->told);
}

void CatalogDirector::RemoveSet(uint64_t set) {
  members_.erase(set);
  EndHoldIfDue();
  if (cut_ == Cut::kOpen && unconfirmed_.contains(set)) cut_ = Cut::kBad;
}

void CatalogDirector::OnReport(uint64_t set, std::optional<uint64_t> number) {
  const auto found = members_.find(set);
  if (found == members_.end()) return;
  Member& member = found->second;
  member.here = true;
  member.knows_nothing = !number.has_value();
  member.have = member.told = number.value_or(0);
  TellWhatLacks(set, &member);
  // It may have missed the end of its hold.
  if (number && *number == released_ && released_ > 0) teller_.TellRelease(set, released_);
  EndHoldIfDue();
}

void CatalogDirector::OnAnswer(uint64_t set, uint64_t number) {
  const auto found = members_.find(set);
  if (found == members_.end() || !found->second.here) return;
  Member& member = found->second;
  member.have = std::max(member.have, number);
  if (number == released_ && released_ > 0) teller_.TellRelease(set, released_);
  EndHoldIfDue();
}

void CatalogDirector::OnLost(uint64_t set) {
  const auto found = members_.find(set);
  if (found != members_.end()) found->second.here = false;
}

uint64_t CatalogDirector::all_have() const {
  uint64_t number = committed_;
  for (const auto& [set, member] : members_) number = std::min(number, member.have);
  return number;
}

std::optional<uint64_t> CatalogDirector::WhoLacks(uint64_t number) const {
  if (committed_ < number) return 0;
  for (const auto& [set, member] : members_)
    if (member.have < number) return set;
  return std::nullopt;
}

void CatalogDirector::EndHoldIfDue() {
  const uint64_t number = all_have();
  if (number <= released_) {
    if (held_from_ > 0 && released_ == changed_) held_from_ = 0;
    return;
  }
  released_ = number;
  if (cut_ == Cut::kOpen && number >= cut_number_ && !own_lasted_) {
    own_lasted_ = held_from_ != 0 && held_from_ <= cut_number_;
    if (!own_lasted_) cut_ = Cut::kBad;
  }
  held_from_ = number == changed_ ? 0 : std::max(held_from_, number + 1);
  for (const auto& [set, member] : members_)
    if (member.here) teller_.TellRelease(set, number);
  JudgeCut();
}

void CatalogDirector::OnTick(int64_t now_micros) {
  if (held_from_ > 0 && now_micros >= held_until_) {
    held_from_ = 0;
    if (cut_ == Cut::kOpen && !own_lasted_) cut_ = Cut::kBad;
  }
  if (cut_ == Cut::kOpen && now_micros >= cut_until_) cut_ = Cut::kBad;
}

void CatalogDirector::OnCut(uint64_t number, bool fits, int64_t now_micros) {
  CELLAR_ASSERT(number == changed_);
  CELLAR_ASSERT(committed_ < number);
  cut_ = fits ? Cut::kOpen : Cut::kBad;
  cut_number_ = number;
  cut_until_ = now_micros + kCutMicros;
  own_lasted_ = false;
  unconfirmed_.clear();
  for (const auto& [set, member] : members_) unconfirmed_.insert(set);
}

void CatalogDirector::OnConfirmed(uint64_t set, uint64_t number, bool in_time) {
  if (cut_ != Cut::kOpen || number != cut_number_) return;
  if (!in_time) {
    cut_ = Cut::kBad;
    return;
  }
  unconfirmed_.erase(set);
  JudgeCut();
}

void CatalogDirector::JudgeCut() {
  if (cut_ == Cut::kOpen && own_lasted_ && unconfirmed_.empty()) cut_ = Cut::kGood;
}

void CatalogMember::Begin(uint64_t number, int64_t changed_micros, int64_t now_micros) {
  changed_ = number;
  held_until_ = changed_micros + kHoldMicros;
  held_from_ = number > 0 && now_micros < held_until_ ? number : 0;
  cut_number_ = 0;
}

void CatalogMember::OnChanged(uint64_t number, int64_t now_micros) {
  CELLAR_ASSERT(number > changed_);
  // One behind another does not lengthen it: no reply waits for longer than one hold lasts.
  if (held_from_ == 0) {
    held_from_ = changed_ + 1;
    held_until_ = now_micros + kHoldMicros;
  }
  changed_ = number;
}

void CatalogMember::OnCut(uint64_t number, bool fits) {
  CELLAR_ASSERT(number == changed_);
  cut_number_ = number;
  cut_fits_ = fits;
  cut_in_time_.reset();
}

std::optional<CatalogMember::Confirmation> CatalogMember::OnRelease(uint64_t number) {
  const bool of_cut =
      cut_number_ != 0 && (number == cut_number_ || (number > cut_number_ && !cut_in_time_));
  if (of_cut && !cut_in_time_)
    cut_in_time_ = cut_fits_ && held_from_ != 0 && held_from_ <= cut_number_;
  if (held_from_ != 0) held_from_ = number >= changed_ ? 0 : std::max(held_from_, number + 1);
  if (!of_cut) return std::nullopt;
  return Confirmation{cut_number_, *cut_in_time_};
}

void CatalogMember::OnTick(int64_t now_micros) {
  if (held_from_ > 0 && now_micros >= held_until_) held_from_ = 0;
}

}  // namespace cellar
