// HttpClient: one request after another to an S3-compatible server, signed. The only code that
// knows libcurl, whose own signing (CURLOPT_AWS_SIGV4) is used.
//
// Versions of libcurl differ in what they sign of a URL: 7.88 takes a query as it stands, without
// sorting it, and loses a name without "="; 8.8 encodes a path once more. So all that this is given
// is such that every reading of it is the same: paths of [A-Za-z0-9._/-], queries sorted by name,
// each name with "=" and a value encoded in capitals, and the hash of the content in a header.
//
// Limits: kConnectSeconds to connect, kStallSeconds without a byte either way; headers and bodies
// of answers are bounded. Redirections are not followed, since the credentials are for one server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/status.h"

namespace cellar {

struct HttpCredentials {
  std::string key_id;
  std::string secret;
  std::string session_token;  // may be empty
  bool operator==(const HttpCredentials& other) const = default;
};

struct HttpRequest {
  std::string method;  // GET, HEAD, PUT, POST, DELETE
  std::string url;
  std::vector<std::string> headers{};  // "name: value"
  std::string_view body{};
  std::string body_sha256{};  // in hexadecimal
  // Where the body of a good answer goes; more than `to_bytes` is an error. Null: to
  // HttpResponse.body.
  char* to{nullptr};
  size_t to_bytes{0};
};

struct HttpResponse {
  int status{0};
  std::string body;                                          // cut at kBodyBytesMax
  size_t received{0};                                        // bytes that came to `to`
  std::vector<std::pair<std::string, std::string>> headers;  // names in small letters
  // Empty if it is not there.
  std::string_view Header(std::string_view name) const;
};

// Unix seconds of a "Date" header; nothing if it cannot be read.
std::optional<int64_t> ParseHttpDate(std::string_view text);

class HttpClient {
 public:
  static constexpr int64_t kConnectSeconds{10};
  static constexpr int64_t kStallSeconds{20};
  static constexpr size_t kBodyBytesMax{8 << 20};

  // `ca_file`: certificates that the server's must be signed by; empty: the machine's own.
  HttpClient(std::string region, std::string ca_file);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // OK if there was an answer, whatever its status. kErr if a certificate is not trusted, or cannot
  // be read, which stays so; kIo otherwise. Both say what was wrong with the connection; what has
  // come to `to` by then is counted in the response. `goes_on` is asked a few times a second, and
  // told for how long no byte has come or gone; kIo "given up" soon after it is false.
  Status Send(const HttpRequest& request, const HttpCredentials& credentials,
              const std::function<bool(int64_t silent_ms)>& goes_on, HttpResponse* response);

 private:
  struct Handle;
  const std::string region_;
  const std::string ca_file_;
  std::unique_ptr<Handle> handle_;
};

}  // namespace cellar
