// Images: damage in any byte is refused or harmless; a serialiser beside a writer sees its moment.
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "btree/btree.h"
#include "tests/btree/tree_model.h"

namespace image_test {

using cellar::BTree;
using cellar::BTreeBulkLoader;
using cellar::BTreeCursor;
using cellar::BTreeImageReader;
using cellar::BTreeSnapshot;
using cellar::ErrorCode;
using cellar::Random;
using tree_model::HasDictionary;

std::vector<std::string> Images(const BTreeSnapshot& snapshot) {
  std::vector<std::string> images;
  BTreeImageReader reader(snapshot);
  std::string image;
  while (image.clear(), reader.Next(&image)) images.push_back(image);
  return images;
}

// Loads `image`; whatever it is, the outcome is a refusal or a sound tree that can be used.
void LoadDamaged(const std::string& image) {
  // A copy of its own size, so that reading behind it is seen by AddressSanitizer.
  const std::vector<char> bytes(image.begin(), image.end());
  BTree tree;
  BTreeBulkLoader loader(&tree);
  const auto status = loader.AddImage({bytes.data(), bytes.size()});
  if (!status.ok()) return;
  if (!loader.Finish().ok()) return;
  tree.Validate();
  std::vector<std::string> keys;
  BTreeCursor cursor(tree);
  for (cursor.SeekFirst(); cursor.valid(); cursor.Next()) keys.emplace_back(cursor.key());
  for (const std::string& key : keys) {
    tree.Put(key + "x", "new");
    tree.Delete(key);
  }
  tree.Validate();
}

std::string Cell(uint64_t i) {
  std::string key = "plane#" + std::to_string(100000 + i / 10);
  key.append("\0\1\1", 3);
  key += "column" + std::to_string(i % 10);
  key.append("\0\1", 2);
  key.append("\xf9\xf5\x12\x34", 4);
  key += static_cast<char>(i * 37);
  return key;
}

void DamageEveryByte(const std::string& image, Random* random) {
  for (size_t at = 0; at < image.size(); ++at) {
    // Every bit, and the ends of the range.
    for (const int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::string damaged = image;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      LoadDamaged(damaged);
    }
  }
  for (size_t size = 0; size < image.size(); ++size) LoadDamaged(image.substr(0, size));
  LoadDamaged(image + "x");
  for (int i = 0; i < 2000; ++i) {  // several places at once
    std::string damaged = image;
    for (uint64_t n = 1 + random->Below(6); n > 0; --n)
      damaged[random->Below(damaged.size())] = static_cast<char>(random->Below(256));
    LoadDamaged(damaged);
  }
}

TEST_CASE("an image with any one byte damaged is refused or loads to a sound tree", "[btree]") {
  BTree tree;
  Random random(11);
  for (uint64_t i = 0; i < 90; ++i) tree.Put(Cell(i), std::string(random.Below(24), 'v'));
  tree.Put(Cell(30), std::string(700, 'L'));
  tree.Put(Cell(60), std::string(70, 'M'));
  tree.Put(std::string(90, 'q'), "long key");
  const std::vector<std::string> images = Images(tree.TakeSnapshot());
  REQUIRE(!images.empty());
  for (const std::string& image : images) {
    CHECK(!HasDictionary(image));
    DamageEveryByte(image, &random);
  }
}

TEST_CASE("an image with a dictionary and any one byte damaged is no worse", "[btree]") {
  BTree tree;
  Random random(12);
  {
    BTreeBulkLoader loader(&tree);
    constexpr const char* kColumns[]{"altitude", "heading", "latitude", "speed", "vertical_rate"};
    for (uint64_t i = 0; i < 60; ++i) {
      std::string key = "plane#" + std::to_string(100 + i / 5) + std::string("\0\1\1", 3);
      key += kColumns[i % 5] + std::string("\0\1time", 6) + static_cast<char>(i * 37);
      const size_t bytes = i == 30 ? 700 : random.Below(16);
      REQUIRE(loader.Add(key, std::string(bytes, 'v')).ok());
    }
    REQUIRE(loader.Finish().ok());
  }
  const std::vector<std::string> images = Images(tree.TakeSnapshot());
  REQUIRE(images.size() == 1);
  REQUIRE(HasDictionary(images[0]));
  DamageEveryByte(images[0], &random);
}

TEST_CASE("images out of order are refused", "[btree]") {
  BTree tree;
  for (uint64_t i = 0; i < 1000; ++i) tree.Put(Cell(i), "value");
  const std::vector<std::string> images = Images(tree.TakeSnapshot());
  REQUIRE(images.size() > 2);
  BTree other;
  BTreeBulkLoader loader(&other);
  CHECK(loader.AddImage(images[1]).ok());
  CHECK(loader.AddImage(images[0]).code() == ErrorCode::kCorruption);
  BTree twice;
  BTreeBulkLoader again(&twice);
  CHECK(again.AddImage(images[0]).ok());
  CHECK(again.AddImage(images[0]).code() == ErrorCode::kCorruption);
}

TEST_CASE("loaded entries fill leaves, and the tree goes on from there", "[btree]") {
  BTree tree;
  {
    BTreeBulkLoader loader(&tree);
    for (uint64_t i = 0; i < 20'000; ++i) {
      std::string key = "key" + std::to_string(1'000'000 + i);
      REQUIRE(loader.Add(key, i % 100 == 0 ? std::string(1000, 'x') : "value").ok());
    }
    CHECK(loader.Add("a", "").code() == ErrorCode::kCorruption);
    REQUIRE(loader.Finish().ok());
  }
  tree.Validate();
  CHECK(tree.entries() == 20'000);
  CHECK(tree.Get("key1000777") == "value");
  CHECK(tree.memory_bytes() < 20'000 * 30 + 200 * 1500);
  tree.Put("key0", "first");
  tree.Put("z", "last");
  tree.Validate();
}

// A serialiser in a thread of its own while the owner writes: what it reads is the content at the
// time of the snapshot. Under ThreadSanitizer this proves that no byte is shared unsafely.
void SerialiseBesideWrites(bool for_images, uint64_t cells, int rounds) {
  BTree tree;
  std::map<std::string, std::string> map;
  Random random(5);
  auto write = [&] {
    const std::string key = Cell(random.Below(cells));
    const uint64_t kind = random.Below(20);
    if (kind == 0) {
      tree.Delete(key);
      map.erase(key);
    } else {
      const std::string value(kind == 1 ? 600 + random.Below(500) : random.Below(20),
                              static_cast<char>('a' + random.Below(26)));
      tree.Put(key, value);
      map[key] = value;
    }
  };
  for (uint64_t i = 0; i < cells; ++i) write();
  for (int round = 0; round < rounds; ++round) {
    BTreeSnapshot snapshot = for_images ? tree.TakeSnapshotForImages() : tree.TakeSnapshot();
    const auto expected = map;
    BTree copy;
    std::atomic<bool> done{false};
    bool all_ok = true;
    std::thread serialiser([&] {
      BTreeImageReader reader(snapshot);
      BTreeBulkLoader loader(&copy);
      std::string image;
      while (image.clear(), reader.Next(&image)) all_ok &= loader.AddImage(image).ok();
      all_ok &= loader.Finish().ok();
      done = true;
    });
    while (!done) write();
    serialiser.join();
    REQUIRE(all_ok);
    snapshot = {};
    copy.Validate();
    REQUIRE(copy.entries() == expected.size());
    BTreeCursor cursor(copy);
    cursor.SeekFirst();
    bool is_equal = true;
    for (const auto& [key, value] : expected) {
      is_equal &= cursor.key() == key && cursor.value() == value;
      cursor.Next();
    }
    REQUIRE(is_equal);
    tree.Validate();
  }
  while (tree.ReleaseSome(100)) {
  }
  tree.Validate();
  tree.DeleteRange("", "", ~uint64_t{0});
  while (tree.ReleaseSome(100)) {
  }
  CHECK(tree.memory_bytes() < 1024);
}

TEST_CASE("a serialising thread sees the content at its snapshot while writes go on", "[btree]") {
  SerialiseBesideWrites(true, 20'000, 6);
  SerialiseBesideWrites(false, 20'000, 3);
}

TEST_CASE("leaves that the serialiser has passed are not kept", "[btree]") {
  BTree tree;
  for (uint64_t i = 0; i < 50'000; ++i) tree.Put(Cell(i), "value");
  const uint64_t live = tree.memory_bytes();
  BTreeSnapshot snapshot = tree.TakeSnapshotForImages();
  BTreeImageReader reader(snapshot);
  std::string image;
  while (image.clear(), reader.Next(&image)) {
  }
  for (uint64_t i = 0; i < 50'000; ++i) tree.Put(Cell(i), "VALUE");
  // Only inner nodes were copied.
  CHECK(tree.memory_bytes() < live + live / 10);
  tree.Validate();
}

}  // namespace image_test
