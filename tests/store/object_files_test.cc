// Objects as files: what is there, when, and how it is read.
#include "store/format/object_files.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/format/file_copy.h"
#include "store/format/manifest.h"

namespace cellar {
namespace object_files_test {

// Objects in memory.
class MapStore final : public ObjectStore {
 public:
  struct State {
    std::map<std::string, std::string> objects;
    std::vector<std::string> unfinished;
    std::vector<std::pair<uint64_t, size_t>> reads;
    std::vector<uint64_t> expected;  // bytes of uploads
    bool fails{false};
  };
  explicit MapStore(State* state) : state_(*state) {}

  const std::string& url() const override { return url_; }
  void SetWatcher(ObjectWatcher*) override {}
  Result<std::vector<ObjectInfo>> List() override {
    std::vector<ObjectInfo> found;
    for (const auto& [name, bytes] : state_.objects) found.push_back({name, bytes.size(), "1"});
    return found;
  }
  Result<std::optional<ObjectInfo>> Find(const std::string& name) override {
    const auto found = state_.objects.find(name);
    if (found == state_.objects.end()) return std::optional<ObjectInfo>{};
    return std::optional(ObjectInfo{name, found->second.size(), "1"});
  }
  Status Read(const ObjectInfo& object, uint64_t offset, size_t size, char* to) override {
    state_.reads.emplace_back(offset, size);
    if (state_.fails) return Status::Error(ErrorCode::kIo, "it fails");
    REQUIRE(state_.objects.at(object.name).copy(to, size, offset) == size);
    return Status::Ok();
  }
  std::unique_ptr<ObjectUpload> BeginUpload(const std::string& name, uint64_t bytes) override {
    state_.expected.push_back(bytes);
    return std::make_unique<Upload>(state_, name);
  }
  Status Remove(const std::string& name) override {
    state_.objects.erase(name);
    return Status::Ok();
  }
  Result<std::vector<std::string>> ListUploads() override { return state_.unfinished; }
  Status RemoveUploads(const std::string& name) override {
    std::erase(state_.unfinished, name);
    return Status::Ok();
  }

 private:
  class Upload final : public ObjectUpload {
   public:
    Upload(State& state, std::string name) : state_(state), name_(std::move(name)) {}
    Status Append(std::string_view bytes) override {
      bytes_ += bytes;
      return state_.fails ? Status::Error(ErrorCode::kIo, "it fails") : Status::Ok();
    }
    Status Finish() override {
      if (state_.fails) return Status::Error(ErrorCode::kIo, "it fails");
      state_.objects[name_] = bytes_;
      return Status::Ok();
    }

   private:
    State& state_;
    const std::string name_;
    std::string bytes_;
  };

