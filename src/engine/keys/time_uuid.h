// UUIDs of version 1 (RFC 9562) from times, for components of type timeuuid and values of uuid.
//
//   now, in a write     a new one: 100 ns ticks of the time, ascending within the process, with a
//                       clock sequence and a node of random bits that it has drawn when it began,
//                       so that no two processes make the same
//   a time, in a bound  the least one of that time, whatever the node
//
// Both stand in for the text that cannot be read as it is, so that nothing else pays for them. What
// is stored and logged is the UUID.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/inline.h"
#include "engine/keys/order.h"

namespace cellar {

// The text of a new one, of the moment that `now` means (base/text/time_text.h).
std::string NewTimeUuid();
// REQUIRES: 0 <= micros <= kTimeUuidMicrosMax.
std::string LeastTimeUuid(int64_t micros);
inline constexpr int64_t kTimeUuidMicrosMax{(INT64_MAX >> 4) / 10};  // 60 bits of ticks, since 1582

// *expanded := `text` with a new UUID for each `now` that stands as a timeuuid of the order. False
// if there is none.
[[nodiscard]] bool ExpandNow(const Order& order, std::string_view text, std::string* expanded);
// The same with the least UUID for each time, now and integers of microseconds included.
[[nodiscard]] bool ExpandTimes(const Order& order, std::string_view text, std::string* expanded);

// What was refused, encoded with `now` expanded if there is one; else the refusal. Apart, so that
// what encodes all other keys stays inlined in its caller.
template <typename Encode>
[[gnu::cold, gnu::noinline]] Status EncodeNow(const Order& order, std::string_view text,
                                              Status refusal, const Encode& encode) {
  std::string expanded;
  return ExpandNow(order, text, &expanded) ? encode(std::string_view(expanded)) : refusal;
}

// Encodes by `encode(text)`, again with `now` expanded where it was refused.
template <typename Encode>
CELLAR_INLINE Status EncodeForWrite(const Order& order, std::string_view text,
                                    const Encode& encode) {
  Status status = encode(text);
  if (status.ok()) [[likely]]
    return status;
  return EncodeNow(order, text, std::move(status), encode);
}

}  // namespace cellar
