// See doors.h.
#include "cellar-web/doors.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/assert.h"

namespace cellar::web {
namespace {

constexpr size_t kNetworkBytes{8};  // of an address of IPv6
constexpr size_t kMappedBytes{12};  // in front of one of IPv4 in it

}  // namespace

std::string Doors::NameOf(const sockaddr* address) {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return {reinterpret_cast<const char*>(&v4->sin_addr), sizeof(v4->sin_addr)};
  }
  if (address->sa_family != AF_INET6) return {};
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  const std::string bytes(reinterpret_cast<const char*>(&v6->sin6_addr), sizeof(v6->sin6_addr));
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) return bytes.substr(kMappedBytes);
  return bytes.substr(0, kNetworkBytes);
}

void Doors::Enter(int descriptor, const std::string& address, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto of_address = of_address_.find(address);
  if (of_address != of_address_.end() && of_address->second >= kOfAddressMax) ShutOldest(address);
  if (open_ >= kMax) ShutOldest({});
  const bool is_new = guests_.emplace(descriptor, Guest{.address = address, .since = now}).second;
  CELLAR_ASSERT(is_new);
  ++of_address_[address];
  ++open_;
}

void Doors::Leave(int descriptor) {
  const std::lock_guard lock(mutex_);
  const auto found = guests_.find(descriptor);
  if (found == guests_.end()) return;
  Shut(descriptor, &found->second);
  guests_.erase(found);
}

void Doors::SetBusy(int descriptor) {
  const std::lock_guard lock(mutex_);
  if (const auto found = guests_.find(descriptor); found != guests_.end()) {
    found->second.is_busy = true;
  }
}

void Doors::SetWaiting(int descriptor, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  const auto found = guests_.find(descriptor);
  if (found == guests_.end()) return;
  found->second.is_busy = false;
  found->second.since = now;
}

void Doors::Sweep(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  for (auto& [descriptor, guest] : guests_) {
    if (!guest.is_busy && now - guest.since > kWaitMax) Shut(descriptor, &guest);
  }
}

void Doors::ShutOldest(const std::string& address) {
  const auto is_before = [](const Guest& a, const Guest& b) {
    return a.is_busy != b.is_busy ? b.is_busy : a.since < b.since;
  };
  auto oldest = guests_.end();
  for (auto guest = guests_.begin(); guest != guests_.end(); ++guest) {
    if (guest->second.is_shut || (!address.empty() && guest->second.address != address)) continue;
    if (oldest == guests_.end() || is_before(guest->second, oldest->second)) oldest = guest;
  }
  if (oldest != guests_.end()) Shut(oldest->first, &oldest->second);
}

void Doors::Shut(int descriptor, Guest* guest) {
  if (guest->is_shut) return;
  guest->is_shut = true;
  (void)shutdown(descriptor, SHUT_RDWR);
  CELLAR_ASSERT(open_ > 0);
  --open_;
  const auto of_address = of_address_.find(guest->address);
  CELLAR_ASSERT(of_address != of_address_.end());
  if (--of_address->second == 0) of_address_.erase(of_address);
}

}  // namespace cellar::web
