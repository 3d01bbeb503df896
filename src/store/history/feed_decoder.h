// FeedDecoder: from records of the log to the entries of one feed (cellar-feeds(7)).
//
//   record   stamp, steps of ops (engine/table/mutation.h): numbers of tables and families, keys as
//            they are encoded
//   entry    id, fields: names and values as clients read them
//
// An op is one entry at most; with ENTRIES ROW those of a row in a step are one (feed_rows.h), each
// with its number behind its names. What an op means depends on the schemas of its time: those
// before a record come from the history (feed_set.h), and the ops of the record itself go on from
// there. Steps up to the one behind which the feed was made, or behind which it has dropped
// everything, are passed over unread: no history reaches back to them.
//
// What OLD and EXPIRED tell stands in the record too, behind the ops that have met it (kPreImages,
// engine/state/pre_images.h).
//
// An entry says `more 1` if another one of the same step follows, so each is given out when the
// next one, or the end of its step, is known.
//
// A step may have millions of entries, so a record can be gone through in slices: Begin, then Go as
// often as it says kMore. It reads a record up to three times, one after the other or side by side:
//
//   outline   how many steps there are, and whether any of it matters
//   ahead     where the part at hand ends, and its lists of what was there (kPreImages)
//   ops       what is told; an op that has removed many cells is told one by one (Spill)
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cellar/status.h"
#include "engine/feeds/feed_set.h"
#include "engine/keys/cell.h"
#include "engine/schema/schema.h"
#include "engine/state/pre_images.h"
#include "engine/table/mutation.h"
#include "store/format/log_format.h"
#include "store/history/feed_rows.h"

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
      : feeds_(feeds),
        feed_(feed),
        wants_fields_(fields == Fields::kYes),
        floor_micros_(std::max(feed.after_micros, feed.through_micros)) {}

  // Gives the entries of `record` with after < id <= to to `sink`. `before_micros`: the commit time
  // of the record before. False: the sink wants no more, or an id is behind `to`.
  Result<bool> Decode(const LogRecord& record, int64_t before_micros, const FeedId& after,
                      const FeedId& to, FeedSink* sink) {
    Begin(record, before_micros);
    ASSIGN_OR_RETURN(const Progress progress, Go(after, to, UINT64_MAX, sink));
    return progress != Progress::kEnough;
  }

  // Decode in slices, and for one reader after the other: each goes on where the last one stopped.
  // The record's payload stays where it is meanwhile.
  enum class Progress : uint8_t {
    kMore,   // the work is done for now
    kDone,   // there are no more entries
    kEnough  // the sink wants no more, or an id is behind `to`
  };
  void Begin(const LogRecord& record, int64_t before_micros);
  // `work_max`: about as many ops of puts, each some hundred nanoseconds. REQUIRES: passed() <=
  // after. After an error it is over.
  Result<Progress> Go(const FeedId& after, const FeedId& to, uint64_t work_max, FeedSink* sink);
  // Entries up to here have been given out, or were not wanted.
  const FeedId& passed() const { return passed_; }
  uint64_t work() const { return work_; }

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

  // Whether it is told what becomes of tables as wholes.
  bool tells_tables() const { return telling_ && !feed_.rows_only; }
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
  enum class Phase : uint8_t { kOutline, kOps, kDone };
  Status Advance();
  Status OutlineOn();
  void BeginOps();
  Status NextOp();

  void BeginStep();
  void EndStep();
  Status OnOp(const DecodedOp& op, const MutationReader& later);
  Status OnRowOp(const DecodedOp& op);
  // A deletion, by what it was asked to delete.
  Status TellDeletion(const DecodedOp& op);
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
  void AddRow() {
    if (!feed_.by_row) Add("row", row_text_);
  }
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
  // Changes [begin, end) of the record; those before were not taken down.
  struct Part {
    uint64_t begin{0};
    uint64_t end{0};
    bool together{false};    // its puts were taken down before any was done
    std::string_view lists;  // of changes that are still to come, and the rest of this one's
  };
  // Of a cell in a list; views of the record.
  struct OldCell {
    OldCellKind kind{OldCellKind::kNewest};
    std::string_view key;
    std::string_view value;
  };
  bool NeedsPart() const { return feed_.tells_pre_images() && change_ >= part_.end; }
  Status LookAhead();
  Status NextChange();
  // Passes over cells of the change before.
  Status SkipOld();
  // Of the change at hand.
  OldList OldOfChange() const { return list_; }
  // What an op has to tell cell by cell, before anything else is told.
  enum class SpillKind : uint8_t { kNone, kRemoved, kReclaimed };
  struct Spill {
    SpillKind kind{SpillKind::kNone};
    DecodedOp op;
    OldList list;
    std::string prefix;                   // kRemoved: what the cells' keys do not say
    const FamilySchema* family{nullptr};  // kReclaimed
    std::string_view newest;
  };
  // The next cell of it.
  Status SpillOn();
  Status EndSpill();
  std::string ColumnKey(const FamilySchema& family, std::string_view qualifier) const;
  // The next cell of the list.
  static bool NextOld(OldList* list, OldCell* cell);
  bool knows_old() const { return in_part_; }
  void TellReclaimed(const FamilySchema& family, const DecodedOp& op);
  Status TellReclaimedCell(OldCell cell);
  void AddOld(const FamilySchema& family, const DecodedOp& op);
  void NotePutOfPart(const FamilySchema& family, const DecodedOp& op);
  // Likewise a fold, whose outcome no op says: the engine makes it when it carries the op out.
  void NoteFoldOfPart(const FamilySchema& family, const DecodedOp& op);
  static void FoldInto(MutationOp op, std::string_view input, std::string* cell_value);
  // The value that a cell had when the part began, with what the part has folded into it since.
  std::string_view FoldedSince(const std::string& column, uint64_t timestamp,
                               std::string_view value);
  // A deletion as what it has removed; or with a feed that has no OLD what of it was dropped
  // before. `prefix`: what the cells' keys do not say.
  void TellRemoved(const DecodedOp& op, std::string_view prefix);
  Status TellCell(const OldCell& cell, std::string_view prefix);
  void TellGone(const FamilySchema& family, std::string_view qualifier, uint64_t timestamp,
                const OldCell& cell);

  // Begins the entry of a whole table, or of a change of the row at hand. False: it is not wanted.
  bool Begin(std::string_view op, std::string_view table);
  bool BeginChange(std::string_view op);
  bool BeginEntry(std::string_view op, std::string_view table);
  void Add(std::string_view name, std::string_view value) {
    if (!wants_fields_) return;
    FeedEntry& entry = ready_[current_];
    if (number_.empty())
      entry.Add(name, value);
    else
      entry.Add(std::string(name) + number_, value);
    work_ += value.size() / kBytesOfWork;
  }
  void AddTo(size_t entry, std::string_view name, std::string_view value) {
    current_ = entry;
    number_.clear();
    Add(name, value);
  }
  void Close(bool more) {
    if (more) AddTo(ready_end_ - 1, "more", "1");
    open_ = false;
  }
  // With ENTRIES ROW: no entry of a row gets more changes; and all that wait may be given out.
  void EndRows();
  void CloseAll(bool more);
  // False: the sink wants no more, or the next one is behind `to`.
  bool GiveOut(FeedSink* sink);
  bool GiveOutClosed(FeedSink* sink);

  // What is copied in the time of an op.
  static constexpr uint64_t kBytesOfWork{1024};

  const FeedSet& feeds_;
  const Feed& feed_;
  const bool wants_fields_;
  const int64_t floor_micros_;  // steps up to it have nothing to tell, and are not looked at

  // As of base_micros_, or of the op at hand.
  std::unordered_map<uint64_t, TableNow> tables_;
  int64_t base_micros_{0};

  // Of the record:
  Phase phase_{Phase::kDone};
  std::string_view payload_;
  int64_t commit_micros_{0};
  int64_t before_micros_{0};
  Outline outline_;
  uint64_t outlined_changes_{0};
  MutationReader reader_{std::string_view()};
  int64_t step_at_{0};  // counts from 1
  FeedId passed_;
  uint64_t work_{0};
  // Of Go:
  FeedId after_;
  FeedId to_;
  // Of the step:
  int64_t step_micros_{0};  // its first microsecond
  bool telling_{false};     // the feed was there
  bool passing_{false};     // nothing of it is looked at
  bool rewrites_{false};    // its puts are cells as another type, which the schema tells
  bool unowned_{false};     // it is of rows that another set tells of
  uint64_t place_{0};
  TableNow* table_{nullptr};
  std::string_view row_key_;
  enum class Row : uint8_t { kUnknown, kMatters, kOther };
  Row row_{Row::kUnknown};

  MutationReader ahead_{std::string_view()};
  uint64_t ahead_changes_{0};  // that it has come by
  uint64_t change_{0};         // the next one
  Part part_;
  bool in_part_{false};  // the change at hand is
  struct NextList {
    uint64_t change{0};  // in the part
    uint64_t cells{0};
  };
  std::optional<NextList> next_list_{};  // at the front of part_.lists
  OldList list_;
  uint64_t skip_cells_{0};  // at the front of part_.lists
  Spill spill_;
  std::string old_row_;                                               // of a deletion of rows
  std::map<std::string, std::map<uint64_t, std::string>> part_puts_;  // column -> ts -> cell value
  // Into cells that the part has found there, in order: kind of op and input, a view of the record.
  using Folds = std::vector<std::pair<MutationOp, std::string_view>>;
  std::map<std::pair<std::string, uint64_t>, Folds> part_folds_;  // by column and ts
  std::string folded_;

  // Entries that wait, [ready_at_, ready_end_); the last one is open_ as long as it may get more.
  std::vector<FeedEntry> ready_;
  size_t ready_at_{0};
  size_t ready_end_{0};
  bool open_{false};
  size_t current_{0};     // that is written to
  std::string number_;    // of the change, behind names of fields
  size_t closed_end_{0};  // with ENTRIES ROW: those before it get no more
  FeedRows rows_;
  std::string row_text_;
  std::string text_;
  PlainValue plain_;
};

}  // namespace cellar
