// ObjectFiles: a FileSystem in which the folders of object stores (base/os/object_store.h) can be
// named beside the machine's own: s3://bucket/prefix/6.log. What reads and writes the files of a
// store works on either.
//
// What is different below s3://
//   Create          the file has its name only from Close() on, whole; so temporary names are
//                   needless (IsObjectPath), and Rename is an error. One that
//                   is there is replaced. Written from front to back; Sync says nothing.
//   List            shows an upload that was begun and not finished as its name and ".tmp", which
//                   Remove gives up
//   Link            an error, as between file systems
//   Lock            holds nothing; kept for the order in which a folder is opened
//   reading         in pieces that grow while they follow each other, from one version
//
// One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/os/file.h"
#include "base/os/object_store.h"

namespace cellar {

class ObjectFiles final : public FileSystem {
 public:
  explicit ObjectFiles(FileSystem& below) : below_(below) {}

  // ERR if there is no `opener`, or it says so.
  Status Mount(const ObjectStoreOpener& opener, const std::string& url);
  bool IsMounted(const std::string& url) const;
  // Of all that is mounted, or will be.
  void SetWatcher(ObjectWatcher* watcher);

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path) override;
  Result<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override;
  Result<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override;
  Result<bool> Exists(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status Link(const std::string& from, const std::string& to) override;
  Result<std::vector<std::string>> List(const std::string& directory) override;
  Status CreateDirectory(const std::string& directory) override;
  Status SyncDirectory(const std::string& directory) override;
  Result<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  struct Place {
    std::unique_ptr<ObjectStore> store;
    std::map<std::string, ObjectInfo> listed{};  // as the last List of it said
  };
  struct Found {
    Place* place{nullptr};
    std::string name;  // empty: the folder
  };
  // Below s3:// only; kIo if nothing is mounted there.
  Result<Found> Locate(const std::string& path);

  FileSystem& below_;
  ObjectWatcher* watcher_{nullptr};
  std::vector<std::unique_ptr<Place>> places_;
};

}  // namespace cellar
