// BTreeBulkLoader: leaves laid side by side, and the inner nodes above them built once at the end.
//
// An image is checked and becomes a leaf by one copy. Entries given one by one are collected until
// they fill leaves; these are packed as full as they go. Of a version (version.h) the leaves that a
// newer one has stay where they are.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "btree/btree.h"
#include "btree/image.h"
#include "btree/tree.h"

namespace cellar {
namespace btree_internal {

class BulkLoad {
 public:
  BulkLoad(Tree* tree, Version* version)
      : tree_(tree),
        version_(version),
        epochs_(version == nullptr ? tree->epochs() : version->origin->epochs()) {
    CELLAR_ASSERT(tree->content().root == nullptr);
    if (version != nullptr && version->has_newer)
      newer_.emplace(version->newer.root, version->newer.height);
    leaves_.Reset({});
    entries_.Reset({});
    values_.reserve(kCollectedValueBytes);
  }
  ~BulkLoad() {
    if (!finished_) Discard();
  }

  Status AddImage(std::string_view image) {
    CELLAR_ASSERT(!finished_);
    LeafRun run;
    if (newer_ && DecodeLeafRun(image, &run)) return AddRun(run);
    PackCollected(0);
    CheckedImage checked;
    RETURN_IF_ERROR(CheckLeafImage(image, &checked));
    if (any_ && checked.first_key <= last_key_) return OutOfOrder();
    is_newer_whole_ = false;
    Leaf* const leaf = epochs_.NewLeaf(checked.leaf_bytes);
    leaf->large_units = 0;
    std::memcpy(leaf->bytes() + kLeafPortableFrom, checked.leaf.data(), checked.leaf.size());
    if (leaf->large_count > 0) TakeValues(leaf, checked.values);
    if (version_ != nullptr) {
      SetBirth(leaf);
      version_->own_leaves.push_back(leaf);
    }
    AddLeaf(leaf, checked.first_key);
    content_.entries += checked.entries;
    content_.payload_bytes += checked.payload_bytes;
    last_key_ = std::move(checked.last_key);
    collected_before_ = last_key_;
    any_ = true;
    return Status::Ok();
  }

  std::string_view last_key() const {
    CELLAR_ASSERT(any_);
    return last_key_;
  }

  // A copy of a leaf of another tree. Returns its bytes, with those of its values.
  uint64_t CopyLeaf(const Leaf* leaf) {
    CELLAR_ASSERT(!finished_);
    Leaf* const copy = epochs_.NewLeaf(leaf->used);
    constexpr size_t kFrom{offsetof(Leaf, large_units)};
    std::memcpy(copy->bytes() + kFrom, leaf->bytes() + kFrom, leaf->header_bytes() - kFrom);
    std::memcpy(copy->entries(), leaf->entries(), leaf->entries_bytes());
    copy->large_units = 0;
    uint8_t* p = copy->entries();
    Entry entry;
    for (uint32_t i = 0; leaf->large_count > 0 && i < leaf->count;
         ++i, p = const_cast<uint8_t*>(entry.end)) {
      ParseEntry(p, &entry);
      if (!entry.is_large) continue;
      LargeValue* const value = epochs_.NewValue(entry.value_view());
      WriteEntryValue(const_cast<uint8_t*>(entry.value), {nullptr, value->bytes, value});
      copy->large_units += value->capacity / 64;
    }
    const bool fits = TakeLeaf(copy);
    CELLAR_ASSERT(fits);
    return uint64_t{copy->units()} * 64;
  }
  // What all copied leaves hold.
  void SetPayload(uint64_t bytes) { content_.payload_bytes = bytes; }

  Status Add(std::string_view key, std::string_view value) {
    CELLAR_ASSERT(!finished_);
    CELLAR_ASSERT(version_ == nullptr);
    CELLAR_ASSERT(key.size() <= kTreeKeyBytesMax);
    if (any_ && key <= last_key_) return OutOfOrder();
    while (entries_.size() == kCollectedEntries || entries_bytes_ >= kCollectedBytes ||
           values_.size() + kInlineValueBytesMax > kCollectedValueBytes)
      PackCollected(entries_.size() / 2);
    ValueRef ref{nullptr, static_cast<uint32_t>(value.size()), nullptr};
    if (value.size() > kInlineValueBytesMax) {
      ref.large = epochs_.NewValue(value);
    } else {
      ref.data = Bytes(values_) + values_.size();  // capacity was reserved: it does not move
      values_.append(value);
    }
    entries_.Append(key, ref);
    entries_bytes_ += key.size() + ref.bytes;
    ++content_.entries;
    content_.payload_bytes += key.size() + value.size();
    last_key_ = key;
    any_ = true;
    return Status::Ok();
  }

  void Finish() {
    CELLAR_ASSERT(!finished_);
    PackCollected(0);
    finished_ = true;
    if (leaves_.size() == 0 || TakeNewerWhole()) return Adopt();
    content_.root = leaves_.item(0).pointer;
    while (leaves_.size() > 1) {
      BuildLevel();
      ++content_.height;
      content_.root = leaves_.item(0).pointer;
    }
    Adopt();
  }

