// RowWrite: what a client asks of one row, before anything is resolved.
//
// CPUT, CADD, CDEL, CINCRBY, CINCRBYFLOAT, CAPPEND and CMUTATE are all one RowWrite: conditions,
// ops to do if they hold, ops to do if not. Everything is text as the client sent it; the views
// borrow from the caller's arguments and must outlive the call. The engine checks all of it in the
// order of cellar-model(7), "ERROR REPLIES", then decides the conditions, then makes a mutation
// of it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/inline.h"
#include "engine/keys/value.h"
#include "engine/request/family_access.h"

namespace cellar {

// What one write may do: cellar-model(7), "LIMITS".
inline constexpr size_t kCellOpsMax{1'000'000};

// Timestamps [min, max], both inclusive, in microseconds. min > max is the empty range.
struct TimeRange {
  int64_t min_micros{0};
  int64_t max_micros{std::numeric_limits<int64_t>::max()};

  bool all() const { return min_micros == 0 && max_micros == std::numeric_limits<int64_t>::max(); }
};

// Some columns of a row.
struct ColumnSelector {
  enum class Kind : uint8_t {
    kColumn,  // family:first
    kFamily,  // the whole family
    kPrefix,  // COLPREFIX family first
    kRange,   // COLRANGE family first second; bounds as sent: "[a", "(b", "-", "+"
  };
  Kind kind{Kind::kFamily};
  std::string_view family;
  std::string_view first;
  std::string_view second;
};

// A condition on a row (cellar-query(7), "CONDITIONS").
struct Predicate {
  enum class Kind : uint8_t {
    kColumnExists,
    kColumnMissing,
    kCompare,  // column `op` literal
    kMatch,    // column MATCH literal (a glob)
    kRowExists,
    kRowMissing,
    kFilter,  // literal is the expression
  };
  Kind kind{Kind::kRowExists};
  std::string_view family;
  std::string_view qualifier;
  CompareOp op{CompareOp::kEq};
  std::string_view literal;

  // Whether it is false for every row that has not the column.
  bool needs_cell() const {
    return kind == Kind::kColumnExists || kind == Kind::kMatch ||
           (kind == Kind::kCompare && op != CompareOp::kNe);
  }
};

// A value for a column.
struct CellPut {
  std::string_view family;
  std::string_view qualifier;
  std::string_view text;
};

// What may be said of it besides.
struct PutOptions {
  std::optional<ValueType> type;            // AS
  std::optional<int64_t> timestamp_micros;  // TS
  std::optional<uint64_t> ttl_micros;       // TTL
  std::optional<int64_t> expiry_micros;     // EXPIREAT, instead of TTL; may be in the past
};

// CellPut: the column, of all but kDelete and kDeleteRow; `text` is the value, the delta, or what
// is appended. PutOptions: of kPut; of kAdd and kMerge the timestamp.
struct CellOp : CellPut, PutOptions {
  enum class Kind : uint8_t {
    kPut,
    kDelete,          // `selector`, only versions within `time`
    kDeleteRow,       // the whole row, only versions within `time`
    kIncrement,       // CINCRBY: integer cells
    kIncrementFloat,  // CINCRBYFLOAT: float cells
    kIncrementAny,    // CMUTATE's INCR: whichever fits the cell
    kAppend,
    kAdd,    // folds an input into the cell of an aggregate family (keys/fold.h)
    kMerge,  // likewise a value or state
  };
  // Does it write without asking what the column holds? Several of these alone are one write.
  static constexpr bool IsBlind(Kind kind) {
    return kind == Kind::kPut || kind == Kind::kAdd || kind == Kind::kMerge;
  }
  CellOp() = default;
  // A put.
  explicit CellOp(const CellPut& put) : CellPut(put) {}

  Kind kind{Kind::kPut};
  ColumnSelector selector;  // kDelete
  TimeRange time;           // kDelete, kDeleteRow
};

struct RowWrite {
  enum class Existence : uint8_t { kAny, kNx, kXx };  // NX, XX: of the columns that `ops` name

  const FamilyAccess* access{nullptr};  // null: everything is allowed
  std::string_view row;                 // "*" asks for the next record number if `allocates`
  bool allocates{false};
  Existence existence{Existence::kAny};
  std::vector<Predicate> conditions;  // all must hold
  std::vector<CellOp> ops;
  std::vector<CellOp> else_ops;

  // Are they puts and nothing else, to be done whatever the row holds, by somebody who may do
  // everything? So are most writes.
  CELLAR_INLINE bool IsPlainPut() const {
    if (access != nullptr || existence != Existence::kAny || allocates || !conditions.empty() ||
        !else_ops.empty() || ops.empty()) {
      return false;
    }
    for (const CellOp& op : ops) {
      if (op.kind != CellOp::Kind::kPut) return false;
    }
    return true;
  }

  // Empties it and keeps the memory.
  void Clear() {
    access = nullptr;
    row = {};
    allocates = false;
    existence = Existence::kAny;
    conditions.clear();
    ops.clear();
    else_ops.clear();
  }
};

struct CellOpResult {
  CellOp::Kind kind{CellOp::Kind::kPut};
  // kDelete, kDeleteRow: live cells deleted; kAppend: the new length in bytes; folds: 1, or 0 where
  // the cell is what it was.
  uint64_t count{0};
  bool folded{false};                 // into the cell of an aggregate family
  ValueType type{ValueType::kBytes};  // increments: the new value
  std::string stored;                 // likewise, in stored form (value.h)

  // Empties it and keeps the memory.
  void Clear() {
    kind = CellOp::Kind::kPut;
    count = 0;
    folded = false;
    type = ValueType::kBytes;
    stored.clear();
  }
};

struct RowWriteResult {
  bool conditions_held{true};         // false: `else_ops` were done, if any
  std::string row;                    // allocates: the canonical text of the row key given out
  std::vector<CellOpResult> results;  // one for each op of the branch taken

  // That of a write without conditions, for a row that the client has named.
  void BeginPlain(size_t ops) {
    conditions_held = true;
    row.clear();
    BeginOps(ops);
  }
  // Makes room for what `count` ops give, keeping the memory of former ones.
  void BeginOps(size_t count) {
    results.resize(count);
    for (CellOpResult& result : results) result.Clear();
  }
  // Whether the write did anything but delete nothing or fold in what changes nothing: what is
  // worth telling others.
  CELLAR_INLINE bool changed_something() const {
    return std::any_of(results.begin(), results.end(), [](const CellOpResult& op) {
      const bool deletes = op.kind == CellOp::Kind::kDelete || op.kind == CellOp::Kind::kDeleteRow;
      return !(deletes || op.folded) || op.count > 0;
    });
  }
};

}  // namespace cellar
