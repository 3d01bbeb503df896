// RangeAsides: rows that a set has, and that are others' by now, written to files of their own in
// its data directory, one after the other (store/range_file.h). A file that there is already is
// never replaced: the next one of its name gets a number.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cellar/status.h"
#include "cluster/settlement.h"
#include "commands/session/host.h"
#include "store/range_file.h"

namespace cellar {

class RangeAsides {
 public:
  // `host` outlives it.
  explicit RangeAsides(Host& host) : host_(host) {}
  ~RangeAsides() { Stop(); }
  RangeAsides(const RangeAsides&) = delete;
  RangeAsides& operator=(const RangeAsides&) = delete;

  void Begin(const std::vector<Settlement::Aside>& ranges);
  // Goes on with it. False: all are written. An error: one cannot be.
  Result<bool> Step();
  void Stop();

 private:
  Result<bool> StepFile();
  Result<std::string> FreeName(const std::string& name) const;

  Host& host_;
  std::deque<Settlement::Aside> ranges_;
  std::unique_ptr<RangeFile> file_;
  std::string name_;
  bool writes_{false};
};

}  // namespace cellar
