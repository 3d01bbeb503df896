// The TLS side of a connection: see connection.h and tls_side.h.
#include <algorithm>
#include <span>

#include "base/assert.h"
#include "server/connection.h"
#include "server/server.h"
#include "server/tls_side.h"

namespace cellar {

void Connection::BeginTls(const TlsContext& context) {
  CELLAR_ASSERT(tls_ == nullptr);
  tls_ = std::make_unique<TlsSide>(context);
}

bool Connection::handshaking() const { return tls_ != nullptr && !tls_->stream.open(); }

// Reads all that can be decrypted, so that nothing is left where only the next byte from the
// network would wake it. What may not be parsed now waits in `pending_`, as without TLS.
void Connection::ReceiveTls(std::string_view bytes) {
  TlsStream& stream = tls_->stream;
  stream.Receive(bytes);
  const std::span<char> buffer = server_->tls_read_buffer();
  size_t got{1};
  while (got > 0 && !closing_) {
    size_t size{0};
    do {
      got = stream.Read(buffer.data() + size, buffer.size() - size);
      size += got;
    } while (got > 0 && size < buffer.size());
    if (size > 0) Feed({buffer.data(), size}, {});
  }
  if (closing_) return;
  if (!stream.error().empty()) return FailTls();
  if (stream.ended()) {
    if (!session.input_ended) EndInput();
    return UpdateReading();
  }
  if (!stream.output().empty()) server_->ScheduleFlush(session);
}

void Connection::FailTls() {
  server_->LogTlsError(*this, tls_->stream.error());
  // The alert that tells the client why, if it is there and the socket takes it.
  if (!writing_ && !tls_->stream.output().empty()) (void)TrySend(tls_->stream.output().view());
  Close();
}

void Connection::SendTls() {
  TlsSide& tls = *tls_;
  OutputBuffer& encrypted = tls.stream.output();
  while (!writing_) {
    if (!encrypted.empty()) {
      const int64_t sent = TrySend(encrypted.view());
      if (sent < 0) return Close();
      if (static_cast<size_t>(sent) < encrypted.size()) {
        tls.encrypted_in_flight = encrypted.size() - static_cast<size_t>(sent);
        SendLater(&encrypted, static_cast<size_t>(sent));
        break;
      }
      server_->Recycle(&encrypted);
    }
    if (tls.plain.empty()) {
      const size_t bytes = tls.stream.open() ? ReleasedBytes() : 0;
      if (bytes == 0) break;
      TakeOutput(bytes, &tls.plain);
    }
    const size_t piece = std::min(TlsSide::kPieceBytes, tls.plain.size() - tls.plain_offset);
    server_->Provide(&encrypted);
    if (!tls.stream.Write(tls.plain.view().substr(tls.plain_offset, piece))) return FailTls();
    tls.plain_offset += piece;
    if (tls.plain_offset == tls.plain.size()) {
      server_->Recycle(&tls.plain);
      tls.plain_offset = 0;
    }
  }
  if (!closing_) session.output_in_flight = TlsWaitingBytes();
}

size_t Connection::TlsWaitingBytes() const {
  if (tls_ == nullptr) [[likely]]
    return 0;
  return tls_->plain.size() - tls_->plain_offset + (writing_ ? tls_->encrypted_in_flight : 0);
}

// So that the client knows that the end is the end; it is not waited for.
void Connection::ShutdownTls() {
  if (tls_ == nullptr || writing_ || !tls_->stream.output().empty() || !tls_->plain.empty()) return;
  tls_->stream.Shutdown();
  if (!tls_->stream.output().empty()) (void)TrySend(tls_->stream.output().view());
}

size_t Connection::TlsMemoryBytes() const {
  if (tls_ == nullptr) [[likely]]
    return 0;
  return sizeof(TlsSide) + tls_->stream.memory_bytes() + tls_->plain.capacity();
}

}  // namespace cellar
