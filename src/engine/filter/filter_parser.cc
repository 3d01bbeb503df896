// See filter.h for the grammar.
#include "engine/filter/filter_parser.h"

#include <re2/re2.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"
#include "base/text/time_text.h"

namespace cellar {
namespace {

// All regexes of one filter share this budget, so that many of them cannot add up; RE2 falls back
// to a slower, still linear, matcher where its share does not hold its states.
constexpr int64_t kRegexBytesMax{32 * 1024 * 1024};
constexpr int64_t kRegexBytesMin{128 * 1024};
constexpr int64_t kOneRegexBytesMax{8 * 1024 * 1024};

constexpr std::string_view kExpectedFilter =
    "expected row, family, qualifier, value, ts, latest, limit, offset, sample, strip, label, "
    "pass, "
    "block, sink, if, ( or {";

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsLowerLetter(char c) { return c >= 'a' && c <= 'z'; }

// What an unquoted literal may be made of.
bool IsLiteralCharacter(char c) {
  return IsLowerLetter(c) || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
         c == '-' || c == '.';
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool FindSubject(std::string_view word, FilterSubject* subject) {
  constexpr std::pair<std::string_view, FilterSubject> kSubjects[]{
      {"row", FilterSubject::kRow},
      {"family", FilterSubject::kFamily},
      {"qualifier", FilterSubject::kQualifier},
      {"value", FilterSubject::kValue},
      {"ts", FilterSubject::kTimestamp}};
  for (const auto& [name, found] : kSubjects) {
    if (name != word) continue;
    *subject = found;
    return true;
  }
  return false;
}

bool IsLabel(std::string_view text) {
  if (text.empty() || text.size() > kFilterLabelBytesMax) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLowerLetter(c) || (c >= '0' && c <= '9') || c == '-'; });
}

// a * b and a + b, held at one above the limit.
uint64_t CappedProduct(uint64_t a, uint64_t b) { return std::min(a * b, kFilterCopiesMax + 1); }
uint64_t CappedSum(uint64_t a, uint64_t b) { return std::min(a + b, kFilterCopiesMax + 1); }

}  // namespace

Result<std::unique_ptr<Filter>> FilterParser::Run() {
  if (text_.size() > kFilterBytesMax) {
    return ComplainAt(kFilterBytesMax, "longer than 20 KiB");
  }
  ASSIGN_OR_RETURN(const Part root, ParseChain(0));
  SkipBlanks();
  if (at_ != text_.size()) return Complain("expected | or the end");
  // Children are added before their parent.
  CELLAR_ASSERT(root.node + 1 == nodes_.size());
  const uint32_t stages = AssignStages(root.node, 0);
  if (stages > kFilterStagesMax) return ComplainAt(0, "too many conditions inside one another");
  // Last, since the number of regexes decides how much memory each may take.
  RETURN_IF_ERROR(CompileRegexes());
  std::unique_ptr<Filter> filter(new Filter());
  filter->nodes_ = std::move(nodes_);
  filter->stages_ = stages;
  return filter;
}

Result<FilterParser::Part> FilterParser::ParseChain(uint32_t depth) {
  if (depth > kFilterDepthMax) return Complain("nested more than 20 deep");
  ASSIGN_OR_RETURN(Part part, ParseStep(depth));
  if (!Take("|")) return part;
  FilterNode chain;
  chain.kind = FilterNodeKind::kChain;
  // A chain inside a chain adds its steps, so that evaluation need not go down for it.
  const auto add_step = [&](uint32_t step) {
    const FilterNode& node = nodes_[step];
    if (node.kind != FilterNodeKind::kChain) return chain.children.push_back(step);
    chain.children.insert(chain.children.end(), node.children.begin(), node.children.end());
  };
  add_step(part.node);
  do {
    const size_t at = at_;
    ASSIGN_OR_RETURN(const Part step, ParseStep(depth));
    add_step(step.node);
    part.copies = CappedProduct(part.copies, step.copies);
    if (part.copies > kFilterCopiesMax) return ComplainAt(at, "one cell could be copied too often");
  } while (Take("|"));
  part.node = AddNode(std::move(chain));
  return part;
}

