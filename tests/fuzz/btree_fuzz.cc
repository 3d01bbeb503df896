// Fuzzer of the B-tree: the input draws the operations of the model test, which is compared in full
// now and then; the same input is also offered to the bulk loader as the image of a leaf.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "btree/btree.h"
#include "tests/btree/tree_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  if (data[0] % 4 == 0) {
    cellar::BTree tree;
    cellar::BTreeBulkLoader loader(&tree);
    const auto status = loader.AddImage({reinterpret_cast<const char*>(data) + 1, size - 1});
    if (status.ok() && loader.Finish().ok()) {
      tree.Validate();
      tree.Put("x", "y");
      tree.Validate();
    }
    return 0;
  }
  size_t at = 1;
  auto below = [&](uint64_t n) {
    uint64_t number = 0;
    for (uint64_t bound = 1; bound < n && at < size; bound <<= 8) number = number << 8 | data[at++];
    return number % n;
  };
  tree_model::TreeModel model(
      {.key_variety = 10, .delete_often = data[0] % 4 == 1, .only_cells = data[0] % 4 == 2}, below);
  for (uint64_t steps = 0; at < size && steps < 2000; ++steps) {
    model.Step();
    if (steps % 64 == 0) model.Compare();
  }
  model.Finish();
  return 0;
}
