// See group_sorter.h.
#include "engine/aggregate/group_sorter.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "engine/aggregate/having.h"

namespace cellar {
namespace {

constexpr size_t kPieceFirst{32};

}  // namespace

void GroupSorter::Begin(const std::vector<AggregateGroup*>& groups) {
  static_assert(kBytesPerGroup == 2 * sizeof(Entry), "entries_ and merged_");
  CELLAR_ASSERT(entries_.empty());  // so that they take what is asked for, and no more
  entries_.resize(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) entries_[i].group = groups[i];
  prepared_ = 0;
  kept_ = 0;
  piece_ = 0;
  pair_ = 0;
}

// An integer of 128 bits and a float must compare exactly. So the integer is taken apart: the
// largest double not above it, and the rest. A float has no rest.
void GroupSorter::Prepare(Entry* entry) const {
  if (order_ == GroupOrder::kSteps) {
    const StepPlace place = FindStep(plan_, plan_.fill_term, *entry->group);
    entry->rest = uint64_t{place.at} << 32 | place.bytes;
    return;
  }
  if (!plan_.sort) return;
  const PlannedReduce& reduce = plan_.reduces[*plan_.sort];
  if (GivesCell(reduce.function)) {
    SeenValue cell{ValueType::kBytes, {}};
    entry->kind = CellOf(plan_, reduce, *entry->group, &cell) ? 2 : 0;
    return;
  }
  AggregateValue value = ReduceValue(plan_, reduce, *entry->group);
  if (value.kind == AggregateValue::Kind::kCell) {  // the number of FILL
    const Number number = NumberOf(value.type, value.text);
    value.kind = number.is_integer ? AggregateValue::Kind::kInteger : AggregateValue::Kind::kDouble;
    value.integer = number.integer;
    value.floating = number.floating;
  }
  if (value.kind == AggregateValue::Kind::kInteger) {
    entry->kind = 3;
    entry->floor = static_cast<double>(value.integer);
    if (static_cast<int128_t>(entry->floor) > value.integer)
      entry->floor = std::nextafter(entry->floor, -std::numeric_limits<double>::infinity());
    entry->rest = static_cast<uint64_t>(value.integer - static_cast<int128_t>(entry->floor));
  } else if (value.kind == AggregateValue::Kind::kDouble) {
    entry->kind = std::isnan(value.floating) ? 1 : 4;
    entry->floor = entry->kind == 1 ? 0 : value.floating;
  }
}

int GroupSorter::CompareSorted(const Entry& a, const Entry& b) const {
  const auto three_way = [](const auto& x, const auto& y) { return x < y ? -1 : y < x ? 1 : 0; };
  if (a.kind < 2 || b.kind < 2) return three_way(a.kind, b.kind);
  if (a.kind == 2) {
    const PlannedReduce& reduce = plan_.reduces[*plan_.sort];
    SeenValue x{ValueType::kBytes, {}};
    SeenValue y = x;
    const bool held = CellOf(plan_, reduce, *a.group, &x) && CellOf(plan_, reduce, *b.group, &y);
    CELLAR_ASSERT(held);
    return CompareForSort(x.type, x.stored, y.type, y.stored);
  }
  if (a.floor != b.floor) return three_way(a.floor, b.floor);
  if (a.rest != b.rest) return three_way(a.rest, b.rest);
  return three_way(a.kind, b.kind);
}

// Terms end by themselves, so what stands before the step and behind it compares part by part.
int GroupSorter::CompareSeries(const Entry& a, const Entry& b) const {
  const std::string_view x = a.group->key(plan_);
  const std::string_view y = b.group->key(plan_);
  const StepPlace p = StepOf(a);
  const StepPlace q = StepOf(b);
  const int order = x.substr(0, p.at).compare(y.substr(0, q.at));
  if (order != 0) return order;
  return x.substr(p.at + p.bytes).compare(y.substr(q.at + q.bytes));
}

bool GroupSorter::Before(const Entry& a, const Entry& b) const {
  if (order_ == GroupOrder::kSteps) {
    const int series = CompareSeries(a, b);
    if (series != 0) return series < 0;
    const StepPlace p = StepOf(a);
    const StepPlace q = StepOf(b);
    const int step = a.group->key(plan_)
                         .substr(p.at, p.bytes)
                         .compare(b.group->key(plan_).substr(q.at, q.bytes));
    return plan_.terms[plan_.fill_term].descending ? step > 0 : step < 0;
  }
  if (plan_.sort) {
    const int order = CompareSorted(a, b);
    if (order != 0) return plan_.sort_descending ? order > 0 : order < 0;
  }
  const int order = a.group->key(plan_).compare(b.group->key(plan_));
  return plan_.reverse ? order > 0 : order < 0;
}

bool GroupSorter::Prepares() const {
  return plan_.sort || !plan_.having.empty() || order_ == GroupOrder::kSteps;
}

// What HAVING keeps moves to the front. True when all are prepared.
bool GroupSorter::PrepareAll(size_t* left) {
  const bool keeps_all = order_ == GroupOrder::kSteps || plan_.having.empty();
  for (; prepared_ < entries_.size() && *left > 0; --*left, ++prepared_) {
    if (!keeps_all && !HavingHolds(plan_, *entries_[prepared_].group)) continue;
    entries_[kept_] = entries_[prepared_];
    Prepare(&entries_[kept_++]);
  }
  if (prepared_ < entries_.size()) return false;
  entries_.resize(kept_);
  prepared_ = kept_;
  return true;
}

// A merge sort that can pause anywhere, since all of where it stands is in members. Sort keys are
// prepared, pieces of kPieceFirst groups sorted, neighbouring pieces merged into merged_; after
// each round over all of them that takes the place of entries_.
bool GroupSorter::Step(size_t groups) {
  const auto before = [this](const Entry& a, const Entry& b) { return Before(a, b); };
  size_t left = std::max<size_t>(groups, 1);
  if (piece_ == 0) {
    if (Prepares() && !PrepareAll(&left)) return false;
    while (pair_ < entries_.size()) {
      if (left == 0) return false;
      const size_t end = std::min(pair_ + kPieceFirst, entries_.size());
      std::sort(entries_.begin() + static_cast<ptrdiff_t>(pair_),
                entries_.begin() + static_cast<ptrdiff_t>(end), before);
      left -= std::min(left, end - pair_);
      pair_ = end;
    }
    piece_ = kPieceFirst;
    pair_ = 0;
    left_ = 0;
    right_ = std::min(piece_, entries_.size());
    merged_.clear();
  }
  while (piece_ < entries_.size()) {
    merged_.reserve(entries_.size());
    while (pair_ < entries_.size()) {
      const size_t middle = std::min(pair_ + piece_, entries_.size());
      const size_t end = std::min(pair_ + 2 * piece_, entries_.size());
      while (left_ < middle || right_ < end) {
        if (left-- == 0) return false;
        const bool from_right =
            left_ == middle || (right_ < end && before(entries_[right_], entries_[left_]));
        merged_.push_back(entries_[from_right ? right_++ : left_++]);
      }
      pair_ = end;
      left_ = end;
      right_ = std::min(end + piece_, entries_.size());
    }
    entries_.swap(merged_);
    merged_.clear();
    piece_ *= 2;
    pair_ = 0;
    left_ = 0;
    right_ = std::min(piece_, entries_.size());
  }
  return true;
}

}  // namespace cellar
