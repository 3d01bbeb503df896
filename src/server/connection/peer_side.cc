// See peer_side.h.
#include "server/connection/peer_side.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "commands/session/host.h"
#include "server/connection/connection.h"

namespace cellar {

void PeerSide::Write(std::string_view bytes) {
  if (waiting_bytes() == 0) longest_bytes_ = 0;
  longest_bytes_ = std::max(longest_bytes_, bytes.size());
  connection_.session.output.Append(bytes);
  host_.ScheduleFlush(connection_.session);
}

size_t PeerSide::waiting_bytes() const {
  return connection_.session.output.size() + connection_.session.output_in_flight;
}

size_t PeerSide::unacknowledged_bytes() const {
  int in_socket = 0;
  if (::ioctl(connection_.session.fd, SIOCOUTQ, &in_socket) != 0) in_socket = 0;
  return waiting_bytes() + static_cast<size_t>(in_socket);
}

void PeerSide::SetReading(bool reading) {
  reading_ = reading;
  connection_.UpdateReading();
}

void PeerSide::SetPatience(int64_t micros) {
  const auto millis = static_cast<unsigned>(micros / 1000);
  (void)::setsockopt(connection_.session.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &millis,
                     sizeof(millis));
}

void PeerSide::Close() {
  handler_ = nullptr;
  // What was written last, an error for the other end, still goes, if the socket takes it.
  connection_.session.EndAfterReplies();
  reading_ = false;
  host_.ScheduleFlush(connection_.session);
}

std::string PeerSide::peer_host() const {
  const std::string& address = connection_.session.address;
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace cellar
