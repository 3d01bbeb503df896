// Mutation: the one form of every change. Log record, replay unit and what followers are sent are
// the same bytes. Engine carries them out: by Apply those from elsewhere, by ApplyOps (plain puts
// by ApplyPut and ApplyPuts, which do the same) what has just been resolved here.
//
// A mutation is resolved: timestamps are assigned, increments computed, conditions decided. Applied
// to the same state it gives the same state, always.
//
//   payload  | stamp i64 | kStep | op op op ... [ kStep | op op op ... ] ...
//   op       | kind u8 | fields |     fields are varints (v) and length-prefixed bytes (b)
//
//   kStep             (nothing)                        the ops up to the next one are one command, or
//                                                      one EXEC: a record of the log may join several
//   kTable            v table id                       the table of the following ops
//   kRow              b row key (encoded)              the row of the following ops
//   kPut              v family id, b qualifier (encoded), timestamp u64, b cell value
//                                                      (cell.h)
//   kReplace          v family id, b qualifier, timestamp u64, timestamp of the version whose place it
//                     takes u64, b cell value          as kPut, and the other one is reclaimed
//   kAddInput         v family id, b qualifier, timestamp u64, b input     one input more for the
//                                                      HyperLogLog of a cell, as it was sent
//   kMergeState       v family id, b qualifier, timestamp u64, b state     likewise those of a state
//   kDeleteCell       v family id, b qualifier, v timestamp
//   kDeleteRange      v family id, b begin, b end      qualifiers (encoded) in [begin, end);
//                                                      an empty end is no bound
//   kDeleteRow        (nothing)                        every cell of the row
//   kDeleteRows       b begin, b end                   rows (encoded keys) in [begin, end)
//   kReclaimColumn    v family id, b qualifier, v now  versions that the policy has dropped by `now`
//   kPreImages         v ops, v cells, b lists          what the ops before it met, for feeds: changes
//                                                      nothing (pre_images.h)
//   kRewrites         v whether it begins or ends      the puts from here on, to where it ends in the
//                                                      same step, rewrite cells in their place as
//                                                      another type (FAMILY ALTER ... CONVERT): for
//                                                      feeds, changes nothing
//   kRecordNumber     v next                           the record number that `*` gives next
//   kCreateKeyspace   b name
//   kDropKeyspace     b name                           with its tables
//   kCreateTable      b keyspace, b name, v table id, b schema
//   kDropTable        v table id
//   kRenameTable      v table id, b keyspace, b name
//   kSetSchema        v table id, b schema             families added, altered, dropped
//   kTruncateTable    v table id, v first tree id      the groups get fresh trees from this id on
//   kCreateFeed       b keyspace, b name, v feed id, b definition and schemas (feeds/feed.h)
//   kDropFeed         v feed id
//   kTrimFeed         v feed id, b trim               what the feed has dropped for good
//   kFeedGroup        v feed id, b group, b changes   a group of the feed (feeds/feed_group.h)
//   kFeedHome         v feed id, b home               where the groups of all of it are
//   kCreateSnapshot   b keyspace, b name, v snapshot id, b definition (snapshot_set.h)
//   kDropSnapshot     v snapshot id
//   kNameSnapshot     v snapshot id, b name            of one that has none yet
//   kAdoptSnapshot    b keyspace, b name, v snapshot id, b adopted (snapshot_set.h)
//                                                      one of other sets, which has no rows here
//   kCopyTable        b keyspace, b name, v table id, b copy (table_copy.h)
//   kTablets          b state                          what the set has of its cluster, all of it; that
//                                                      it is part of none (state/cluster_state.h)
//   kTabletSplit      v table id, b bound              the tablet with that bound ends there, and
//                                                      another one begins (table/tablets.h)
//   kTabletMerge      v table id, b row key            the tablet with that row and the next are one
//   kCatalog          v number                         the schema is that of this number from here on
//   kMoveBegin        v job, b move out                a tablet is to go to another set
//                                                      (state/tablet_moves.h, and what follows)
//   kMoveCancel       v job, b nothing                 it does not; nor does it ever begin
//   kMoveGive         v job, b nothing                 the set owns it no more
//   kMoveDone         v job, b nothing                 the other set owns it
//   kStageBegin       v job, b move in                 a tablet is on its way here
//   kStageRun         v job, b part                    the ops behind it in its step are a part of
//                                                      its copy; of part 0, what was left of
//                                                      others is gone. Feeds pass the step over
//   kStageTail        v job, b part                    likewise of what has changed since
//   kMoveOwn          v job, b part                    all parts are there: the set owns it
//   kFloor            v job, b nothing                 all up to this number have ended
//   kCut              v catalog, b mark                that change is one moment over all sets
//                                                      (state/cut_mark.h)
//   kTabletAssign     v table id, b tablets            what the set owns of a table that is new
//   kPurge            v table id, b nothing            what is deleted behind it in its step the set
//                                                      does not own. Feeds pass the step over
//   kOpenAs           v cut, b set id u64              0: the set is in order as that replica set;
//                                                      else it was, before it was recovered to
//                                                      that cut (state/cluster_state.h)
//
// `stamp` is the newest timestamp that the server has given out: with it the next one is larger,
// also after a restart with a clock set back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "base/byte_buffer.h"
#include "base/coding.h"
#include "base/copy_bytes.h"
#include "base/inline.h"
#include "cellar/status.h"
#include "engine/schema/schema.h"

