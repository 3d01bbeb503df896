// Any text as an order, any text as a key: what encodes must decode to text that encodes to the
// same bytes; any bytes may be handed to the decoder.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "engine/keys/order.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cellar;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t line = input.find('\n');
  if (line == std::string_view::npos) return 0;
  const Result<Order> order = Order::Parse(input.substr(0, line));
  if (!order.ok()) return 0;
  const Result<Order> again = Order::Parse(order->spec());
  CELLAR_ASSERT(again.ok());
  CELLAR_ASSERT(*again == *order);
  const std::string_view text = input.substr(line + 1);
  std::string encoded;
  if (order->Encode(text, &encoded).ok()) {
    std::string decoded;
    CELLAR_ASSERT(order->Decode(encoded, &decoded));
    std::string encoded_again;
    CELLAR_ASSERT(order->Encode(decoded, &encoded_again).ok());
    CELLAR_ASSERT(encoded_again == encoded);
    CELLAR_ASSERT(order->EncodedSize(encoded + std::string(text)) == encoded.size());
    const Result<KeyBound> min = order->EncodeBound(text, BoundEdge::kInclusive, BoundSide::kMin);
    CELLAR_ASSERT(min.ok());
    CELLAR_ASSERT(min->bytes == encoded);
  }
  (void)order->EncodePrefix(text);
  std::string decoded;
  if (order->Decode(text, &decoded)) CELLAR_ASSERT(order->EncodedSize(text) == text.size());
  return 0;
}
