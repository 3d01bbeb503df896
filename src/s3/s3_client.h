// S3Client: calls to one bucket, repeated while that may help.
//
// Repeated, with pauses that double from kPauseMinMs to kPauseMaxMs: no connection, a cut or
// stalled one, 5xx, 429, 408, what a server says of a body that it did not get as it was sent, and
// answers that the caller calls wrong. Not repeated: any other refusal, such as of rights, but for
// one attempt with credentials that have changed in their file meanwhile.
//
// What goes wrong is told to the watcher at once, and a server that is silent after kSilentMs,
// long before it is given up. A refusal says if the clocks differ: a signature holds for some
// minutes only, and what a server says of one that is too old sounds like a wrong key.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/os/file.h"
#include "base/os/object_store.h"
#include "s3/http.h"
#include "s3/s3_url.h"

namespace cellar {

struct S3Call {
  std::string method;
  std::string name{};                                        // of an object; empty: the bucket
  std::vector<std::pair<std::string, std::string>> query{};  // ascending by name
  std::vector<std::string> headers{};
  std::string_view body{};
  char* to{nullptr};  // as in HttpRequest
  size_t to_bytes{0};
  uint32_t attempts_max{0};  // 0: kAttemptsMax
  // What is wrong with a good answer.
  std::function<Status(const HttpResponse&)> check{};
};

class S3Client {
 public:
  static constexpr uint32_t kAttemptsMax{10};
  static constexpr int64_t kPauseMinMs{100};
  static constexpr int64_t kPauseMaxMs{10'000};
  static constexpr int64_t kSilentMs{3'000};

  S3Client(S3Url url, S3Place place, S3Settings settings, HttpCredentials credentials,
           FileSystem& files);

  const std::string& url() const { return text_; }
  const std::string& prefix() const { return url_.prefix; }
  void SetWatcher(ObjectWatcher* watcher) { watcher_ = watcher; }

  // The answer: good, or a refusal that is not repeated. kIo if attempts have come to an end.
  Result<HttpResponse> Call(const S3Call& call);
  // The key of an object in the bucket.
  std::string KeyOf(const std::string& name) const;
  // kIo, saying what the server says.
  Status Refusal(const S3Call& call, const HttpResponse& response) const;

 private:
  std::string UrlOf(const S3Call& call) const;
  std::string NameOf(const S3Call& call) const;
  bool GoesOn(uint32_t attempts) const { return watcher_ == nullptr || watcher_->GoesOn(attempts); }
  // false: given up meanwhile.
  bool Pause(uint32_t attempts);
  bool ReadCredentialsAgain();
  Status Judge(const S3Call& call, const HttpResponse& response) const;

  const S3Url url_;
  const S3Place place_;
  const S3Settings settings_;
  const std::string text_;
  HttpCredentials credentials_;
  FileSystem& files_;
  HttpClient http_;
  ObjectWatcher* watcher_{nullptr};
  std::minstd_rand chance_{std::random_device{}()};
};

// What a refusal with this "Date" says of the clocks; empty if they agree, or it cannot be read.
std::string TellSkew(std::string_view date, int64_t now_unix_s);

std::string Sha256Hex(std::string_view bytes);
// Empty where the machine's rules forbid MD5.
std::string Md5Bytes(std::string_view bytes);

}  // namespace cellar