namespace cellar {

enum class MutationOp : uint8_t {
  kTable = 1,
  kRow = 2,
  kPut = 3,
  kDeleteCell = 4,
  kDeleteRange = 5,
  kDeleteRow = 6,
  kDeleteRows = 7,
  kReclaimColumn = 8,
  kRecordNumber = 9,
  kReplace = 10,
  kStep = 11,
  kAddInput = 12,
  kMergeState = 13,
  kPreImages = 14,
  kRewrites = 15,
  kCreateKeyspace = 20,
  kDropKeyspace = 21,
  kCreateTable = 22,
  kDropTable = 23,
  kRenameTable = 24,
  kSetSchema = 25,
  kTruncateTable = 26,
  // 27 was meant for indexes: no version has written it.
  kCreateFeed = 40,
  kDropFeed = 41,
  kTrimFeed = 42,
  kFeedGroup = 43,
  kFeedHome = 44,
  kCreateSnapshot = 50,
  kDropSnapshot = 51,
  kCopyTable = 52,
  kNameSnapshot = 53,
  kAdoptSnapshot = 54,
  // 60 to 80: ownership of rows. What is missing is kept for EXEC over sets.
  kTablets = 60,
  kTabletSplit = 61,
  kTabletMerge = 62,
  kMoveBegin = 63,
  kMoveCancel = 64,
  kMoveGive = 65,
  kMoveDone = 66,
  kStageBegin = 67,
  kStageRun = 68,
  kStageTail = 69,
  kMoveOwn = 70,
  kFloor = 71,
  kCatalog = 72,
  kCut = 73,
  kTabletAssign = 78,
  kPurge = 79,
  kOpenAs = 80,
};

inline bool IsOwnershipOp(MutationOp op) { return op >= MutationOp::kTablets; }
// Those that mark their step as one of rows that are not owned (yet).
inline bool IsOfUnownedRows(MutationOp op) {
  return op == MutationOp::kStageRun || op == MutationOp::kStageTail || op == MutationOp::kPurge;
}

inline constexpr size_t kMutationHeaderBytes{8};                        // the stamp
inline constexpr size_t kMutationBeginBytes{kMutationHeaderBytes + 1};  // and the first kStep

class BTreePlace;

// One put of a cell, by whoever has just made it: kRow with kPut or kReplace. The views are of its
// maker, the cell's value is one of the mutation that it was added to.
struct ResolvedPut {
  const FamilySchema* family{nullptr};
  const char* key{nullptr};  // of the cell: row key, family id, qualifier, timestamp
  size_t row_bytes{0};       // of it, the row key
  size_t family_bytes{0};    // of it, row key and family id
  size_t column_bytes{0};    // of it, all but the timestamp
  size_t key_bytes{0};       // all of it
  int64_t timestamp{0};
  std::optional<int64_t> replaced;  // kReplace: the other version
  std::string_view cell_value;
  // Where the walk of the column has found its newest version, which is older; null: nowhere.
  BTreePlace* place{nullptr};

  std::string_view row_key() const { return {key, row_bytes}; }
  std::string_view qualifier() const { return {key + family_bytes, column_bytes - family_bytes}; }
  std::string_view column() const { return {key, column_bytes}; }
  std::string_view cell_key() const { return {key, key_bytes}; }
};

// Builds a payload. Reset() keeps the memory, so that a command's mutation allocates nothing.
class MutationBuilder {
 public:
  MutationBuilder() {
    EncodeFixed64(bytes_.Grow(kMutationHeaderBytes), 0);
    Op(MutationOp::kStep);
  }

  void Reset() {
    bytes_.Truncate(kMutationBeginBytes);
    EncodeFixed64(bytes_.data(), 0);
    (void)BeginPart();
  }
  // The stamp may become known after the ops.
  void SetStamp(int64_t stamp) {
    CELLAR_ASSERT(stamp >= 0);
    EncodeFixed64(bytes_.data(), static_cast<uint64_t>(stamp));
  }
  // True if no op has been added since Reset.
  bool empty() const { return bytes_.size() == kMutationBeginBytes; }
  std::string_view payload() const { return bytes_.view(); }
  size_t size() const { return bytes_.size(); }
  // The ops from byte `offset` on (a former size()), to apply a mutation piece by piece.
  std::string_view Since(size_t offset) const { return bytes_.view().substr(offset); }
  // From here on ops form a part that can be applied by itself: the next one says its table and row
  // anew. Returns where the part begins, for Since().
  size_t BeginPart() {
    table_id_ = 0;
    row_begin_ = 0;
    return bytes_.size();
  }
  // Forgets what was added after the builder had `size` bytes, and begins a part.
  void Truncate(size_t size);

