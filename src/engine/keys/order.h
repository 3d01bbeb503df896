// Order: how keys of one kind (row keys of a table, qualifiers of a family, values of an index) are
// read, kept as bytes whose memcmp order is the logical order, and written out again.
//
//   order = component { delimiter component }        "utf8#utf8#-u64"
//   component = ["-"] [name "="] type                "-" sorts descending; names are for row keys
//   delimiter = one of  # / | : , ; ~ .              the same throughout
//
// | component           | bytes                                                              |
// | bytes utf8 ascii    | content with 00 -> 00 ff, then 00 01                               |
// | u8..u64, recno      | big-endian, 1 to 8 bytes                                           |
// | i8..i64             | the same, sign bit flipped                                         |
// | f32 f64             | -0 as 0; sign set: all bits inverted, else the sign bit set        |
// | bool, uuid, luuid   | 1 byte; 16 bytes; 16 bytes with bytes 0 and 8 xor 80               |
// | timeuuid            | bytes 6 7 4 5 0 1 2 3 8..15 of a version 1 UUID: time first        |
// | descending          | bitwise complement of all of it, terminator included               |
//
// No encoding is a prefix of another one of the same order, so encodings can stand one behind the
// other in a longer key, and everything below a prefix p is the range [p, Successor(p)).
//
// The text form joins the components by the delimiter. One before the last may not contain it; a
// last text component takes the rest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/coding.h"
#include "base/copy_bytes.h"
#include "base/inline.h"
#include "cellar/status.h"

namespace cellar {

inline constexpr size_t kOrderComponentsMax{32};

enum class ComponentType : uint8_t {
  kBytes,
  kAscii,
  kUtf8,
  kU8,
  kU16,
  kU32,
  kU64,
  kI8,
  kI16,
  kI32,
  kI64,
  kF32,
  kF64,
  kBool,
  kUuid,
  kLuuid,
  kTimeuuid,
  kRecno,
};

struct OrderComponent {
  ComponentType type{ComponentType::kBytes};
  bool descending{false};
  friend bool operator==(const OrderComponent&, const OrderComponent&) = default;
};

// One end of a range of encoded keys: the keys before it are those whose bytes are smaller than
// `bytes`; with `at_end` all keys are before it.
struct KeyBound {
  std::string bytes;
  bool at_end{false};

  friend bool operator==(const KeyBound&, const KeyBound&) = default;
  friend bool operator<(const KeyBound& a, const KeyBound& b) {
    return !a.at_end && (b.at_end || a.bytes < b.bytes);
  }
};
// [begin, end) of encoded keys.
struct KeyRange {
  KeyBound begin;
  KeyBound end{{}, true};
  bool empty() const { return !(begin < end); }
  bool contains(std::string_view encoded) const {
    return !begin.at_end && encoded >= begin.bytes && (end.at_end || encoded < end.bytes);
  }
  friend bool operator==(const KeyRange&, const KeyRange&) = default;
};

// The first byte string that is larger than everything that begins with `prefix`: trailing ff
// stripped, one added to the last byte; at_end if there is none (empty, or all ff). O(size).
KeyBound Successor(std::string_view prefix);
// *bound := Successor(prefix), keeping its memory.
void AssignSuccessor(std::string_view prefix, KeyBound* bound);
// Everything that begins with `prefix`.
KeyRange PrefixRange(std::string_view prefix);

// `range` of what stands behind `front` in longer keys.
KeyRange RangeBehind(std::string_view front, const KeyRange& range);

enum class BoundEdge : uint8_t { kInclusive, kExclusive };
enum class BoundSide : uint8_t { kMin, kMax };

class Order {
 public:
  Order();  // "bytes"

  // Plain ERR with a clear text if `spec` cannot be read, or has names.
  static Result<Order> Parse(std::string_view spec);
  // The order of row keys, whose components may have names: -year=u16.
  static Result<Order> ParseKey(std::string_view spec);
  // A single ascending or descending component, or several; for indexes.
  // REQUIRES: 1..kOrderComponentsMax components.
  static Order FromComponents(std::vector<OrderComponent> components, char delimiter);

