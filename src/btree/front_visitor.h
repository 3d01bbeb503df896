// FrontVisitor: what is wanted of a walk over fronts (BTreeCursor::WalkFronts).
//
//   front | tail | rest       a key: a row, a column of it, a timestamp
//
// Entries of one front stand side by side. In each front the visitor asks for tails, one after the
// other, and is told whether there is an entry with it; the others are passed. Where a front ends
// only the visitor can say: no front is the beginning of another one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cellar {

// What a visitor wants next.
struct FrontStep {
  enum class What : uint8_t {
    kSeek,   // the first entry of the front that has `tail`
    kLeave,  // nothing more of this front
    kStop,   // nothing more: the cursor stays on the entry that the visitor has been told of
  };
  What what{What::kLeave};
  std::string_view tail;  // lives as long as the walk
};

// In one front tails ascend, and none begins with another one. The tree stays as it is meanwhile.
class FrontVisitor {
 public:
  virtual ~FrontVisitor() = default;
  // A front begins with the entry of this key, which has the first `shared` bytes of the front
  // before, and not the next one. To say: the bytes of the front, but for kStop.
  virtual FrontStep BeginFront(std::string_view key, size_t shared, size_t* front_bytes) = 0;
  // The first entry that has the tail: its value, and the bytes of its key.
  virtual FrontStep Found(std::string_view value, size_t key_bytes) = 0;
  // There is none. Not kStop.
  virtual FrontStep Missed() = 0;
};

}  // namespace cellar
