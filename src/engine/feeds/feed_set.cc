// See feed_set.h.
#include "engine/feeds/feed_set.h"

#include <algorithm>

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {

// --- history

void TableHistory::Note(uint64_t table_id, TableVersion version) {
  bytes_ += BytesOf(version);
  std::vector<TableVersion>& versions = versions_[table_id];
  CELLAR_ASSERT(versions.empty() || versions.back().from_micros <= version.from_micros);
  versions.push_back(std::move(version));
  if (undoing_) noted_.push_back(table_id);
}

const TableVersion* TableHistory::At(uint64_t table_id, int64_t micros) const {
  const auto found = versions_.find(table_id);
  if (found == versions_.end()) return nullptr;
  const auto& versions = found->second;
  const auto behind = std::upper_bound(
      versions.begin(), versions.end(), micros,
      [](int64_t at, const TableVersion& version) { return at < version.from_micros; });
  if (behind == versions.begin() || (behind - 1)->schema.empty()) return nullptr;
  return &*(behind - 1);
}

void TableHistory::ForgetBefore(int64_t micros) {
  CELLAR_ASSERT(!undoing_);
  for (auto at = versions_.begin(); at != versions_.end();) {
    auto& versions = at->second;
    auto keep = std::upper_bound(
        versions.begin(), versions.end(), micros,
        [](int64_t time, const TableVersion& version) { return time < version.from_micros; });
    // The last one before holds until the next one, unless it is the end of the table.
    if (keep != versions.begin() && !(keep - 1)->schema.empty()) --keep;
    for (auto gone = versions.begin(); gone != keep; ++gone) bytes_ -= BytesOf(*gone);
    versions.erase(versions.begin(), keep);
    at = versions.empty() ? versions_.erase(at) : std::next(at);
  }
}

int64_t TableHistory::TimeToForget(size_t bytes_max) const {
  if (bytes_ <= bytes_max) return 0;
  std::vector<std::pair<int64_t, size_t>> replaced;  // when a version was, and what it takes
  for (const auto& [id, versions] : versions_) {
    for (size_t i = 1; i < versions.size(); ++i)
      replaced.emplace_back(versions[i].from_micros, BytesOf(versions[i - 1]));
  }
  std::sort(replaced.begin(), replaced.end());
  size_t left = bytes_;
  for (const auto& [micros, bytes] : replaced) {
    left -= bytes;
    if (left <= bytes_max) return micros;
  }
  return replaced.empty() ? 0 : replaced.back().first;
}

void TableHistory::Clear() {
  CELLAR_ASSERT(!undoing_);
  versions_.clear();
  bytes_ = 0;
}

void TableHistory::RollBack() {
  for (auto id = noted_.rbegin(); id != noted_.rend(); ++id) {
    std::vector<TableVersion>& versions = versions_[*id];
    bytes_ -= BytesOf(versions.back());
    versions.pop_back();
    if (versions.empty()) versions_.erase(*id);
  }
  ForgetUndo();
}

void TableHistory::ForgetUndo() {
  undoing_ = false;
  noted_.clear();
}

// history  | v tables { v id, v versions { from i64, b keyspace, b name, b schema } }
void TableHistory::Encode(std::string* to) const {
  PutVarint64(to, versions_.size());
  for (const auto& [id, versions] : versions_) {
    PutVarint64(to, id);
    PutVarint64(to, versions.size());
    for (const TableVersion& version : versions) {
      PutFixed64(to, static_cast<uint64_t>(version.from_micros));
      PutLengthPrefixed(to, version.keyspace);
      PutLengthPrefixed(to, version.name);
      PutLengthPrefixed(to, version.schema);
    }
  }
}

bool TableHistory::Decode(std::string_view* from) {
  uint64_t tables = 0;
  if (!GetVarint64(from, &tables)) return false;
  for (uint64_t i = 0; i < tables; ++i) {
    uint64_t id = 0;
    uint64_t count = 0;
    if (!GetVarint64(from, &id) || !GetVarint64(from, &count) || count == 0) return false;
    for (uint64_t j = 0; j < count; ++j) {
      uint64_t micros = 0;
      std::string_view keyspace;
      std::string_view name;
      std::string_view schema;
      if (!GetFixed64(from, &micros) || !GetLengthPrefixed(from, &keyspace) ||
          !GetLengthPrefixed(from, &name) || !GetLengthPrefixed(from, &schema)) {
        return false;
      }
      const auto from_micros = static_cast<int64_t>(micros);
      const auto known = versions_.find(id);
      if (known != versions_.end() && known->second.back().from_micros > from_micros) return false;
      Note(id, {from_micros, std::string(keyspace), std::string(name), std::string(schema)});
    }
  }
  return true;
}

// --- feeds

const Feed* FeedSet::Find(std::string_view keyspace, std::string_view name) const {
  if (by_name_.empty()) return nullptr;
  const auto found = by_name_.find(std::pair(std::string(keyspace), std::string(name)));
  return found == by_name_.end() ? nullptr : FindById(found->second);
}

const Feed* FeedSet::FindById(uint64_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &found->second;
}

std::vector<const Feed*> FeedSet::Feeds(std::string_view keyspace) const {
  std::vector<const Feed*> feeds;
  for (auto at = by_name_.lower_bound(std::pair(std::string(keyspace), std::string()));
       at != by_name_.end() && at->first.first == keyspace; ++at) {
    feeds.push_back(FindById(at->second));
  }
  return feeds;
}

std::vector<const Feed*> FeedSet::All() const {
  std::vector<const Feed*> feeds;
  for (const auto& [id, feed] : by_id_) feeds.push_back(&feed);
  return feeds;
}

const Feed* FeedSet::FindBehind(uint64_t id) const {
  const auto found = by_id_.upper_bound(id);
  return found == by_id_.end() ? nullptr : &found->second;
}

void FeedSet::Add(Feed feed) {
  const bool named = by_name_.emplace(std::pair(feed.keyspace, feed.name), feed.id).second;
  const uint64_t id = feed.id;
  if (feed.tells_pre_images()) ++telling_old_;
  const bool numbered = by_id_.emplace(id, std::move(feed)).second;
  CELLAR_ASSERT(named);
  CELLAR_ASSERT(numbered);
}

void FeedSet::Drop(uint64_t id) {
  const auto found = by_id_.find(id);
  CELLAR_ASSERT(found != by_id_.end());
  by_name_.erase(std::pair(found->second.keyspace, found->second.name));
  if (found->second.tells_pre_images()) --telling_old_;
  by_id_.erase(found);
  groups_.DropFeed(id);
  groups_.DropFeed(WholeFeedGroups(id));
  // Inside a transaction the last one may come back; what is kept then goes with the next one.
  if (by_id_.empty() && before_ == nullptr) history_.Clear();
}

bool FeedSet::Trim(uint64_t id, std::string_view bytes) {
  const auto found = by_id_.find(id);
  return found != by_id_.end() && DecodeFeedTrim(bytes, &found->second);
}

bool FeedSet::SetHome(uint64_t id, std::string_view bytes, uint64_t own_set) {
  const auto found = by_id_.find(id);
  FeedHome home;
  if (found == by_id_.end() || !DecodeFeedHome(&bytes, &home) || !bytes.empty()) return false;
  home.awaits = home.awaits && home.set == own_set;
  found->second.home = home;
  if (!home.from && home.set != own_set) groups_.DropFeed(WholeFeedGroups(id));
  return true;
}

void FeedSet::BeginUndo() {
  CELLAR_ASSERT(before_ == nullptr);
  before_ = std::make_unique<std::map<uint64_t, Feed>>(by_id_);
  groups_.BeginUndo();
  history_.BeginUndo();
}

void FeedSet::RollBack() {
  CELLAR_ASSERT(before_ != nullptr);
  by_id_ = std::move(*before_);
  before_.reset();
  by_name_.clear();
  telling_old_ = 0;
  for (const auto& [id, feed] : by_id_) {
    by_name_.emplace(std::pair(feed.keyspace, feed.name), id);
    if (feed.tells_pre_images()) ++telling_old_;
  }
  groups_.RollBack();
  history_.RollBack();
}

void FeedSet::ForgetUndo() {
  CELLAR_ASSERT(before_ != nullptr);
  before_.reset();
  groups_.ForgetUndo();
  history_.ForgetUndo();
  if (by_id_.empty()) history_.Clear();
}

// feeds  | v feeds { v id, b keyspace, b name, b definition, b trim } | history |
void FeedSet::Encode(std::string* to) const {
  PutVarint64(to, by_id_.size());
  for (const auto& [id, feed] : by_id_) {
    PutVarint64(to, id);
    PutLengthPrefixed(to, feed.keyspace);
    PutLengthPrefixed(to, feed.name);
    PutLengthPrefixed(to, EncodeFeedDefinition(feed));
    PutLengthPrefixed(to, EncodeFeedTrim(feed.through_micros, feed.dropped));
  }
  history_.Encode(to);
}

bool FeedSet::Decode(std::string_view* from) {
  uint64_t feeds = 0;
  if (!GetVarint64(from, &feeds) || feeds > kFeedsMax) return false;
  for (uint64_t i = 0; i < feeds; ++i) {
    Feed feed;
    std::string_view keyspace;
    std::string_view name;
    std::string_view definition;
    std::string_view trim;
    if (!GetVarint64(from, &feed.id) || !GetLengthPrefixed(from, &keyspace) ||
        !GetLengthPrefixed(from, &name) || !GetLengthPrefixed(from, &definition) ||
        !GetLengthPrefixed(from, &trim) || !DecodeFeedDefinition(&definition, &feed) ||
        !definition.empty() || !DecodeFeedTrim(trim, &feed)) {
      return false;
    }
    feed.keyspace = keyspace;
    feed.name = name;
    if (by_id_.contains(feed.id) || Find(keyspace, name) != nullptr) return false;
    Add(std::move(feed));
  }
  return history_.Decode(from);
}

}  // namespace cellar