  // Canonical text: lower-case, `byte` as `u8`.
  const std::string& spec() const { return spec_; }
  const std::vector<OrderComponent>& components() const { return components_; }
  // The name of a component, empty if it has none. REQUIRES: index < components().size().
  std::string_view name(size_t index) const {
    return names_.empty() ? std::string_view() : std::string_view(names_[index]);
  }
  // The component of that name, components().size() if there is none.
  size_t FindName(std::string_view name) const;
  char delimiter() const { return delimiter_; }  // '\0' with a single component
  bool is_plain_bytes() const { return is_plain_bytes_; }
  // Record numbers: CPUT * gives out the next one. The component stands alone and ascends; whether
  // it makes sense (it does for row keys only) is the caller's to check.
  bool is_recno() const { return is_recno_; }

  // Appends the encoding of a complete key. BADKEY naming the component at fault; *out is then
  // unspecified behind its old end. O(size).
  Status Encode(std::string_view text, std::string* out) const {
    if (is_plain_bytes_ && EncodePlain(text, out)) [[likely]]
      return Status::Ok();
    return EncodeComponents(text, Extent::kWhole, out);
  }
  // Encodes to *out, which has room for EncodedBytesMax(text.size()) bytes, and moves it behind.
  // After an error it stands where it was.
  CELLAR_INLINE Status Encode(std::string_view text, char** out) const {
    char* const to = *out;
    if (is_plain_bytes_) [[likely]] {
      if (CopyWithoutZero(to, text.data(), text.size())) [[likely]] {
        StoreLittleEndian(to + text.size(), kTerminator);
        *out = to + text.size() + 2;
        return Status::Ok();
      }
    }
    size_t bytes = 0;
    Status status = EncodeAny(text, to, &bytes);
    *out = to + bytes;
    return status;
  }
  // What a text of so many bytes takes at most: each of them twice, where all are zero, and a
  // component's number or terminator.
  static constexpr size_t EncodedBytesMax(size_t text_bytes) {
    return 2 * text_bytes + 16 * kOrderComponentsMax;
  }
  // Appends the canonical text of a complete encoding; false if it is malformed.
  [[nodiscard]] bool Decode(std::string_view encoded, std::string* text) const;
  // Decode's text as a view: of `encoded` where it stands there as it is, else of *scratch.
  // REQUIRES: a complete, well-formed encoding.
  std::string_view TextOf(std::string_view encoded, std::string* scratch) const {
    if (is_plain_bytes_ && FindZeroByte(encoded.data(), encoded.size()) + 2 == encoded.size()) {
      return encoded.substr(0, encoded.size() - 2);
    }
    return DecodedText(encoded, scratch);
  }

  // Length of the complete encoding at the front of a longer byte string; 0 if there is none.
  size_t EncodedSize(std::string_view at_front) const {
    if (is_plain_bytes_) [[likely]]
      return PlainBytesSize(at_front);
    return ComponentsSize(at_front, components_.size());
  }
  // EncodedSize, and *text_bytes := the size of the key's canonical text if the encoding begins
  // with it as it is, else kNoText. Of such text `known_bytes` are known to be in front.
  static constexpr size_t kNoText{SIZE_MAX};
  CELLAR_INLINE size_t EncodedSize(std::string_view at_front, size_t known_bytes,
                                   size_t* text_bytes) const {
    if (is_plain_bytes_) [[likely]] {
      const size_t bytes = FindTextEnd(at_front, known_bytes);
      if (bytes + 2 <= at_front.size() && at_front[bytes + 1] == '\x01') [[likely]] {
        *text_bytes = bytes;
        return bytes + 2;
      }
    }
    *text_bytes = kNoText;
    return EncodedSize(at_front);
  }
  // EncodedSize behind a key of `last_bytes`, of which this one has the first `shared_bytes`: known
  // without a look where only numbers may differ. 0 of `last_bytes`: there was none.
  CELLAR_INLINE size_t EncodedSizeBehind(size_t last_bytes, size_t shared_bytes,
                                         std::string_view at_front) const {
    if (shared_bytes + fixed_tail_bytes_ >= last_bytes && last_bytes > 0) return last_bytes;
    return EncodedSize(at_front);
  }
  // What every encoding is long, if no component is text; else 0.
  size_t fixed_bytes() const { return is_fixed_ ? fixed_tail_bytes_ : 0; }
  // Length of the first component alone (super columns, GROUPS); 0 if it is not complete.
  size_t FirstComponentSize(std::string_view at_front) const { return ComponentsSize(at_front, 1); }
  // Length of the first `count` components. REQUIRES: count <= components().size().
  size_t ComponentsSize(std::string_view at_front, size_t count) const;

