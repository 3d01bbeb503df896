// S3Upload: an object on its way to an S3-compatible server (s3_store.h), one part in memory.
//
//   Append   fills the buffer; a full one is sent as a part when more comes
//   Finish   an object of one buffer: PUT; of parts: the last one, then CompleteMultipartUpload,
//            which may have been heard though its answer was lost, so the object is asked for
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/os/object_store.h"
#include "s3/s3_client.h"

namespace cellar {

class S3Upload final : public ObjectUpload {
 public:
  // `client` and `store` outlive it.
  S3Upload(S3Client& client, ObjectStore& store, std::string name, uint64_t bytes);
  ~S3Upload() override;
  S3Upload(const S3Upload&) = delete;
  S3Upload& operator=(const S3Upload&) = delete;

  Status Append(std::string_view bytes) override;
  Status Finish() override;

 private:
  size_t PartBytes() const;
  Status Begin();
  Status SendPart();
  Status PutWhole();
  Status Complete();

  S3Client& client_;
  ObjectStore& store_;
  const std::string name_;
  const uint64_t bytes_expected_;
  uint64_t bytes_{0};
  std::string buffer_;
  std::string upload_id_;           // empty: nothing has been sent
  std::vector<std::string> parts_;  // their ETags
  bool is_finished_{false};
};

}  // namespace cellar
