// See near_search.h.
#include "engine/scans/near_search.h"

#include <optional>
#include <utility>

#include "base/assert.h"
#include "engine/scans/index_scan.h"

namespace cellar {

Scan& NearRowSearch::OpenedScan(size_t i) {
  if (scans_[i] == nullptr) scans_[i] = open_reverse_();
  return *scans_[i];
}

// Forwards first, beginning with the row itself; backwards only if nothing stands there.
bool NearRowSearch::Step(uint64_t cells_max) {
  for (; scan_at_ < std::size(scans_); ++scan_at_) {
    Scan& scan = OpenedScan(scan_at_);
    scan.SetBudget(cells_max);
    const ScanStep step = scan.Next();
    if (step == ScanStep::kPause) return false;
    if (step == ScanStep::kEnd) continue;
    CELLAR_ASSERT(step == ScanStep::kRow);
    found_ = true;
    place_.row = scan.row_text();
    place_.direction = scan_at_ > 0 ? -1 : 1;
    if (place_.row == row_) place_.direction = 0;
    break;
  }
  return true;
}

void NearRowSearch::Detach() {
  // The second scan has to be opened as well: from now on the table may change.
  for (size_t i = scan_at_; i < std::size(scans_); ++i) OpenedScan(i).Detach();
}

Result<std::unique_ptr<NearSearch>> NearEntrySearch::Create(
    std::unique_ptr<ReadView> view, std::string_view name,
    const std::vector<std::string_view>& values) {
  ASSIGN_OR_RETURN(const IndexSchema* const index, FindIndex(*view, name));
  std::unique_ptr<NearEntrySearch> search(new NearEntrySearch(std::move(view)));
  search->index_id_ = index->id;
  search->order_ = IndexOrder(search->view_->schema(), *index);
  RETURN_IF_ERROR(EncodeIndexValues(name, search->order_, values, &search->prefix_));
  RETURN_IF_ERROR(CheckIndexReady(*search->view_, *index));
  search->at_ = search->view_->MakeIndexCursor(index->id);
  search->at_->Seek(search->prefix_);
  return std::unique_ptr<NearSearch>(std::move(search));
}

void NearEntrySearch::TakePlace() {
  const std::string_view key = at_->key();
  found_ = true;
  if (backward_) {
    place_.direction = -1;
  } else {
    place_.direction = key.starts_with(prefix_) ? 0 : 1;
  }
  place_.values = order_.DecodeValues(key);
  place_.key = key;
  const bool decoded = view_->schema().key.Decode(key.substr(order_.ValuesSize(key)), &place_.row);
  CELLAR_ASSERT(decoded);
}

// Does the row of the entry at the cursor belong to this set?
bool NearEntrySearch::Owned() const {
  if (view_->clamp() == nullptr) return true;
  const std::string_view key = at_->key();
  return view_->Owns(key.substr(order_.ValuesSize(key)));
}

bool NearEntrySearch::Step(uint64_t cells_max) {
  EntryReader entry;
  for (uint64_t cells = 0; cells < cells_max; ++cells) {
    if (!at_->valid()) {
      if (backward_) return true;
      backward_ = true;
      at_->SeekBefore(prefix_);
      continue;
    }
    if (Owned() && entry.Open(at_->value(), view_->now_micros())) {
      TakePlace();
      return true;
    }
    if (backward_) {
      at_->Prev();
    } else {
      at_->Next();
    }
  }
  return false;
}

void NearEntrySearch::Detach() {
  if (view_->detached()) return;
  std::optional<std::string> key;
  if (at_->valid()) key = at_->key();
  at_.reset();
  view_->Detach();
  at_ = view_->MakeIndexCursor(index_id_);
  if (key) at_->Seek(*key);
}

}  // namespace cellar
