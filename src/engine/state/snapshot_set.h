// SnapshotSet: named snapshots (cellar-model(7), "SNAPSHOTS"): what tables of a keyspace were at
// one moment, kept until they are dropped or their time is over.
//
//   snapshot  keyspace, name, when its step was committed, TTL
//             name of then -> Table that is frozen (table.h): its trees share nodes with those of
//             the table that it was (btree/version.h)
//
// `table@snapshot` is looked up here. A snapshot without a name is that of a COPY at work, and
// nobody finds it.
//
// What is due is hidden at once, by the clock of whoever reads; that it is gone stands in the log,
// and only then its memory goes.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/table/table.h"

namespace cellar {

inline constexpr size_t kSnapshotNameBytesMax{128};  // cellar-model(7), "SNAPSHOTS"
inline constexpr uint64_t kSnapshotsMaxDefault{256};
inline constexpr char kSnapshotSign{'@'};

// True for [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}.
bool IsSnapshotName(std::string_view text);
// Snapshots that cursors read have names that no client gives, and are shown to none: # and a
// number.
bool IsCursorName(std::string_view text);
std::string CursorSnapshotName(uint64_t id);
// `table@snapshot` taken apart; false if it is no such word.
[[nodiscard]] bool SplitSnapshot(std::string_view word, std::string_view* table,
                                 std::string_view* snapshot);

// Whether that is a table of what a cursor reads: it goes by itself.
bool IsOfCursor(std::string_view word);

struct NamedSnapshot {
  uint64_t id{0};  // of the numbers that tables have
  std::string keyspace;
  std::string name;  // empty: of a COPY
  int64_t created_micros{0};
  int64_t ttl_micros{0};  // 0: it stays
  bool hidden{false};
  std::map<std::string, std::unique_ptr<Table>, std::less<>> tables;

  // When it is gone.
  int64_t due_micros() const {
    constexpr int64_t kNever{std::numeric_limits<int64_t>::max()};
    if (ttl_micros == 0) return kNever;
    return created_micros > kNever - ttl_micros ? kNever : created_micros + ttl_micros;
  }
  Table* Find(std::string_view table) const;
};

class SnapshotSet {
 public:
  SnapshotSet() = default;
  SnapshotSet(const SnapshotSet&) = delete;
  SnapshotSet& operator=(const SnapshotSet&) = delete;

  bool empty() const { return by_id_.empty(); }
  size_t size() const { return by_id_.size(); }
  // Those that clients have given a name; hidden ones too. O(n)
  size_t named() const;
  // Those that cursors over several sets read. O(n)
  size_t cursors() const;
  // Hidden ones are not there.
  const NamedSnapshot* Find(std::string_view keyspace, std::string_view name) const;
  // They are.
  const NamedSnapshot* FindAny(std::string_view keyspace, std::string_view name) const;
  NamedSnapshot* FindById(uint64_t id) const;
  // Null if there is none.
  Table* FindTable(std::string_view keyspace, std::string_view table,
                   std::string_view snapshot) const;
  Table* FindTableById(uint64_t id) const;
  // Ascending by name, without those that are hidden or have none.
  std::vector<const NamedSnapshot*> In(std::string_view keyspace) const;
  std::vector<NamedSnapshot*> All() const;  // ascending by id
  std::vector<Table*> Tables() const;       // of all; ascending by id
  // Memory that they keep and no table uses; that they need besides trees. O(trees)
  uint64_t held_bytes() const;
  uint64_t own_bytes() const;

  // REQUIRES: the id and the name are free.
  void Add(std::unique_ptr<NamedSnapshot> snapshot);
  // REQUIRES: it is there.
  std::unique_ptr<NamedSnapshot> Remove(uint64_t id);
  void Clear();
  // The one of that id, which is there, is called so; empty: nothing. REQUIRES: the name is free.
  void Name(uint64_t id, std::string_view name);

  // Hides what is due by then. True if there is something new to hide.
  bool HideDue(int64_t now_micros);
  // When the next one is to be hidden.
  int64_t next_due_micros() const { return next_due_micros_; }

 private:
  void LearnDue();

  std::map<uint64_t, std::unique_ptr<NamedSnapshot>> by_id_;
  std::map<std::pair<std::string, std::string>, uint64_t> by_name_;
  std::map<uint64_t, Table*> tables_;
  int64_t next_due_micros_{std::numeric_limits<int64_t>::max()};
};

// What kCreateSnapshot says of one, besides names and id. Its tables have the ids behind its own,
// in this order.
struct SnapshotDefinition {
  int64_t created_micros{0};
  int64_t ttl_micros{0};
  uint64_t tree_id_first{0};        // of the groups of its tables
  std::vector<uint64_t> table_ids;  // of what
};
// What kAdoptSnapshot says of one of other sets: what its tables are called and are, with the ids
// that they have everywhere.
struct AdoptedSnapshot {
  struct Part {
    uint64_t id{0};
    std::string name{};
    std::string schema{};  // encoded; the numbers of its trees are those of whoever tells
  };
  int64_t created_micros{0};
  int64_t ttl_micros{0};
  uint64_t tree_id_first{0};
  std::vector<Part> tables{};
};
std::string EncodeAdoptedSnapshot(const AdoptedSnapshot& adopted);
[[nodiscard]] bool DecodeAdoptedSnapshot(std::string_view from, AdoptedSnapshot* adopted);
std::string EncodeSnapshotDefinition(const SnapshotDefinition& definition);
[[nodiscard]] bool DecodeSnapshotDefinition(std::string_view from, SnapshotDefinition* definition);

}  // namespace cellar
