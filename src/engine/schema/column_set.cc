// Checking and encoding what a client names.
#include "engine/schema/column_set.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

Result<KeyBound> EncodeOneBound(const Order& order, std::string_view text, BoundSide side) {
  if (text == "-") return KeyBound{};
  if (text == "+") return KeyBound{{}, true};
  if (text.empty() || (text[0] != '[' && text[0] != '(')) {
    return Status::Error(ErrorCode::kErr, "min or max not valid string range item");
  }
  const BoundEdge edge = text[0] == '[' ? BoundEdge::kInclusive : BoundEdge::kExclusive;
  return order.EncodeBound(text.substr(1), edge, side);
}

// A name that lacks components does for a prefix: of a super column that may have been meant.
Status NotOneColumn(const FamilySchema& family, std::string_view qualifier, const Status& status) {
  const Order& order = family.order;
  if (status.code() != ErrorCode::kBadKey || order.components().size() == 1 || qualifier.empty()) {
    return status;
  }
  std::string prefix(qualifier);
  if (prefix.back() != order.delimiter()) prefix.push_back(order.delimiter());
  if (!order.EncodePrefix(prefix).ok()) return status;
  return Status::Error(status.code(), status.text() + ": all columns that begin so are COLPREFIX " +
                                          family.name + " " + Quote(prefix));
}

}  // namespace

Status RowKeyOfBadSize(std::string_view text) {
  if (text.empty()) return Status::Error(ErrorCode::kBadKey, "a row key cannot be empty");
  return Status::Error(ErrorCode::kTooLarge, "row key of " + FormatUint64(text.size()) +
                                                 " bytes, the limit is " +
                                                 FormatUint64(kRowKeyBytesMax));
}

Status QualifierTooLarge(const FamilySchema& family, std::string_view text) {
  return Status::Error(ErrorCode::kTooLarge,
                       "qualifier of " + FormatUint64(text.size()) + " bytes in family '" +
                           family.name + "', the limit is " + FormatUint64(kQualifierBytesMax));
}

Status QualifierRefused(const FamilySchema& family, const Status& status) {
  return Status::Error(status.code(),
                       "qualifier in family '" + family.name + "': " + status.text());
}

Result<const FamilySchema*> RequireFamily(const TableSchema& schema, std::string_view name) {
  if (schema.access != nullptr && !schema.access->MayRead(name)) return NoPermission();
  const FamilySchema* family = schema.FindFamily(name);
  if (family == nullptr) return Status::Error(ErrorCode::kNoFamily, "no family " + Quote(name));
  return family;
}

Status NoPermission() {
  return Status::Error(ErrorCode::kNoPerm,
                       "this user has no permissions to access one of the keys used as arguments");
}

Result<KeyRange> EncodeRange(const Order& order, std::string_view min, std::string_view max) {
  KeyRange range;
  ASSIGN_OR_RETURN(range.begin, EncodeOneBound(order, min, BoundSide::kMin));
  ASSIGN_OR_RETURN(range.end, EncodeOneBound(order, max, BoundSide::kMax));
  return range;
}

void MergeRanges(std::vector<KeyRange>* ranges) {
  if (ranges->size() == 1 && !ranges->front().empty()) return;
  std::erase_if(*ranges, [](const KeyRange& range) { return range.empty(); });
  if (ranges->size() < 2) return;
  std::sort(ranges->begin(), ranges->end(),
            [](const KeyRange& a, const KeyRange& b) { return a.begin < b.begin; });
  std::vector<KeyRange> merged;
  for (KeyRange& range : *ranges) {
    if (!merged.empty() && !(merged.back().end < range.begin)) {
      if (merged.back().end < range.end) merged.back().end = std::move(range.end);
    } else {
      merged.push_back(std::move(range));
    }
  }
  *ranges = std::move(merged);
}

