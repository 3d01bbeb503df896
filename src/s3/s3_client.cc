// See s3_client.h.
#include "s3/s3_client.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "cellar/clock.h"
#include "s3/xml.h"

namespace cellar {
namespace {

constexpr size_t kServerTextBytesMax{200};
constexpr int64_t kMicrosPerSecond{1'000'000};

std::string Digest(const EVP_MD* kind, std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, kind, nullptr) != 1) return {};
  return {reinterpret_cast<const char*>(digest.data()), size};
}

// In a query, where only what S3 calls unreserved stays as it is.
std::string Encoded(std::string_view text) {
  constexpr std::string_view kCapitalDigits{"0123456789ABCDEF"};
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~';
    if (is_plain) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<uint8_t>(c);
    encoded += '%';
    encoded += kCapitalDigits[byte >> 4];
    encoded += kCapitalDigits[byte & 15];
  }
  return encoded;
}

// What a server says goes into logs and INFO: short, and in one line.
std::string Tame(std::string_view text) {
  std::string tame(text.substr(0, kServerTextBytesMax));
  std::replace_if(
      tame.begin(), tame.end(), [](char c) { return !IsPrintable(c); }, ' ');
  return tame;
}

Status TryingAgain(const std::string& text) {
  return Status::Error(ErrorCode::kIo, text + "; trying again");
}

bool MayHelpToRepeat(const HttpResponse& response) {
  constexpr std::array<std::string_view, 8> kCodes{
      "RequestTimeout", "BadDigest",   "IncompleteBody",   "XAmzContentSHA256Mismatch",
      "SlowDown",       "InvalidPart", "OperationAborted", "ConditionalRequestConflict"};
  if (response.status >= 500 && response.status != 501) return true;
  if (response.status == 429 || response.status == 408) return true;
  if (response.status != 400 && response.status != 409) return false;
  const std::string_view code = XmlElement(response.body, "Code");
  return std::find(kCodes.begin(), kCodes.end(), code) != kCodes.end();
}

}  // namespace

// Servers take a signature of fifteen minutes ago, as a rule.
std::string TellSkew(std::string_view date, int64_t now_unix_s) {
  constexpr int64_t kAgreeSeconds{60};
  constexpr int64_t kMinuteSeconds{60};
  const std::optional<int64_t> there = ParseHttpDate(date);
  if (!there) return {};
  const int64_t ahead = now_unix_s - *there;
  if (std::abs(ahead) <= kAgreeSeconds) return {};
  const int64_t minutes = std::abs(ahead) / kMinuteSeconds;
  return fmt::format(
      "; this machine's clock is {} minute{} {} the server's, which says {}: it "
      "refuses signatures of another time",
      minutes, minutes == 1 ? "" : "s", ahead > 0 ? "ahead of" : "behind", Tame(date));
}

std::string Sha256Hex(std::string_view bytes) {
  const std::string digest = Digest(EVP_sha256(), bytes);
  CELLAR_ASSERT(!digest.empty());
  return HexText(digest);
}

std::string Md5Bytes(std::string_view bytes) { return Digest(EVP_md5(), bytes); }

S3Client::S3Client(S3Url url, S3Place place, S3Settings settings, HttpCredentials credentials,
                   FileSystem& files)
    : url_(std::move(url)),
      place_(std::move(place)),
      settings_(std::move(settings)),
      text_(url_.Text()),
      credentials_(std::move(credentials)),
      files_(files),
      http_(place_.region, place_.ca_file) {}

std::string S3Client::KeyOf(const std::string& name) const {
  return url_.prefix + (url_.prefix.empty() ? "" : "/") + name;
}

std::string S3Client::UrlOf(const S3Call& call) const {
  std::string url = place_.endpoint + '/' + url_.bucket;
  if (!call.name.empty()) url += '/' + KeyOf(call.name);
  char before = '?';
  for (const auto& [name, value] : call.query) {
    url += before + name + '=' + Encoded(value);
    before = '&';
  }
  return url;
}

std::string S3Client::NameOf(const S3Call& call) const {
  return fmt::format("{}{}{}: {}", text_, call.name.empty() ? "" : "/", call.name, call.method);
}

