// Any text as a filter: it is refused, or prints to a text that means the same, and a row goes
// through it.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "engine/filter/filter_bounds.h"
#include "engine/filter/filter_run.h"

namespace {

using namespace cellar;

size_t CountOutputs(const Filter& filter, const Order& order) {
  const FilterFamily families[] = {{"a", &order}, {"b", &order}};
  (void)AnalyzeFilter(filter, order, families);
  FilterRun run(filter, order, families, 1);
  std::string row;
  (void)order.Encode("row", &row);
  run.BeginRow(row);
  const FilterCell cells[] = {{0, row, 5, ValueType::kBytes, "value"},
                              {0, row, 4, ValueType::kI64, "\x05"},
                              {1, row, 4, ValueType::kBool, "\x01"}};
  while (run.NeedsDecision()) {
    for (const FilterCell& cell : cells) {
      if (run.Decide(cell) == FilterNext::kRowDone) break;
    }
    run.EndDecision();
  }
  size_t outputs = 0;
  for (const FilterCell& cell : cells) {
    const FilterNext next = run.Feed(cell);
    outputs += run.outputs().size();
    if (next == FilterNext::kRowDone) break;
  }
  return outputs;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto filter = Filter::Parse(text);
  if (!filter.ok()) {
    CELLAR_ASSERT(filter.status().code() == ErrorCode::kBadFilter);
    return 0;
  }
  const std::string printed = (*filter)->ToString();
  if (printed.size() > kFilterBytesMax) return 0;  // blanks make it longer
  const auto again = Filter::Parse(printed);
  CELLAR_ASSERT(again.ok());
  CELLAR_ASSERT((*again)->ToString() == printed);
  const Order order;
  CELLAR_ASSERT(CountOutputs(**filter, order) == CountOutputs(**again, order));
  return 0;
}