  State& state_;
  const std::string url_{"s3://bucket/p"};
};

struct Rig {
  MapStore::State state;
  ObjectFiles files{FileSystem::Posix()};
  Rig() {
    const ObjectStoreOpener opener =
        [this](const std::string&) -> Result<std::unique_ptr<ObjectStore>> {
      return std::unique_ptr<ObjectStore>(std::make_unique<MapStore>(&state));
    };
    REQUIRE(files.Mount(opener, "s3://bucket/p").ok());
  }
};

TEST_CASE("An object has its name when it is closed, and is replaced as a whole", "[store]") {
  Rig rig;
  const std::string path = "s3://bucket/p/a";
  {
    auto file = rig.files.Create(path);
    REQUIRE(file.ok());
    REQUIRE((*file)->WriteAt(0, "abc").ok());
    REQUIRE((*file)->Sync().ok());
    REQUIRE(!*rig.files.Exists(path));
    REQUIRE(!(*file)->WriteAt(2, "x").ok());
    REQUIRE((*file)->WriteAt(3, "def").ok());
    REQUIRE((*file)->Close().ok());
  }
  REQUIRE(*ReadWholeFile(rig.files, path) == "abcdef");
  {
    auto file = rig.files.Create(path);
    REQUIRE((*file)->WriteAt(0, "never closed").ok());
  }
  REQUIRE(*ReadWholeFile(rig.files, path) == "abcdef");
  REQUIRE(ReplaceFile(rig.files, path, "new").ok());
  REQUIRE(*ReadWholeFile(rig.files, path) == "new");
  REQUIRE(rig.state.objects.size() == 1);
  REQUIRE(ReplaceFile(rig.files, path, "").ok());
  REQUIRE(ReadWholeFile(rig.files, path)->empty());
  REQUIRE(!rig.files.Rename(path, path + "b").ok());
  REQUIRE(!rig.files.OpenForWriting(path).ok());
  REQUIRE(!rig.files.Link(path, path + "b").ok());
  REQUIRE(rig.files.Remove(path).ok());
  REQUIRE(!rig.files.OpenForReading(path).ok());
  // Places that are not open, and deeper ones.
  for (const char* const other :
       {"s3://bucket/q/a", "s3://bucket/p/a/b", "s3://bucket/pa", "s3://b"}) {
    REQUIRE(!rig.files.Exists(other).ok());
    REQUIRE(!rig.files.Create(other).ok());
  }
}

TEST_CASE("Unfinished uploads look like temporary files, and go like them", "[store]") {
  Rig rig;
  rig.state.objects = {{"a", "1"}, {"b", "22"}};
  rig.state.unfinished = {"a", "c"};
  const auto names = rig.files.List("s3://bucket/p");
  REQUIRE(names.ok());
  REQUIRE(*names == std::vector<std::string>{"a", "a.tmp", "b", "c.tmp"});
  REQUIRE(rig.files.Remove("s3://bucket/p/c.tmp").ok());
  REQUIRE(rig.state.unfinished == std::vector<std::string>{"a"});
  REQUIRE(rig.state.objects.size() == 2);
}

TEST_CASE("Objects are read in pieces that grow, each byte once", "[store]") {
  Rig rig;
  std::string bytes(20 << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 + i / 251);
  rig.state.objects["a"] = bytes;
  auto file = rig.files.OpenForReading("s3://bucket/p/a");
  REQUIRE(file.ok());
  std::string read;
  std::string piece(100'000, '\0');
  while (read.size() < bytes.size()) {
    const auto n = (*file)->ReadAt(read.size(), piece.size(), piece.data());
    REQUIRE(n.ok());
    read.append(piece, 0, *n);
  }
  REQUIRE(read == bytes);
  size_t total = 0;
  for (const auto& [offset, size] : rig.state.reads) total += size;
  REQUIRE(total == bytes.size());
  REQUIRE(rig.state.reads.size() < 12);
  REQUIRE(*(*file)->ReadAt(bytes.size(), 10, piece.data()) == 0);
  REQUIRE(*(*file)->ReadAt(bytes.size() - 3, 10, piece.data()) == 3);
  REQUIRE(piece.substr(0, 3) == bytes.substr(bytes.size() - 3));
  // A whole one at once.
  rig.state.reads.clear();
  REQUIRE(*ReadWholeFile(rig.files, "s3://bucket/p/a") == bytes);
  REQUIRE(rig.state.reads.size() == 1);
  // What failed is not taken for read.
  rig.state.fails = true;
  REQUIRE(!(*file)->ReadAt(0, 10, piece.data()).ok());
  rig.state.fails = false;
  REQUIRE(*(*file)->ReadAt(0, 10, piece.data()) == 10);
  REQUIRE(piece.substr(0, 10) == bytes.substr(0, 10));
}

TEST_CASE("A store's files become objects without temporary names", "[store]") {
  Rig rig;
  const std::string from = "/tmp/cellar-object-files-test";
  REQUIRE(ReplaceFile(FileSystem::Posix(), from, std::string(3 << 20, 'x') + "tail").ok());
  REQUIRE(LinkOrCopy(rig.files, from, "s3://bucket/p/b", 3 << 20).ok());
  REQUIRE(rig.state.objects.at("b") == std::string(3 << 20, 'x'));
  REQUIRE(rig.state.expected.back() == 3 << 20);
  REQUIRE(!LinkOrCopy(rig.files, from, "s3://bucket/p/c", 4 << 20).ok());
  rig.state.fails = true;
  REQUIRE(!LinkOrCopy(rig.files, from, "s3://bucket/p/c", 3 << 20).ok());
  REQUIRE(InstallManifest(rig.files, "s3://bucket/p", {}).outcome == InstallOutcome::kUnknown);
  rig.state.fails = false;
  REQUIRE(rig.state.objects.size() == 1);
  REQUIRE(InstallManifest(rig.files, "s3://bucket/p",
                          {.next = 7, .snapshot = {}, .earlier = {}, .segments = {}})
              .status.ok());
  REQUIRE((*LoadManifest(rig.files, "s3://bucket/p"))->next == 7);
  REQUIRE(FileSystem::Posix().Remove(from).ok());
}

}  // namespace object_files_test
}  // namespace cellar
