// A JSON value in which numbers are as they were written: 0.10 stays 0.10, and an integer of forty
// digits has forty digits. Of members of one name the last one counts.
//
// What is held is bounded by the text, but for the depth and the number of values: `[` and `1,` are
// shorter than what they become.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"

namespace cellar::importer {

struct JsonTree {
  enum class Kind : uint8_t { kNull, kBool, kInteger, kFloat, kText, kArray, kObject };

  static constexpr size_t kDepthMax{32};
  static constexpr size_t kValuesMax{4'000'000};

  // BADVALUE if `text` is not JSON, is nested deeper than kDepthMax or has more than kValuesMax
  // values.
  static Result<JsonTree> Parse(std::string_view text);

  // A member of an object; nothing if there is none, or this is no object.
  const JsonTree* Find(std::string_view name) const;
  bool is_text() const { return kind == Kind::kText; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_object() const { return kind == Kind::kObject; }
  bool is_structured() const { return is_array() || is_object(); }
  // A scalar's text; of an array or object its JSON.
  std::string ToText() const;
  // What its type is called in a table: bool, i64, u64, f64, string; empty if none fits.
  std::string_view NaturalType() const;

  Kind kind{Kind::kNull};
  std::string text;                // of a scalar
  std::vector<std::string> names;  // of an object, one an item
  std::vector<JsonTree> items;
};

}  // namespace cellar::importer
