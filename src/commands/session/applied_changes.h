// AppliedChanges: what a leader's record changes, told to this node's own clients when it is
// applied: keyspace notifications (table_events.h) and invalidations (tracking.h).
//
// A record says what became of the data and not which command it was, so events go by its ops: a
// row with a new cell is `cput` (also where the leader ran CINCRBY, CAPPEND or CMUTATE), one that
// only lost cells is `cdel`, a range of rows `cdelrange`, a group's last id that was moved by
// itself `xgroup-setid` (also where the leader ran XREADGROUP NOACK); changes of schema and of
// groups have the names that they have on the leader. One event for each row of a command, and each
// table.
//
// What is told is collected before the record is applied, as long as what it drops has its name,
// and told behind it. Nothing is done, and nothing costs, while nobody listens.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/schema/schema.h"
#include "engine/table/mutation.h"
#include "store/store.h"

namespace cellar {

class Host;

class AppliedChanges final : public ApplyListener {
 public:
  explicit AppliedChanges(Host& host) : host_(host) {}

  void BeforeApply(std::string_view payload) override;
  void AfterApply() override;

 private:
  struct Name {
    std::string keyspace;
    std::string table;
    friend bool operator==(const Name&, const Name&) = default;
  };
  // Of a table as the ops so far leave it.
  struct Known {
    Name name;
    TableSchema schema;
  };
  enum class Kind : uint8_t { kEvent, kNew, kCells, kGroup, kRow, kReclaimed };
  struct Change {
    Kind kind;
    Name name;
    std::string_view event;  // a literal
    std::string row_key{};   // encoded; kRow, kReclaimed
  };

  void Collect(const DecodedOp& op);
  void CollectSchema(const DecodedOp& op);
  void CollectSchemaOf(uint64_t table_id, std::string_view bytes);
  void CollectFeed(const DecodedOp& op);
  Known* Know(uint64_t table_id);
  void EndRow();
  void Add(Kind kind, const Name& name, std::string_view event) {
    changes_.push_back({kind, name, event});
  }
  void Tell(const Change& change);

  Host& host_;
  std::vector<Change> changes_;
  // What the record has named, for as long as it is read.
  std::map<uint64_t, Known> known_;
  std::map<uint64_t, Name> known_feeds_;
  uint64_t table_id_{0};
  std::string row_key_;
  bool put_{false};
  bool deleted_{false};
  bool reclaimed_{false};
};

}  // namespace cellar