 private:
  static constexpr size_t kCollectedEntries{512};
  static constexpr size_t kCollectedBytes{64 * 1024};
  static constexpr size_t kCollectedValueBytes{64 * 1024};

  // Of a version the origin knows from here on, and its nodes belong to that.
  void Adopt() {
    if (version_ == nullptr) {
      if (content_.root != nullptr) tree_->Adopt(content_);
      return;
    }
    if (payload_bytes_told_ > 0) content_.payload_bytes = payload_bytes_told_;
    version_->state.content = content_;
    version_->origin->epochs().AddVersion(&version_->state);
    version_->registered = true;
    version_->has_newer = false;
    tree_->Borrow(content_);
    tree_->epochs().NoteValueBytes(epochs_.largest_value_bytes());
  }

  // A version that is equal to the newer one shares its inner nodes too.
  bool TakeNewerWhole() {
    if (!is_newer_whole_ || newer_->Next() != nullptr) return false;
    content_ = version_->newer;
    SetBirthOfInners(content_.root, content_.height);
    return true;
  }

  void SetBirthOfInners(void* node, uint32_t level) const {
    if (level == 0) return;
    auto* inner = static_cast<Inner*>(node);
    inner->birth = std::min(inner->birth, version_->state.epoch);
    for (uint32_t i = 0; i < inner->children; ++i)
      SetBirthOfInners(inner->pointers()[i], level - 1);
  }

  // Born by then, and what it holds.
  void SetBirth(Leaf* leaf) const {
    const uint64_t birth = version_->state.epoch;
    leaf->birth = std::min(leaf->birth, birth);
    if (leaf->large_count == 0) return;
    const uint8_t* p = leaf->entries();
    Entry entry;
    for (uint32_t i = 0; i < leaf->count; ++i, p = entry.end) {
      ParseEntry(p, &entry);
      if (entry.is_large) entry.large()->birth = std::min(entry.large()->birth, birth);
    }
  }

  Status AddRun(const LeafRun& run) {
    Status none = Status::Error(ErrorCode::kCorruption, "leaf run: there are no such leaves");
    if (run.first < newer_number_) return none;
    is_newer_whole_ = run.first == newer_number_ && (is_newer_whole_ || !any_);
    while (newer_number_ < run.first) {
      if (newer_->Next() == nullptr) return none;
      ++newer_number_;
    }
    for (uint32_t i = 0; i < run.count; ++i, ++newer_number_) {
      Leaf* const leaf = newer_->Next();
      if (leaf == nullptr) return none;
      if (!TakeLeaf(leaf)) return OutOfOrder();
      SetBirth(leaf);
    }
    payload_bytes_told_ = run.payload_bytes;
    return Status::Ok();
  }

  // A leaf as it is. False if it does not belong behind what is there.
  bool TakeLeaf(Leaf* leaf) {
    first_key_.assign(View(leaf->prefix(), leaf->prefix_bytes));
    first_key_.append(GroupFirst(leaf, 0));
    if (any_ && first_key_ <= last_key_) return false;
    AddLeaf(leaf, first_key_);
    content_.entries += leaf->count;
    const uint32_t group = leaf->groups - 1u;
    (void)key_.TakeInGroup(leaf, group, leaf->counts()[group] - 1u);
    last_key_.assign(View(leaf->prefix(), leaf->prefix_bytes));
    last_key_.append(key_.view());
    any_ = true;
    return true;
  }

  static Status OutOfOrder() {
    return Status::Error(ErrorCode::kCorruption, "bulk load: keys out of order");
  }

  // `first_key` is above last_key_.
  void AddLeaf(Leaf* leaf, std::string_view first_key) {
    const size_t shared = CommonPrefix(first_key, last_key_);
    leaves_.Append(leaf, leaf->units(), first_key.substr(0, shared + 1));
  }

  void TakeValues(Leaf* leaf, std::string_view values) {
    uint8_t* p = leaf->entries();
    Entry entry;
    for (uint32_t i = 0; i < leaf->count; ++i, p = const_cast<uint8_t*>(entry.end)) {
      ParseEntry(p, &entry);
      if (!entry.is_large) continue;
      LargeValue* const value = epochs_.NewValue(values.substr(0, entry.value_bytes));
      values.remove_prefix(entry.value_bytes);
      WriteEntryValue(const_cast<uint8_t*>(entry.value), {nullptr, value->bytes, value});
      leaf->large_units += value->capacity / 64;
    }
  }

