// CountRun: CCOUNT at work. Counts what a scan gives out: rows, super columns (pairs of family and
// first component of the qualifier, row by row), columns or cells. Nothing is collected, so a count
// of millions of rows needs no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cellar/lsn.h"
#include "commands/replies/scan_heat.h"
#include "commands/session/task.h"
#include "commands/words/read_arguments.h"
#include "engine/rows/scan.h"
#include "engine/schema/schema.h"

namespace cellar {

class CountRun {
 public:
  CountRun(std::unique_ptr<Scan> scan, CountBy by, const TableSchema& schema);
  // What is examined is told to HEAT.
  void SetHeat(const ScanHeat& heat) { heat_ = heat; }
  CountRun(CountRun&&) = default;

  // Examines `cells` cells; true when all is counted.
  bool Pull(uint64_t cells);
  // After Pull said false, before anything else runs.
  void Detach() { scan_->Detach(); }
  uint64_t count() const { return count_; }
  // Rows seen, whatever is counted.
  uint64_t rows() const { return rows_; }

 private:
  struct FamilyDelimiter {
    std::string family;
    char delimiter;  // '\0': a qualifier is one component
  };
  bool PullCells(uint64_t cells);
  void CountGroup(const ScanCell& cell);

  std::unique_ptr<Scan> scan_;
  ScanHeat heat_;
  CountBy by_;
  uint64_t count_{0};
  uint64_t rows_{0};
  // BY GROUPS
  std::vector<FamilyDelimiter> delimiters_;
  const FamilyDelimiter* family_{nullptr};
  bool group_known_{false};  // false at the beginning of a row
  std::string group_;        // of the cell before
};

class CountTask final : public Task {
 public:
  CountTask(CountRun run, Lsn depends_on) : run_(std::move(run)), depends_on_(depends_on) {}
  TaskProgress Step(TaskContext& context) override;
  char FirstByte() const override { return ':'; }

 private:
  CountRun run_;
  Lsn depends_on_;
};

}  // namespace cellar
