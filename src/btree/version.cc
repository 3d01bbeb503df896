// See version.h.
#include "btree/version.h"

#include "base/assert.h"
#include "base/coding.h"
#include "btree/tree.h"

namespace cellar::btree_internal {

void AppendLeafRun(const LeafRun& run, std::string* image) {
  PutFixed64(image, run.first);
  PutFixed32(image, run.count);
  PutFixed64(image, run.payload_bytes);
}

bool DecodeLeafRun(std::string_view image, LeafRun* run) {
  if (image.size() != kLeafRunBytes) return false;
  return GetFixed64(&image, &run->first) && GetFixed32(&image, &run->count) &&
         GetFixed64(&image, &run->payload_bytes) && run->count > 0;
}

Leaf* LeafWalk::Next() {
  if (root_ == nullptr) return nullptr;
  void* node = root_;
  uint32_t level = 0;
  if (started_) {
    level = height_;
    for (;;) {
      if (level-- == 0) return nullptr;
      if (++index_[level] < nodes_[level]->children) break;
    }
    node = nodes_[level]->pointers()[index_[level]];
    ++level;
  }
  started_ = true;
  for (; level < height_; ++level) {
    nodes_[level] = static_cast<const Inner*>(node);
    index_[level] = 0;
    node = nodes_[level]->pointers()[0];
  }
  if (height_ > 0) {
    const Inner* parent = nodes_[height_ - 1];
    const uint32_t ahead = index_[height_ - 1] + kAhead;
    if (ahead < parent->children) PrefetchLines(parent->pointers()[ahead], 16);
  }
  return static_cast<Leaf*>(node);
}

void Version::Seal() {
  if (origin == nullptr) return;
  origin->epochs().RetireVersion(state.epoch, own_leaves, own_inners);
  own_leaves = {};
  own_inners = {};
}

Version::~Version() {
  if (origin == nullptr) return;
  Seal();
  origin->RemoveVersion();
  if (registered) origin->DropSnapshot(&state);
}

}  // namespace cellar::btree_internal
