// ObjectStore: objects below one prefix of a bucket, as an S3-compatible server keeps them.
//
// An object appears whole, when its upload is finished, or not at all; it is replaced as a whole,
// and never changed or renamed. What has been sent of an upload that was not finished stays on the
// server, in sight of nobody but ListUploads, until somebody removes it.
//
// Names are those below the prefix, without a slash. Errors are kIo, and name bucket and key; calls
// block for as long as the attempts of the implementation take, which an ObjectWatcher can end. One
// thread at a time.
//
//   src/s3                     is the one over HTTP
//   src/store/format/object_files.h   makes files of them
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"

namespace cellar {

inline constexpr std::string_view kObjectScheme{"s3://"};

// Whether a path names an object, or what holds objects, rather than a file of the machine.
inline bool IsObjectPath(std::string_view path) { return path.starts_with(kObjectScheme); }

struct ObjectInfo {
  std::string name;
  uint64_t bytes{0};
  std::string version;  // another one: other bytes
};

// Whoever waits for an answer. Called by the thread that made the call.
class ObjectWatcher {
 public:
  virtual ~ObjectWatcher() = default;
  // Whether to go on, after `attempts` that have failed: asked before each, and a few times a
  // second while one runs or is waited for.
  virtual bool GoesOn(uint32_t attempts) = 0;
  // An attempt failed, and another one will be made.
  virtual void Failed(const Status& status) = 0;
};

class ObjectUpload {
 public:
  // Gives it up unless it is finished: what was sent is removed, if that can be done at once.
  virtual ~ObjectUpload() = default;
  virtual Status Append(std::string_view bytes) = 0;
  // The object is there, durably and whole, when this is OK. No call may follow.
  virtual Status Finish() = 0;
};

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;
  // "s3://bucket/prefix", without a slash at its end.
  virtual const std::string& url() const = 0;
  // Outlives the store, or is replaced; null: nobody waits.
  virtual void SetWatcher(ObjectWatcher* watcher) = 0;

  virtual Result<std::vector<ObjectInfo>> List() = 0;
  virtual Result<std::optional<ObjectInfo>> Find(const std::string& name) = 0;
  // Reads `size` bytes at `offset` of just that version, which has as many, to `to`.
  virtual Status Read(const ObjectInfo& object, uint64_t offset, size_t size, char* to) = 0;
  // `bytes`: how many will come, if that is known, else 0.
  virtual std::unique_ptr<ObjectUpload> BeginUpload(const std::string& name, uint64_t bytes) = 0;
  // OK if it is not there.
  virtual Status Remove(const std::string& name) = 0;

  // Names of objects whose upload was begun and not finished. Empty where a server cannot tell.
  virtual Result<std::vector<std::string>> ListUploads() = 0;
  virtual Status RemoveUploads(const std::string& name) = 0;
};

// Makes the store that a URL names; ERR if it is none, or there are no credentials. Asks no server.
using ObjectStoreOpener =
    std::function<Result<std::unique_ptr<ObjectStore>>(const std::string& url)>;

}  // namespace cellar
