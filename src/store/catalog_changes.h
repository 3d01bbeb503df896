// The schema of a cluster of several sets, which all of them have: what changes it at set 0, and
// how another set takes that over.
//
//   set 0        Store::CommitSchema --- CatalogKeeper::Keep: one record with the change
//   another set  CatalogChanges::Apply: the same ops, and what the set owns of new tables
//
// Changes are numbered; each set has them in the order of numbers (cluster/catalog_agreement.h says
// when). Table ids are set 0's everywhere. What a set has of its own stays its own: the ids of its
// trees, the states of indexes, which it builds itself, and who owns what.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/state/cluster_state.h"

namespace cellar {

class Engine;
class Store;
struct DecodedOp;

struct CatalogChange {
  // What a set owns of a table that is new.
  struct Part {
    uint64_t table_id{0};
    uint64_t set{0};
    std::string tablets;  // Tablets::Encode
    friend bool operator==(const Part&, const Part&) = default;
  };
  uint64_t number{0};
  std::string ops;  // of a mutation, without those of ownership
  std::vector<Part> parts;
  friend bool operator==(const CatalogChange&, const CatalogChange&) = default;
};

// v number, b ops, v count { v table id, v set, b tablets }
void EncodeCatalogChange(const CatalogChange& change, std::string* to);
// False if these are not the bytes of one and nothing else.
[[nodiscard]] bool DecodeCatalogChange(std::string_view from, CatalogChange* change);

// At set 0, where there are others.
class CatalogKeeper {
 public:
  virtual ~CatalogKeeper() = default;
  // Whether there are other sets: without them nothing is kept.
  virtual bool has_others() const = 0;
  // The sets that tablets of a new table go to, one for each.
  virtual std::vector<uint64_t> Deal(size_t tablets) = 0;
  // Whether another set owns all rows of the table as one tablet, by what is known of it here.
  virtual bool IsWholeElsewhere(uint64_t table_id) const = 0;
  // Notes the change until every set has it, by writes to `store` that become part of its record.
  // An error: the change is taken back. REQUIRES: a transaction.
  virtual Status Keep(Store& store, const CatalogChange& change) = 0;
};

class CatalogChanges {
 public:
  explicit CatalogChanges(Store& store) : store_(store) {}

  // `keeper` outlives the store; null: none.
  static void SetKeeper(Store& store, CatalogKeeper* keeper);

  // The next change, as one record. CORRUPTION: it does not fit what is here. REQUIRES: a set other
  // than 0, of the number before; no transaction.
  Status Apply(const CatalogChange& change);
  // The set becomes part of a cluster whose schema is `whole.ops`, of that number, and owns nothing
  // of it. Its own keyspaces, which are empty, go. ERR: it is part of one, or not empty.
  Status Join(const ClusterState& state, const CatalogChange& whole);
  // Why this set cannot join: a text that names what it has; empty: it can.
  static std::string WhatIsHere(const Engine& engine);
  // Of the ops of a part those that other sets carry out as well. CROSSSET: one that a cluster of
  // several sets has not.
  static Result<std::string> OpsForOthers(std::string_view part);
  // All of the schema as ops on an empty store. ERR: there are feeds or snapshots, which belong to
  // one set.
  static Result<std::string> Whole(const Engine& engine);

 private:
  // Adds the ops to the store's mutation, with what is this set's own; notes the tables.
  Status AddOps(std::string_view ops, std::vector<uint64_t>* tables);
  Result<std::string> OwnSchema(const DecodedOp& op);
  // Applies and logs what was added; an op that cannot be carried out takes all of it back.
  Status Carry();
  void Begin(const std::vector<uint64_t>& tables);

  Store& store_;
  uint64_t tree_id_next_{0};  // of the change at hand
};

}  // namespace cellar
