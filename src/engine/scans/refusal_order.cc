// See refusal_order.h.
#include "engine/scans/refusal_order.h"

#include "engine/scans/index_scan.h"

namespace cellar {
namespace {

// Is it what is said of the state of the index that is named? Its code does not tell: an index that
// could not be built says why with one that words have too (TOOLARGE).
bool IsOfIndexState(const ReadView& view, const RowOptions& rows, const Status& refusal) {
  if (!rows.index) return false;
  const Result<const IndexSchema*> index = FindIndex(view, rows.index->name);
  if (!index.ok()) return false;
  const Status state = CheckIndexReady(view, **index);
  return !state.ok() && state.code() == refusal.code() && state.text() == refusal.text();
}

}  // namespace

Status FirstRefusal(const ReadView& view, const RowOptions& rows, const Status& scan,
                    const Status& other, const std::function<Status()>& open) {
  const auto is_early = [&](const Status& status) {
    return !status.ok() && status.code() != ErrorCode::kBadFilter &&
           !IsOfIndexState(view, rows, status);
  };
  if (other.ok()) return scan;
  if (!is_early(scan)) return other;
  // It may be a column of the other part.
  const Status without = open();
  return is_early(without) ? without : other;
}

}  // namespace cellar
