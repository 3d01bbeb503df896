// Comparing and counting up: the arithmetic half of value.h.
#include <bit>
#include <cmath>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/quote.h"
#include "engine/keys/float_literal.h"
#include "engine/keys/value.h"

namespace cellar {
namespace {

template <typename T>
int ThreeWay(const T& a, const T& b) {
  if (a < b) return -1;
  return b < a ? 1 : 0;
}

Status Overflow() {
  return Status::Error(ErrorCode::kErr, "increment or decrement would overflow");
}

Status NotANumber(std::string_view wanted, ValueType type, std::string_view stored) {
  std::string text = "holds " + std::string(ValueTypeName(type));
  if (IsTextType(type)) text += " " + Quote(stored);
  return Status::Error(ErrorCode::kWrongType, text + ", no " + std::string(wanted));
}

Status StoreFloatSum(ValueType type, double value, StoredValue* sum) {
  char* bytes = sum->buffer.bytes.data();
  sum->type = type;
  if (type == ValueType::kF32) {
    const auto rounded = static_cast<float>(value);
    if (!std::isfinite(rounded)) {
      return Status::Error(ErrorCode::kErr, "increment would produce NaN or Infinity");
    }
    StoreLittleEndian(bytes, rounded);
    sum->stored = std::string_view(bytes, 4);
    return Status::Ok();
  }
  if (!std::isfinite(value)) {
    return Status::Error(ErrorCode::kErr, "increment would produce NaN or Infinity");
  }
  StoreLittleEndian(bytes, value);
  sum->stored = std::string_view(bytes, 8);
  return Status::Ok();
}

[[gnu::cold, gnu::noinline]] Status NotIntegerDelta(std::string_view text) {
  return Status::Error(ErrorCode::kErr, "value is not an integer or out of range: " + Quote(text));
}

}  // namespace

int CompareStored(ValueType type, std::string_view a, std::string_view b) {
  if (IsIntegerType(type)) return ThreeWay(LoadInteger(type, a), LoadInteger(type, b));
  if (IsFloatType(type)) {
    return ThreeWay(DecodeValue(type, a).floating, DecodeValue(type, b).floating);
  }
  return ThreeWay(a.compare(b), 0);
}

void ComparedLiteral::Read(ValueType type) const {
  read_as_ = type;
  if (IsIntegerType(type)) {
    const bool is_number = ParseDecimalFloor(text_, &floor_) == NumberError::kNone;
    form_ = is_number ? Form::kFloor : Form::kUnreadable;
    return;
  }
  std::string_view stored;
  if (ParseValue(type, text_, &buffer_, &stored).ok()) {
    CELLAR_ASSERT(stored.data() == buffer_.bytes.data());
    form_ = Form::kStored;
    stored_bytes_ = stored.size();
    return;
  }
  side_ = IsFloatType(type) ? SideBeyondFloat(type, text_) : 0;
  form_ = side_ != 0 ? Form::kBeyondFloat : Form::kUnreadable;
}

bool ComparedLiteral::Holds(CompareOp op, ValueType type, std::string_view stored) const {
  ValueBuffer seen_buffer;
  const SeenValue seen = SeenOf(type, stored, &seen_buffer);
  type = seen.type;
  stored = seen.stored;
  if (IsTextType(type)) return CompareHolds(op, ThreeWay(stored.compare(text_), 0));
  if (form_ == Form::kNone || read_as_ != type) Read(type);
  int order = 0;
  switch (form_) {
    case Form::kFloor:
      order = ThreeWay(LoadInteger(type, stored), floor_.floor);
      if (order == 0 && !floor_.exact) order = -1;  // the literal lies above its floor
      break;
    case Form::kStored:
      order = CompareStored(type, stored, {buffer_.bytes.data(), stored_bytes_});
      break;
    case Form::kBeyondFloat:
      order = CompareBeyondFloat(DecodeValue(type, stored).floating, side_);
      break;
    default:
      return op == CompareOp::kNe;
  }
  return CompareHolds(op, order);
}

Status AddInteger(ValueType type, std::string_view stored, int128_t delta, TextCells text_cells,
                  StoredValue* sum) {
  int128_t value = 0;
  ValueType sum_type = type;
  if (IsIntegerType(type)) {
    value = LoadInteger(type, stored);
  } else if (IsTextType(type) && text_cells == TextCells::kCount) {
    const NumberError error = ParseInt128(stored, &value);
    if (error == NumberError::kMalformed) return NotANumber("integer", type, stored);
    if (error == NumberError::kOutOfRange) return Overflow();
    sum_type = ValueType::kI64;
  } else {
    return NotANumber("integer", type, stored);
  }
  value += delta;
  if (value < IntegerTypeMin(sum_type) || value > IntegerTypeMax(sum_type)) return Overflow();
  sum->type = sum_type;
  sum->stored = StoreInteger(sum_type, value, &sum->buffer);
  return Status::Ok();
}

Status AddFloat(ValueType type, std::string_view stored, double delta, TextCells text_cells,
                StoredValue* sum) {
  if (IsFloatType(type)) {
    return StoreFloatSum(type, DecodeValue(type, stored).floating + delta, sum);
  }
  double value = 0;
  if (!IsTextType(type) || text_cells == TextCells::kRefuse ||
      ParseDouble(stored, &value) != NumberError::kNone) {
    return NotANumber("float", type, stored);
  }
  return StoreFloatSum(ValueType::kF64, value + delta, sum);
}

Status ParseIntegerDelta(std::string_view text, int128_t* delta) {
  const NumberError error = ParseInt128(text, delta);
  if (error != NumberError::kNone || *delta < INT64_MIN ||
      *delta > static_cast<int128_t>(UINT64_MAX)) [[unlikely]]
    return NotIntegerDelta(text);
  return Status::Ok();
}

Status ParseFloatDelta(std::string_view text, double* delta) {
  if (ParseDouble(text, delta) != NumberError::kNone || !std::isfinite(*delta)) {
    return Status::Error(ErrorCode::kErr, "value is not a valid float: " + Quote(text));
  }
  return Status::Ok();
}

TextNumber ClassifyNumber(std::string_view text) {
  int128_t integer = 0;
  if (ParseInt128(text, &integer) != NumberError::kMalformed) return TextNumber::kInteger;
  double floating = 0;
  const bool is_float = ParseDouble(text, &floating) == NumberError::kNone;
  return is_float ? TextNumber::kFloat : TextNumber::kNone;
}

}  // namespace cellar
