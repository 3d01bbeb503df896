// FeedSet: the feeds that there are, and how tables were called and made at any time that a feed
// can still tell of.
//
//   feeds     by keyspace and name, and by id
//   groups    of those feeds (feed_group.h)
//   history   table id -> versions: from which commit time on, keyspace, name, schema
//
// A record of the log names tables and families by numbers and holds keys as they are encoded. Who
// reads one much later needs the schema of then: that is what the history is for. It is kept while
// there are feeds, begins with what there was when the first one came, and is part of the catalog.
//
// `from` of a version is a time behind the commit of the step before the change, and not behind its
// own: so what held before a step is At(commit time of the one before it).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/feeds/feed.h"
#include "engine/feeds/feed_group.h"

namespace cellar {

struct TableVersion {
  int64_t from_micros{0};
  std::string keyspace;
  std::string name;
  std::string schema;  // encoded; empty: the table has been dropped
};

class TableHistory {
 public:
  void Note(uint64_t table_id, TableVersion version);
  // As the table was behind the step committed at `micros`; null if it was not there.
  const TableVersion* At(uint64_t table_id, int64_t micros) const;
  bool Knows(uint64_t table_id) const { return versions_.contains(table_id); }
  // Nobody asks any more for what was before `micros`.
  void ForgetBefore(int64_t micros);
  void Clear();
  size_t bytes() const { return bytes_; }
  // A time before which so much can be forgotten that at most `bytes_max` are left, about.
  int64_t TimeToForget(size_t bytes_max) const;

  void BeginUndo() { undoing_ = true; }
  void RollBack();
  void ForgetUndo();

  void Encode(std::string* to) const;
  [[nodiscard]] bool Decode(std::string_view* from);

 private:
  static size_t BytesOf(const TableVersion& version) {
    return sizeof(TableVersion) + version.keyspace.size() + version.name.size() +
           version.schema.size();
  }

  std::map<uint64_t, std::vector<TableVersion>> versions_;  // ascending in time
  size_t bytes_{0};
  bool undoing_{false};
  std::vector<uint64_t> noted_;  // while undoing_: whose versions are to be taken back
};

class FeedSet {
 public:
  FeedSet() = default;
  FeedSet(FeedSet&&) = default;
  FeedSet& operator=(FeedSet&&) = default;

  bool empty() const { return by_id_.empty(); }
  size_t size() const { return by_id_.size(); }
  // Does one tell of cells that were there (OLD, EXPIRED)?
  bool tells_old() const { return telling_old_ > 0; }
  const Feed* Find(std::string_view keyspace, std::string_view name) const;
  const Feed* FindById(uint64_t id) const;
  // Ascending by name.
  std::vector<const Feed*> Feeds(std::string_view keyspace) const;
  std::vector<const Feed*> All() const;  // ascending by id
  // The first one with a larger id; null if there is none.
  const Feed* FindBehind(uint64_t id) const;

  // REQUIRES: the id and the name are free.
  void Add(Feed feed);
  void Drop(uint64_t id);
  // False if the bytes are none of a trim, or there is no such feed.
  [[nodiscard]] bool Trim(uint64_t id, std::string_view bytes);

  // Likewise of a home, at that set. One that has not come there yet awaits its groups, and who was
  // home keeps its own until all of them are there.
  [[nodiscard]] bool SetHome(uint64_t id, std::string_view bytes, uint64_t own_set);

  const FeedGroups& groups() const { return groups_; }
  FeedGroups& groups() { return groups_; }
  // About what groups and versions of tables take.
  size_t bytes() const { return groups_.bytes() + history_.bytes(); }

  const TableHistory& history() const { return history_; }
  TableHistory& history() { return history_; }

  void BeginUndo();
  void RollBack();
  void ForgetUndo();

  // Without the groups, which have their own.
  void Encode(std::string* to) const;
  [[nodiscard]] bool Decode(std::string_view* from);

 private:
  using Name = std::pair<std::string, std::string>;

  std::map<Name, uint64_t, std::less<>> by_name_;
  std::map<uint64_t, Feed> by_id_;
  size_t telling_old_{0};  // how many of them
  FeedGroups groups_;
  TableHistory history_;
  std::unique_ptr<std::map<uint64_t, Feed>> before_;  // while undo has begun
};

}  // namespace cellar
