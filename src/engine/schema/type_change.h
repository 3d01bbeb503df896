// What TYPE, COLUMN and NOCOLUMN do to a family, and which cells they ask for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "engine/keys/value.h"
#include "engine/schema/schema.h"

namespace cellar {

// COLUMN and NOCOLUMN, done to `family`, whose order is known. BADKEY, TOOLARGE; ERR for a column
// that is named twice, has no type that could be taken off, or is an aggregate's. After an error
// the family is unspecified.
// O(n log n) in the number of options, of which too many are refused first.
Status AlterColumns(const std::vector<ColumnTypeOption>& options, FamilySchema* family);

// The schema, of which each slice of a change takes a copy, stays small: qualifiers of typed
// columns take no more than this in a table.
inline constexpr size_t kTypedColumnBytesMax{1 << 20};
// TOOLARGE if they would, with `after` in the place of the family of its id, or beside the families
// of `before`. What has not grown is never refused.
Status CheckTypedColumnBytes(const TableSchema& before, const FamilySchema& after);

// Which type a cell of which column should have, once FAMILY ALTER has made the family `after`. It
// asks for columns whose type it says: by name, or by TYPE those that have none of their own.
class TypeChange {
 public:
  TypeChange(const FamilySchema& after, const FamilyOptions& options);

  struct Wanted {
    ValueType type{ValueType::kBytes};
    bool any_text{false};  // no type: bytes and string are both text

    bool Takes(ValueType other) const { return any_text ? IsTextType(other) : other == type; }
    friend bool operator==(const Wanted&, const Wanted&) = default;
  };
  // Nothing: the column is none of its business, or may have cells of any type.
  std::optional<Wanted> WantedOf(std::string_view qualifier) const;
  // Could it be one of some column? Else there is nothing to look for.
  bool asks() const { return asks_of_family_ || !named_.empty(); }
  // Do both ask for the same columns, and want the same of each?
  bool SameAs(const TypeChange& other) const;
  // The same, but that `other` may ask for more or fewer of the columns that nobody has named,
  // since these have got types of their own, or have them no longer.
  bool GoesOnAs(const TypeChange& other) const;
  // Of two that go on as each other it is the same, whoever makes it of which schema.
  uint64_t Hash() const;

 private:
  bool NamesAlike(const TypeChange& other) const;

  std::optional<ValueType> type_;
  std::vector<TypedColumn> columns_;
  std::vector<std::string> named_;  // encoded
  bool asks_of_family_{false};
  bool to_text_{false};  // where no type is left, CONVERT makes text
};

}  // namespace cellar
