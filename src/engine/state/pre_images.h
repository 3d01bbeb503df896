// PreImages: what stood where a mutation writes, for feeds that tell of it (OLD, EXPIRED). Taken
// down before the ops are carried out, and logged behind them, in kPreImages:
//
//   lists    { v op, v cells { kind u8, b key, b value } } ...      ops that met none are left out
//   op       counts the changes of the part (what is neither kStep, kTable, kRow nor kPreImages;
//            kRewrites counts as one, so that whoever does not know it would count alike)
//   kind     kNewest: the column's newest live version before a put
//            (kReclaimed without a value behind it: the put displaces just that one)
//            kRemoved: live, and removed by the op      kReclaimed: retention had dropped it
//   key      the end of the cell's key, behind what the op says: behind the column's for an op on a
//            column, the family's for kDeleteRange, the row's for kDeleteRow, all of it for
//            kDeleteRows
//
// Ops that are applied one by one are taken down one by one: each list is what that op met. A part
// whose ops are applied together is taken down before all of them: then a put that meets another
// one of the same part finds it there and not here (`Taken`). Only puts and folds, and what
// retention has dropped, come together so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/status.h"
#include "engine/table/mutation.h"

namespace cellar {

class Table;

enum class OldCellKind : uint8_t { kNewest = 0, kRemoved = 1, kReclaimed = 2 };

class PreImages {
 public:
  enum class Taken : uint8_t { kTogether = 0, kOneByOne = 1 };
  static constexpr size_t kBytesMax{size_t{1} << 30};

  void Begin(int64_t now_micros, Taken taken);
  // The next op of the part, before it is carried out. `table` and `row_key` are those that the ops
  // before have named; null for an op without a table.
  void Take(const DecodedOp& op, const Table* table, std::string_view row_key);
  // A part that is one put, whose column's newest version is known: `version` is the end of its
  // key, empty if there is none.
  void TakeLonePut(const ResolvedPut& put, const Table& table, std::string_view version,
                   std::string_view value);
  // All ops of a part.
  Status TakeAll(std::string_view ops, const Table& table);

  // Room that AppendTo needs; beyond kBytesMax if that is more than a record may hold. Then
  // nothing was kept, and the mutation is to be refused.
  size_t bytes() const { return overflows_ ? kBytesMax + 1 : lists_.size() + 64; }
  void AppendTo(MutationBuilder* mutation) const {
    mutation->PreImages(ops_ << 1 | static_cast<uint64_t>(taken_), cells_, lists_);
  }

 private:
  void TakeNewest(const DecodedOp& op, const Table& table, std::string_view row_key);
  // What a put meets: true if the newest version is live, and `replaced` too has been dealt with.
  bool AddNewest(const FamilySchema& family, std::string_view version, std::string_view value,
                 const std::optional<int64_t>& replaced);
  void AddReplaced(const Table& table, const FamilySchema& family, std::string_view column,
                   int64_t replaced);
  void AddNewestLive(const Table& table, const FamilySchema& family, std::string_view row_key,
                     std::string_view qualifier);
  void TakeRange(const Table& table, size_t group, std::string_view begin, std::string_view end,
                 size_t prefix_bytes);
  void TakeColumn(const DecodedOp& op, const Table& table, std::string_view row_key);
  void TakeFamily(const FamilySchema& family, const Table& table, std::string_view row_key,
                  const DecodedOp* range);
  void EndList(uint64_t op);
  void Add(OldCellKind kind, std::string_view key, std::string_view value);

  int64_t now_micros_{0};
  Taken taken_{Taken::kTogether};
  uint64_t ops_{0};
  uint64_t cells_{0};
  bool overflows_{false};
  std::string lists_;
  uint64_t list_cells_{0};
  std::string list_;
  std::string key_;
};

}  // namespace cellar
