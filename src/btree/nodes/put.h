// What is put into a tree: shared by the tree's door (btree.h) and the leaves that take it.
#pragma once

#include <cstddef>
#include <string_view>

namespace cellar {

inline constexpr size_t kTreeKeyBytesMax{256 * 1024};

// One entry of a run (BTree::PutRun). The views must live until that returns.
struct BTreePut {
  std::string_view key;
  std::string_view value;
};

}  // namespace cellar