  // A bound `[text` or `(text`, which may name only the first components: as an inclusive minimum
  // it begins before, as an inclusive maximum it ends after every key whose first components are
  // these; exclusive ones the other way round. The range is [min, max). BADKEY.
  Result<KeyBound> EncodeBound(std::string_view text, BoundEdge edge, BoundSide side) const;
  // Keys below a prefix: whole components, or one that ends inside a text component; "" is
  // everything. Half a number or UUID is BADKEY.
  Result<KeyRange> EncodePrefix(std::string_view text) const;

  // Record number to key and back. REQUIRES: is_recno(), number >= 1.
  void EncodeRecno(int64_t number, std::string* out) const;
  int64_t DecodeRecno(std::string_view encoded) const;

  friend bool operator==(const Order& a, const Order& b) { return a.spec_ == b.spec_; }

 private:
  static constexpr uint16_t kTerminator{0x0100};  // as a little-endian word: 00 01

  // Where the first zero byte stands, at or behind `from`. Mostly near: the columns of a row differ
  // in a few bytes. Single ones are read without waiting for the pieces that have just been stored.
  CELLAR_INLINE static size_t FindTextEnd(std::string_view encoded, size_t from) {
    constexpr size_t kSingle{3};
    const size_t single_end = std::min(from + kSingle, encoded.size());
    for (; from < single_end; ++from)
      if (encoded[from] == 0) return from;
    return from + FindZeroByte(encoded.data() + from, encoded.size() - from);
  }
  static size_t PlainBytesSize(std::string_view at_front) {
    const size_t text_bytes = FindZeroByte(at_front.data(), at_front.size());
    if (text_bytes + 2 <= at_front.size() && at_front[text_bytes + 1] == '\x01') [[likely]]
      return text_bytes + 2;
    return EscapedBytesSize(at_front);
  }
  static size_t EscapedBytesSize(std::string_view at_front);
  std::string_view DecodedText(std::string_view encoded, std::string* scratch) const;
  // What `bytes` comes to when there is no zero byte to be escaped; false if there is one.
  static bool EncodePlain(std::string_view text, std::string* out) {
    char bytes[64];
    if (text.size() + 2 <= sizeof(bytes)) [[likely]] {  // one call of append
      if (!CopyWithoutZero(bytes, text.data(), text.size())) return false;
      StoreLittleEndian(bytes + text.size(), kTerminator);
      out->append(bytes, text.size() + 2);
      return true;
    }
    if (FindZeroByte(text.data(), text.size()) != text.size()) return false;
    out->append(text).append("\0\x01", 2);
    return true;
  }
  // How much of a key a text must hold.
  enum class Extent : uint8_t {
    kWhole,            // every component
    kFirstComponents,  // one or more
    kPrefix,           // any number, the last one perhaps cut off or closed by a delimiter
  };
  Status EncodeComponents(std::string_view text, Extent extent, std::string* out) const;
  std::string Hint(std::string_view text, size_t at, Extent extent) const;
  Status EncodeAny(std::string_view text, char* to, size_t* bytes) const;

  static Order Make(std::vector<OrderComponent> components, std::vector<std::string> names,
                    char delimiter);
  enum class Names : uint8_t { kNo, kYes };
  static Result<Order> ParseSpec(std::string_view spec, Names names);

  std::vector<OrderComponent> components_;
  std::vector<std::string> names_;  // of the components; none at all if none has one
  std::string spec_;
  char delimiter_{'\0'};
  uint32_t fixed_tail_bytes_{0};  // of the components behind the last text
  bool is_fixed_{false};          // ... which are all there are
  bool is_plain_bytes_{true};
  bool is_recno_{false};
};

}  // namespace cellar
