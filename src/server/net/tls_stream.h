// TlsStream: one client's TLS, between bytes of the network and bytes of the protocol.
//
//   network --Receive--> |           | --Read---> commands
//                        | TlsStream |
//   network <--output()- |           | <--Write-- replies
//
// It does no input nor output of its own: OpenSSL reads from the piece that Receive was given and
// writes into the output buffer, so there is one copy each way and no memory while nothing moves.
// Who uses it reads until there is nothing more after each Receive, and sends output() whenever it
// is not empty: the handshake, session tickets and alerts come out there too.
//
// It does not know libuv nor the protocol of commands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "resp/output_buffer.h"

struct ssl_st;
struct bio_st;
struct bio_method_st;

namespace cellar {

class TlsContext;

class TlsStream {
 public:
  explicit TlsStream(const TlsContext& context);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Bytes from the network. Borrowed until Read has returned 0.
  void Receive(std::string_view bytes);
  // The next bytes that the client meant; 0: no more until the next Receive.
  size_t Read(char* to, size_t bytes);
  // Encrypts into output(); false if that failed. REQUIRES: open().
  [[nodiscard]] bool Write(std::string_view bytes);
  // Says goodbye in output(), if there is anybody to say it to.
  void Shutdown();

  // The handshake is done: Write may be used.
  bool open() const { return open_; }
  // The client has said goodbye, or it failed: nothing more will be read.
  bool ended() const { return ended_; }
  // Why it failed; empty if it did not.
  const std::string& error() const { return error_; }
  // What is to be sent to the network.
  OutputBuffer& output() { return output_; }
  // What OpenSSL keeps for an open connection (measured), and the output.
  size_t memory_bytes() const { return kStateBytes + output_.capacity(); }

 private:
  static constexpr size_t kStateBytes{10 * 1024};

  static const bio_method_st* BioMethod();
  static int OnBioRead(bio_st* bio, char* to, size_t bytes, size_t* got) noexcept;
  static int OnBioWrite(bio_st* bio, const char* from, size_t bytes, size_t* taken) noexcept;
  static long OnBioControl(bio_st* bio, int command, long number, void* pointer) noexcept;
  void Fail();

  ssl_st* ssl_;
  std::string_view input_;
  OutputBuffer output_;
  std::string error_;
  bool speaks_first_{false};  // a client that has not said anything yet
  bool open_{false};
  bool ended_{false};
};

}  // namespace cellar
