// What an I/O thread and the server's thread hand each other: a block each time, with what happened
// to many sockets in one turn. See io_thread.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "resp/output_buffer.h"

namespace cellar {

class Connection;
class IoSocket;

// From an I/O thread: what clients have sent, decrypted.
struct InputBlock {
  enum class Kind : uint8_t {
    kBytes,
    kStopped,    // behind a long read: no more is read before kRead
    kEnd,        // the client sends no more
    kBroken,     // nothing goes either way any more; the server closes it
    kTlsFailed,  // kBroken, by TLS; `bytes` says why
    kSent,       // all that it was given to send has been sent: asked for by TellWhenSent
    kClosed,     // the connection's last entry
  };
  struct Entry {
    Connection* connection;  // the server's: an I/O thread only passes it on
    Kind kind;
    std::string_view bytes;  // into the block
  };
  // From so many bytes on a read is long. A client that sends without end has one of them waiting
  // for the server, beside those of the others, and not all blocks.
  static constexpr size_t kLongRead{16 * 1024};
  // Room for a read, and behind it for what other sockets send in the same turn, as much as the
  // core's nearest caches hold (turn_input.h).
  static constexpr size_t kReadBytes{64 * 1024};
  static constexpr size_t kBytes{80 * 1024};

  size_t room() const { return kBytes - used; }

  std::unique_ptr<char[]> bytes{new char[kBytes]};
  size_t used{0};
  std::vector<Entry> entries;
};

// To an I/O thread: what the server wants of its sockets, in order.
struct OutputBlock {
  enum class Kind : uint8_t {
    kAdopt,      // a new socket
    kSend,       // `size` bytes of `bytes`, from `begin` on
    kSendLarge,  // all of `large[begin]`
    kRead,       // from now on, what it sends
    kStopReading,
    kClose,
  };
  struct Entry {
    IoSocket* socket;
    Kind kind;
    size_t begin{0};
    size_t size{0};
  };

  OutputBuffer bytes;
  std::vector<OutputBuffer> large;  // those that were sent at once come back with the block
  std::vector<Entry> entries;
};

}  // namespace cellar