Result<ColumnSet> ColumnSet::Compile(const TableSchema& schema,
                                     std::span<const ColumnSelector> selectors) {
  ColumnSet set;
  RETURN_IF_ERROR(set.Recompile(schema, selectors));
  return set;
}

// Selectors of one family are put together, in whatever order they come, and ranges that touch
// become one, so that no column is read twice. A family all of whose ranges are empty is left out;
// a set without families selects nothing.
Status ColumnSet::Recompile(const TableSchema& schema, std::span<const ColumnSelector> selectors) {
  if (selectors.empty()) {
    families_.resize(schema.families.size());
    for (size_t i = 0; i < families_.size(); ++i) {
      families_[i].index = i;
      families_[i].whole = true;
      families_[i].ranges.clear();
    }
    return Status::Ok();
  }
  families_.clear();
  std::vector<Family> by_index(schema.families.size());
  std::vector<bool> named(schema.families.size(), false);
  for (size_t i = 0; i < by_index.size(); ++i) by_index[i].index = i;
  for (const ColumnSelector& selector : selectors) {
    ASSIGN_OR_RETURN(const FamilySchema* family, RequireFamily(schema, selector.family));
    const auto index = static_cast<size_t>(family - schema.families.data());
    Family& columns = by_index[index];
    named[index] = true;
    switch (selector.kind) {
      case ColumnSelector::Kind::kFamily:
        columns.whole = true;
        break;
      case ColumnSelector::Kind::kColumn: {
        std::string qualifier;
        const Status status = EncodeQualifier(*family, selector.first, &qualifier);
        if (!status.ok()) return NotOneColumn(*family, selector.first, status);
        columns.ranges.push_back(PrefixRange(qualifier));
        break;
      }
      case ColumnSelector::Kind::kPrefix: {
        Result<KeyRange> range = family->order.EncodePrefix(selector.first);
        if (!range.ok()) return QualifierRefused(*family, range.status());
        columns.ranges.push_back(*std::move(range));
        break;
      }
      case ColumnSelector::Kind::kRange: {
        Result<KeyRange> range = EncodeRange(family->order, selector.first, selector.second);
        if (!range.ok()) return QualifierRefused(*family, range.status());
        columns.ranges.push_back(*std::move(range));
        break;
      }
    }
  }
  for (size_t i = 0; i < by_index.size(); ++i) {
    if (!named[i]) continue;
    Family& columns = by_index[i];
    if (columns.whole) {
      columns.ranges.clear();
    } else {
      MergeRanges(&columns.ranges);
      if (columns.ranges.empty()) continue;
    }
    families_.push_back(std::move(columns));
  }
  return Status::Ok();
}

void ColumnSet::IntersectWith(const std::vector<KeyRangeSet>& allowed) {
  std::vector<Family> left;
  for (Family& columns : families_) {
    KeyRangeSet ranges = allowed[columns.index];
    if (!columns.whole) {
      KeyRangeSet named;
      for (KeyRange& range : columns.ranges) named.Add(std::move(range));
      ranges.IntersectWith(named);
    }
    if (ranges.empty()) continue;
    columns.whole = ranges.all();
    columns.ranges = columns.whole ? std::vector<KeyRange>() : ranges.ranges();
    left.push_back(std::move(columns));
  }
  families_ = std::move(left);
}

std::vector<KeyRangeSet> ColumnSet::RangesByFamily(size_t families) const {
  std::vector<KeyRangeSet> by_family(families);
  for (const Family& family : families_) {
    KeyRangeSet& ranges = by_family[family.index];
    if (family.whole) ranges = KeyRangeSet::All();
    for (const KeyRange& range : family.ranges) ranges.Add(range);
  }
  return by_family;
}

void MarkGroupsOf(const ColumnSet& columns, const TableSchema& schema, std::vector<bool>* groups) {
  CELLAR_ASSERT(groups->size() == schema.groups.size());
  for (const ColumnSet::Family& family : columns.families()) {
    (*groups)[schema.families[family.index].group] = true;
  }
}

}  // namespace cellar
