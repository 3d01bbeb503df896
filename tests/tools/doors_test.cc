// cellar-web's doors: who is closed when others come, and who is not.
#include "cellar-web/doors.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace doors_test {
namespace {

using cellar::web::Doors;

// A connection, of which the doors see one end.
struct Guest {
  Guest() { REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0); }
  ~Guest() {
    close(ends[0]);
    close(ends[1]);
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;
  bool is_shut() const {
    char byte = 0;
    return recv(ends[1], &byte, 1, MSG_DONTWAIT) == 0;
  }
  int ends[2]{};
};

std::string NameOf(const char* text) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1) {
    return Doors::NameOf(reinterpret_cast<const sockaddr*>(&v6));
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  REQUIRE(inet_pton(AF_INET, text, &v4.sin_addr) == 1);
  return Doors::NameOf(reinterpret_cast<const sockaddr*>(&v4));
}

TEST_CASE("an address of IPv6 is its network, one of IPv4 the same in both", "[web]") {
  CHECK(NameOf("2001:db8::1") == NameOf("2001:db8::ffff:1"));
  CHECK(NameOf("2001:db8::1") != NameOf("2001:db8:0:1::1"));
  CHECK(NameOf("::ffff:10.0.0.1") == NameOf("10.0.0.1"));
  CHECK(NameOf("10.0.0.1") != NameOf("10.0.0.2"));
  CHECK(Doors::NameOf(nullptr).empty());
}

TEST_CASE("one address closes its own oldest, and not those that are answered", "[web]") {
  Doors doors;
  Doors::Clock::time_point now{};
  Guest other;
  doors.Enter(other.ends[0], "b", now);
  std::vector<Guest> guests(Doors::kOfAddressMax + 5);
  for (size_t i = 0; i < guests.size(); ++i) {
    now += std::chrono::milliseconds(1);
    doors.Enter(guests[i].ends[0], "a", now);
    if (i == 0) doors.SetBusy(guests[0].ends[0]);
  }
  CHECK(!other.is_shut());
  for (size_t i = 0; i < guests.size(); ++i) {
    INFO(i);
    CHECK(guests[i].is_shut() == (i >= 1 && i <= 5));
  }
  for (Guest& guest : guests) doors.Leave(guest.ends[0]);
  doors.Leave(other.ends[0]);
}

TEST_CASE("all addresses together have a bound", "[web]") {
  Doors doors;
  Doors::Clock::time_point now{};
  std::vector<Guest> guests(Doors::kMax + 20);
  for (size_t i = 0; i < guests.size(); ++i) {
    now += std::chrono::milliseconds(1);
    doors.Enter(guests[i].ends[0], std::to_string(i), now);
  }
  for (size_t i = 0; i < guests.size(); ++i) CHECK(guests[i].is_shut() == (i < 20));
}

TEST_CASE("who has waited too long is closed, who is answered or has just asked is not", "[web]") {
  Doors doors;
  const Doors::Clock::time_point begin{};
  Guest slow;
  Guest busy;
  Guest keeps;
  for (Guest* guest : {&slow, &busy, &keeps}) doors.Enter(guest->ends[0], "a", begin);
  doors.SetBusy(busy.ends[0]);
  doors.SetBusy(keeps.ends[0]);
  doors.SetWaiting(keeps.ends[0], begin + Doors::kWaitMax);
  doors.Sweep(begin + Doors::kWaitMax);
  CHECK(!slow.is_shut());
  doors.Sweep(begin + Doors::kWaitMax + std::chrono::milliseconds(1));
  CHECK(slow.is_shut());
  CHECK(!busy.is_shut());
  CHECK(!keeps.is_shut());
  doors.SetWaiting(slow.ends[0], begin);  // nothing more happens to it
  doors.Sweep(begin + 3 * Doors::kWaitMax);
  CHECK(keeps.is_shut());
}

}  // namespace
}  // namespace doors_test