Status S3Client::Refusal(const S3Call& call, const HttpResponse& response) const {
  std::string text = fmt::format("{}: {}", NameOf(call), response.status);
  const std::string_view code = XmlElement(response.body, "Code");
  const std::string_view message = XmlElement(response.body, "Message");
  if (!code.empty()) text += ' ' + Tame(XmlText(code));
  if (!message.empty()) text += ": " + Tame(XmlText(message));
  if (response.status >= 300 && response.status < 400) {
    const std::string_view region = response.Header("x-amz-bucket-region");
    text += "; the server refers to another place, ";
    text += region.empty() ? Tame(response.Header("location")) : "region " + Tame(region);
    text += ": set s3-region or s3-endpoint";
  } else if (code.empty() && response.status == 403) {
    text += " Forbidden";
  } else if (code.empty() && response.status == 404) {
    text += " Not Found";
  }
  text += TellSkew(response.Header("date"), Clock::System().WallMicros() / kMicrosPerSecond);
  return Status::Error(ErrorCode::kIo, std::move(text));
}

bool S3Client::Pause(uint32_t attempts) {
  constexpr int64_t kStepMs{50};
  const int64_t longest = std::min(kPauseMinMs << std::min(attempts - 1, 20U), kPauseMaxMs);
  // Several that were sent away at once shall not come back at once.
  int64_t left = longest / 2 + static_cast<int64_t>(chance_() % static_cast<uint64_t>(longest));
  for (; left > 0; left -= kStepMs) {
    if (!GoesOn(attempts)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(left, kStepMs)));
  }
  return GoesOn(attempts);
}

bool S3Client::ReadCredentialsAgain() {
  if (settings_.credentials_file.empty()) return false;
  Result<HttpCredentials> now = ReadS3Credentials(files_, settings_);
  if (!now.ok() || *now == credentials_) return false;
  credentials_ = *std::move(now);
  return true;
}

// OK for an answer that the caller gets.
Status S3Client::Judge(const S3Call& call, const HttpResponse& response) const {
  if (MayHelpToRepeat(response)) return Refusal(call, response);
  const bool is_good = response.status >= 200 && response.status < 300;
  if (!is_good || call.check == nullptr) return Status::Ok();
  Status checked = call.check(response);
  if (checked.ok()) return checked;
  return Status::Error(ErrorCode::kIo, NameOf(call) + ": " + checked.text());
}

Result<HttpResponse> S3Client::Call(const S3Call& call) {
  CELLAR_ASSERT(std::is_sorted(call.query.begin(), call.query.end()));
  HttpRequest request{.method = call.method,
                      .url = UrlOf(call),
                      .headers = call.headers,
                      .body = call.body,
                      .body_sha256 = Sha256Hex(call.body),
                      .to = call.to,
                      .to_bytes = call.to_bytes};
  const uint32_t attempts_max = call.attempts_max == 0 ? kAttemptsMax : call.attempts_max;
  bool has_new_credentials = false;
  Status failure = Status::Error(ErrorCode::kIo, NameOf(call) + ": given up");
  for (uint32_t attempts = 0; attempts < attempts_max;) {
    if (attempts > 0 && watcher_ != nullptr) watcher_->Failed(TryingAgain(failure.text()));
    bool told = false;
    if (attempts > 0 ? !Pause(attempts) : !GoesOn(0)) return failure;
    HttpResponse response;
    const auto goes_on = [&](int64_t silent_ms) {
      if (silent_ms >= kSilentMs && !told && watcher_ != nullptr) {
        told = true;
        watcher_->Failed(
            TryingAgain(fmt::format("{}: no answer for {} s", NameOf(call), kSilentMs / 1000)));
      }
      return GoesOn(attempts);
    };
    const Status sent = http_.Send(request, credentials_, goes_on, &response);
    if (sent.ok() && response.status == 403 && !has_new_credentials && ReadCredentialsAgain()) {
      has_new_credentials = true;
      continue;
    }
    const Status judged = sent.ok() ? Judge(call, response) : sent;
    if (judged.ok()) return response;
    failure =
        sent.ok() ? judged : Status::Error(ErrorCode::kIo, NameOf(call) + ": " + Tame(sent.text()));
    if (!sent.ok() && sent.code() == ErrorCode::kErr) return failure;
    ++attempts;
  }
  return Status::Error(ErrorCode::kIo,
                       fmt::format("{} ({} attempts)", failure.text(), attempts_max));
}

}  // namespace cellar
