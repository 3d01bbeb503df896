// See http.h.
#include "s3/http.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "cellar/clock.h"

namespace cellar {
namespace {

constexpr size_t kHeadersMax{100};
constexpr size_t kHeaderBytesMax{4096};
constexpr long kBufferBytes{512L * 1024};

// What the callbacks of one transfer share.
struct Transfer {
  CURL* curl{nullptr};
  const HttpRequest* request{nullptr};
  HttpResponse* response{nullptr};
  const std::function<bool(int64_t)>* goes_on{nullptr};
  size_t sent{0};
  curl_off_t moved{0};  // bytes either way, when it was looked last
  int64_t moved_at_micros{0};
  bool is_too_long{false};
  bool is_given_up{false};
};

size_t TakeBody(char* bytes, size_t size, size_t count, void* data) noexcept {
  auto* const transfer = static_cast<Transfer*>(data);
  const size_t n = size * count;
  long status = 0;
  curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
  HttpResponse& response = *transfer->response;
  if (status >= 200 && status < 300 && transfer->request->to != nullptr) {
    if (n > transfer->request->to_bytes - response.received) {
      transfer->is_too_long = true;
      return 0;
    }
    std::memcpy(transfer->request->to + response.received, bytes, n);
    response.received += n;
    return n;
  }
  if (n > HttpClient::kBodyBytesMax - response.body.size()) {
    transfer->is_too_long = true;
    return 0;
  }
  response.body.append(bytes, n);
  return n;
}

size_t TakeHeader(char* bytes, size_t size, size_t count, void* data) noexcept {
  auto* const transfer = static_cast<Transfer*>(data);
  transfer->moved_at_micros = Clock::System().MonotonicMicros();
  HttpResponse& response = *transfer->response;
  const size_t n = size * count;
  std::string_view line(bytes, n);
  if (line.starts_with("HTTP/")) response.headers.clear();  // that of "100 Continue" before
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || n > kHeaderBytesMax ||
      response.headers.size() >= kHeadersMax)
    return n;
  std::string_view value = line.substr(colon + 1);
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!value.empty() && is_blank(value.front())) value.remove_prefix(1);
  while (!value.empty() && is_blank(value.back())) value.remove_suffix(1);
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(), LowerChar);
  response.headers.emplace_back(std::move(name), value);
  return n;
}

size_t GiveBody(char* to, size_t size, size_t count, void* data) noexcept {
  auto* const transfer = static_cast<Transfer*>(data);
  const std::string_view rest = transfer->request->body.substr(transfer->sent);
  const size_t n = std::min(rest.size(), size * count);
  std::memcpy(to, rest.data(), n);
  transfer->sent += n;
  return n;
}

int Rewind(void* data, curl_off_t offset, int origin) noexcept {
  auto* const transfer = static_cast<Transfer*>(data);
  if (origin != SEEK_SET || offset < 0 ||
      static_cast<size_t>(offset) > transfer->request->body.size())
    return CURL_SEEKFUNC_FAIL;
  transfer->sent = static_cast<size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

int Watch(void* data, curl_off_t, curl_off_t down, curl_off_t, curl_off_t up) noexcept {
  constexpr int64_t kMicrosPerMs{1000};
  auto* const transfer = static_cast<Transfer*>(data);
  const int64_t now = Clock::System().MonotonicMicros();
  if (down + up != transfer->moved) transfer->moved_at_micros = now;
  transfer->moved = down + up;
  const int64_t silent_ms = (now - transfer->moved_at_micros) / kMicrosPerMs;
  transfer->is_given_up = *transfer->goes_on != nullptr && !(*transfer->goes_on)(silent_ms);
  return transfer->is_given_up ? 1 : 0;
}

class HeaderList {
 public:
  ~HeaderList() { curl_slist_free_all(list_); }
  HeaderList() = default;
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  void Add(const std::string& line) {
    curl_slist* const longer = curl_slist_append(list_, line.c_str());
    CELLAR_ASSERT(longer != nullptr);
    list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_{nullptr};
};

}  // namespace

std::string_view HttpResponse::Header(std::string_view name) const {
  for (const auto& [own, value] : headers) {
    if (own == name) return value;
  }
  return {};
}

std::optional<int64_t> ParseHttpDate(std::string_view text) {
  const time_t seconds = curl_getdate(std::string(text).c_str(), nullptr);
  if (seconds == -1) return std::nullopt;
  return static_cast<int64_t>(seconds);
}

struct HttpClient::Handle {
  CURL* curl{nullptr};
  char error[CURL_ERROR_SIZE]{};
};

HttpClient::HttpClient(std::string region, std::string ca_file)
    : region_(std::move(region)), ca_file_(std::move(ca_file)), handle_(new Handle) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  handle_->curl = curl_easy_init();
  CELLAR_ASSERT(handle_->curl != nullptr);
}

