// s3://bucket/prefix, and what it takes to get there: settings, the environment, credentials.
//
//   endpoint      the setting, else AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, else AWS' own of the
//                 region; buckets are named in the path
//   region        the setting, else AWS_REGION, AWS_DEFAULT_REGION, else us-east-1
//   credentials   the file of the setting, else AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and
//                 AWS_SESSION_TOKEN
//   certificates  AWS_CA_BUNDLE, else the machine's
//
// The file has the form of ~/.aws/credentials, of which the section of AWS_PROFILE counts, or
// [default]; lines before any section do too:
//
//   [default]
//   aws_access_key_id = ...
//   aws_secret_access_key = ...
//   aws_session_token = ...        ; may be missing
#pragma once

#include <string>
#include <string_view>

#include "base/os/file.h"
#include "cellar/status.h"
#include "s3/http.h"

namespace cellar {

// Empty: see above.
struct S3Settings {
  std::string endpoint{};
  std::string region{};
  std::string credentials_file{};
};

struct S3Url {
  std::string bucket;
  std::string prefix;  // without slashes at its ends; may be empty
  std::string Text() const;
};

// ERR if it is none. Buckets as S3 names them; prefixes of [A-Za-z0-9._-] between slashes, none of
// them "." or "..", which servers and libcurl read in one way only.
Result<S3Url> ParseS3Url(std::string_view text);

// Where requests go.
struct S3Place {
  std::string endpoint;  // "https://host:port", without a slash at the end
  std::string region;
  std::string ca_file;  // may be empty
};
// ERR for an endpoint that is no URL of http or https, or has a path; for a region that is no word.
Result<S3Place> FindS3Place(const S3Settings& settings);

// ERR, naming what is missing, if there are none; kIo for a file that cannot be read.
Result<HttpCredentials> ReadS3Credentials(FileSystem& files, const S3Settings& settings);
// Of the text of a file.
Result<HttpCredentials> ParseS3Credentials(std::string_view text, std::string_view profile);

}  // namespace cellar