  // Adds kTable and kRow where they are not the current ones already.
  void Row(uint64_t table_id, std::string_view row_key);

  void Put(uint32_t family_id, std::string_view qualifier, int64_t timestamp,
           std::string_view cell_value);
  // A put that takes the place of an older version of its column. REQUIRES: replaced < timestamp.
  void Replace(uint32_t family_id, std::string_view qualifier, int64_t timestamp, int64_t replaced,
               std::string_view cell_value);
  // Row, and a put whose cell value the caller writes himself: `cell_value_bytes` bytes, to the
  // place returned, before the next call. `put` says the rest, of its key the column; if it
  // replaces a version, that is older. One step, since every write takes it.
  [[nodiscard]] CELLAR_INLINE char* BeginPut(uint64_t table_id, const ResolvedPut& put,
                                             size_t cell_value_bytes);
  // kAddInput or kMergeState.
  void Fold(MutationOp op, uint32_t family_id, std::string_view qualifier, int64_t timestamp,
            std::string_view input);
  void DeleteCell(uint32_t family_id, std::string_view qualifier, int64_t timestamp);
  void DeleteRange(uint32_t family_id, std::string_view begin, std::string_view end);
  void DeleteRow();
  void ReclaimColumn(uint32_t family_id, std::string_view qualifier, int64_t now_micros);

  void DeleteRows(uint64_t table_id, std::string_view begin, std::string_view end);
  void RecordNumber(uint64_t table_id, uint64_t next);
  void PreImages(uint64_t ops, uint64_t cells, std::string_view lists);
  enum class Edge : uint8_t { kEnd = 0, kBegin = 1 };
  void Rewrites(Edge edge);
  void CreateKeyspace(std::string_view name);
  void DropKeyspace(std::string_view name);
  void CreateTable(std::string_view keyspace, std::string_view name, uint64_t table_id,
                   std::string_view schema);
  void DropTable(uint64_t table_id);
  void RenameTable(uint64_t table_id, std::string_view keyspace, std::string_view name);
  void SetSchema(uint64_t table_id, std::string_view schema);
  void TruncateTable(uint64_t table_id, uint64_t tree_id_first);
  void CreateFeed(std::string_view keyspace, std::string_view name, uint64_t feed_id,
                  std::string_view definition);
  void DropFeed(uint64_t feed_id);
  void TrimFeed(uint64_t feed_id, std::string_view trim);
  void SetFeedHome(uint64_t feed_id, std::string_view home);
  void ChangeFeedGroup(uint64_t feed_id, std::string_view group, std::string_view changes);
  void CreateSnapshot(std::string_view keyspace, std::string_view name, uint64_t snapshot_id,
                      std::string_view definition);
  void DropSnapshot(uint64_t snapshot_id);
  void NameSnapshot(uint64_t snapshot_id, std::string_view name);
  void AdoptSnapshot(std::string_view keyspace, std::string_view name, uint64_t snapshot_id,
                     std::string_view adopted);
  void CopyTable(std::string_view keyspace, std::string_view name, uint64_t table_id,
                 std::string_view copy);
  void SetTablets(std::string_view state);
  void SplitTablet(uint64_t table_id, std::string_view bound);
  void MergeTablets(uint64_t table_id, std::string_view row_key);
  void SetCatalog(uint64_t number);
  void Cut(uint64_t catalog, std::string_view mark);
  void AssignTablets(uint64_t table_id, std::string_view tablets);
  // One of kMoveBegin to kFloor, kPurge or kOpenAs.
  void Move(MutationOp op, uint64_t id, std::string_view body);
  // Ops as a reader has given them, whole: what follows says its table and row anew.
  void AppendOps(std::string_view ops);

