// The image of a leaf: what a snapshot file holds of it.
//
//   | the leaf from its byte 24 on, up to `used` | large values one after another |
//
// In the image the pointers to large values are zero; their bytes follow in the order of the
// entries. An image says nothing of its own length, nor does it carry a checksum: whoever stores it
// does that.
#pragma once

#include <string>
#include <string_view>

#include "btree/nodes/leaf.h"
#include "cellar/status.h"

namespace cellar::btree_internal {

void AppendLeafImage(const Leaf* leaf, std::string* image);

// A leaf as its image has it, readable by the functions of leaf.h until the image goes.
struct CheckedImage {
  size_t leaf_bytes{0};     // capacity that it needs
  std::string_view leaf;    // its bytes from kLeafPortableFrom on
  std::string_view values;  // the large ones
  std::string first_key;
  std::string last_key;
  uint64_t entries{0};
  uint64_t payload_bytes{0};
};

// Checks every byte that search or editing will rely on. kCorruption, with what is wrong, if one
// does not hold. O(image).
Status CheckLeafImage(std::string_view image, CheckedImage* checked);

}  // namespace cellar::btree_internal
