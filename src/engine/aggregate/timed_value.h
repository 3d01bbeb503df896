// TimedValue: the value of the cell with the lowest timestamp (FIRST) or the highest (LAST). Of
// cells with one timestamp it is the one whose row and column come first, or last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "engine/aggregate/cell_place.h"
#include "engine/keys/value.h"

namespace cellar {

class TimedValue {
 public:
  enum class Wanted : uint8_t { kFirst, kLast };

  // Is a cell that stands there the wanted one, of it and the one that is held? Asked of each cell,
  // while few are held.
  bool YieldsTo(Wanted wanted, const CellPlace& place) const {
    if (held_ && place.timestamp_micros != timestamp_micros_) [[likely]]
      return (wanted == Wanted::kFirst) == (place.timestamp_micros < timestamp_micros_);
    return !held_ || YieldsAtOneTime(wanted, place);
  }
  // Returns by how much heap_bytes() has grown. LAST holds each cell of a series that is written in
  // order: one copy of its place and value, and no more. REQUIRES: YieldsTo() says so.
  size_t Hold(const CellPlace& place, ValueType type, std::string_view stored) {
    const size_t grown = Reserve(place.row_key.size() + place.qualifier.size() + stored.size());
    held_ = true;
    type_ = type;
    family_ = place.family;
    timestamp_micros_ = place.timestamp_micros;
    row_key_bytes_ = place.row_key.size();
    qualifier_bytes_ = place.qualifier.size();
    bytes_ = row_key_bytes_ + qualifier_bytes_ + stored.size();
    char* const behind = Append(place.qualifier, Append(place.row_key, buffer_.get()));
    Append(stored, behind);
    return grown;
  }
  // The same of what another one holds.
  size_t Add(Wanted wanted, const TimedValue& other);
  bool empty() const { return !held_; }
  ValueType type() const { return type_; }
  std::string_view stored() const { return bytes().substr(row_key_bytes_ + qualifier_bytes_); }
  // Held besides the object itself.
  size_t heap_bytes() const { return capacity_; }
  // For another node, which takes it for the same.
  void Encode(std::string* to) const;
  // REQUIRES: nothing has been added. False: these are not the bytes of one.
  [[nodiscard]] bool Decode(std::string_view* from);

 private:
  static char* Append(std::string_view bytes, char* to) {
    if (bytes.empty()) return to;
    std::memcpy(to, bytes.data(), bytes.size());
    return to + bytes.size();
  }
  // Makes room for so many bytes; what is there may go. Returns what has been allocated more.
  size_t Reserve(size_t bytes) {
    if (bytes <= capacity_) [[likely]]
      return 0;
    return Grow(bytes);
  }
  size_t Grow(size_t bytes);
  bool YieldsAtOneTime(Wanted wanted, const CellPlace& place) const;
  std::string_view bytes() const { return {buffer_.get(), bytes_}; }
  std::string_view row_key() const { return bytes().substr(0, row_key_bytes_); }
  std::string_view qualifier() const { return bytes().substr(row_key_bytes_, qualifier_bytes_); }

  bool held_{false};
  ValueType type_{ValueType::kBytes};
  size_t family_{0};
  int64_t timestamp_micros_{0};
  std::unique_ptr<char[]> buffer_;  // row key, qualifier, value
  size_t capacity_{0};
  size_t bytes_{0};
  size_t row_key_bytes_{0};
  size_t qualifier_bytes_{0};
};

}  // namespace cellar
