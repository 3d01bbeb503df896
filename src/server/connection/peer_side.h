// PeerSide: what makes a connection a link to another node: its bytes go to a handler of
// replication's, and the handler's go out as replies do.
//
// Owned by the connection. A link that either end closes is taken from the handler at once: it
// gets OnClosed unless it was the one that closed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "replica/links/peer.h"

namespace cellar {

class Connection;
class Host;

class PeerSide final : public PeerLink {
 public:
  PeerSide(Host& host, Connection& connection) : host_(host), connection_(connection) {}

  // Set once, before anything comes.
  void SetHandler(PeerHandler* handler) { handler_ = handler; }
  bool reading() const { return reading_; }
  // The longest piece that was written since nothing waited.
  size_t longest_bytes() const { return longest_bytes_; }

  // --- for the connection
  void OnBytes(std::string_view bytes) {
    if (handler_ != nullptr) handler_->OnBytes(bytes);
  }
  void OnDrained() {
    if (handler_ != nullptr) handler_->OnDrained();
  }
  void OnClosed() {
    PeerHandler* const handler = handler_;
    handler_ = nullptr;
    if (handler != nullptr) handler->OnClosed("the connection was closed");
  }

  // --- PeerLink
  void Write(std::string_view bytes) override;
  size_t waiting_bytes() const override;
  size_t unacknowledged_bytes() const override;
  void SetReading(bool reading) override;
  void SetPatience(int64_t micros) override;
  void Close() override;
  std::string peer_host() const override;

 private:
  Host& host_;
  Connection& connection_;
  PeerHandler* handler_{nullptr};
  bool reading_{true};
  size_t longest_bytes_{0};
};

}  // namespace cellar
