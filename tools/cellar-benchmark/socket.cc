// See socket.h.
#include "socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "reply_skipper.h"

namespace cellar::benchmark {
namespace {

Status Failure(std::string_view what) {
  return Status::Error(ErrorCode::kIo, std::string(what) + ": " + std::strerror(errno));
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}
Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Result<Socket> Socket::Connect(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) return Status::Error(ErrorCode::kIo, host + ": " + gai_strerror(error));
  Socket result(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool connected =
      result.fd_ >= 0 && connect(result.fd_, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  if (!connected) return Failure("connecting to " + host + ":" + std::to_string(port));
  const int on = 1;
  setsockopt(result.fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return result;
}

Status Socket::SetNonBlocking() {
  const int flags = fcntl(fd_, F_GETFL);
  if (flags < 0 || fcntl(fd_, F_SETFL, flags | O_NONBLOCK) < 0) return Failure("fcntl");
  return Status::Ok();
}

Status Socket::SendAll(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return Failure("sending");
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return Status::Ok();
}

Result<std::string> Socket::Call(std::string_view request, uint64_t replies) {
  RETURN_IF_ERROR(SendAll(request));
  ReplySkipper skipper;
  char buffer[16 * 1024];
  while (replies > 0) {
    const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure("receiving");
    if (got == 0) return Status::Error(ErrorCode::kIo, "the server closed the connection");
    const uint64_t complete = skipper.Skip(buffer, static_cast<size_t>(got));
    replies -= std::min(replies, complete);
  }
  return skipper.first_error();
}

}  // namespace cellar::benchmark