  // Makes leaves of what was collected, until at most `kept` entries are left.
  void PackCollected(size_t kept) {
    entries_.ChooseWords();
    size_t begin = 0;
    while (entries_.size() - begin > kept) {
      LeafPlan plan{};
      LeafPlan longer{};
      size_t end = std::min(begin + 16, entries_.size());
      while (!FitsLeaf(entries_, begin, end, LeafFill::kPacked, &plan)) --end;
      // 16 fit: go on in steps of 8, then of 1.
      for (const size_t step : {size_t{8}, size_t{1}}) {
        while (end + step <= entries_.size() &&
               FitsLeaf(entries_, begin, end + step, LeafFill::kPacked, &longer)) {
          end += step;
          plan = longer;
        }
      }
      Leaf* const leaf = epochs_.NewLeaf(plan.used);
      WriteLeaf(entries_, begin, end, plan, leaf);
      const std::string_view before =
          begin == 0 ? std::string_view(collected_before_) : entries_.key(begin - 1);
      const std::string_view first = entries_.key(begin);
      const size_t shared = CommonPrefix(first, before);
      leaves_.Append(leaf, leaf->units(), first.substr(0, shared + 1));
      begin = end;
    }
    if (begin == 0) return;
    collected_before_ = entries_.key(begin - 1);
    KeepFrom(begin);
  }

  // Drops the first `begin` collected entries.
  void KeepFrom(size_t begin) {
    EntryList rest;
    rest.Reset({});
    std::string values;
    values.reserve(kCollectedValueBytes);
    entries_bytes_ = 0;
    for (size_t i = begin; i < entries_.size(); ++i) {
      ValueRef value = entries_.item(i).value;
      if (value.large == nullptr) {
        const std::string_view bytes = View(value.data, value.bytes);
        value.data = Bytes(values) + values.size();
        values.append(bytes);
      }
      rest.Append(entries_.key(i), value);
      entries_bytes_ += entries_.key(i).size() + value.bytes;
    }
    entries_ = std::move(rest);
    values_ = std::move(values);
  }

  // Replaces leaves_ by the nodes above.
  void BuildLevel() {
    ChildList above;
    above.Reset({});
    std::vector<size_t> ends;
    PackIntoInners(leaves_, &ends);
    size_t begin = 0;
    for (const size_t end : ends) {
      const InnerPlan plan = PlanInner(leaves_, begin, end);
      Inner* const node = epochs_.NewInner(plan.used);
      WriteInner(leaves_, begin, end, plan, node);
      if (version_ != nullptr) {
        node->birth = version_->state.epoch;
        version_->own_inners.push_back(node);
      }
      above.Append(node, static_cast<uint32_t>(node->total_units()), leaves_.full_separator(begin));
      begin = end;
    }
    leaves_ = std::move(above);
  }

  // The tree is not to be: give back what was made.
  void Discard() {
    for (size_t i = 0; i < entries_.size(); ++i)
      if (entries_.item(i).value.large != nullptr) epochs_.Retire(entries_.item(i).value.large);
    for (size_t i = 0; version_ == nullptr && i < leaves_.size(); ++i)
      epochs_.Abandon({leaves_.item(i).pointer, 0, 0, 0}, 0);
  }

  Tree* tree_;
  Version* version_;  // null: it is no version
  Epochs& epochs_;
  bool finished_{false};
  bool any_{false};
  std::string last_key_;
  TreeContent content_;
  ChildList leaves_;
  EntryList entries_;
  std::string values_;  // the inline ones of entries_
  size_t entries_bytes_{0};
  std::string collected_before_;  // the key before the first of entries_
  // Of a version:
  std::optional<LeafWalk> newer_;
  uint64_t newer_number_{0};  // leaves of it that have been passed
  uint64_t payload_bytes_told_{0};
  bool is_newer_whole_{false};  // so far, and nothing else came
  RebuiltKey key_;
  std::string first_key_;
};

}  // namespace btree_internal

BTreeBulkLoader::BTreeBulkLoader(BTree* tree)
    : load_(std::make_unique<btree_internal::BulkLoad>(tree->tree_.get(), tree->version_.get())) {}
BTreeBulkLoader::~BTreeBulkLoader() = default;
Status BTreeBulkLoader::AddImage(std::string_view image) { return load_->AddImage(image); }
// What is wrong with an image is found before anything of it is added.
Status BTreeBulkLoader::TryImage(std::string_view image) { return load_->AddImage(image); }
std::string_view BTreeBulkLoader::last_key() const { return load_->last_key(); }
Status BTreeBulkLoader::Add(std::string_view key, std::string_view value) {
  return load_->Add(key, value);
}
Status BTreeBulkLoader::Finish() {
  load_->Finish();
  return Status::Ok();
}

BTreeCopier::BTreeCopier(const BTreeSnapshot& from, BTree* to) {
  const btree_internal::SnapshotState& state = *from.state_;
  CELLAR_ASSERT(!state.images_only);
  leaves_ = std::make_unique<btree_internal::LeafWalk>(state.content.root, state.content.height);
  load_ = std::make_unique<btree_internal::BulkLoad>(to->tree_.get(), nullptr);
  load_->SetPayload(state.content.payload_bytes);
}
BTreeCopier::~BTreeCopier() = default;

bool BTreeCopier::Step(uint64_t bytes_max) {
  for (uint64_t bytes = 0; bytes < bytes_max;) {
    const btree_internal::Leaf* leaf = leaves_->Next();
    if (leaf == nullptr) {
      Finish();
      return true;
    }
    bytes += load_->CopyLeaf(leaf);
  }
  return false;
}

void BTreeCopier::Finish() {
  if (load_ == nullptr) return;
  load_->Finish();
  load_.reset();
}

}  // namespace cellar