Result<FilterParser::Part> FilterParser::ParseStep(uint32_t depth) {
  if (Take("(")) return ParseGroup(depth);
  if (Take("{")) return ParseInterleave(depth);
  const std::string_view word = TakeWord();
  if (word.empty()) return Complain(kExpectedFilter);
  if (word == "if") return ParseIf(depth);
  FilterSubject subject{};
  if (FindSubject(word, &subject)) return ParseSubject(subject);
  return ParseFunction(word);
}

Result<FilterParser::Part> FilterParser::ParseGroup(uint32_t depth) {
  ASSIGN_OR_RETURN(const Part part, ParseChain(depth + 1));
  RETURN_IF_ERROR(Expect(")"));
  return part;
}

Result<FilterParser::Part> FilterParser::ParseInterleave(uint32_t depth) {
  FilterNode interleave;
  interleave.kind = FilterNodeKind::kInterleave;
  Part part;
  part.copies = 0;
  do {
    const size_t at = at_;
    ASSIGN_OR_RETURN(const Part branch, ParseChain(depth + 1));
    interleave.children.push_back(branch.node);
    part.copies = CappedSum(part.copies, branch.copies);
    if (part.copies > kFilterCopiesMax) return ComplainAt(at, "one cell could be copied too often");
  } while (Take(","));
  RETURN_IF_ERROR(Expect("}"));
  if (interleave.children.size() == 1) {
    part.node = interleave.children[0];  // nothing to unite
    return part;
  }
  part.node = AddNode(std::move(interleave));
  return part;
}

Result<FilterParser::Part> FilterParser::ParseIf(uint32_t depth) {
  const size_t at = at_;
  RETURN_IF_ERROR(Expect("("));
  FilterNode condition;
  condition.kind = FilterNodeKind::kIf;
  ASSIGN_OR_RETURN(const Part decision, ParseChain(depth + 1));
  RETURN_IF_ERROR(Expect(";"));
  ASSIGN_OR_RETURN(Part part, ParseChain(depth + 1));
  condition.children = {decision.node, part.node};
  if (Take(";")) {
    ASSIGN_OR_RETURN(const Part otherwise, ParseChain(depth + 1));
    condition.children.push_back(otherwise.node);
    // A row takes one of the two, and what the decision lets through goes nowhere.
    part.copies = std::max(part.copies, otherwise.copies);
  }
  RETURN_IF_ERROR(Expect(")"));
  part.node = AddNode(std::move(condition));
  if (nodes_[part.node].has_sink) return ComplainAt(at, "sink is not allowed inside an if");
  return part;
}

Result<FilterParser::Part> FilterParser::ParseSubject(FilterSubject subject) {
  FilterNode node;
  node.subject = subject;
  if (subject != FilterSubject::kTimestamp && Take("~")) {
    node.kind = FilterNodeKind::kMatch;
    SkipBlanks();
    const size_t at = at_;
    RETURN_IF_ERROR(ParseString(&node.pattern));
    const Part part{AddNode(std::move(node)), 1};
    regexes_.push_back({part.node, at});
    return part;
  }
  SkipBlanks();
  if (text_.substr(at_).starts_with("in")) {
    at_ += 2;
    node.kind = FilterNodeKind::kIn;
    RETURN_IF_ERROR(ParseRange(&node));
  } else {
    node.kind = FilterNodeKind::kCompare;
    RETURN_IF_ERROR(ParseComparison(&node));
  }
  return Part{AddNode(std::move(node)), 1};
}

Status FilterParser::ParseComparison(FilterNode* node) {
  // The longer ones first.
  constexpr std::pair<std::string_view, CompareOp> kOps[]{
      {"!=", CompareOp::kNe}, {"<=", CompareOp::kLe}, {">=", CompareOp::kGe},
      {"=", CompareOp::kEq},  {"<", CompareOp::kLt},  {">", CompareOp::kGt}};
  for (const auto& [symbol, op] : kOps) {
    if (!Take(symbol)) continue;
    node->op = op;
    RETURN_IF_ERROR(ParseLiteral(node->subject, &node->literal));
    return CheckLiteralKind(node->subject, node->literal);
  }
  return Complain("expected ~, =, !=, <, <=, >, >= or in");
}

