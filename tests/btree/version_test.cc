// Versions: what a tree was, as trees of their own, through writes and through files.
#include "btree/version.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "btree/btree.h"

namespace version_test {

using namespace cellar;
using Map = std::map<std::string, std::string>;

struct Kept {
  std::unique_ptr<BTree> tree;
  Map content;
};
struct State {
  std::unique_ptr<BTree> tree{std::make_unique<BTree>()};
  Map content;
  std::vector<Kept> versions;  // oldest first
};

void Equals(const BTree& tree, const Map& content) {
  REQUIRE(tree.entries() == content.size());
  tree.Validate();
  BTreeCursor at(tree);
  at.SeekFirst();
  for (const auto& [key, value] : content) {
    REQUIRE(at.valid());
    REQUIRE(at.key() == key);
    REQUIRE(at.value() == value);
    at.Next();
  }
  REQUIRE_FALSE(at.valid());
  if (content.empty()) return;
  const auto some = std::next(content.begin(), static_cast<std::ptrdiff_t>(content.size() / 2));
  REQUIRE(tree.Get(some->first) == some->second);
}

void Write(State* state, Random* random, int writes) {
  for (int i = 0; i < writes; ++i) {
    std::string key = "row" + std::to_string(random->Below(3000));
    if (random->Below(10) == 0) {
      state->tree->Delete(key);
      state->content.erase(key);
      continue;
    }
    const std::string value(random->Below(50) == 0 ? 600 + random->Below(3000) : random->Below(60),
                            static_cast<char>('a' + random->Below(26)));
    state->tree->Put(key, value);
    state->content[key] = value;
  }
}

using Images = std::vector<std::string>;

Images Read(BTreeImageReader reader) {
  Images images;
  std::string image;
  for (; reader.Next(&image); image.clear()) images.push_back(image);
  return images;
}

size_t BytesOf(const Images& images) {
  size_t bytes = 0;
  for (const std::string& image : images) bytes += image.size();
  return bytes;
}

// All as in a file: the tree, then its versions from the newest on. A leaf whose large values come
// to more than `value_bytes_max` is several there.
std::vector<Images> Save(State* state,
                         uint64_t value_bytes_max = BTreeImageReader::kValueBytesMax) {
  std::vector<Images> files;
  BTreeSnapshot newer = state->tree->TakeSnapshotForImages();
  files.push_back(Read(BTreeImageReader(newer, value_bytes_max)));
  for (auto at = state->versions.rbegin(); at != state->versions.rend(); ++at) {
    BTreeSnapshot snapshot = at->tree->TakeSnapshotForImages();
    files.push_back(
        Read(BTreeImageReader(snapshot, newer, at->tree->version_epoch(), value_bytes_max)));
    newer = std::move(snapshot);
  }
  return files;
}

Status Fill(BTree* tree, const Images& images) {
  BTreeBulkLoader loader(tree);
  for (const std::string& image : images) RETURN_IF_ERROR(loader.AddImage(image));
  return loader.Finish();
}

State Load(const State& state, const std::vector<Images>& files) {
  State loaded;
  loaded.content = state.content;
  loaded.versions.resize(state.versions.size());
  loaded.tree->ReserveVersions(state.versions.size());
  REQUIRE(Fill(loaded.tree.get(), files[0]).ok());
  const BTree* newer = loaded.tree.get();
  for (size_t i = 1; i < files.size(); ++i) {
    const size_t number = files.size() - i;
    Kept& kept = loaded.versions[number - 1];
    kept.content = state.versions[number - 1].content;
    kept.tree = BTree::VersionToLoad(loaded.tree.get(), number, newer);
    REQUIRE(Fill(kept.tree.get(), files[i]).ok());
    newer = kept.tree.get();
  }
  for (Kept& kept : loaded.versions) kept.tree->FinishVersion();
  return loaded;
}

void Check(const State& state) {
  Equals(*state.tree, state.content);
  for (const Kept& kept : state.versions) Equals(*kept.tree, kept.content);
}

void DropVersion(State* state, size_t i) {
  state->versions.erase(state->versions.begin() + static_cast<std::ptrdiff_t>(i));
}

TEST_CASE("versions stay what they were through writes, drops and files", "[btree][version]") {
  const uint64_t seed = GENERATE(range<uint64_t>(1, 13));
  INFO("seed " << seed);
  Random random(seed);
  State state;
  for (int step = 0; step < 60; ++step) {
    Write(&state, &random, static_cast<int>(random.Below(300)));
    const uint64_t kind = random.Below(10);
    if (kind < 5) {
      state.versions.push_back({state.tree->Freeze(), state.content});
    } else if (kind < 7 && !state.versions.empty()) {
      DropVersion(&state, random.Below(state.versions.size()));
    } else if (kind == 7) {
      // As an EXEC that is taken back.
      BTreeSnapshot before = state.tree->TakeSnapshot();
      const Map content = state.content;
      Write(&state, &random, 100);
      state.tree->RollBackTo(before);
      state.content = content;
    } else if (kind == 8) {
      constexpr uint64_t kBounds[]{BTreeImageReader::kValueBytesMax, 1, 2000, 5000, 20'000};
      const std::vector<Images> files = Save(&state, kBounds[random.Below(std::size(kBounds))]);
      State loaded = Load(state, files);
      state.versions.clear();
      state = std::move(loaded);
    } else if (random.Below(8) == 0) {
      state.tree->Clear();
      state.content.clear();
    }
    Check(state);
  }
}

TEST_CASE("without its versions a tree has the memory that it had", "[btree][version]") {
  Random random(7);
  State state;
  Write(&state, &random, 20000);
  const uint64_t before = state.tree->memory_bytes();
  const auto settle = [&] {
    while (state.tree->ReleaseSome(1000)) {
    }
  };
  std::vector<Map> contents;
  for (int i = 0; i < 8; ++i) {
    state.versions.push_back({state.tree->Freeze(), state.content});
    Write(&state, &random, 500);
  }
  settle();
  const bool through_a_file = GENERATE(false, true);
  if (through_a_file) {
    State loaded = Load(state, Save(&state));
    state.versions.clear();
    state = std::move(loaded);
  }
  uint64_t held = 0;
  for (const Kept& kept : state.versions) held += kept.tree->held_bytes();
  REQUIRE(held > 0);
  const uint64_t with_versions = state.tree->memory_bytes();
  // Any order will do.
  while (!state.versions.empty()) DropVersion(&state, random.Below(state.versions.size()));
  settle();
  const uint64_t after = state.tree->memory_bytes();
  CHECK(with_versions - held == after);
  CHECK(after < before * 11 / 10);
  Equals(*state.tree, state.content);
}

TEST_CASE("a file has each leaf once, whoever shares it", "[btree][version]") {
  Random random(11);
  State state;
  Write(&state, &random, 30000);
  for (int i = 0; i < 10; ++i) {
    state.versions.push_back({state.tree->Freeze(), state.content});
    state.tree->Put("row77", std::to_string(i));
    state.content["row77"] = std::to_string(i);
  }
  const std::vector<Images> files = Save(&state);
  size_t versions = 0;
  for (size_t i = 1; i < files.size(); ++i) versions += BytesOf(files[i]);
  CHECK(versions < 10 * 6000);
  CHECK(BytesOf(files[0]) > 150'000);
  State loaded = Load(state, files);
  Check(loaded);
  CHECK(loaded.tree->memory_bytes() < state.tree->memory_bytes() * 12 / 10);
}

TEST_CASE("a leaf of large values has as many images as the bound wants", "[btree][version]") {
  const uint64_t bound = GENERATE(uint64_t{1}, uint64_t{3000}, uint64_t{10'000}, uint64_t{100'000});
  const size_t key_bytes = GENERATE(size_t{10}, size_t{1500});
  Random random(13);
  State state;
  for (int i = 0; i < 300; ++i) {
    std::string key = std::to_string(1000 + i * 7) + std::string(key_bytes, 'k');
    key += std::to_string(random.Below(1000));
    const bool is_large = random.Below(3) != 0;
    const std::string value(is_large ? 513 + random.Below(4000) : random.Below(100), 'v');
    state.tree->Put(key, value);
    state.content[key] = value;
  }
  for (int i = 0; i < 5; ++i) {
    state.versions.push_back({state.tree->Freeze(), state.content});
    const auto at = std::next(state.content.begin(), static_cast<std::ptrdiff_t>(i) * 60);
    at->second = std::string(600, 'n');
    state.tree->Put(at->first, at->second);
  }
  const std::vector<Images> files = Save(&state, bound);
  for (const std::string& image : files[0])
    CHECK(image.size() <= std::max<uint64_t>(bound, 4513) + 8192);
  CHECK(files[0].size() >= 300'000 / std::max<uint64_t>(bound, 4096));
  State loaded = Load(state, files);
  Check(loaded);
  Check(Load(loaded, Save(&loaded)));
  State again = Load(loaded, Save(&loaded, 7000));
  Write(&again, &random, 2000);
  Check(again);
}

TEST_CASE("a version that is equal to a newer one needs no memory behind a load",
          "[btree][version]") {
  Random random(12);
  State state;
  Write(&state, &random, 30000);
  for (int i = 0; i < 20; ++i) state.versions.push_back({state.tree->Freeze(), state.content});
  Write(&state, &random, 100);
  for (int i = 0; i < 20; ++i) state.versions.push_back({state.tree->Freeze(), state.content});
  State loaded = Load(state, Save(&state));
  Check(loaded);
  const uint64_t before = loaded.tree->memory_bytes();
  for (int i = 0; i < 19; ++i) DropVersion(&loaded, random.Below(20 - static_cast<uint64_t>(i)));
  while (loaded.tree->ReleaseSome(1000)) {
  }
  CHECK(loaded.tree->memory_bytes() == before);
  while (!loaded.versions.empty()) DropVersion(&loaded, random.Below(loaded.versions.size()));
  Check(loaded);
}

TEST_CASE("a copy is equal, and the original stays what it is", "[btree][version]") {
  const uint64_t step_bytes = GENERATE(uint64_t{1}, uint64_t{10'000}, UINT64_MAX);
  Random random(5);
  State state;
  Write(&state, &random, static_cast<int>(random.Below(20000)));
  const BTreeSnapshot snapshot = state.tree->TakeSnapshot();
  State copy;
  copy.content = state.content;
  BTreeCopier copier(snapshot, copy.tree.get());
  while (!copier.Step(step_bytes)) Write(&state, &random, 3);
  Check(copy);
  CHECK(copy.tree->payload_bytes() == snapshot.payload_bytes());
  Write(&copy, &random, 2000);
  Check(copy);
  Check(state);
  BTree nothing;
  const BTreeSnapshot empty = nothing.TakeSnapshot();
  BTree none;
  CHECK(BTreeCopier(empty, &none).Step(1));
  CHECK(none.entries() == 0);
}

TEST_CASE("runs that cannot be are refused, and nothing is left of them", "[btree][version]") {
  Random random(3);
  State state;
  Write(&state, &random, 5000);
  state.versions.push_back({state.tree->Freeze(), state.content});
  Write(&state, &random, 300);
  std::vector<Images> files = Save(&state);
  const auto load = [&](const Images& images) {
    BTree tree;
    tree.ReserveVersions(1);
    REQUIRE(Fill(&tree, files[0]).ok());
    const std::unique_ptr<BTree> version = BTree::VersionToLoad(&tree, 1, &tree);
    return Fill(version.get(), images);
  };
  REQUIRE(load(files[1]).ok());
  for (const uint64_t first : {uint64_t{0}, uint64_t{1'000'000}, UINT64_MAX}) {
    Images images = files[1];
    std::string run;
    btree_internal::AppendLeafRun({.first = first, .count = 3}, &run);
    images.push_back(run);
    CHECK(load(images).code() == ErrorCode::kCorruption);
  }
  Images images = files[1];
  images.insert(images.begin(), images.back());
  CHECK(load(images).code() == ErrorCode::kCorruption);
}

}  // namespace version_test
