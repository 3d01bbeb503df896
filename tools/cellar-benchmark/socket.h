// Socket: a TCP connection of the load generator, and the few blocking calls of its preparations.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar::benchmark {

class Socket {
 public:
  Socket() = default;
  ~Socket();
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;

  // Connects with Nagle's algorithm off. kIo with the reason.
  static Result<Socket> Connect(const std::string& host, uint16_t port);

  int fd() const { return fd_; }
  Status SetNonBlocking();
  // Blocking: sends all of `bytes`. kIo if the connection breaks.
  Status SendAll(std::string_view bytes);
  // Blocking: sends `request` and waits for `replies` replies. Returns the text of the first error
  // reply, empty if there is none. kIo if the connection breaks.
  Result<std::string> Call(std::string_view request, uint64_t replies);

 private:
  explicit Socket(int fd) : fd_(fd) {}
  int fd_{-1};
};

}  // namespace cellar::benchmark