// Elsewhere a literal of another kind is no mistake: it lets nothing through.
Status FilterParser::CheckLiteralKind(FilterSubject subject, const FilterLiteral& literal) {
  const bool is_number = literal.kind == FilterLiteralKind::kNumber;
  if (subject == FilterSubject::kTimestamp && !is_number)
    return Complain("ts takes a number or a time");
  return Status::Ok();
}

Status FilterParser::ParseRange(FilterNode* node) {
  FilterRange& range = node->range;
  range.low_inclusive = Take("[");
  if (!range.low_inclusive && !Take("(")) return Complain("expected [ or (");
  if (!Take(",")) {
    RETURN_IF_ERROR(ParseLiteral(node->subject, &range.low.emplace()));
    RETURN_IF_ERROR(CheckLiteralKind(node->subject, *range.low));
    RETURN_IF_ERROR(Expect(","));
  }
  range.high_inclusive = Take("]");
  if (range.high_inclusive || Take(")")) return Status::Ok();
  RETURN_IF_ERROR(ParseLiteral(node->subject, &range.high.emplace()));
  RETURN_IF_ERROR(CheckLiteralKind(node->subject, *range.high));
  if (range.low && range.low->kind != range.high->kind) {
    return Complain("the bounds are of different kinds");
  }
  range.high_inclusive = Take("]");
  if (!range.high_inclusive && !Take(")")) return Complain("expected ] or )");
  return Status::Ok();
}

Result<FilterParser::Part> FilterParser::ParseFunction(std::string_view name) {
  const size_t at = at_ - name.size();
  FilterNode node;
  if (name == "pass") {
    node.kind = FilterNodeKind::kPass;
  } else if (name == "block") {
    node.kind = FilterNodeKind::kBlock;
  } else if (name == "strip") {
    node.kind = FilterNodeKind::kStrip;
  } else if (name == "sink") {
    node.kind = FilterNodeKind::kSink;
  } else if (name == "latest" || name == "limit" || name == "offset") {
    node.kind = name == "latest"  ? FilterNodeKind::kLatest
                : name == "limit" ? FilterNodeKind::kLimit
                                  : FilterNodeKind::kOffset;
    RETURN_IF_ERROR(ParseCount(&node.count));
  } else if (name == "sample") {
    node.kind = FilterNodeKind::kSample;
    RETURN_IF_ERROR(ParseProbability(&node.probability));
  } else if (name == "label") {
    node.kind = FilterNodeKind::kLabel;
    RETURN_IF_ERROR(Expect("("));
    SkipBlanks();
    const size_t label_at = at_;
    RETURN_IF_ERROR(ParseString(&node.literal.text));
    if (!IsLabel(node.literal.text)) return ComplainAt(label_at, "a label is [a-z0-9-]{1,15}");
    RETURN_IF_ERROR(Expect(")"));
  } else {
    return ComplainAt(at, kExpectedFilter);
  }
  return Part{AddNode(std::move(node)), 1};
}

Status FilterParser::ParseCount(uint64_t* count) {
  RETURN_IF_ERROR(Expect("("));
  SkipBlanks();
  const size_t at = at_;
  while (at_ < text_.size() && IsLiteralCharacter(text_[at_])) ++at_;
  const NumberError error = ParseUint64(text_.substr(at, at_ - at), count);
  if (error != NumberError::kNone) return ComplainAt(at, "expected a count");
  if (*count == 0) return ComplainAt(at, "a count of 0");
  return Expect(")");
}

Status FilterParser::ParseProbability(double* probability) {
  RETURN_IF_ERROR(Expect("("));
  SkipBlanks();
  const size_t at = at_;
  while (at_ < text_.size() && IsLiteralCharacter(text_[at_])) ++at_;
  const NumberError error = ParseDouble(text_.substr(at, at_ - at), probability);
  if (error != NumberError::kNone || *probability < 0 || *probability > 1) {
    return ComplainAt(at, "expected a probability between 0 and 1");
  }
  return Expect(")");
}

