// The recursive descent parser of filters. Its depth is bounded by kFilterDepthMax, its length by
// kFilterBytesMax. What grows with the nesting (copies, stages, flags) is computed on the way up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/filter/filter.h"

namespace cellar {

class FilterParser {
 public:
  explicit FilterParser(std::string_view text) : text_(text) {}
  Result<std::unique_ptr<Filter>> Run();

 private:
  // A parsed part: its node, and how many copies it can make of one cell.
  struct Part {
    uint32_t node{0};
    uint64_t copies{1};
  };

  Result<Part> ParseChain(uint32_t depth);
  Result<Part> ParseStep(uint32_t depth);
  Result<Part> ParseGroup(uint32_t depth);
  Result<Part> ParseInterleave(uint32_t depth);
  Result<Part> ParseIf(uint32_t depth);
  Result<Part> ParseSubject(FilterSubject subject);
  Result<Part> ParseFunction(std::string_view name);
  Status ParseComparison(FilterNode* node);
  Status ParseCount(uint64_t* count);
  Status ParseRange(FilterNode* node);
  Status ParseLiteral(FilterSubject subject, FilterLiteral* literal);
  Status ParseTimestamp(FilterLiteral* literal);
  static bool ReadNumber(FilterLiteral* literal);
  Status ParseString(std::string* decoded);
  Status ParseProbability(double* probability);
  Status CheckLiteralKind(FilterSubject subject, const FilterLiteral& literal);

  void SkipBlanks();
  // Takes `symbol` if it comes next, behind blanks.
  bool Take(std::string_view symbol);
  Status Expect(std::string_view symbol);
  // A run of lower-case letters behind blanks.
  std::string_view TakeWord();
  Status Complain(std::string_view what) const { return ComplainAt(at_, what); }
  Status ComplainAt(size_t at, std::string_view what) const;

  uint32_t AddNode(FilterNode node);
  Status CompileRegexes();
  // Numbers the stages of conditions in `node`, whose input depends on all conditions up to
  // `stage`; returns the highest number used.
  uint32_t AssignStages(uint32_t node, uint32_t stage);

  std::string_view text_;
  size_t at_{0};
  std::vector<FilterNode> nodes_;
  struct PendingRegex {
    uint32_t node;
    size_t at;
  };
  std::vector<PendingRegex> regexes_;
};

}  // namespace cellar
