// The image of a leaf: what a snapshot file holds of it.
//
//   | the leaf from its byte 24 on, up to `used` | large values one after another |
//
// In the image the pointers to large values are zero; their bytes follow in the order of the
// entries. An image says nothing of its own length, nor does it carry a checksum: whoever stores it
// does that.
//
// A leaf whose large values come to more than a bound has several images, each of some of its
// entries: whoever stores an image has it in memory whole, and its length in 32 bits, and 256
// entries may have values of half a gigabyte each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "btree/nodes/leaf.h"
#include "btree/nodes/leaf_builder.h"
#include "cellar/status.h"

namespace cellar::btree_internal {

// The images of one leaf after another. How many a leaf has follows from the leaf and the bound.
class LeafImages {
 public:
  // Of what the large values in one image come to, if it has more than one.
  explicit LeafImages(uint64_t value_bytes_max) : value_bytes_max_(value_bytes_max) {}

  // How many a leaf has. O(1), O(entries) if its large values come to about the bound.
  uint32_t CountOf(const Leaf* leaf);
  // Those of `leaf` are next. It must not change until they are all made.
  void Begin(const Leaf* leaf);
  // Appends the next one to *image; true: it was the last of its leaf.
  bool Append(std::string* image);

 private:
  bool IsOne(const Leaf* leaf) const {
    return leaf->large_count < 2 || uint64_t{leaf->large_units} * 64 <= value_bytes_max_;
  }
  void Cut(const Leaf* leaf);

  const uint64_t value_bytes_max_;
  const Leaf* leaf_{nullptr};
  EntryList entries_;  // of a leaf that has more than one
  std::vector<LeafCut> cuts_;
  size_t done_{0};                // of the cuts
  std::vector<uint64_t> memory_;  // where a leaf of some entries is written
};

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