// A time, quoted or not, becomes the number of its microseconds here, so that a parsed filter means
// the same for ever.
Status FilterParser::ParseTimestamp(FilterLiteral* literal) {
  const size_t at = at_;
  std::string text;
  if (text_[at_] == '"') {
    RETURN_IF_ERROR(ParseString(&text));
  } else {
    while (at_ < text_.size() && IsLiteralCharacter(text_[at_])) ++at_;
    text = text_.substr(at, at_ - at);
  }
  const Result<int64_t> micros = ParseTimeText(text, TimeForm::kRfc3339);
  if (!micros.ok()) return ComplainAt(at, micros.status().text());
  literal->text = FormatInt64(*micros);
  const bool read = ReadNumber(literal);
  CELLAR_ASSERT(read);
  return Status::Ok();
}

// literal->text as a number; false if it is none.
bool FilterParser::ReadNumber(FilterLiteral* literal) {
  literal->kind = FilterLiteralKind::kNumber;
  if (ParseDecimalFloor(literal->text, &literal->floor) != NumberError::kNone) return false;
  // Beyond the range of a float a number is still larger, or smaller, than all finite ones.
  const bool negative = literal->text.front() == '-';
  if (ParseDouble(literal->text, &literal->as_double) != NumberError::kNone)
    literal->as_double = negative ? -HUGE_VAL : HUGE_VAL;
  if (ParseFloat(literal->text, &literal->as_float) != NumberError::kNone)
    literal->as_float = negative ? -HUGE_VALF : HUGE_VALF;
  return true;
}

Status FilterParser::ParseLiteral(FilterSubject subject, FilterLiteral* literal) {
  SkipBlanks();
  const size_t begin = at_;
  if (subject == FilterSubject::kTimestamp && at_ < text_.size() && text_[at_] == '"')
    return ParseTimestamp(literal);
  if (at_ < text_.size() && text_[at_] == '"') {
    literal->kind = FilterLiteralKind::kString;
    RETURN_IF_ERROR(ParseString(&literal->text));
    // A string that reads as a UUID compares with UUIDs as well.
    std::string uuid(kUuidBytes, '\0');
    if (ParseUuid(literal->text, uuid.data())) literal->uuid = std::move(uuid);
    return Status::Ok();
  }
  const size_t at = at_;
  while (at_ < text_.size() && IsLiteralCharacter(text_[at_])) ++at_;
  literal->text = text_.substr(at, at_ - at);
  if (literal->text == "true" || literal->text == "false") {
    literal->kind = FilterLiteralKind::kBool;
    literal->as_bool = literal->text == "true";
    return Status::Ok();
  }
  if (ReadNumber(literal)) return Status::Ok();
  if (subject == FilterSubject::kTimestamp && !literal->text.empty()) {
    at_ = begin;
    return ParseTimestamp(literal);
  }
  return ComplainAt(at, "expected a number, true, false or a string");
}

// The escapes are a part of redis-cli's. A backslash before anything else is just that, so that
// glob patterns need no second one. If the closing quote is missing the error points at the opening
// one.
Status FilterParser::ParseString(std::string* decoded) {
  SkipBlanks();
  if (at_ == text_.size() || text_[at_] != '"') return Complain("expected a string");
  const size_t begin = at_++;
  decoded->clear();
  while (at_ < text_.size() && text_[at_] != '"') {
    const char c = text_[at_++];
    if (c != '\\' || at_ == text_.size()) {
      decoded->push_back(c);
      continue;
    }
    const char escaped = text_[at_++];
    switch (escaped) {
      case '"':
      case '\\':
        decoded->push_back(escaped);
        continue;
      case 'n':
        decoded->push_back('\n');
        continue;
      case 'r':
        decoded->push_back('\r');
        continue;
      case 't':
        decoded->push_back('\t');
        continue;
      default:
        break;
    }
    if (escaped == 'x' && at_ + 1 < text_.size() && HexDigit(text_[at_]) >= 0 &&
        HexDigit(text_[at_ + 1]) >= 0) {
      decoded->push_back(static_cast<char>(HexDigit(text_[at_]) << 4 | HexDigit(text_[at_ + 1])));
      at_ += 2;
      continue;
    }
    // Any other backslash stands for itself, and what follows it is looked at anew.
    decoded->push_back('\\');
    --at_;
  }
  if (at_ == text_.size()) return ComplainAt(begin, "a string without a closing quote");
  ++at_;
  return Status::Ok();
}

