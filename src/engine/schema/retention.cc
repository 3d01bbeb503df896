// The parser of GC policies, and how two step tables become one.
#include "engine/schema/retention.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "base/text/duration.h"
#include "base/text/number.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr int64_t kAtOnce{-1};        // dropped whatever its age
constexpr int64_t kNoAge{INT64_MAX};  // kept for ever

// One node of the policy, already evaluated: a table of steps, with its text.
enum class NodeKind : uint8_t { kVersions, kAge, kAnd, kOr };
struct Node {
  NodeKind kind{NodeKind::kVersions};
  std::vector<std::pair<uint64_t, int64_t>> steps;  // rank_min, age
  std::string text;
};

int64_t AgeAt(const std::vector<std::pair<uint64_t, int64_t>>& steps, uint64_t rank) {
  int64_t age = kNoAge;
  for (const auto& [rank_min, step_age] : steps) {
    if (rank_min > rank) break;
    age = step_age;
  }
  return age;
}

Node VersionsNode(uint64_t versions) {
  Node node{NodeKind::kVersions, {}, "maxversions=" + FormatUint64(versions)};
  if (versions < UINT64_MAX) node.steps.emplace_back(versions + 1, kAtOnce);
  return node;
}

Node AgeNode(int64_t ttl_ms) {
  return {NodeKind::kAge, {{1, ttl_ms * kMicrosPerMs}}, "maxage=" + FormatDurationShort(ttl_ms)};
}

Node Join(Node a, Node b, NodeKind kind) {
  Node joined;
  joined.kind = kind;
  const auto text_of = [kind](const Node& node) {
    const bool bracket = kind == NodeKind::kAnd && node.kind == NodeKind::kOr;
    return bracket ? "(" + node.text + ")" : node.text;
  };
  joined.text = text_of(a) + (kind == NodeKind::kAnd ? " && " : " || ") + text_of(b);
  std::vector<uint64_t> ranks;
  for (const auto& step : a.steps) ranks.push_back(step.first);
  for (const auto& step : b.steps) ranks.push_back(step.first);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  int64_t last_age = kNoAge;
  for (const uint64_t rank : ranks) {
    const int64_t age_a = AgeAt(a.steps, rank);
    const int64_t age_b = AgeAt(b.steps, rank);
    const int64_t age = kind == NodeKind::kAnd ? std::max(age_a, age_b) : std::min(age_a, age_b);
    if (age == last_age) continue;
    CELLAR_ASSERT(age < last_age);  // policies are monotone
    joined.steps.emplace_back(rank, age);
    last_age = age;
  }
  return joined;
}

}  // namespace

class RetentionParser {
 public:
  explicit RetentionParser(std::string_view text) : text_(text) {}

  // The word that takes a policy off.
  bool IsNone() const { return text_.size() == 4 && PeekWord() == "none"; }

  Result<RetentionPolicy> Run() {
    ASSIGN_OR_RETURN(Node node, ParseOr(1));
    SkipBlanks();
    if (at_ != text_.size()) return Complain("expected && or ||");
    RetentionPolicy policy = Build(node);
    policy.is_expression_ = true;
    return policy;
  }

  static RetentionPolicy Build(const Node& node) {
    RetentionPolicy policy;
    for (const auto& [rank, age] : node.steps) {
      policy.steps_.push_back({rank, age});
      policy.depends_on_rank_ = policy.depends_on_rank_ || rank > 1;
      policy.depends_on_age_ = policy.depends_on_age_ || age != kAtOnce;
      if (age == kAtOnce) policy.rank_kept_max_ = rank - 1;
    }
    if (!policy.steps_.empty()) policy.rank_at_risk_min_ = policy.steps_.front().rank_min;
    policy.text_ = node.text;
    return policy;
  }

 private:
  Status Complain(std::string_view what) const {
    return Status::Error(ErrorCode::kErr, "invalid policy " + Quote(text_) + " at position " +
                                              std::to_string(at_ + 1) + ": " + std::string(what));
  }

  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  // A run of letters, lower-cased, without moving.
  std::string PeekWord() const {
    std::string word;
    for (size_t i = at_; i < text_.size() && word.size() < 16; ++i) {
      const char lower = LowerChar(text_[i]);
      if (lower < 'a' || lower > 'z') break;
      word.push_back(lower);
    }
    return word;
  }

  bool TakeOperator(std::string_view symbol, std::string_view word) {
    SkipBlanks();
    if (text_.substr(at_).starts_with(symbol)) {
      at_ += symbol.size();
      return true;
    }
    if (PeekWord() != word) return false;
    at_ += word.size();
    return true;
  }

