// NearSearch: CNEAR. The place that is asked for, else the first one behind it, else the last one
// before it, among rows or the entries of an index.
//
// What retention has dropped and not yet reclaimed is stepped over, and there may be a million of
// it, so a search works in slices like a scan: a step that pauses is followed by Detach(), and from
// then on it reads snapshots.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "btree/btree.h"
#include "cellar/status.h"
#include "engine/rows/scan.h"
#include "engine/table/index_entry.h"
#include "engine/table/read_view.h"

namespace cellar {

struct NearPlace {
  std::vector<IndexOrder::Value> values;  // of an index's entry
  std::string row;                        // canonical text
  std::string key;                        // of an index's entry
  int direction{0};  // 0 what was asked for, 1 the next one behind it, -1 the last one before it
};

class NearSearch {
 public:
  virtual ~NearSearch() = default;
  // Examines about `cells_max` cells or entries. True when the search is over.
  virtual bool Step(uint64_t cells_max) = 0;
  // After Step said false, before anything else runs.
  virtual void Detach() = 0;
  // Null: there is nothing at all. REQUIRES: the search is over.
  const NearPlace* place() const { return found_ ? &place_ : nullptr; }

 protected:
  bool found_{false};
  NearPlace place_;
};

// Among rows: `forward` begins at the row asked for, what `open_reverse` opens before it. That is
// called once at most, by the first Step or by Detach.
class NearRowSearch final : public NearSearch {
 public:
  using OpenScan = std::function<std::unique_ptr<Scan>()>;
  NearRowSearch(std::string row, std::unique_ptr<Scan> forward, OpenScan open_reverse)
      : row_(std::move(row)), open_reverse_(std::move(open_reverse)) {
    scans_[0] = std::move(forward);
  }

  bool Step(uint64_t cells_max) override;
  void Detach() override;

 private:
  Scan& OpenedScan(size_t i);

  std::string row_;  // canonical text
  OpenScan open_reverse_;
  std::unique_ptr<Scan> scans_[2];  // the second one when it is needed: mostly the row is there
  size_t scan_at_{0};
};

// Among the entries of an index: those that begin with `values`.
class NearEntrySearch final : public NearSearch {
 public:
  // NOINDEX, NOPERM, BADVALUE, NOTUNIQUE, TRYAGAIN; ERR for too many values.
  static Result<std::unique_ptr<NearSearch>> Create(std::unique_ptr<ReadView> view,
                                                    std::string_view name,
                                                    const std::vector<std::string_view>& values);

  bool Step(uint64_t cells_max) override;
  void Detach() override;

 private:
  explicit NearEntrySearch(std::unique_ptr<ReadView> view) : view_(std::move(view)) {}
  bool Owned() const;
  void TakePlace();

  std::unique_ptr<ReadView> view_;
  uint64_t index_id_{0};
  IndexOrder order_;
  std::string prefix_;               // the values, encoded
  std::unique_ptr<BTreeCursor> at_;  // dies before the view
  bool backward_{false};
};

}  // namespace cellar
