// CutRun: "run this at a cut, good or bad", as part of a Task at the director: begins a cut, waits
// for what becomes of it, and tries again if it is bad (cluster/cut_desk.h).
//
//   a set was late, and replies were held for long     tried again twice
//   a tablet was just between two sets, or a clock was
//   ahead: known at once                               tried again for as long as one that could
//                                                      not begin, which waits for the same
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cellar/status.h"
#include "cluster/catalog_agreement.h"
#include "cluster/cut_desk.h"

namespace cellar {

class Host;

class CutRun {
 public:
  struct Order {
    CutPurpose purpose{CutPurpose::kRestorePoint};
    std::string argument{};
    std::function<Status()> make{};  // each time; may be empty
    std::function<void()> undo{};    // what was made at a bad cut; may be empty
  };
  enum class State : uint8_t { kRuns, kGood, kFailed };

  // `host` outlives it, and what the functions use.
  CutRun(Host& host, Order order);
  // An undecided one is undone.
  ~CutRun();
  CutRun(const CutRun&) = delete;
  CutRun& operator=(const CutRun&) = delete;

  // To be called by each step of the task: TaskProgress::kWaiting while it runs. No reply may say
  // that it is good but one that depends on Host::last_lsn().
  State Step();
  // REQUIRES: it is good, or was begun.
  uint64_t number() const { return number_; }
  // REQUIRES: it has failed. TRYAGAIN, if nothing else was wrong: nothing was done.
  const Status& status() const { return status_; }

 private:
  static constexpr int kLateMax{3};
  static constexpr int64_t kLateMicros{kHoldMicros / 2};
  static constexpr int64_t kPatienceMicros{10'000'000};
  static constexpr int64_t kRestMicros{5'000};
  static constexpr int64_t kRestMicrosMax{50'000};
  State Fail(Status status);
  State Begin();

  Host& host_;
  Order order_;
  State state_{State::kRuns};
  Status status_;
  uint64_t number_{0};
  bool open_{false};
  int attempt_{0};
  int late_{0};  // attempts that were
  int64_t begun_micros_;
  int64_t cut_micros_{0};  // the last one was begun then
  int64_t next_micros_{0};
};

}  // namespace cellar