  Result<Node> ParseOr(uint32_t depth) {
    if (depth > kPolicyDepthMax) return Complain("nested too deep");
    ASSIGN_OR_RETURN(Node node, ParseAnd(depth));
    while (TakeOperator("||", "or")) {
      ASSIGN_OR_RETURN(Node next, ParseAnd(depth));
      node = Join(std::move(node), std::move(next), NodeKind::kOr);
    }
    return node;
  }

  Result<Node> ParseAnd(uint32_t depth) {
    ASSIGN_OR_RETURN(Node node, ParseTerm(depth));
    while (TakeOperator("&&", "and")) {
      ASSIGN_OR_RETURN(Node next, ParseTerm(depth));
      node = Join(std::move(node), std::move(next), NodeKind::kAnd);
    }
    return node;
  }

  Result<Node> ParseTerm(uint32_t depth) {
    SkipBlanks();
    if (at_ < text_.size() && text_[at_] == '(') {
      ++at_;
      ASSIGN_OR_RETURN(Node node, ParseOr(depth + 1));
      SkipBlanks();
      if (at_ == text_.size() || text_[at_] != ')') return Complain("expected )");
      ++at_;
      return node;
    }
    const std::string word = PeekWord();
    if (word != "maxversions" && word != "maxage") {
      return Complain(at_ == 0 ? "expected maxversions=, maxage=, ( or NONE"
                               : "expected maxversions=, maxage= or (");
    }
    at_ += word.size();
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != '=') return Complain("expected =");
    ++at_;
    SkipBlanks();
    return word == "maxage" ? ParseAge() : ParseVersions();
  }

  // Letters, digits and the minus sign: what a number or duration may be made of.
  std::string_view TakeArgument() {
    const size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool belongs = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                           (c >= 'A' && c <= 'Z') || c == '-' || c == '.';
      if (!belongs) break;
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  Result<Node> ParseVersions() {
    const size_t begin = at_;
    uint64_t versions = 0;
    if (ParseUint64(TakeArgument(), &versions) != NumberError::kNone || versions == 0 ||
        versions > INT64_MAX) {
      at_ = begin;
      return Complain("expected a number of versions, 1 or more");
    }
    return VersionsNode(versions);
  }

  Result<Node> ParseAge() {
    const size_t begin = at_;
    const Result<int64_t> ttl_ms = ParseDurationMs(TakeArgument());
    if (!ttl_ms.ok()) {
      at_ = begin;
      return Complain(ttl_ms.status().text());
    }
    return AgeNode(*ttl_ms);
  }

  std::string_view text_;
  size_t at_{0};
};

Result<RetentionPolicy> RetentionPolicy::Parse(std::string_view text) {
  if (text.size() > kPolicyBytesMax) {
    return Status::Error(ErrorCode::kErr, "invalid policy: longer than " +
                                              std::to_string(kPolicyBytesMax) + " bytes");
  }
  RetentionParser parser(text);
  if (parser.IsNone()) return RetentionPolicy{};
  return parser.Run();
}

RetentionPolicy RetentionPolicy::FromVersionsAndTtl(uint64_t versions, int64_t ttl_ms) {
  CELLAR_ASSERT(ttl_ms >= 0);
  RetentionPolicy policy;
  if (versions != 0 && ttl_ms != 0) {
    policy = RetentionParser::Build(Join(VersionsNode(versions), AgeNode(ttl_ms), NodeKind::kOr));
  } else if (versions != 0) {
    policy = RetentionParser::Build(VersionsNode(versions));
  } else if (ttl_ms != 0) {
    policy = RetentionParser::Build(AgeNode(ttl_ms));
  }
  policy.versions_ = versions;
  policy.ttl_ms_ = ttl_ms;
  return policy;
}

int64_t RetentionPolicy::DueOfRiskyRank(uint64_t rank, int64_t timestamp) const {
  CELLAR_ASSERT(rank >= 1);
  CELLAR_ASSERT(timestamp >= 0);
  int64_t age = kNoAge;
  for (const Step& step : steps_) {
    if (step.rank_min > rank) break;
    age = step.age_micros;
  }
  if (age == kNoAge) return kNeverMicros;
  if (age == kAgeAtOnce) return INT64_MIN;
  if (timestamp == 0) return kNeverMicros;  // it has no age
  // A moment beyond the end of time never comes.
  return timestamp > kNeverMicros - age ? kNeverMicros : timestamp + age;
}

}  // namespace cellar
