// See object_files.h.
#include "store/format/object_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr std::string_view kUnfinished{".tmp"};
constexpr size_t kPieceBytesMin{64 << 10};
constexpr size_t kPieceBytesMax{8 << 20};

Status Failed(const std::string& call, const std::string& path, std::string_view why) {
  return Status::Error(ErrorCode::kIo, fmt::format("cannot {} '{}': {}", call, path, why));
}

class ObjectWriter final : public WritableFile {
 public:
  ObjectWriter(std::string path, ObjectStore& store, std::string name)
      : path_(std::move(path)), store_(store), name_(std::move(name)) {}

  Status WriteAt(uint64_t offset, std::string_view bytes) override {
    if (offset != bytes_) return Failed("write", path_, "an object is written from its front on");
    if (upload_ == nullptr) upload_ = store_.BeginUpload(name_, expected_);
    bytes_ += bytes.size();
    return upload_->Append(bytes);
  }
  // How long it will be.
  Status Allocate(uint64_t offset, uint64_t size) override {
    if (upload_ == nullptr) expected_ = offset + size;
    return Status::Ok();
  }
  Status Truncate(uint64_t size) override {
    return size == bytes_ ? Status::Ok() : Failed("truncate", path_, "an object is not cut");
  }
  // Nothing is there before Close has finished the upload, and then it is durable.
  Status Sync() override { return Status::Ok(); }
  Status Close() override {
    if (upload_ == nullptr) upload_ = store_.BeginUpload(name_, 0);
    Status finished = upload_->Finish();
    upload_.reset();
    return finished;
  }
  void BeginWriteback(uint64_t, uint64_t) override {}
  void DropCache(uint64_t, uint64_t) override {}

 private:
  const std::string path_;
  ObjectStore& store_;
  const std::string name_;
  std::unique_ptr<ObjectUpload> upload_;
  uint64_t expected_{0};
  uint64_t bytes_{0};
};

class ObjectReader final : public ReadableFile {
 public:
  ObjectReader(ObjectStore& store, ObjectInfo object) : store_(store), object_(std::move(object)) {}

  Result<size_t> ReadAt(uint64_t offset, size_t size, char* to) override {
    if (offset >= object_.bytes) return size_t{0};
    size = static_cast<size_t>(std::min<uint64_t>(size, object_.bytes - offset));
    size_t done = TakeBuffered(offset, size, to);
    if (size - done >= kPieceBytesMax) {
      RETURN_IF_ERROR(store_.Read(object_, offset + done, size - done, to + done));
      return size;
    }
    while (done < size) {
      RETURN_IF_ERROR(Fetch(offset + done, size - done));
      done += TakeBuffered(offset + done, size - done, to + done);
    }
    return size;
  }
  Result<uint64_t> Size() override { return object_.bytes; }

 private:
  size_t TakeBuffered(uint64_t offset, size_t size, char* to) const {
    if (offset < buffer_offset_ || offset >= buffer_offset_ + buffer_.size()) return 0;
    return buffer_.copy(to, size, static_cast<size_t>(offset - buffer_offset_));
  }
  Status Fetch(uint64_t offset, size_t size) {
    // Pieces grow as long as reads follow one another. A jump, as to a trailer, costs a small one.
    const bool follows = !buffer_.empty() && offset == buffer_offset_ + buffer_.size();
    piece_bytes_ = follows ? std::min(4 * piece_bytes_, kPieceBytesMax) : kPieceBytesMin;
    const uint64_t left = object_.bytes - offset;
    buffer_.resize(static_cast<size_t>(std::min<uint64_t>(std::max(size, piece_bytes_), left)));
    buffer_offset_ = offset;
    Status read = store_.Read(object_, offset, buffer_.size(), buffer_.data());
    if (!read.ok()) buffer_.clear();
    return read;
  }

  ObjectStore& store_;
  const ObjectInfo object_;
  size_t piece_bytes_{kPieceBytesMin};
  uint64_t buffer_offset_{0};
  std::string buffer_;
};

class NoLock final : public FileLock {};

}  // namespace

Status ObjectFiles::Mount(const ObjectStoreOpener& opener, const std::string& url) {
  if (opener == nullptr)
    return Status::Error(ErrorCode::kErr,
                         Quote(url) + ": there are no object stores in this program");
  ASSIGN_OR_RETURN(auto store, opener(url));
  store->SetWatcher(watcher_);
  places_.push_back(std::make_unique<Place>(Place{.store = std::move(store)}));
  return Status::Ok();
}

bool ObjectFiles::IsMounted(const std::string& url) const {
  return std::any_of(places_.begin(), places_.end(),
                     [&](const auto& place) { return place->store->url() == url; });
}

void ObjectFiles::SetWatcher(ObjectWatcher* watcher) {
  watcher_ = watcher;
  for (const auto& place : places_) place->store->SetWatcher(watcher);
}

