// See s3_store.h.
#include "s3/s3_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/number.h"
#include "s3/s3_upload.h"
#include "s3/xml.h"

namespace cellar {
namespace {

constexpr size_t kPagesMax{10'000};  // of a thousand names each
// What a list may take in memory: a million names of an archive. Pages may be full of names as
// long as they come, and a server may begin again from the front for ever.
constexpr size_t kListBytesMax{256 << 20};
constexpr size_t kReadBytesMax{16 << 20};  // of one request
constexpr size_t kListPageNamesMax{1000};

Status Wrong(std::string text) { return Status::Error(ErrorCode::kIo, std::move(text)); }

bool IsGood(const HttpResponse& response) {
  return response.status >= 200 && response.status < 300;
}

// An answer that is the document it should be.
std::function<Status(const HttpResponse&)> Holds(std::string_view element) {
  return [element](const HttpResponse& response) {
    return response.body.find('<' + std::string(element)) != std::string::npos
               ? Status::Ok()
               : Wrong(fmt::format("the answer is no {}", element));
  };
}

}  // namespace

// Page by page until the server says that there is no more. Pages without end, or an object without
// a size, are errors: a list with a hole in it would look like a store that has lost files.
Result<std::vector<ObjectInfo>> S3Store::List() {
  const std::string prefix = client_->KeyOf("");
  std::vector<ObjectInfo> found;
  size_t bytes = 0;
  std::string token;
  for (size_t page = 0; page < kPagesMax; ++page) {
    S3Call call{.method = "GET", .check = Holds("ListBucketResult")};
    if (!token.empty()) call.query.emplace_back("continuation-token", token);
    call.query.emplace_back("delimiter", "/");
    call.query.emplace_back("list-type", "2");
    call.query.emplace_back("max-keys", std::to_string(kListPageNamesMax));
    call.query.emplace_back("prefix", prefix);
    ASSIGN_OR_RETURN(const HttpResponse response, client_->Call(call));
    if (!IsGood(response)) return client_->Refusal(call, response);
    for (const std::string_view element : XmlElements(response.body, "Contents")) {
      const std::string key = XmlText(XmlElement(element, "Key"));
      ObjectInfo object{.name = key.starts_with(prefix) ? key.substr(prefix.size()) : "",
                        .bytes = 0,
                        .version = XmlText(XmlElement(element, "ETag"))};
      if (ParseUint64(XmlElement(element, "Size"), &object.bytes) != NumberError::kNone)
        return Wrong(client_->url() + ": a list names an object without its size");
      if (object.name.empty()) continue;
      bytes += sizeof(object) + object.name.size() + object.version.size();
      found.push_back(std::move(object));
    }
    if (bytes > kListBytesMax) break;
    if (XmlElement(response.body, "IsTruncated") != "true") {
      std::sort(found.begin(), found.end(),
                [](const ObjectInfo& a, const ObjectInfo& b) { return a.name < b.name; });
      return found;
    }
    std::string next = XmlText(XmlElement(response.body, "NextContinuationToken"));
    if (next.empty() || next == token) break;
    token = std::move(next);
  }
  return Wrong(client_->url() +
               ": a list of objects is longer than can be: it has no end, or too many names");
}

Result<std::optional<ObjectInfo>> S3Store::Find(const std::string& name) {
  const S3Call call{.method = "HEAD", .name = name};
  ASSIGN_OR_RETURN(const HttpResponse response, client_->Call(call));
  if (response.status == 404) return std::optional<ObjectInfo>{};
  if (!IsGood(response)) return client_->Refusal(call, response);
  ObjectInfo object{.name = name, .bytes = 0, .version = std::string(response.Header("etag"))};
  if (ParseUint64(response.Header("content-length"), &object.bytes) != NumberError::kNone)
    return Wrong(client_->url() + '/' + name + ": HEAD: the server does not say how long it is");
  return std::optional(std::move(object));
}

Status S3Store::Read(const ObjectInfo& object, uint64_t offset, size_t size, char* to) {
  while (size > 0) {
    const size_t n = std::min(size, kReadBytesMax);
    const uint64_t last = offset + n - 1;
    S3Call call{.method = "GET",
                .name = object.name,
                .headers = {fmt::format("Range: bytes={}-{}", offset, last)},
                .to = to,
                .to_bytes = n};
    if (!object.version.empty()) call.headers.push_back("If-Match: " + object.version);
    call.check = [&object, offset, last, n](const HttpResponse& response) {
      const std::string wanted = fmt::format("bytes {}-{}/{}", offset, last, object.bytes);
      // Without the header it is the whole.
      const bool is_range = response.status == 206 && response.Header("content-range") == wanted;
      const bool is_whole = response.status == 200 && offset == 0 && n == object.bytes;
      if (!is_range && !is_whole)
        return Wrong(fmt::format("the server sends something else than {}", wanted));
      return response.received == n ? Status::Ok() : Wrong("the answer ends too early");
    };
    ASSIGN_OR_RETURN(const HttpResponse response, client_->Call(call));
    if (response.status == 412)
      return Wrong(client_->url() + '/' + object.name + ": it has been replaced meanwhile");
    if (!IsGood(response)) return client_->Refusal(call, response);
    to += n;
    offset += n;
    size -= n;
  }
  return Status::Ok();
}

std::unique_ptr<ObjectUpload> S3Store::BeginUpload(const std::string& name, uint64_t bytes) {
  return std::make_unique<S3Upload>(*client_, *this, name, bytes);
}

Status S3Store::Remove(const std::string& name) {
  const S3Call call{.method = "DELETE", .name = name};
  ASSIGN_OR_RETURN(const HttpResponse response, client_->Call(call));
  return IsGood(response) || response.status == 404 ? Status::Ok()
                                                    : client_->Refusal(call, response);
}

// Those of names that begin with `name`.
Result<std::vector<S3Store::Unfinished>> S3Store::FindUploads(const std::string& name) {
  const std::string prefix = client_->KeyOf("");
  std::vector<Unfinished> found;
  size_t bytes = 0;
  std::string key_marker;
  std::string id_marker;
  for (size_t page = 0; page < kPagesMax; ++page) {
    S3Call call{.method = "GET", .query = {{"delimiter", "/"}}, .check = {}};
    if (!key_marker.empty()) call.query.emplace_back("key-marker", key_marker);
    call.query.emplace_back("prefix", prefix + name);
    if (!id_marker.empty()) call.query.emplace_back("upload-id-marker", id_marker);
    call.query.emplace_back("uploads", "");
    ASSIGN_OR_RETURN(const HttpResponse response, client_->Call(call));
    // Not every server can tell, and not every user may ask.
    if (!IsGood(response)) return found;
    for (const std::string_view element : XmlElements(response.body, "Upload")) {
      const std::string key = XmlText(XmlElement(element, "Key"));
      if (key.size() <= prefix.size() || !key.starts_with(prefix)) continue;
      found.push_back({key.substr(prefix.size()), XmlText(XmlElement(element, "UploadId"))});
      bytes += sizeof(Unfinished) + found.back().name.size() + found.back().id.size();
    }
    if (bytes > kListBytesMax) break;
    if (XmlElement(response.body, "IsTruncated") != "true") return found;
    std::string next_key = XmlText(XmlElement(response.body, "NextKeyMarker"));
    std::string next_id = XmlText(XmlElement(response.body, "NextUploadIdMarker"));
    if (next_key.empty() || (next_key == key_marker && next_id == id_marker)) break;
    key_marker = std::move(next_key);
    id_marker = std::move(next_id);
  }
  return Wrong(client_->url() +
               ": a list of uploads is longer than can be: it has no end, or too many names");
}

Result<std::vector<std::string>> S3Store::ListUploads() {
  ASSIGN_OR_RETURN(const std::vector<Unfinished> found, FindUploads(""));
  std::vector<std::string> names;
  for (const Unfinished& upload : found) {
    if (names.empty() || names.back() != upload.name) names.push_back(upload.name);
  }
  return names;
}

Status S3Store::RemoveUploads(const std::string& name) {
  ASSIGN_OR_RETURN(const std::vector<Unfinished> found, FindUploads(name));
  for (const Unfinished& upload : found) {
    if (upload.name != name) continue;
    const S3Call call{.method = "DELETE", .name = name, .query = {{"uploadId", upload.id}}};
    ASSIGN_OR_RETURN(const HttpResponse response, client_->Call(call));
    if (!IsGood(response) && response.status != 404) return client_->Refusal(call, response);
  }
  return Status::Ok();
}

ObjectStoreOpener S3Opener(S3Settings settings, FileSystem& files) {
  return [settings = std::move(settings),
          &files](const std::string& text) -> Result<std::unique_ptr<ObjectStore>> {
    ASSIGN_OR_RETURN(S3Url url, ParseS3Url(text));
    ASSIGN_OR_RETURN(S3Place place, FindS3Place(settings));
    ASSIGN_OR_RETURN(HttpCredentials credentials, ReadS3Credentials(files, settings));
    auto client = std::make_unique<S3Client>(std::move(url), std::move(place), settings,
                                             std::move(credentials), files);
    return std::unique_ptr<ObjectStore>(std::make_unique<S3Store>(std::move(client)));
  };
}

}  // namespace cellar
