// Status and Result<T>: how an expected failure travels (a client's mistake, a disk's refusal).
//
// A Status is one pointer: null when all is well, so that success costs a register and no
// allocation. Otherwise it owns an error code, which is the first word of the reply that a client
// sees (cellar-model(7), "ERROR REPLIES"), and a text that names the thing at fault.
//
//   Status s = Status::Error(ErrorCode::kNoTable, "no table 'planes' in keyspace '0'");
//   s.ToString()  ->  "NOTABLE no table 'planes' in keyspace '0'"
//
// A bug is never a Status: see base/assert.h. The shape is LevelDB's (include/leveldb/status.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace cellar {

// The first word of an error reply. kIo and kCorruption never reach a client under these names:
// they are for the layers that touch files.
enum class ErrorCode : uint8_t {
  kErr,
  kWrongType,
  kNoAuth,
  kWrongPass,
  kNoPerm,
  kOom,
  kMisconf,
  kReadOnly,
  kLoading,
  kExecAbort,
  kBusyKey,
  kNoProto,
  kNoTable,
  kNoFamily,
  kNoIndex,
  kNoKeyspace,
  kBadKey,
  kBadValue,
  kBadFilter,
  kNotUnique,
  kStaleCursor,
  kTryAgain,
  kClusterDown,
  kCrossSet,
  kTooLarge,
  kNoFeed,
  kNoSnapshot,
  kTrimmed,
  kNoGroup,
  kBusyGroup,
  kIo,
  kNoSpace,
  kCorruption,
};

// The word of `code` as it stands on the wire, for example "NOTABLE".
std::string_view ErrorCodeWord(ErrorCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  static Status Ok() { return {}; }
  static Status Error(ErrorCode code, std::string text);
  // Code kErr with Redis' own text for a command that cannot be parsed.
  static Status SyntaxError() { return Error(ErrorCode::kErr, "syntax error"); }

  // Code kWrongType with Redis' own text: a name stands for something else than was expected.
  static Status WrongKind() {
    return Error(ErrorCode::kWrongType, "Operation against a key holding the wrong kind of value");
  }

  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  ~Status() = default;

  bool ok() const { return rep_ == nullptr; }
  // REQUIRES: !ok().
  ErrorCode code() const { return rep_->code; }
  const std::string& text() const { return rep_->text; }

  // "OK", or the code's word, a space and the text.
  std::string ToString() const;

 private:
  struct Rep {
    ErrorCode code;
    std::string text;
  };
  std::unique_ptr<Rep> rep_;
};

// A value, or the Status that says why there is none. Our own, since g++ 12 has std::expected only
// under -std=c++2b, where clang-tidy 14 cannot parse it.
template <typename T>
class [[nodiscard]] Result {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): `return value;` is the point.
  Result(T value) : value_(std::move(value)) {}
  // REQUIRES: !status.ok().
  // NOLINTNEXTLINE(google-explicit-constructor): `return status;` is the point.
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status status() && { return std::move(status_); }

  // REQUIRES: ok().
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace cellar

#define CELLAR_CONCAT_INNER(a, b) a##b
#define CELLAR_CONCAT(a, b) CELLAR_CONCAT_INNER(a, b)

// Leaves the function with the Status of `expression` unless that is OK.
#define RETURN_IF_ERROR(expression)                                                       \
  do {                                                                                    \
    if (::cellar::Status status_of_expression = (expression); !status_of_expression.ok()) \
        [[unlikely]]                                                                      \
      return status_of_expression;                                                        \
  } while (false)

// ASSIGN_OR_RETURN(auto table, FindTable(name)): declares or assigns `target`, or leaves with the
// Status of `expression`.
#define ASSIGN_OR_RETURN(target, expression) \
  ASSIGN_OR_RETURN_INNER(CELLAR_CONCAT(result_of_line_, __LINE__), target, expression)
#define ASSIGN_OR_RETURN_INNER(result, target, expression) \
  auto result = (expression);                              \
  if (!result.ok()) [[unlikely]]                           \
    return std::move(result).status();                     \
  target = *std::move(result)