Result<ObjectFiles::Found> ObjectFiles::Locate(const std::string& path) {
  // One may be mounted below another.
  for (const auto& place : places_) {
    if (path == place->store->url()) return Found{place.get(), {}};
  }
  for (const auto& place : places_) {
    const std::string& url = place->store->url();
    if (path.size() > url.size() && path.starts_with(url) && path[url.size()] == '/' &&
        path.find('/', url.size() + 1) == std::string::npos)
      return Found{place.get(), path.substr(url.size() + 1)};
  }
  return Failed("find", path, "no such object store is open");
}

Result<std::unique_ptr<WritableFile>> ObjectFiles::Create(const std::string& path) {
  if (!IsObjectPath(path)) return below_.Create(path);
  ASSIGN_OR_RETURN(const Found found, Locate(path));
  found.place->listed.erase(found.name);
  return std::unique_ptr<WritableFile>(
      std::make_unique<ObjectWriter>(path, *found.place->store, found.name));
}

Result<std::unique_ptr<WritableFile>> ObjectFiles::OpenForWriting(const std::string& path) {
  if (!IsObjectPath(path)) return below_.OpenForWriting(path);
  return Failed("change", path, "objects do not change");
}

Result<std::unique_ptr<ReadableFile>> ObjectFiles::OpenForReading(const std::string& path) {
  if (!IsObjectPath(path)) return below_.OpenForReading(path);
  ASSIGN_OR_RETURN(const Found found, Locate(path));
  std::optional<ObjectInfo> object;
  if (const auto listed = found.place->listed.find(found.name);
      listed != found.place->listed.end()) {
    object = listed->second;
  } else {
    ASSIGN_OR_RETURN(object, found.place->store->Find(found.name));
  }
  if (!object) return Failed("open", path, "there is no such object");
  return std::unique_ptr<ReadableFile>(
      std::make_unique<ObjectReader>(*found.place->store, *std::move(object)));
}

Result<bool> ObjectFiles::Exists(const std::string& path) {
  if (!IsObjectPath(path)) return below_.Exists(path);
  ASSIGN_OR_RETURN(const Found found, Locate(path));
  if (found.name.empty()) return true;  // a prefix is where somebody says that it is
  ASSIGN_OR_RETURN(const std::optional<ObjectInfo> object, found.place->store->Find(found.name));
  return object.has_value();
}

Status ObjectFiles::Rename(const std::string& from, const std::string& to) {
  if (!IsObjectPath(from) && !IsObjectPath(to)) return below_.Rename(from, to);
  return Failed("rename", from, "objects have one name");
}

Status ObjectFiles::Remove(const std::string& path) {
  if (!IsObjectPath(path)) return below_.Remove(path);
  ASSIGN_OR_RETURN(const Found found, Locate(path));
  found.place->listed.erase(found.name);
  if (path.ends_with(kUnfinished)) {
    return found.place->store->RemoveUploads(
        found.name.substr(0, found.name.size() - kUnfinished.size()));
  }
  return found.place->store->Remove(found.name);
}

Status ObjectFiles::Link(const std::string& from, const std::string& to) {
  if (!IsObjectPath(from) && !IsObjectPath(to)) return below_.Link(from, to);
  return Failed("link", to, "objects have one name");
}

Result<std::vector<std::string>> ObjectFiles::List(const std::string& directory) {
  if (!IsObjectPath(directory)) return below_.List(directory);
  ASSIGN_OR_RETURN(const Found found, Locate(directory));
  found.place->listed.clear();
  ASSIGN_OR_RETURN(const std::vector<ObjectInfo> objects, found.place->store->List());
  ASSIGN_OR_RETURN(const std::vector<std::string> unfinished, found.place->store->ListUploads());
  std::vector<std::string> names;
  for (const ObjectInfo& object : objects) {
    names.push_back(object.name);
    found.place->listed[object.name] = object;
  }
  // Shown as leftovers, so that whoever removes leftovers ends them (Remove).
  for (const std::string& name : unfinished) names.push_back(name + std::string(kUnfinished));
  std::sort(names.begin(), names.end());
  return names;
}

Status ObjectFiles::CreateDirectory(const std::string& directory) {
  return IsObjectPath(directory) ? Status::Ok() : below_.CreateDirectory(directory);
}

Status ObjectFiles::SyncDirectory(const std::string& directory) {
  return IsObjectPath(directory) ? Status::Ok() : below_.SyncDirectory(directory);
}

Result<std::unique_ptr<FileLock>> ObjectFiles::Lock(const std::string& path) {
  if (!IsObjectPath(path)) return below_.Lock(path);
  // An object store has no lock that would end with its holder.
  return std::unique_ptr<FileLock>(std::make_unique<NoLock>());
}

}  // namespace cellar
