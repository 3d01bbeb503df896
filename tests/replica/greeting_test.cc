// What a node that is greeted says of itself, and what is made of it, whoever says it.
#include "replica/greeting.h"

#include <catch2/catch.hpp>
#include <string>

#include "replica/links/identity_file.h"
#include "replica/replication.h"

namespace cellar::greeting_test {
namespace {

// What a greeting makes of a line; nothing, if it refuses.
PeerGreeting Taken(const std::string& line) {
  PeerGreeting greeting;
  (void)greeting.Begin(ReplicationOptions{}, Identity{}, "command", 3);
  std::string rest;
  const Result<bool> taken = greeting.Take("+" + line + "\r\nrest", &rest);
  REQUIRE(taken.ok());
  REQUIRE(*taken);
  CHECK(rest == "rest");
  return greeting;
}

std::string Hex(const std::string& bytes) {
  std::string digits;
  for (const char c : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    digits += kDigits[static_cast<uint8_t>(c) >> 4];
    digits += kDigits[static_cast<uint8_t>(c) & 15];
  }
  return digits;
}

}  // namespace

TEST_CASE("Who is greeted says what it knows and where it is", "[replica][greeting]") {
  const Neighbour neighbour{0xfedcba9876543210, "/run/cellar 1/\xc3\xa4.sock"};
  const PeerGreeting all = Taken(AcceptanceText("00000000000000aa", 0xbb, 3, neighbour));
  CHECK(all.node() == 0xbb);
  CHECK(all.features() == 3);
  CHECK(all.neighbour().machine == neighbour.machine);
  CHECK(all.neighbour().socket == neighbour.socket);

  const PeerGreeting plain = Taken(AcceptanceText("00000000000000aa", 0xbb, 1, {}));
  CHECK(plain.node() == 0xbb);
  CHECK(plain.features() == 1);
  CHECK(plain.neighbour().socket.empty());

  // As versions before features say it, and as it is said to them.
  CHECK(AcceptanceText("00000000000000aa", 0xbb, 0, neighbour) ==
        "PEER 1 00000000000000aa 00000000000000bb");
  const PeerGreeting old = Taken("PEER 1 00000000000000aa 00000000000000bb");
  CHECK(old.node() == 0xbb);
  CHECK(old.features() == 0);
}

TEST_CASE("What is no path of a socket is none", "[replica][greeting]") {
  const auto socket = [](const std::string& digits) {
    return Taken("PEER 1 aa 3 12 " + digits + " bb").neighbour().socket;
  };
  CHECK(socket(Hex("/a")) == "/a");
  CHECK(socket(Hex("/" + std::string(106, 'x'))).size() == 107);
  CHECK(socket(Hex("/" + std::string(107, 'x'))).empty());
  CHECK(socket(Hex("a/b")).empty());
  CHECK(socket(Hex(std::string("/a\0b", 4))).empty());
  CHECK(socket("").empty());
  CHECK(socket("zz").empty());
  CHECK(socket("2").empty());
}

TEST_CASE("A host is no path", "[replica][greeting]") {
  CHECK(IsPlainHost("10.0.0.7"));
  CHECK(IsPlainHost("::1"));
  CHECK_FALSE(IsPlainHost("/run/docker.sock"));
  CHECK_FALSE(IsPlainHost("a/b"));
}

}  // namespace cellar::greeting_test
