// MapMachine: the smallest StateMachine. One tree of key -> value; a mutation is "key=value;"
// repeated, applied all together, so that a torn EXEC would show.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "engine/state/state_machine.h"

namespace cellar {

class MapMachine final : public StateMachine {
 public:
  Status Apply(std::string_view mutation) override {
    while (!mutation.empty()) {
      const size_t end = mutation.find(';');
      const size_t equals = mutation.find('=');
      if (end == std::string_view::npos || equals == std::string_view::npos || equals > end)
        return Status::Error(ErrorCode::kCorruption, "no mutation");
      tree_->Put(mutation.substr(0, equals), mutation.substr(equals + 1, end - equals - 1));
      mutation.remove_prefix(end + 1);
    }
    return Status::Ok();
  }
  StateSnapshot TakeSnapshot() override {
    StateSnapshot state;
    state.catalog = "catalog of one map";
    state.trees.push_back({kTreeId, tree_->TakeSnapshot()});
    return state;
  }
  Status BeginLoad(std::string_view catalog) override {
    if (catalog != "catalog of one map") return Status::Error(ErrorCode::kCorruption, "catalog");
    return Status::Ok();
  }
  BTree* TreeForLoad(uint64_t tree_id) override {
    return tree_id == kTreeId ? tree_.get() : nullptr;
  }
  std::vector<uint64_t> TreesForLoad() const override { return {kTreeId}; }
  Status FinishLoad() override { return Status::Ok(); }
  Status FinishSalvage(const std::vector<LoadGap>& gaps, std::vector<std::string>* lost) override {
    for (const LoadGap& gap : gaps)
      lost->push_back("between " + gap.after.value_or("(begin)") + " and " +
                      gap.before.value_or("(end)"));
    return Status::Ok();
  }
  void Reset() override { tree_ = std::make_unique<BTree>(); }
  std::string Describe(std::string_view mutation) override {
    return "SET " + std::string(mutation);
  }

  std::map<std::string, std::string> Content() const {
    std::map<std::string, std::string> content;
    BTreeCursor cursor(*tree_);
    for (cursor.SeekFirst(); cursor.valid(); cursor.Next())
      content.emplace(cursor.key(), cursor.value());
    return content;
  }
  std::string Get(std::string_view key) const {
    return std::string(tree_->Get(key).value_or("(none)"));
  }

  static constexpr uint64_t kTreeId = 7;

 private:
  std::unique_ptr<BTree> tree_ = std::make_unique<BTree>();
};

}  // namespace cellar
