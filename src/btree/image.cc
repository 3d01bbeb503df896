// Making and checking of leaf images. See image.h.
#include "btree/image.h"

#include <cstring>
#include <new>

#include "base/assert.h"
#include "btree/btree.h"

namespace cellar::btree_internal {
namespace {

Status Damaged(const char* what) {
  return Status::Error(ErrorCode::kCorruption, std::string("leaf image: ") + what);
}

// The fields before the entries, in an image that may say anything.
struct Fields {
  uint32_t used;
  uint32_t prefix_bytes;
  uint32_t count;
  uint32_t groups;
  uint32_t group_capacity;
  uint32_t large_count;
  uint32_t dictionary_bytes;
  const uint8_t* heads;
  const uint8_t* offsets;
  const uint8_t* counts;
  const uint8_t* prefix;
  const uint8_t* entries;
  const uint8_t* end;
};

Status ReadFields(std::string_view image, Fields* fields) {
  constexpr size_t kFixedBytes{sizeof(Leaf) - kLeafPortableFrom};
  if (image.size() < kFixedBytes) return Damaged("cut short");
  const uint8_t* const p = Bytes(image);
  fields->used = LoadLittleEndian<uint32_t>(p);
  fields->prefix_bytes = LoadLittleEndian<uint32_t>(p + 4);
  fields->count = LoadLittleEndian<uint16_t>(p + 8);
  fields->groups = p[10];
  fields->group_capacity = p[11];
  fields->large_count = LoadLittleEndian<uint16_t>(p + 12);
  fields->dictionary_bytes = LoadLittleEndian<uint16_t>(p + 14);
  if (fields->count == 0 || fields->count > kLeafEntriesMax) return Damaged("number of entries");
  if (fields->group_capacity % 4 != 0 || fields->group_capacity > kLeafGroupsMax ||
      fields->groups == 0 || fields->groups > fields->group_capacity)
    return Damaged("number of groups");
  if (fields->prefix_bytes > kTreeKeyBytesMax) return Damaged("length of the prefix");
  const size_t entries_at =
      LeafHeaderBytes(fields->group_capacity) + fields->prefix_bytes + fields->dictionary_bytes;
  if (fields->used < entries_at || fields->used - kLeafPortableFrom > image.size())
    return Damaged("length");
  if (fields->count > 1 && fields->used > LeafBytesLimit(fields->prefix_bytes))
    return Damaged("longer than a leaf may be");
  fields->heads = p + kFixedBytes;
  fields->offsets = fields->heads + size_t{4} * fields->group_capacity;
  fields->counts = fields->offsets + size_t{2} * fields->group_capacity;
  fields->prefix = fields->counts + fields->group_capacity;
  fields->entries = fields->prefix + fields->prefix_bytes + fields->dictionary_bytes;
  fields->end = p + fields->used - kLeafPortableFrom;
  return Status::Ok();
}

// The beginning of a group: the entry at `p`, and what the fields say of the group.
Status CheckGroup(const Fields& fields, uint32_t group, const uint8_t* p, uint32_t shared,
                  const Suffix& suffix) {
  if (group == fields.groups) return Damaged("more entries than in its groups");
  if (shared != 0 || !suffix.word.empty())
    return Damaged("a group does not begin with a whole key");
  if (LoadLittleEndian<uint16_t>(fields.offsets + size_t{2} * group) != p - fields.entries)
    return Damaged("a group's offset");
  if (LoadLittleEndian<uint32_t>(fields.heads + size_t{4} * group) !=
      Head(Bytes(suffix.own), suffix.own.size()))
    return Damaged("a group's head");
  if (fields.counts[group] == 0 || fields.counts[group] > kGroupEntriesMax)
    return Damaged("a group's number of entries");
  return Status::Ok();
}

void AppendLeafImage(const Leaf* leaf, std::string* image) {
  const size_t begin = image->size();
  image->append(View(leaf->bytes() + kLeafPortableFrom, leaf->header_bytes() - kLeafPortableFrom));
  image->append(View(leaf->entries(), leaf->entries_bytes()));
  if (leaf->large_count == 0) return;
  const uint8_t* p = leaf->entries();
  Entry entry;
  for (uint32_t i = 0; i < leaf->count; ++i, p = entry.end) {
    ParseEntry(p, &entry);
    if (!entry.is_large) continue;
    const auto at =
        static_cast<size_t>(entry.value - leaf->bytes()) - leaf->front_bytes - kLeafPortableFrom;
    StoreLittleEndian(image->data() + begin + at, uint64_t{0});
    image->append(entry.value_view());
  }
}

}  // namespace

uint32_t LeafImages::CountOf(const Leaf* leaf) {
  if (IsOne(leaf)) return 1;
  Cut(leaf);
  return static_cast<uint32_t>(cuts_.size());
}

void LeafImages::Begin(const Leaf* leaf) {
  leaf_ = leaf;
  done_ = 0;
  cuts_.clear();
  if (!IsOne(leaf)) Cut(leaf);
}

// As many entries each as the bound allows, and a leaf can have: behind a cut the first key has to
// stand there whole, so that a piece may need more room than it had.
void LeafImages::Cut(const Leaf* leaf) {
  entries_.Reset(View(leaf->prefix(), leaf->prefix_bytes));
  entries_.AppendLeaf(leaf);
  cuts_.clear();
  for (size_t begin = 0; begin < entries_.size(); begin = cuts_.back().end) {
    size_t end = begin;
    uint64_t bytes = 0;
    for (; end < entries_.size(); ++end) {
      const ValueRef& value = entries_.item(end).value;
      if (value.large != nullptr) bytes += value.bytes;
      if (end > begin && bytes > value_bytes_max_) break;
    }
    LeafPlan plan{};
    while (!FitsLeaf(entries_, begin, end, LeafFill::kWithRoom, &plan)) --end;
    CELLAR_ASSERT(end > begin);
    cuts_.push_back({end, plan});
  }
}

bool LeafImages::Append(std::string* image) {
  CELLAR_ASSERT(leaf_ != nullptr);
  if (cuts_.size() < 2) {
    AppendLeafImage(leaf_, image);
    return true;
  }
  const LeafCut& cut = cuts_[done_];
  const size_t begin = done_ == 0 ? 0 : cuts_[done_ - 1].end;
  const size_t capacity = NodeArena::RoundUp(cut.plan.used);
  memory_.assign(capacity / sizeof(uint64_t), 0);
  auto* const leaf = new (memory_.data()) Leaf{};
  leaf->granules = static_cast<uint16_t>(capacity / NodeArena::kGranuleBytes);
  WriteLeaf(entries_, begin, cut.end, cut.plan, leaf);
  AppendLeafImage(leaf, image);
  return ++done_ == cuts_.size();
}

// An image comes out of a file: nothing in it is used before it has been checked. Every key is
// rebuilt to be compared with the one before, and an entry must share with that exactly the bytes
// that are equal, as search and insert take for granted.
Status CheckLeafImage(std::string_view image, CheckedImage* checked) {
  Fields fields{};
  RETURN_IF_ERROR(ReadFields(image, &fields));
  const size_t leaf_bytes = fields.used - kLeafPortableFrom;
  checked->leaf_bytes = fields.used;
  checked->leaf = image.substr(0, leaf_bytes);
  checked->values = image.substr(leaf_bytes);

  const Dictionary dictionary{fields.entries - fields.dictionary_bytes, fields.dictionary_bytes};
  CodeSet codes;
  if (dictionary.bytes > 0 && !CheckDictionary(View(dictionary.words, dictionary.bytes), &codes))
    return Damaged("the dictionary");

  // The key of the entry before, behind the prefix.
  std::string key(256, 0);
  size_t key_bytes = 0;
  const uint8_t* p = fields.entries;
  uint32_t group = 0, in_group = 0, large_count = 0;
  uint64_t payload_bytes = 0, large_bytes = 0;
  Entry entry;
  for (uint32_t i = 0; i < fields.count; ++i, p = entry.end) {
    if (!ParseEntryChecked(p, fields.end, &entry)) return Damaged("an entry's lengths");
    if (dictionary.bytes > 0 && (entry.suffix_bytes == 0 || !codes[entry.suffix[0]]))
      return Damaged("a word's code");
    const Suffix suffix = dictionary.Decode(entry);
    if (in_group == 0) {
      RETURN_IF_ERROR(CheckGroup(fields, group, p, entry.shared, suffix));
      if (i > 0 && suffix.own <= std::string_view(key).substr(0, key_bytes))
        return Damaged("keys out of order");
    } else {
      // Exactly the shared bytes: the next one differs, and is larger.
      if (entry.shared > key_bytes || suffix.size() == 0) return Damaged("a shared prefix");
      if (entry.shared < key_bytes && suffix[0] <= static_cast<uint8_t>(key[entry.shared]))
        return Damaged("keys out of order");
    }
    key_bytes = entry.shared + suffix.size();
    if (key_bytes + kShortCopyBytes > key.size()) key.resize(2 * key_bytes + kShortCopyBytes);
    auto* const to = reinterpret_cast<uint8_t*>(key.data()) + entry.shared;
    suffix.CopyTo(to, fields.end);
    if (fields.prefix_bytes + key_bytes > kTreeKeyBytesMax) return Damaged("key too long");
    if (i == 0) {
      checked->first_key.assign(View(fields.prefix, fields.prefix_bytes));
      checked->first_key.append(suffix.own);
    }
    if (entry.is_large) {
      if (LoadLittleEndian<uint64_t>(entry.value) != 0) return Damaged("a value's place");
      ++large_count;
      large_bytes += entry.value_bytes;
    }
    payload_bytes += fields.prefix_bytes + key_bytes + entry.value_bytes;
    if (++in_group == fields.counts[group]) {
      ++group;
      in_group = 0;
    }
  }
  if (group != fields.groups) return Damaged("fewer entries than in its groups");
  if (p != fields.end) return Damaged("bytes behind the last entry");
  if (large_count != fields.large_count) return Damaged("number of large values");
  if (large_bytes != checked->values.size()) return Damaged("length of the large values");
  checked->last_key.assign(View(fields.prefix, fields.prefix_bytes));
  checked->last_key.append(key, 0, key_bytes);
  checked->entries = fields.count;
  checked->payload_bytes = payload_bytes;
  return Status::Ok();
}

}  // namespace cellar::btree_internal