 private:
  void Op(MutationOp op) { *bytes_.Grow(1) = static_cast<char>(op); }
  void Number(uint64_t number) {
    bytes_.CommitTo(EncodeVarint64(bytes_.Reserve(kVarint64BytesMax), number));
  }
  void Bytes(std::string_view bytes) {
    bytes_.CommitTo(EncodeLengthPrefixed(bytes_.Reserve(kVarint64BytesMax + bytes.size()), bytes));
  }
  void Table(uint64_t table_id);
  CELLAR_INLINE bool IsInRow(uint64_t table_id, std::string_view row_key) const {
    return table_id_ == table_id && row_begin_ != 0 &&
           bytes_.view().substr(row_begin_, row_bytes_) == row_key;
  }
  static constexpr size_t RowBytesMax(size_t row_key_bytes) {
    return 2 + 2 * kVarint64BytesMax + row_key_bytes;
  }
  void AddPut(uint32_t family_id, std::string_view qualifier, int64_t timestamp,
              const std::optional<int64_t>& replaced, std::string_view cell_value);
  // Write to where RowBytesMax (PutBytesMax) bytes are reserved; return the end.
  CELLAR_INLINE char* WriteRow(char* to, uint64_t table_id, std::string_view row_key);
  static constexpr size_t PutBytesMax(size_t qualifier_bytes, size_t cell_value_bytes) {
    return 1 + 3 * kVarint64BytesMax + qualifier_bytes + 2 * sizeof(uint64_t) + cell_value_bytes;
  }
  CELLAR_INLINE static char* WritePut(char* to, uint32_t family_id, std::string_view qualifier,
                                      int64_t timestamp, const std::optional<int64_t>& replaced,
                                      size_t cell_value_bytes);

  ByteBuffer bytes_;
  uint64_t table_id_{0};  // 0: none yet
  size_t row_begin_{0};   // where the current row's key stands in bytes_, 0: none yet
  size_t row_bytes_{0};
};

char* MutationBuilder::WriteRow(char* to, uint64_t table_id, std::string_view row_key) {
  CELLAR_ASSERT(!row_key.empty());
  CELLAR_ASSERT(table_id > 0);
  if (table_id_ != table_id) {
    *to++ = static_cast<char>(MutationOp::kTable);
    to = EncodeVarint64(to, table_id);
    table_id_ = table_id;
  }
  *to++ = static_cast<char>(MutationOp::kRow);
  to = EncodeVarint64(to, row_key.size());
  CopyBytes(to, row_key.data(), row_key.size());
  row_begin_ = static_cast<size_t>(to - bytes_.data());
  row_bytes_ = row_key.size();
  return to + row_key.size();
}

char* MutationBuilder::WritePut(char* to, uint32_t family_id, std::string_view qualifier,
                                int64_t timestamp, const std::optional<int64_t>& replaced,
                                size_t cell_value_bytes) {
  CELLAR_ASSERT(timestamp >= 0);
  *to++ = static_cast<char>(replaced ? MutationOp::kReplace : MutationOp::kPut);
  to = EncodeVarint64(to, family_id);
  to = EncodeVarint64(to, qualifier.size());
  CopyBytes(to, qualifier.data(), qualifier.size());
  to += qualifier.size();
  EncodeFixed64(to, static_cast<uint64_t>(timestamp));
  to += sizeof(uint64_t);
  if (replaced) {
    CELLAR_ASSERT(*replaced >= 0);
    CELLAR_ASSERT(*replaced < timestamp);
    EncodeFixed64(to, static_cast<uint64_t>(*replaced));
    to += sizeof(uint64_t);
  }
  return EncodeVarint64(to, cell_value_bytes);
}

char* MutationBuilder::BeginPut(uint64_t table_id, const ResolvedPut& put,
                                size_t cell_value_bytes) {
  char* to =
      bytes_.Reserve(RowBytesMax(put.row_bytes) + PutBytesMax(put.column_bytes, cell_value_bytes));
  if (!IsInRow(table_id, put.row_key())) to = WriteRow(to, table_id, put.row_key());
  to = WritePut(to, put.family->id, put.qualifier(), put.timestamp, put.replaced, cell_value_bytes);
  bytes_.CommitTo(to + cell_value_bytes);
  return to;
}

// One op, decoded. The views point into the payload.
struct DecodedOp {
  MutationOp op{MutationOp::kTable};
  uint64_t id{0};           // table id, family id
  uint64_t number{0};       // timestamp, now, next record number, first tree id, Edge, catalog
  uint64_t replaced{0};     // of kReplace: the other version's timestamp
  std::string_view first;   // qualifier, begin, row key, name, keyspace, schema, bound, tablets
  std::string_view second;  // cell value, input, state, end, name
  std::string_view third;   // schema of kCreateTable
};

// Takes a payload apart.
class MutationReader {
 public:
  explicit MutationReader(std::string_view payload) : rest_(payload) {}
  // The stamp at the front of a payload. False if it is cut short.
  [[nodiscard]] bool ReadStamp(int64_t* stamp);
  // The next op; false at the end and on damage, which status() tells apart.
  [[nodiscard]] bool Next(DecodedOp* op);
  const Status& status() const { return status_; }

 private:
  bool Damaged();

  std::string_view rest_;
  Status status_;
};

}  // namespace cellar
