// S3Store: the ObjectStore of an S3-compatible server.
//
// Up to kPartBytes an object is sent in one request, beyond in parts of that size (larger ones
// where 10,000 parts would not do), which become an object together. Each body is hashed twice:
// SHA-256 goes into the signature, and MD5 with the request, so that the server refuses what
// has changed on its way; what it says to have stored (its ETag, where that is an MD5) is compared.
// At the end of parts their total is asked for. An upload that fails is aborted.
//
// What comes back is checked by whoever reads it: records and blocks carry hashes of their own, and
// say at which offset one is wrong. Here it is seen to that it is all of one version.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/os/file.h"
#include "base/os/object_store.h"
#include "s3/s3_client.h"

namespace cellar {

class S3Store final : public ObjectStore {
 public:
  static constexpr size_t kPartBytes{16 << 20};  // S3 wants 5 MiB and more
  static constexpr uint64_t kPartsMax{10'000};

  explicit S3Store(std::unique_ptr<S3Client> client) : client_(std::move(client)) {}

  const std::string& url() const override { return client_->url(); }
  void SetWatcher(ObjectWatcher* watcher) override { client_->SetWatcher(watcher); }
  Result<std::vector<ObjectInfo>> List() override;
  Result<std::optional<ObjectInfo>> Find(const std::string& name) override;
  Status Read(const ObjectInfo& object, uint64_t offset, size_t size, char* to) override;
  std::unique_ptr<ObjectUpload> BeginUpload(const std::string& name, uint64_t bytes) override;
  Status Remove(const std::string& name) override;
  Result<std::vector<std::string>> ListUploads() override;
  Status RemoveUploads(const std::string& name) override;

 private:
  struct Unfinished {
    std::string name;
    std::string id;
  };
  Result<std::vector<Unfinished>> FindUploads(const std::string& name);

  const std::unique_ptr<S3Client> client_;
};

// Opens stores with these settings; credentials are read when one is opened.
ObjectStoreOpener S3Opener(S3Settings settings, FileSystem& files);

}  // namespace cellar
