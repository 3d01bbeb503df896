// See change_news.h.
#include "commands/session/change_news.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"

namespace cellar {
namespace {

size_t BytesOf(std::string_view name) { return sizeof(std::string) + name.size(); }

}  // namespace

void ChangeNews::Ask(int64_t now_micros, uint64_t term, std::string_view run_id) {
  asked_micros_ = now_micros;
  // What others have changed meanwhile this node has not kept.
  if (wanted() && term == term_) return;
  Clear();
  term_ = term;
  epoch_ = fmt::format("{}-{}", run_id, ++epochs_);
}

void ChangeNews::OnTick(int64_t now_micros) {
  if (wanted() && now_micros - asked_micros_ > kAskedMicros) Clear();
}

void ChangeNews::Add(std::string_view name) {
  CELLAR_ASSERT(wanted());
  // A row that is written again and again is one name, until somebody has been told.
  if (end() > std::max(first_, told_) && names_.back() == name) return;
  bytes_ += BytesOf(name);
  names_.emplace_back(name);
  while (bytes_ > kBytesMax) {
    bytes_ -= BytesOf(names_.front());
    names_.pop_front();
    ++first_;
  }
}

void ChangeNews::Clear() {
  epoch_.clear();
  first_ = end();
  names_.clear();
  bytes_ = 0;
}

}  // namespace cellar
