// RangeAsides: rows that a set has, and that are others' by now, written to files of their own in
// its data directory, one after the other (store/range_file.h): each of as many rows as are about
// kFileBytes, which is what that takes of memory. A file that there is already is never replaced:
// the next one of its name gets a number.
//
// What cannot be written now, as where the disk is full, is tried again: what is to be set aside is
// not dropped before it is.
#pragma once

#include <cstdint>
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
  static constexpr uint64_t kFileBytes{64 << 20};

  // `host` outlives it.
  explicit RangeAsides(Host& host) : host_(host) {}
  ~RangeAsides() { Stop(); }
  RangeAsides(const RangeAsides&) = delete;
  RangeAsides& operator=(const RangeAsides&) = delete;

  void Begin(const std::vector<Settlement::Aside>& ranges);
  // Goes on with it, for some milliseconds. False: all are written.
  bool Step();
  void Stop();

 private:
  static constexpr int64_t kStepMicros{20'000};
  static constexpr int64_t kRetryMicros{5'000'000};

  Result<bool> StepFile();
  Result<std::string> FreeName(const std::string& name) const;
  void DropFile();

  Host& host_;
  std::deque<Settlement::Aside> ranges_;
  std::unique_ptr<RangeFile> file_;
  std::string name_;
  bool writes_{false};
  std::string why_;          // the last attempt has failed
  int64_t retry_micros_{0};  // not before
};

}  // namespace cellar
