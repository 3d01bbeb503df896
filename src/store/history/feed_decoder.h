// FeedDecoder: from records of the log to the entries of one feed (cellar-feeds(7)).
//
//   record   stamp, steps of ops (engine/table/mutation.h): numbers of tables and families, keys as
//            they are encoded
//   entry    id, fields: names and values as clients read them
//
// An op is one entry at most. What an op means depends on the schemas of its time: those before a
// record come from the history (engine/feeds/feed_set.h), and the ops of the record itself go on
// from there.
//
// What OLD and EXPIRED tell stands in the record too, behind the ops that have met it (kOldCells,
// engine/state/old_cells.h).
//
// An entry says `more 1` if another one of the same step follows, so each is given out when the
// next one, or the end of its step, is known.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cellar/status.h"
#include "engine/feeds/feed_set.h"
#include "engine/keys/cell.h"
#include "engine/schema/schema.h"
#include "engine/state/old_cells.h"
#include "engine/table/mutation.h"
#include "store/format/log_format.h"

namespace cellar {

struct FeedEntry {
  FeedId id;
  uint32_t pairs{0};
  std::string fields;  // bulk strings of RESP, name and value in turn; empty if nobody wants them

  void Clear(const FeedId& at) {
    id = at;
    pairs = 0;
    fields.clear();
  }
  void Add(std::string_view name, std::string_view value);
};

class FeedSink {
 public:
  virtual ~FeedSink() = default;
  // False: no more.
  virtual bool OnEntry(const FeedEntry& entry) = 0;
};

class FeedDecoder {
 public:
  enum class Fields : uint8_t { kNo, kYes };

  // Both must outlive it, unchanged.
  FeedDecoder(const FeedSet& feeds, const Feed& feed, Fields fields)
      : feeds_(feeds), feed_(feed), wants_fields_(fields == Fields::kYes) {}

  // Gives the entries of `record` with after < id <= to to `sink`. `before_micros`: the commit time
  // of the record before. False: the sink wants no more, or an id is behind `to`.
  Result<bool> Decode(const LogRecord& record, int64_t before_micros, const FeedId& after,
                      const FeedId& to, FeedSink* sink);

 private:
  struct Family {
    const FamilySchema* schema{nullptr};
    bool covered{false};
  };
  // A table as it is at this place of the log.
  struct TableNow {
    bool is_there{false};
    bool covered{false};    // some of it
    bool rows_known{true};  // false: no row can have one of the prefixes
    std::string keyspace;
    std::string name;
    TableSchema schema;
    std::vector<KeyRange> prefixes;
    std::unordered_map<uint32_t, Family> families;
  };

  TableNow& TableOf(uint64_t id);
  void Set(TableNow* table, std::string keyspace, std::string name, TableSchema schema) const;
  std::string Commands(const TableNow& table) const;
  // What the record has: how many steps, and whether any of it can matter.
  struct Outline {
    int64_t steps{0};
    int64_t step_micros_more{0};  // that the one step of a large record takes besides one
    bool matters{false};
    bool has_schemas{false};
  };
  Result<Outline> Look(const LogRecord& record);

  void BeginStep(int64_t before_micros);
  void EndStep();
  Status OnOp(const DecodedOp& op, const MutationReader& later);
  Status OnRowOp(const DecodedOp& op);
  Status OnCellOp(const DecodedOp& op);
  Status OnSchemaOp(const DecodedOp& op, const MutationReader& later);
  void OnCreateFeed(const DecodedOp& op);
  Status OnSetSchema(const DecodedOp& op);
  void OnRename(const DecodedOp& op);
  Status OnCopy(const DecodedOp& op);
  // Or by a copy.
  bool IsReplacedByRename(const DecodedOp& drop, MutationReader later);
  bool RowMatters();
  Status AddBounds(const Order& order, std::string_view begin, std::string_view end);
  // row, column, ts
  void AddPlace(const FamilySchema& family, std::string_view qualifier, uint64_t timestamp);
  // type, value; or with another name in front of each
  void AddValue(const CellValue& cell, std::string_view type_name, std::string_view value_name);
  void AddPut(const FamilySchema& family, const DecodedOp& op);
  void AddColumn(const FamilySchema& family, std::string_view qualifier);

  // --- what was there before (feed_decoder_old.cc)
  // Of the ops of a record, which count from its beginning.
  struct OldList {
    uint64_t cells{0};
    std::string_view bytes;
  };
  struct Part {
    uint64_t end{0};
    bool together{false};  // its puts were taken down before any was done
    bool told{false};      // false: nothing was taken down
  };
  // Of a cell in a list; views of the record.
  struct OldCell {
    OldCellKind kind{OldCellKind::kNewest};
    std::string_view key;
    std::string_view value;
  };
  Status FindOldCells(std::string_view payload);
  void NextChange();
  // Of the change at hand.
  OldList OldOfChange() const;
  std::string ColumnKey(const FamilySchema& family, std::string_view qualifier) const;
  // The next cell of the list.
  static bool NextOld(OldList* list, OldCell* cell);
  bool knows_old() const { return part_ != nullptr; }
  Status TellReclaimed(const FamilySchema& family, const DecodedOp& op);
  void AddOld(const FamilySchema& family, const DecodedOp& op);
  void NotePutOfPart(const FamilySchema& family, const DecodedOp& op);
  // A deletion as what it has removed; or with a feed that has no OLD what of it was dropped
  // before. `prefix`: what the cells' keys do not say.
  Status TellRemoved(std::string_view prefix);
  Status TellCell(const OldCell& cell, std::string_view prefix);
  void TellGone(const FamilySchema& family, std::string_view qualifier, uint64_t timestamp,
                const OldCell& cell);

  // Begins an entry. False: it is not wanted.
  bool Begin(std::string_view op, std::string_view table);
  void Add(std::string_view name, std::string_view value) {
    if (wants_fields_) entry_.Add(name, value);
  }
  void GiveOut(bool more);

  const FeedSet& feeds_;
  const Feed& feed_;
  const bool wants_fields_;

  // As of base_micros_, or of the op at hand.
  std::unordered_map<uint64_t, TableNow> tables_;
  int64_t base_micros_{0};

  // Of Decode:
  FeedSink* sink_{nullptr};
  FeedId after_;
  FeedId to_;
  bool ended_{false};
  // Of the step:
  int64_t step_micros_{0};  // its first microsecond
  bool telling_{false};     // the feed was there
  uint64_t place_{0};
  TableNow* table_{nullptr};
  std::string_view row_key_;
  enum class Row : uint8_t { kUnknown, kMatters, kOther };
  Row row_{Row::kUnknown};

  std::map<uint64_t, OldList> old_;  // by change
  std::vector<Part> parts_;
  uint64_t change_{0};         // the next one
  size_t part_at_{0};          // in parts_
  const Part* part_{nullptr};  // of the change at hand; null: it was not told
  std::string old_row_;        // of a deletion of rows
  std::map<std::string, std::map<uint64_t, std::string>> part_puts_;  // column -> ts -> cell value

  bool has_entry_{false};
  FeedEntry entry_;
  std::string row_text_;
  std::string text_;
  PlainValue plain_;
};

}  // namespace cellar