HttpClient::~HttpClient() { curl_easy_cleanup(handle_->curl); }

// All options are set for each request: a reset forgets them and keeps the connections. libcurl
// signs the request with the body's hash, which is the caller's to compute.
Status HttpClient::Send(const HttpRequest& request, const HttpCredentials& credentials,
                        const std::function<bool(int64_t)>& goes_on, HttpResponse* response) {
  CURL* const curl = handle_->curl;
  *response = {};
  Transfer transfer{.curl = curl,
                    .request = &request,
                    .response = response,
                    .goes_on = &goes_on,
                    .moved_at_micros = Clock::System().MonotonicMicros()};
  curl_easy_reset(curl);  // connections stay open
  handle_->error[0] = '\0';
  const auto set = [curl](CURLoption option, auto value) {
    // Only of an option that this libcurl does not have, which the build would have told.
    const CURLcode code = curl_easy_setopt(curl, option, value);
    CELLAR_ASSERT(code == CURLE_OK);
  };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_USERAGENT, "Cellar");
  set(CURLOPT_ERRORBUFFER, handle_->error);
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(kConnectSeconds));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(kStallSeconds));
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_UPLOAD_BUFFERSIZE, kBufferBytes);
  if (!ca_file_.empty()) set(CURLOPT_CAINFO, ca_file_.c_str());
  set(CURLOPT_AWS_SIGV4, ("aws:amz:" + region_ + ":s3").c_str());
  set(CURLOPT_USERNAME, credentials.key_id.c_str());
  set(CURLOPT_PASSWORD, credentials.secret.c_str());
  HeaderList headers;
  headers.Add("x-amz-content-sha256: " + request.body_sha256);
  if (!credentials.session_token.empty())
    headers.Add("x-amz-security-token: " + credentials.session_token);
  for (const std::string& line : request.headers) headers.Add(line);
  set(CURLOPT_HTTPHEADER, headers.get());
  if (request.method == "HEAD") {
    set(CURLOPT_NOBODY, 1L);
  } else if (request.method == "PUT") {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_READFUNCTION, GiveBody);
    set(CURLOPT_READDATA, static_cast<void*>(&transfer));
    set(CURLOPT_SEEKFUNCTION, Rewind);
    set(CURLOPT_SEEKDATA, static_cast<void*>(&transfer));
  } else if (request.method == "POST") {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  } else if (request.method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  }
  set(CURLOPT_WRITEFUNCTION, TakeBody);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(CURLOPT_HEADERFUNCTION, TakeHeader);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, Watch);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  response->status = static_cast<int>(status);
  if (code == CURLE_OK) return Status::Ok();
  if (transfer.is_given_up) return Status::Error(ErrorCode::kIo, "given up");
  if (transfer.is_too_long)
    return Status::Error(ErrorCode::kIo, "the answer is longer than it may be");
  // Nobody who asks once more is shown another certificate, or finds the file of those he trusts.
  const bool is_for_good = code == CURLE_PEER_FAILED_VERIFICATION ||
                           code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM;
  return Status::Error(is_for_good ? ErrorCode::kErr : ErrorCode::kIo,
                       handle_->error[0] != '\0' ? std::string(handle_->error)
                                                 : std::string(curl_easy_strerror(code)));
}

}  // namespace cellar
