// See scan_cursor.h.
#include "commands/arguments/scan_cursor.h"

#include <array>

#include "base/assert.h"
#include "base/coding.h"
#include "base/hash.h"
#include "base/text/quote.h"

namespace cellar {
namespace {

constexpr char kForm{'A'};
constexpr uint8_t kRowDone{1};
constexpr uint8_t kInsideRow{2};
constexpr uint8_t kPinned{4};
constexpr uint8_t kDrawn{8};
constexpr uint8_t kOfIndex{16};
constexpr uint8_t kInGroup{32};
constexpr uint8_t kFlags{kRowDone | kInsideRow | kPinned | kDrawn | kOfIndex | kInGroup};
// A row key and a cell key with all their escapes, and the numbers: far above what is ever given
// out.
constexpr size_t kCursorBytesMax{1024 * 1024};

constexpr std::string_view kDigits{
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"};

constexpr std::array<int8_t, 256> DigitValues() {
  std::array<int8_t, 256> values{};
  for (int8_t& value : values) value = -1;
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<int8_t>(i);
  }
  return values;
}
constexpr std::array<int8_t, 256> kDigitValues = DigitValues();

void PutBase64(std::string_view bytes, std::string* to) {
  uint32_t bits = 0;
  int count = 0;
  for (const char byte : bytes) {
    bits = bits << 8 | static_cast<uint8_t>(byte);
    count += 8;
    while (count >= 6) {
      count -= 6;
      to->push_back(kDigits[bits >> count & 63]);
    }
  }
  if (count > 0) to->push_back(kDigits[bits << (6 - count) & 63]);
}

bool GetBase64(std::string_view text, std::string* bytes) {
  uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    const int8_t value = kDigitValues[static_cast<uint8_t>(digit)];
    if (value < 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes->push_back(static_cast<char>(bits >> count));
    }
  }
  // What is left over is fewer than a digit's bits, and zero: each text stands for one payload.
  return count < 6 && (bits & ((1u << count) - 1)) == 0;
}

uint32_t CheckOf(std::string_view payload, uint64_t binding) {
  return static_cast<uint32_t>(Hash64(payload, binding));
}

[[gnu::cold]] Status InvalidCursor(std::string_view text) {
  return Status::Error(ErrorCode::kErr,
                       "invalid cursor: " + Quote(text) + ", a scan begins with 0");
}

// A client can send anything: every field is checked, and nothing may be left over.
bool ReadPayload(std::string_view from, ScanCursor* cursor) {
  if (from.empty()) return false;
  const auto flags = static_cast<uint8_t>(from[0]);
  if ((flags & ~kFlags) != 0) return false;
  from.remove_prefix(1);
  if ((flags & kPinned) != 0) {
    cursor->pin.emplace();
    if (!GetVarint64(&from, &*cursor->pin)) return false;
  }
  ScanPosition& position = cursor->position;
  if ((flags & kDrawn) != 0 && !GetVarint64(&from, &position.seed)) return false;
  if ((flags & kOfIndex) != 0 &&
      (!GetVarint64(&from, &position.index_table_id) || !GetVarint64(&from, &position.index_id))) {
    return false;
  }
  if ((flags & kInGroup) != 0 && !GetVarint64(&from, &position.group_rows)) return false;
  position.row_done = (flags & kRowDone) != 0;
  position.inside_row = (flags & kInsideRow) != 0;
  std::string_view key;
  if (!GetLengthPrefixed(&from, &key)) return false;
  position.row_key = key;
  if (position.inside_row) {
    if (!GetLengthPrefixed(&from, &key) || !GetVarint64(&from, &position.cells_before) ||
        !GetVarint64(&from, &position.columns_before) ||
        !GetVarint64(&from, &position.super_columns_before)) {
      return false;
    }
    position.cell_key = key;
  }
  return from.empty();
}

}  // namespace

uint64_t ScanBinding(std::string_view key_order, std::string_view index, bool reverse) {
  return Hash64(key_order, Hash64(index, reverse ? 1 : 0));
}

// What has its default takes no bytes. The check covers `binding` as well: a cursor is good for
// such a read alone.
std::string EncodeCursor(const ScanCursor& cursor, uint64_t binding) {
  const ScanPosition& position = cursor.position;
  std::string payload;
  uint8_t flags = 0;
  if (position.row_done) flags |= kRowDone;
  if (position.inside_row) flags |= kInsideRow;
  if (cursor.pin.has_value()) flags |= kPinned;
  if (position.seed != 0) flags |= kDrawn;
  if (position.index_id != 0) flags |= kOfIndex;
  if (position.group_rows != 0) flags |= kInGroup;
  payload.push_back(static_cast<char>(flags));
  if (cursor.pin.has_value()) PutVarint64(&payload, *cursor.pin);
  if (position.seed != 0) PutVarint64(&payload, position.seed);
  if (position.index_id != 0) {
    PutVarint64(&payload, position.index_table_id);
    PutVarint64(&payload, position.index_id);
  }
  if (position.group_rows != 0) PutVarint64(&payload, position.group_rows);
  PutLengthPrefixed(&payload, position.row_key);
  if (position.inside_row) {
    PutLengthPrefixed(&payload, position.cell_key);
    PutVarint64(&payload, position.cells_before);
    PutVarint64(&payload, position.columns_before);
    PutVarint64(&payload, position.super_columns_before);
  }
  PutFixed32(&payload, CheckOf(payload, binding));
  std::string text(1, kForm);
  PutBase64(payload, &text);
  CELLAR_DEBUG_ASSERT(DecodeCursor(text, binding).ok());
  return text;
}

Status CheckCursorForm(std::string_view text) {
  if (IsStartCursor(text)) return Status::Ok();
  if (text.size() < 2 || text.size() > kCursorBytesMax || text[0] != kForm)
    return InvalidCursor(text);
  for (const char digit : text.substr(1)) {
    if (kDigitValues[static_cast<uint8_t>(digit)] < 0) return InvalidCursor(text);
  }
  return Status::Ok();
}

std::optional<uint64_t> PinOfCursor(std::string_view text) {
  std::string bytes;
  ScanCursor cursor;
  if (IsStartCursor(text) || !CheckCursorForm(text).ok() || !GetBase64(text.substr(1), &bytes) ||
      bytes.size() < sizeof(uint32_t))
    return std::nullopt;
  bytes.resize(bytes.size() - sizeof(uint32_t));
  return ReadPayload(bytes, &cursor) ? cursor.pin : std::nullopt;
}

Result<ScanCursor> DecodeCursor(std::string_view text, uint64_t binding) {
  RETURN_IF_ERROR(CheckCursorForm(text));
  std::string bytes;
  if (!GetBase64(text.substr(1), &bytes) || bytes.size() < sizeof(uint32_t))
    return InvalidCursor(text);
  const std::string_view payload(bytes.data(), bytes.size() - sizeof(uint32_t));
  if (DecodeFixed32(bytes.data() + payload.size()) != CheckOf(payload, binding)) {
    return Status::Error(ErrorCode::kErr, "invalid cursor: " + Quote(text) +
                                              " belongs to another key order, index or direction");
  }
  ScanCursor cursor;
  if (!ReadPayload(payload, &cursor)) return InvalidCursor(text);
  return cursor;
}

}  // namespace cellar
