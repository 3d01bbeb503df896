// What names a place for objects, and what it takes to get there.
#include "s3/s3_url.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

namespace cellar {
namespace s3_url_test {

TEST_CASE("s3:// places are a bucket and a prefix, and nothing that could be read in two ways",
          "[s3]") {
  const auto text = [](std::string_view url) {
    const Result<S3Url> parsed = ParseS3Url(url);
    return parsed.ok() ? parsed->Text() : std::string();
  };
  REQUIRE(text("s3://bucket") == "s3://bucket");
  REQUIRE(text("s3://bucket/") == "s3://bucket");
  REQUIRE(text("s3://my.bucket-2/a/B_c/d-1.x//") == "s3://my.bucket-2/a/B_c/d-1.x");
  for (const char* const wrong : {"",
                                  "s3://",
                                  "s3://ab",
                                  "s3:///a",
                                  "bucket/a",
                                  "s3://Bucket",
                                  "s3://buc ket",
                                  "s3://-bucket",
                                  "s3://bu..cket",
                                  "s3://bucket//a",
                                  "s3://bucket/a//b",
                                  "s3://bucket/./a",
                                  "s3://bucket/a/..",
                                  "s3://bucket/a?b",
                                  "s3://bucket/a%20b",
                                  "s3://bucket/a b",
                                  "s3://bucket/\xc3\xa4",
                                  "s3://bucket/a#b",
                                  "s3://bucket/a+b",
                                  "s3://bucket/a=b"}) {
    INFO(wrong);
    REQUIRE(!ParseS3Url(wrong).ok());
  }
  REQUIRE(!ParseS3Url("s3://bucket/" + std::string(513, 'a')).ok());
  REQUIRE(ParseS3Url("s3://bucket/" + std::string(512, 'a')).ok());
  REQUIRE(!ParseS3Url("s3://" + std::string(64, 'a')).ok());
}

TEST_CASE("Endpoints are a scheme, a host and a port", "[s3]") {
  const auto endpoint = [](const std::string& text) {
    const Result<S3Place> place = FindS3Place({.endpoint = text, .region = "eu-west-1"});
    return place.ok() ? place->endpoint : std::string();
  };
  REQUIRE(endpoint("http://127.0.0.1:9000/") == "http://127.0.0.1:9000");
  REQUIRE(endpoint("https://[::1]:9000") == "https://[::1]:9000");
  for (const char* const wrong :
       {"127.0.0.1:9000", "ftp://host", "http://", "http:///", "http://a/b", "http://user@host",
        "http://host?x", "http://ho st", "http://h\r\nx: y"}) {
    INFO(wrong);
    REQUIRE(!FindS3Place({.endpoint = wrong, .region = "eu-west-1"}).ok());
  }
  REQUIRE(!FindS3Place({.endpoint = "http://host", .region = "a:b"}).ok());
}

TEST_CASE("Credentials are those of the profile's section", "[s3]") {
  const std::string text =
      "# mine\n"
      "[default]\r\n"
      "aws_access_key_id = AKIA\r\n"
      "  aws_secret_access_key=se/cret+=\n"
      "region = nowhere\n"
      "[ other ]\n"
      "; three\n"
      "aws_access_key_id=B\n"
      "aws_secret_access_key=C\n"
      "aws_session_token=D=\n";
  const Result<HttpCredentials> first = ParseS3Credentials(text, "default");
  REQUIRE(first.ok());
  REQUIRE(*first == HttpCredentials{"AKIA", "se/cret+=", ""});
  const Result<HttpCredentials> second = ParseS3Credentials(text, "other");
  REQUIRE(second.ok());
  REQUIRE(*second == HttpCredentials{"B", "C", "D="});
  REQUIRE(ParseS3Credentials(text, "third").status().text() ==
          "section [third]: there is no aws_access_key_id");
  // Lines before any section.
  REQUIRE(ParseS3Credentials("aws_access_key_id=a\naws_secret_access_key=b", "default").ok());
  REQUIRE(ParseS3Credentials("aws_access_key_id=a", "default").status().text() ==
          "section [default]: there is no aws_secret_access_key");
  // A header cannot hold them.
  REQUIRE(!ParseS3Credentials("aws_access_key_id=a b\naws_secret_access_key=b", "default").ok());
  REQUIRE(!ParseS3Credentials("aws_access_key_id=a\naws_secret_access_key=\x01", "default").ok());
  for (size_t end = 0; end <= text.size(); ++end)
    (void)ParseS3Credentials(std::string_view(text).substr(0, end), "other");
}

}  // namespace s3_url_test
}  // namespace cellar
