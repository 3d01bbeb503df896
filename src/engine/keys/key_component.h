// One component of a key to bytes and back: the table in order.h, row by row. Order is made of
// these; indexes use them directly for the values of their columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cellar/status.h"
#include "engine/keys/order.h"
#include "engine/keys/value.h"

namespace cellar {

// "utf8", "i64", ...
std::string_view ComponentTypeName(ComponentType type);
// All of them, between spaces.
std::string ComponentTypeNames();
// In any case; "byte" is u8. False if there is no such component.
[[nodiscard]] bool ParseComponentType(std::string_view name, ComponentType* type);
constexpr bool IsTextComponent(ComponentType type) { return type <= ComponentType::kUtf8; }
constexpr bool IsFloatComponent(ComponentType type) {
  return type == ComponentType::kF32 || type == ComponentType::kF64;
}
// The component in which the values of a type sort: numbers numerically, all else bytewise.
ComponentType ComponentOfValueType(ValueType type);

// Appends the encoding. False if the text does not fit; *why then says so ("is not an integer").
[[nodiscard]] bool EncodeComponent(OrderComponent component, std::string_view text,
                                   std::string* out, std::string_view* why);
// Appends the encoding of a text component without its terminator: what begins with `text`.
// REQUIRES: IsTextComponent.
[[nodiscard]] bool EncodeComponentPrefix(OrderComponent component, std::string_view text,
                                         std::string* out, std::string_view* why);
// Appends the encoding of a stored value. REQUIRES: component.type is ComponentOfValueType(type)
// and `stored` is valid for `type`.
void EncodeComponentValue(OrderComponent component, ValueType type, std::string_view stored,
                          std::string* out);

// Length of the component at the front; 0 if it is not complete.
size_t ComponentSize(OrderComponent component, std::string_view at_front);
// Appends the canonical text of exactly one component; false if it is malformed.
[[nodiscard]] bool DecodeComponent(OrderComponent component, std::string_view encoded,
                                   std::string* text);
// The stored value behind exactly one component, replacing *stored; false if it is malformed.
[[nodiscard]] bool DecodeComponentValue(OrderComponent component, ValueType type,
                                        std::string_view encoded, std::string* stored);

// Turns round the order of what stands behind the first `from` bytes: as descending components are.
void Complement(std::string* bytes, size_t from);

}  // namespace cellar
