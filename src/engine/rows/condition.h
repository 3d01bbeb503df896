// Condition: a predicate (IF, WHERE), checked against a schema and ready to be asked of a row.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/keys/cell.h"
#include "engine/request/row_write.h"
#include "engine/table/read_view.h"

namespace cellar {

struct CellPlan;

class Condition {
 public:
  // NOFAMILY, TOOLARGE, BADKEY. A FILTER is left for CompileFilter, since its errors come later.
  static Result<Condition> Compile(const TableSchema& schema, const Predicate& predicate);
  Condition(Condition&&) noexcept;
  Condition& operator=(Condition&&) noexcept;
  ~Condition();

  // BADFILTER, NOFAMILY. Nothing to do for other kinds.
  Status CompileFilter(const TableSchema& schema);

  // Of the newest live versions of the row. A view of the same schema.
  bool Holds(const ReadView& view, std::string_view row_key) const;

  // The one column that is asked for: index in TableSchema::families, encoded qualifier. None for
  // the kinds that ask for the row.
  struct Column {
    size_t family{0};
    std::string_view qualifier;
  };
  std::optional<Column> column() const;
  // Holds() where the newest live version of column() is known; null: there is none. REQUIRES:
  // column().
  bool HoldsOf(const CellValue* newest) const;
  // Does it ask for nothing but whether the row is there?
  bool asks_for_row() const {
    return kind_ == Predicate::Kind::kRowExists || kind_ == Predicate::Kind::kRowMissing;
  }
  // Holds() where that is known. REQUIRES: asks_for_row().
  bool HoldsOfRow(bool is_live) const;
  // A sentence if, since it was compiled, a comparison with a number has met text.
  void AddNote(const TableSchema& schema, std::vector<std::string>* notes) const;
  // Marks the locality groups, by number, that Holds() looks into.
  void MarkGroups(const TableSchema& schema, std::vector<bool>* groups) const;

 private:
  Condition();

  Predicate::Kind kind_{Predicate::Kind::kRowExists};
  size_t family_{0};       // index in TableSchema::families
  std::string qualifier_;  // encoded
  CompareOp op_{CompareOp::kEq};
  ComparedLiteral literal_;  // or the text of a filter or pattern
  bool has_number_{false};   // the literal of a comparison is one
  std::unique_ptr<CellPlan> filter_;
  // Cells of text that were held against it; of a filter, one for each row.
  mutable uint64_t text_met_{0};
};

// Of so many cells that a filter has held against numbers.
std::string FilterTextNote(uint64_t cells);

bool AllHold(std::span<const Condition> conditions, const ReadView& view, std::string_view row_key);

}  // namespace cellar
