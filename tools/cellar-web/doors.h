// Doors: who is connected, from where and since when, so that nobody keeps others out.
//
// A connection waits from its beginning, or the end of its last request, until the head and body of
// a request are whole. It is closed
//
//   - when it has waited kWaitMax, however many bytes came meanwhile
//   - when its address has kOfAddressMax others, and it is the one that has waited longest
//   - the same of all addresses together: kMax
//
// so a new connection always comes in, and a hostile one costs its own address first. Of IPv6 an
// address is its network of 64 bits, which is what one customer has.
//
// Any thread may call. Does not own descriptors: closing one is for libmicrohttpd, which tells
// Leave() before; what is closed here is only shut down.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

struct sockaddr;

namespace cellar::web {

class Doors {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kOfAddressMax{32};
  static constexpr size_t kMax{256};
  static constexpr std::chrono::seconds kWaitMax{10};

  // What counts as one address.
  static std::string NameOf(const sockaddr* address);

  void Enter(int descriptor, const std::string& address, Clock::time_point now);
  void Leave(int descriptor);
  // Its request is whole, and being answered; or it has been.
  void SetBusy(int descriptor);
  void SetWaiting(int descriptor, Clock::time_point now);
  // Closes what has waited too long. To be called now and then.
  void Sweep(Clock::time_point now);

 private:
  struct Guest {
    std::string address;
    Clock::time_point since;
    bool is_busy{false};
    bool is_shut{false};
  };
  // The one that has waited longest, of `address` or of all if it is empty; those that are answered
  // only if there is no other.
  void ShutOldest(const std::string& address);
  void Shut(int descriptor, Guest* guest);

  std::mutex mutex_;
  std::map<int, Guest> guests_;
  std::map<std::string, size_t> of_address_;  // not shut
  size_t open_{0};                            // not shut
};

}  // namespace cellar::web
