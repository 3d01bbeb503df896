// ScanCursor: the text that CSCAN gives out, from which the next call goes on. It holds all there
// is to know, so that the server remembers nothing and a cursor survives a restart.
//
//   text     = "A" base64url(payload)                        without padding; "0" is begin and end
//   payload  | flags u8 | pin v, if kPinned | seed v, if kDrawn | table v, index v, if kOfIndex |
//            rows of the group v, if kInGroup | row key b | inside a row: ... | check u32 |
//   ...      cell key b, cells v, columns v, super columns v      v varint, b length-prefixed bytes
//   check    = low half of XXH3 of what stands before it, seeded with the binding
//
// The binding is a hash of what a position means something in: the table's key order, the direction
// and the index. A cursor that was changed on its way, cut short, or belongs to another kind of
// scan is "ERR invalid cursor"; other options may change from call to call. A letter other than A
// in front is for a later form. The numbers of table and index tell an index from one that is made
// anew under its name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/status.h"
#include "engine/rows/scan.h"

namespace cellar {

// In a cursor of table@snapshot, with the table's id, where others have the number of a pinned
// view: it is of this snapshot, and of no other one that gets its name.
inline constexpr uint64_t kFrozenPin{uint64_t{1} << 63};

struct ScanCursor {
  ScanPosition position;
  std::optional<uint64_t> pin;  // SNAPSHOT: the pinned view (Store::ScanPinned)
};

// What a cursor is bound to. `index` is empty for a scan of the table itself.
uint64_t ScanBinding(std::string_view key_order, std::string_view index, bool reverse);

// "0": where a scan begins, and what it ends with.
inline bool IsStartCursor(std::string_view text) { return text == "0"; }

// Printable, about 4/3 of the row key and a dozen bytes.
std::string EncodeCursor(const ScanCursor& cursor, uint64_t binding);
// REQUIRES: not the start cursor. "ERR invalid cursor" if `text` is not from EncodeCursor with the
// same binding.
Result<ScanCursor> DecodeCursor(std::string_view text, uint64_t binding);
// Its pin, whatever it is bound to; nothing: it has none, or is no cursor.
std::optional<uint64_t> PinOfCursor(std::string_view text);
// Whether `text` could be a cursor at all, before the table that it belongs to is known.
Status CheckCursorForm(std::string_view text);

}  // namespace cellar
