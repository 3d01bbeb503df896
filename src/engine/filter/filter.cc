// Comparing with a filter's literals, and printing a filter.
#include "engine/filter/filter.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>

#include "base/coding.h"
#include "base/text/quote.h"
#include "engine/filter/filter_parser.h"
#include "engine/keys/float_literal.h"

namespace cellar {
namespace {

template <typename T>
int ThreeWay(const T& a, const T& b) {
  if (a < b) return -1;
  return b < a ? 1 : 0;
}

// A literal beyond the type is infinite in it, and yet no infinity.
template <typename Float>
int CompareWithFloat(const FilterLiteral& literal, ValueType type, Float value, Float number) {
  const int side = std::isinf(number) ? SideBeyondFloat(type, literal.text) : 0;
  return side == 0 ? ThreeWay(value, number) : CompareBeyondFloat(value, side);
}

int CompareWithNumber(const FilterLiteral& literal, ValueType type, std::string_view stored) {
  if (type == ValueType::kF32) {
    const auto value = LoadLittleEndian<float>(stored.data());
    return CompareWithFloat(literal, type, value, literal.as_float);
  }
  if (type == ValueType::kF64) {
    const auto value = LoadLittleEndian<double>(stored.data());
    return CompareWithFloat(literal, type, value, literal.as_double);
  }
  const int order = ThreeWay(LoadInteger(type, stored), literal.floor.floor);
  // An integer that equals the floor lies below a literal that is no integer.
  return order == 0 && !literal.floor.exact ? -1 : order;
}

int CompareWithString(const FilterLiteral& literal, ValueType type, std::string_view stored) {
  if (type != ValueType::kUuid) return ThreeWay(stored.compare(literal.text), 0);
  if (literal.uuid) return ThreeWay(stored.compare(*literal.uuid), 0);
  return ThreeWay(ValueText(type, stored).compare(literal.text), 0);
}

std::string_view OpSymbol(CompareOp op) {
  switch (op) {
    case CompareOp::kEq:
      return "=";
    case CompareOp::kNe:
      return "!=";
    case CompareOp::kLt:
      return "<";
    case CompareOp::kLe:
      return "<=";
    case CompareOp::kGt:
      return ">";
    case CompareOp::kGe:
      return ">=";
  }
  return "=";
}

std::string_view SubjectName(FilterSubject subject) {
  switch (subject) {
    case FilterSubject::kRow:
      return "row";
    case FilterSubject::kFamily:
      return "family";
    case FilterSubject::kQualifier:
      return "qualifier";
    case FilterSubject::kValue:
      return "value";
    case FilterSubject::kTimestamp:
      return "ts";
  }
  return "value";
}

void AppendLiteral(const FilterLiteral& literal, std::string* out) {
  if (literal.kind == FilterLiteralKind::kString) return AppendDoubleQuoted(literal.text, out);
  out->append(literal.text);
}

void AppendRange(const FilterRange& range, std::string* out) {
  out->push_back(range.low_inclusive ? '[' : '(');
  if (range.low) AppendLiteral(*range.low, out);
  out->push_back(',');
  if (range.high) AppendLiteral(*range.high, out);
  out->push_back(range.high_inclusive ? ']' : ')');
}

class FilterPrinter {
 public:
  FilterPrinter(const std::vector<FilterNode>& nodes, std::string* out)
      : nodes_(nodes), out_(out) {}

  // Children are chains or steps; nothing needs parentheses, since chains in chains are spliced.
  void Print(uint32_t index) {
    const FilterNode& node = nodes_[index];
    switch (node.kind) {
      case FilterNodeKind::kChain:
        return PrintList(node, "", " | ", "");
      case FilterNodeKind::kInterleave:
        return PrintList(node, "{", ", ", "}");
      case FilterNodeKind::kIf:
        return PrintList(node, "if(", "; ", ")");
      case FilterNodeKind::kMatch:
        out_->append(SubjectName(node.subject)).append(" ~ ");
        return AppendDoubleQuoted(node.pattern, out_);
      case FilterNodeKind::kCompare:
        out_->append(SubjectName(node.subject)).append(" ").append(OpSymbol(node.op)).append(" ");
        return AppendLiteral(node.literal, out_);
      case FilterNodeKind::kIn:
        out_->append(SubjectName(node.subject)).append(" in ");
        return AppendRange(node.range, out_);
      case FilterNodeKind::kLabel:
        out_->append("label(");
        AppendDoubleQuoted(node.literal.text, out_);
        out_->push_back(')');
        return;
      default:
        return PrintFunction(node);
    }
  }

 private:
  void PrintFunction(const FilterNode& node) {
    switch (node.kind) {
      case FilterNodeKind::kLatest:
        out_->append("latest");
        break;
      case FilterNodeKind::kLimit:
        out_->append("limit");
        break;
      case FilterNodeKind::kOffset:
        out_->append("offset");
        break;
      case FilterNodeKind::kSample:
        out_->append("sample(");
        AppendDouble(node.probability, out_);
        out_->push_back(')');
        return;
      case FilterNodeKind::kStrip:
        out_->append("strip");
        return;
      case FilterNodeKind::kBlock:
        out_->append("block");
        return;
      case FilterNodeKind::kSink:
        out_->append("sink");
        return;
      default:
        out_->append("pass");
        return;
    }
    out_->push_back('(');
    AppendUint64(node.count, out_);
    out_->push_back(')');
  }

  void PrintList(const FilterNode& node, std::string_view open, std::string_view between,
                 std::string_view close) {
    out_->append(open);
    for (size_t i = 0; i < node.children.size(); ++i) {
      if (i > 0) out_->append(between);
      Print(node.children[i]);
    }
    out_->append(close);
  }

  const std::vector<FilterNode>& nodes_;
  std::string* out_;
};

}  // namespace

Filter::Filter() = default;
Filter::~Filter() = default;

Result<std::unique_ptr<Filter>> Filter::Parse(std::string_view text) {
  return FilterParser(text).Run();
}

std::vector<std::string_view> Filter::NamedFamilies() const {
  std::vector<std::string_view> names;
  for (const FilterNode& node : nodes_) {
    if (node.kind != FilterNodeKind::kCompare || node.subject != FilterSubject::kFamily) continue;
    if (node.literal.kind != FilterLiteralKind::kString) continue;
    if (std::find(names.begin(), names.end(), node.literal.text) == names.end()) {
      names.emplace_back(node.literal.text);
    }
  }
  return names;
}

std::string Filter::ToString() const {
  std::string text;
  FilterPrinter(nodes_, &text).Print(root());
  return text;
}

bool FilterLiteralHolds(CompareOp op, const FilterLiteral& literal, ValueType type,
                        std::string_view stored) {
  switch (literal.kind) {
    case FilterLiteralKind::kNumber:
      return IsNumericType(type) && CompareHolds(op, CompareWithNumber(literal, type, stored));
    case FilterLiteralKind::kBool: {
      if (type != ValueType::kBool) return false;
      const int cell = stored[0] != 0 ? 1 : 0;
      return CompareHolds(op, cell - (literal.as_bool ? 1 : 0));
    }
    case FilterLiteralKind::kString:
      return (IsTextType(type) || type == ValueType::kUuid) &&
             CompareHolds(op, CompareWithString(literal, type, stored));
  }
  return false;
}

}  // namespace cellar
