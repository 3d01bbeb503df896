// See hot_keys.h.
#include "heat/hot_keys.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {
namespace {

// A node of the table, beside the key's bytes, which it holds twice.
constexpr size_t kCounterBytes{160};

}  // namespace

// --- HeavyHitters

HeavyHitters::HeavyHitters(size_t counters_max, size_t key_bytes_max)
    : counters_max_(counters_max), key_bytes_max_(key_bytes_max) {}

void HeavyHitters::Swap(size_t a, size_t b) {
  std::swap(heap_[a], heap_[b]);
  heap_[a]->heap_at = a;
  heap_[b]->heap_at = b;
}

void HeavyHitters::Rise(size_t at) {
  while (at > 0 && heap_[at]->amount < heap_[(at - 1) / 2]->amount) {
    Swap(at, (at - 1) / 2);
    at = (at - 1) / 2;
  }
}

void HeavyHitters::Sink(size_t at) {
  for (;;) {
    size_t least = at;
    for (const size_t child : {2 * at + 1, 2 * at + 2}) {
      if (child < heap_.size() && heap_[child]->amount < heap_[least]->amount) least = child;
    }
    if (least == at) return;
    Swap(at, least);
    at = least;
  }
}

uint64_t HeavyHitters::RemoveLeast() {
  CELLAR_ASSERT(!heap_.empty());
  const Counter* const least = heap_.front();
  CELLAR_ASSERT(least->heap_at == 0);
  CELLAR_ASSERT(key_bytes_ >= least->key.size());
  const uint64_t amount = least->amount;
  key_bytes_ -= least->key.size();
  const std::string key = least->key;
  Swap(0, heap_.size() - 1);
  heap_.pop_back();
  if (!heap_.empty()) Sink(0);
  counters_.erase(key);
  CELLAR_ASSERT(counters_.size() == heap_.size());
  return amount;
}

void HeavyHitters::Add(std::string_view key, uint64_t amount) {
  if (counters_max_ == 0) return;
  if (const auto found = counters_.find(key); found != counters_.end()) {
    found->second.amount += amount;
    // Amounts only grow, and the least stands on top: it can only sink.
    return Sink(found->second.heap_at);
  }
  uint64_t excess = 0;
  while (!heap_.empty() &&
         (heap_.size() >= counters_max_ || key_bytes_ + key.size() > key_bytes_max_)) {
    excess = std::max(excess, RemoveLeast());
  }
  Counter& counter = counters_[std::string(key)];
  counter = {std::string(key), excess + amount, excess, heap_.size()};
  key_bytes_ += key.size();
  heap_.push_back(&counter);
  CELLAR_ASSERT(counters_.size() == heap_.size());
  Rise(counter.heap_at);
}

std::vector<HeavyHitters::Hit> HeavyHitters::Largest(size_t count) const {
  std::vector<Hit> hits;
  hits.reserve(heap_.size());
  for (const Counter* counter : heap_) {
    CELLAR_DEBUG_ASSERT(counter->amount >= counter->excess);
    if (counter->amount > counter->excess)
      hits.push_back({counter->key, counter->amount - counter->excess});
  }
  std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
    return a.amount != b.amount ? a.amount > b.amount : a.key < b.key;
  });
  if (hits.size() > count) hits.resize(count);
  return hits;
}

size_t HeavyHitters::memory_bytes() const { return heap_.size() * kCounterBytes + 2 * key_bytes_; }

// --- HotKeys

void HotKeys::Start(const Options& options, int64_t now_micros, const Totals& totals) {
  CELLAR_ASSERT(!active_);
  CELLAR_ASSERT(options.count > 0);
  CELLAR_ASSERT(options.sample > 0);
  CELLAR_ASSERT(options.cpu || options.net);
  there_ = active_ = true;
  options_ = options;
  start_micros_ = now_micros;
  begin_ = totals;
  net_bytes_ = 0;
  const size_t counters = std::max(options.count * kCountersPerKey, kCountersMin);
  by_cpu_ = HeavyHitters(options.cpu ? counters : 0, kKeyBytesMax);
  by_net_ = HeavyHitters(options.net ? counters : 0, kKeyBytesMax);
}

void HotKeys::Stop(int64_t now_micros, const Totals& totals) {
  if (!active_) return;
  CELLAR_ASSERT(there_);
  active_ = false;
  end_micros_ = now_micros;
  end_ = totals;
}

void HotKeys::Reset() {
  CELLAR_ASSERT(!active_);
  *this = HotKeys();
}

int64_t HotKeys::duration_micros(int64_t now_micros) const {
  return std::max<int64_t>(0, (active_ ? now_micros : end_micros_) - start_micros_);
}

HotKeys::Totals HotKeys::Spent(const Totals& now) const {
  const Totals& end = active_ ? now : end_;
  // CONFIG RESETSTAT may have set counters back.
  return {.command_nanos = end.command_nanos - std::min(begin_.command_nanos, end.command_nanos),
          .net_bytes = end.net_bytes - std::min(begin_.net_bytes, end.net_bytes),
          .user_micros = end.user_micros - begin_.user_micros,
          .system_micros = end.system_micros - begin_.system_micros};
}

void HotKeys::Add(std::string_view key, uint64_t nanos, uint64_t bytes) {
  CELLAR_ASSERT(active_);
  // Counted in nanoseconds, so that short commands add up.
  if (options_.cpu) by_cpu_.Add(key, nanos);
  if (options_.net) by_net_.Add(key, bytes);
  net_bytes_ += bytes;
}

}  // namespace cellar
