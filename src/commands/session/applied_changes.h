// AppliedChanges: what a leader's record changes, told to this node's own clients when it is
// applied: keyspace notifications (table_events.h) and invalidations (tracking.h).
//
// A record says what became of the data and not which command it was, so events go by its ops: a
// row with a new cell is `cput` (also where the leader ran CINCRBY, CAPPEND or CMUTATE), one that
// only lost cells is `cdel`, a range of rows `cdelrange`, a group's last id that was moved by
// itself `xgroup-setid` (also where the leader ran XREADGROUP NOACK); changes of schema and of
// groups have the names that they have on the leader. One event for each row of a command, and each
// table. Where several tables go at once and leave their keyspaces without any, that was FLUSHDB or
// FLUSHALL, or might as well have been: all that is cached goes. Of one alone its name is told.
//
// What is told is collected before the record is applied, as long as what it drops has its name,
// and told behind it: of each step (one command, or one EXEC) together, invalidations first. It is
// told at once also where this node is in the middle of an EXEC, which has made it the leader: it
// is no part of that. Nothing is done, and nothing costs, while nobody listens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "commands/session/table_events.h"
#include "commands/session/tracking.h"
#include "engine/schema/schema.h"
#include "engine/table/mutation.h"
#include "store/store.h"

namespace cellar {

class Host;

class AppliedChanges final : public ApplyListener {
 public:
  explicit AppliedChanges(Host& host) : host_(host) {}

  void BeforeApply(std::string_view payload, int64_t commit_micros) override;
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
  // One command, or one EXEC.
  struct Step {
    std::vector<Tracking::Change> changes;
    std::vector<TableEvents::Event> events;
  };

  void Collect(const DecodedOp& op);
  void CollectSchema(const DecodedOp& op);
  void CollectSchemaOf(uint64_t table_id, std::string_view bytes);
  void CollectFeed(const DecodedOp& op);
  Known* Know(uint64_t table_id);
  void EndRow();
  // Tables that a step drops one behind the other: what they leave decides what is told.
  void AddDrop(const Name& name);
  void EndDrops();
  // Of the keyspace, as the ops so far leave it; `more`: of one that comes, or goes.
  int64_t CountTables(const std::string& keyspace, int64_t more);
  void AddChange(Tracking::Change change);
  // `kind`: a NotifyFlags bit.
  void AddEvent(uint32_t kind, const Name& name, std::string_view event);
  // The table as a whole has changed.
  void Add(uint32_t kind, const Name& name, std::string_view event);

  Host& host_;
  std::vector<Step> steps_;
  // What the record has named, for as long as it is read.
  std::map<uint64_t, Known> known_;
  std::map<uint64_t, Name> known_feeds_;
  std::map<std::string, int64_t> tables_;  // by keyspace: how many it has
  std::vector<Name> drops_;
  uint64_t table_id_{0};
  std::string row_key_;
  bool put_{false};
  bool deleted_{false};
  bool reclaimed_{false};  // or rewritten
  bool rewrites_{false};   // the puts at hand rewrite cells as another type
  bool ranges_{false};     // the last op has deleted rows of the table at hand
};

}  // namespace cellar