void FilterParser::SkipBlanks() {
  while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
}

bool FilterParser::Take(std::string_view symbol) {
  SkipBlanks();
  if (!text_.substr(at_).starts_with(symbol)) return false;
  at_ += symbol.size();
  return true;
}

Status FilterParser::Expect(std::string_view symbol) {
  if (Take(symbol)) return Status::Ok();
  return Complain("expected " + std::string(symbol));
}

std::string_view FilterParser::TakeWord() {
  SkipBlanks();
  const size_t begin = at_;
  while (at_ < text_.size() && IsLowerLetter(text_[at_])) ++at_;
  return text_.substr(begin, at_ - begin);
}

Status FilterParser::ComplainAt(size_t at, std::string_view what) const {
  std::string text = "at position " + std::to_string(at + 1) + ": " + std::string(what);
  if (at < text_.size()) text += ", found " + Quote(text_.substr(at, 16));
  return Status::Error(ErrorCode::kBadFilter, std::move(text));
}

uint32_t FilterParser::AddNode(FilterNode node) {
  node.has_sink = node.kind == FilterNodeKind::kSink;
  node.has_if = node.kind == FilterNodeKind::kIf;
  node.has_count = node.kind == FilterNodeKind::kLimit || node.kind == FilterNodeKind::kOffset;
  node.has_latest = node.kind == FilterNodeKind::kLatest;
  for (const uint32_t child : node.children) {
    node.has_sink |= nodes_[child].has_sink;
    node.has_if |= nodes_[child].has_if;
    node.has_count |= nodes_[child].has_count;
    node.has_latest |= nodes_[child].has_latest;
  }
  nodes_.push_back(std::move(node));
  return static_cast<uint32_t>(nodes_.size() - 1);
}

Status FilterParser::CompileRegexes() {
  if (regexes_.empty()) return Status::Ok();
  const int64_t share = kRegexBytesMax / static_cast<int64_t>(regexes_.size());
  RE2::Options options;
  options.set_encoding(RE2::Options::EncodingLatin1);
  options.set_log_errors(false);
  options.set_never_capture(true);
  options.set_max_mem(std::clamp(share, kRegexBytesMin, kOneRegexBytesMax));
  for (const PendingRegex& pending : regexes_) {
    FilterNode& node = nodes_[pending.node];
    node.regex = std::make_unique<re2::RE2>(node.pattern, options);
    if (!node.regex->ok()) {
      return ComplainAt(pending.at, "bad regular expression: " + node.regex->error());
    }
  }
  return Status::Ok();
}

// A condition must know what reaches it. So it is decided behind the conditions in its own
// decision, and behind those before it in a chain. Branches of an interleave know nothing of each
// other and share a stage, so that they cost one reading of the row.
uint32_t FilterParser::AssignStages(uint32_t index, uint32_t stage) {
  FilterNode& node = nodes_[index];
  if (!node.has_if) return stage;
  if (node.kind == FilterNodeKind::kIf) {
    node.stage = AssignStages(node.children[0], stage) + 1;
    uint32_t highest = node.stage;
    for (size_t i = 1; i < node.children.size(); ++i) {
      highest = std::max(highest, AssignStages(node.children[i], node.stage));
    }
    return highest;
  }
  uint32_t highest = stage;
  for (const uint32_t child : node.children) {
    const bool chained = node.kind == FilterNodeKind::kChain;
    highest = std::max(highest, AssignStages(child, chained ? highest : stage));
  }
  return highest;
}

}  // namespace cellar
