// See load_samples.h.
#include "heat/load_samples.h"

#include <algorithm>
#include <tuple>

namespace cellar {

void LoadSamples::Restart(int64_t now_micros) {
  samples_.clear();
  distance_ = 1;
  begin_micros_ = tighten_micros_ = now_micros;
}

void LoadSamples::Expire(int64_t now_micros) {
  while (!samples_.empty() && samples_.front().micros <= now_micros - kWindowMicros)
    samples_.pop_front();
  if (samples_.size() >= kFewSamples || now_micros < tighten_micros_) return;
  tighten_micros_ = now_micros + kTightenMicros;
  distance_ = std::max<uint64_t>(1, distance_ / 2);
}

// Every second one stands for its neighbour, too: which is drawn by lot, as they have come.
void LoadSamples::Thin() {
  std::deque<Sample> kept;
  for (size_t i = 0; i + 1 < samples_.size(); i += 2) {
    Sample& sample = samples_[i];
    sample.nanos *= 2;
    kept.push_back(std::move(sample));
  }
  samples_ = std::move(kept);
  distance_ *= 2;
}

void LoadSamples::Add(const Row& row, uint64_t nanos, uint64_t commands, int64_t now_micros) {
  Expire(now_micros);
  if (samples_.size() >= kSamplesMax) {
    Thin();
    tighten_micros_ = now_micros + kTightenMicros;
  }
  const uint64_t own = nanos + kCommandNanos;
  const uint64_t others = std::min(own, kOthersNanosMax / commands) * (commands - 1);
  samples_.push_back({.table_id = row.table_id,
                      .key = std::string(row.key.substr(0, kKeyBytesMax)),
                      .nanos = own + others,
                      .micros = now_micros,
                      .is_whole = row.is_whole && row.key.size() <= kKeyBytesMax,
                      .is_walk = row.is_walk});
}

LoadView LoadSamples::View(int64_t now_micros) {
  Expire(now_micros);
  LoadView view;
  view.window_micros_ = std::clamp<int64_t>(now_micros - begin_micros_, 1'000'000, kWindowMicros);
  view.samples_.assign(samples_.begin(), samples_.end());
  std::sort(view.samples_.begin(), view.samples_.end(), [](const Sample& a, const Sample& b) {
    return std::tie(a.table_id, a.key) < std::tie(b.table_id, b.key);
  });
  return view;
}

RangeLoad LoadView::Of(uint64_t table_id, std::string_view begin, std::string_view end) const {
  using Sample = LoadSamples::Sample;
  using Place = std::pair<uint64_t, std::string_view>;
  const auto is_before = [](const Sample& sample, const Place& place) {
    return Place{sample.table_id, sample.key} < place;
  };
  const auto first =
      std::lower_bound(samples_.begin(), samples_.end(), Place{table_id, begin}, is_before);
  const auto last =
      std::lower_bound(first, samples_.end(),
                       end.empty() ? Place{table_id + 1, {}} : Place{table_id, end}, is_before);
  RangeLoad load;
  uint64_t nanos = 0;
  for (auto sample = first; sample != last; ++sample) nanos += sample->nanos;
  if (nanos == 0) return load;
  load.permille = nanos / static_cast<uint64_t>(window_micros_);
  if (static_cast<size_t>(last - first) < kMiddleSamplesMin) return load;
  uint64_t before = 0;
  uint64_t top = 0;
  uint64_t best = nanos;  // how far from the half
  auto top_row = first;
  for (auto row = first; row != last;) {
    uint64_t own = 0;
    uint64_t walks = 0;
    auto next = row;
    for (; next != last && next->key == row->key; ++next) {
      own += next->nanos;
      if (next->is_walk) walks += next->nanos;
    }
    if (own - walks > top) {
      top = own - walks;
      top_row = row;
    }
    const uint64_t apart = 2 * before > nanos ? 2 * before - nanos : nanos - 2 * before;
    if (before > 0 && row->is_whole && apart < best) {
      best = apart;
      load.middle = row->key;
    }
    before += own;
    row = next;
  }
  // Half of it is no more than half.
  load.top_percent = (top * 100 + nanos - 1) / nanos;
  if (2 * top > nanos) load.middle = top_row->is_whole ? top_row->key : std::string();
  return load;
}

}  // namespace cellar
