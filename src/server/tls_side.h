// TlsSide: what a connection of the TLS port has besides a plain one.
//
//   session.output --released--> plain --a piece at a time--> stream.output() --> socket
//
// No more is encrypted than the socket takes: while it takes nothing, one piece waits encrypted and
// the rest as it was, so a slow reader costs the same memory as without TLS.
#pragma once

#include <cstddef>

#include "resp/output_buffer.h"
#include "server/connection.h"
#include "server/tls_stream.h"

namespace cellar {

struct Connection::TlsSide {
  explicit TlsSide(const TlsContext& context) : stream(context) {}

  // Encrypted at once: sixteen records, one write to the socket.
  static constexpr size_t kPieceBytes{256 * 1024};

  TlsStream stream;
  OutputBuffer plain;      // taken from the session's output
  size_t plain_offset{0};  // up to here it is encrypted
  size_t encrypted_in_flight{0};
};

}  // namespace cellar
