// See s3_url.h.
#include "s3/s3_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/os/object_store.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr size_t kPrefixBytesMax{512};
constexpr size_t kCredentialBytesMax{8192};
constexpr std::string_view kPrefixChars{
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"};
constexpr std::string_view kBucketChars{"abcdefghijklmnopqrstuvwxyz0123456789.-"};

Status Refused(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

std::string Environment(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return {};
}

bool HasOnly(std::string_view text, std::string_view chars) {
  return text.find_first_not_of(chars) == std::string_view::npos;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks{" \t\r"};
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

// Headers are made of it.
bool IsCredential(std::string_view text) {
  return text.size() <= kCredentialBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

Result<HttpCredentials> Checked(HttpCredentials credentials, const std::string& from) {
  if (credentials.key_id.empty() || credentials.secret.empty()) {
    return Refused(
        fmt::format("{}: there is no {}", from,
                    credentials.key_id.empty() ? "aws_access_key_id" : "aws_secret_access_key"));
  }
  if (!IsCredential(credentials.key_id) || !IsCredential(credentials.secret) ||
      !IsCredential(credentials.session_token))
    return Refused(from + ": a credential holds what none can hold");
  return credentials;
}

}  // namespace

std::string S3Url::Text() const {
  return std::string(kObjectScheme) + bucket + (prefix.empty() ? "" : "/") + prefix;
}

Result<S3Url> ParseS3Url(std::string_view text) {
  const auto refused = [text](std::string_view why) {
    return Refused(fmt::format("{} is no place for objects: {}", Quote(text), why));
  };
  if (!IsObjectPath(text)) return refused("it does not begin with s3://");
  std::string_view rest = text.substr(kObjectScheme.size());
  while (rest.ends_with('/')) rest.remove_suffix(1);
  const size_t slash = std::min(rest.find('/'), rest.size());
  S3Url url{.bucket = std::string(rest.substr(0, slash)), .prefix = {}};
  if (url.bucket.size() < 3 || url.bucket.size() > 63 || !HasOnly(url.bucket, kBucketChars) ||
      url.bucket.front() == '.' || url.bucket.front() == '-' ||
      url.bucket.find("..") != std::string::npos)
    return refused("a bucket's name has 3 to 63 of a-z, 0-9, '.' and '-'");
  if (slash == rest.size()) return url;
  url.prefix = rest.substr(slash + 1);
  if (url.prefix.size() > kPrefixBytesMax) return refused("the prefix is too long");
  for (size_t at = 0; at <= url.prefix.size();) {
    const size_t end = std::min(url.prefix.find('/', at), url.prefix.size());
    const std::string part = url.prefix.substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || !HasOnly(part, kPrefixChars))
      return refused("a prefix has A-Z, a-z, 0-9, '.', '_' and '-' between single slashes");
    at = end + 1;
  }
  return url;
}

Result<S3Place> FindS3Place(const S3Settings& settings) {
  S3Place place{.endpoint = settings.endpoint,
                .region = settings.region,
                .ca_file = Environment({"AWS_CA_BUNDLE"})};
  if (place.region.empty()) place.region = Environment({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (place.region.empty()) place.region = "us-east-1";
  if (place.region.size() > 64 || !HasOnly(place.region, kPrefixChars))
    return Refused(Quote(place.region) + " is no region");
  if (place.endpoint.empty())
    place.endpoint = Environment({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (place.endpoint.empty()) place.endpoint = "https://s3." + place.region + ".amazonaws.com";
  while (place.endpoint.ends_with('/')) place.endpoint.pop_back();
  const std::string& endpoint = place.endpoint;
  const size_t host = endpoint.starts_with("https://")  ? 8
                      : endpoint.starts_with("http://") ? 7
                                                        : std::string::npos;
  if (host == std::string::npos || host == endpoint.size() ||
      endpoint.find_first_of("/?#@ \\\"'", host) != std::string::npos || !IsCredential(endpoint))
    return Refused(Quote(endpoint) +
                   " is no endpoint: http:// or https://, a host, and a port if need be");
  return place;
}

Result<HttpCredentials> ParseS3Credentials(std::string_view text, std::string_view profile) {
  HttpCredentials credentials;
  bool counts = true;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = Trimmed(text.substr(at, end - at));
    at = end + 1;
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      counts = Trimmed(line.substr(1, std::min(line.find(']'), line.size()) - 1)) == profile;
      continue;
    }
    const size_t equals = line.find('=');
    if (!counts || equals == std::string_view::npos) continue;
    const std::string_view name = Trimmed(line.substr(0, equals));
    const std::string value(Trimmed(line.substr(equals + 1)));
    if (name == "aws_access_key_id") credentials.key_id = value;
    if (name == "aws_secret_access_key") credentials.secret = value;
    if (name == "aws_session_token") credentials.session_token = value;
  }
  return Checked(std::move(credentials), fmt::format("section [{}]", profile));
}

Result<HttpCredentials> ReadS3Credentials(FileSystem& files, const S3Settings& settings) {
  constexpr uint64_t kFileBytesMax{1 << 20};
  if (settings.credentials_file.empty()) {
    HttpCredentials credentials{.key_id = Environment({"AWS_ACCESS_KEY_ID"}),
                                .secret = Environment({"AWS_SECRET_ACCESS_KEY"}),
                                .session_token = Environment({"AWS_SESSION_TOKEN"})};
    if (credentials.key_id.empty() || credentials.secret.empty()) {
      return Refused(
          "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
          "or s3-credentials-file");
    }
    return Checked(std::move(credentials), "the environment");
  }
  const std::string& path = settings.credentials_file;
  ASSIGN_OR_RETURN(auto file, files.OpenForReading(path));
  ASSIGN_OR_RETURN(const uint64_t bytes, file->Size());
  if (bytes > kFileBytesMax) return Refused(path + " is too large for a file of credentials");
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path));
  std::string profile = Environment({"AWS_PROFILE"});
  if (profile.empty()) profile = "default";
  Result<HttpCredentials> credentials = ParseS3Credentials(text, profile);
  if (!credentials.ok())
    return Status::Error(credentials.status().code(), path + ": " + credentials.status().text());
  return credentials;
}

}  // namespace cellar
