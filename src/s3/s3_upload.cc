// See s3_upload.h.
#include "s3/s3_upload.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "s3/s3_store.h"
#include "s3/xml.h"

namespace cellar {
namespace {

// Of an object whose length nobody knows: from that part on they are larger.
constexpr uint64_t kSmallPartsMax{5'000};
constexpr size_t kLargePartBytes{128 << 20};
constexpr size_t kMegabyte{1 << 20};

Status Wrong(std::string text) { return Status::Error(ErrorCode::kIo, std::move(text)); }

bool IsGood(const HttpResponse& response) {
  return response.status >= 200 && response.status < 300;
}

std::string Base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                reinterpret_cast<const unsigned char*>(bytes.data()),
                                static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(n));
  return text;
}

// Where an ETag is the MD5 of what is stored it must be that of what was sent. It is none where the
// server encrypts with a key of its own keeping.
Status CheckStored(const HttpResponse& response, const std::string& md5) {
  std::string_view tag = response.Header("etag");
  if (tag.empty()) return Wrong("the answer has no ETag");
  if (tag.starts_with('"')) tag.remove_prefix(1);
  if (tag.ends_with('"')) tag.remove_suffix(1);
  const bool is_encrypted =
      response.Header("x-amz-server-side-encryption").starts_with("aws:kms") ||
      !response.Header("x-amz-server-side-encryption-customer-algorithm").empty();
  const bool is_md5 = tag.size() == 2 * md5.size() &&
                      tag.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  if (is_encrypted || md5.empty() || !is_md5 || EqualsIgnoreCase(tag, HexText(md5)))
    return Status::Ok();
  return Wrong(fmt::format("the server has stored other bytes: their hash (ETag) is {}, not {}",
                           tag, HexText(md5)));
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

}  // namespace

S3Upload::S3Upload(S3Client& client, ObjectStore& store, std::string name, uint64_t bytes)
    : client_(client), store_(store), name_(std::move(name)), bytes_expected_(bytes) {
  buffer_.reserve(bytes == 0 ? 0 : std::min<uint64_t>(bytes, PartBytes()));
}

S3Upload::~S3Upload() {
  if (is_finished_ || upload_id_.empty()) return;
  // What this cannot do is done when the place is opened next.
  (void)client_.Call({.method = "DELETE",
                      .name = name_,
                      .query = {{"uploadId", upload_id_}},
                      .attempts_max = 1,
                      .check = {}});
}

size_t S3Upload::PartBytes() const {
  if (bytes_expected_ == 0)
    return parts_.size() < kSmallPartsMax ? S3Store::kPartBytes : kLargePartBytes;
  const uint64_t least = bytes_expected_ / (S3Store::kPartsMax - 1) + 1;
  return std::max<size_t>(S3Store::kPartBytes, (least + kMegabyte - 1) / kMegabyte * kMegabyte);
}

Status S3Upload::Begin() {
  const S3Call call{
      .method = "POST", .name = name_, .query = {{"uploads", ""}}, .check = [](const auto& answer) {
        return XmlElement(answer.body, "UploadId").empty() ? Wrong("the answer has no UploadId")
                                                           : Status::Ok();
      }};
  ASSIGN_OR_RETURN(const HttpResponse response, client_.Call(call));
  if (!IsGood(response)) return client_.Refusal(call, response);
  upload_id_ = XmlText(XmlElement(response.body, "UploadId"));
  return Status::Ok();
}

Status S3Upload::SendPart() {
  if (upload_id_.empty()) RETURN_IF_ERROR(Begin());
  if (parts_.size() == S3Store::kPartsMax)
    return Wrong(fmt::format("{}/{}: it is larger than an object can be", client_.url(), name_));
  const std::string md5 = Md5Bytes(buffer_);
  S3Call call{
      .method = "PUT",
      .name = name_,
      .query = {{"partNumber", std::to_string(parts_.size() + 1)}, {"uploadId", upload_id_}},
      .body = buffer_,
      .check = [&md5](const auto& answer) { return CheckStored(answer, md5); }};
  if (!md5.empty()) call.headers.push_back("Content-MD5: " + Base64(md5));
  ASSIGN_OR_RETURN(const HttpResponse response, client_.Call(call));
  if (!IsGood(response)) return client_.Refusal(call, response);
  parts_.emplace_back(response.Header("etag"));
  buffer_.clear();
  return Status::Ok();
}

Status S3Upload::Append(std::string_view bytes) {
  CELLAR_ASSERT(!is_finished_);
  while (!bytes.empty()) {
    const size_t part_bytes = PartBytes();
    if (buffer_.size() >= part_bytes) {
      RETURN_IF_ERROR(SendPart());
      continue;
    }
    const size_t n = std::min(bytes.size(), part_bytes - buffer_.size());
    buffer_.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    bytes_ += n;
  }
  return Status::Ok();
}

Status S3Upload::PutWhole() {
  const std::string md5 = Md5Bytes(buffer_);
  S3Call call{.method = "PUT", .name = name_, .body = buffer_, .check = [&md5](const auto& answer) {
                return CheckStored(answer, md5);
              }};
  if (!md5.empty()) call.headers.push_back("Content-MD5: " + Base64(md5));
  ASSIGN_OR_RETURN(const HttpResponse response, client_.Call(call));
  return IsGood(response) ? Status::Ok() : client_.Refusal(call, response);
}

Status S3Upload::Complete() {
  std::string body = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (size_t i = 0; i < parts_.size(); ++i)
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1,
                        Escaped(parts_[i]));
  body += "</CompleteMultipartUpload>";
  const S3Call call{.method = "POST",
                    .name = name_,
                    .query = {{"uploadId", upload_id_}},
                    .headers = {"Content-Type: application/xml"},
                    .body = body,
                    // The server may find out that it cannot after it has said 200.
                    .check = [](const auto& answer) {
                      return answer.body.find("<CompleteMultipartUploadResult") != std::string::npos
                                 ? Status::Ok()
                                 : Wrong("the parts did not become an object");
                    }};
  ASSIGN_OR_RETURN(const HttpResponse response, client_.Call(call));
  if (!IsGood(response) && response.status != 404) return client_.Refusal(call, response);
  ASSIGN_OR_RETURN(const std::optional<ObjectInfo> object, store_.Find(name_));
  if (object && object->bytes == bytes_) return Status::Ok();
  if (!IsGood(response)) return client_.Refusal(call, response);
  return Wrong(fmt::format("{}/{}: {} bytes were sent, and {} are there", client_.url(), name_,
                           bytes_, object ? std::to_string(object->bytes) : "none"));
}

Status S3Upload::Finish() {
  CELLAR_ASSERT(!is_finished_);
  if (upload_id_.empty() && parts_.empty()) {
    RETURN_IF_ERROR(PutWhole());
  } else {
    if (!buffer_.empty()) RETURN_IF_ERROR(SendPart());
    RETURN_IF_ERROR(Complete());
  }
  is_finished_ = true;
  return Status::Ok();
}

}  // namespace cellar
