// See json_cursor.h.
#include "cellar-import/json_cursor.h"

#include <algorithm>
#include <string_view>

#include "cellar-import/json_tree.h"

namespace cellar::importer {
namespace {

constexpr size_t kValueBytesMax{256 << 20};
constexpr std::string_view kBlanks{" \t\r\n"};

// Follows a value from its first byte to its last one.
class Extent {
 public:
  // How many bytes of `text` are of the value.
  size_t Take(std::string_view text) {
    size_t at{0};
    while (at < text.size() && !ended_) {
      const char c{text[at]};
      if (in_string_) {
        at += InString(text.substr(at));
        continue;
      }
      if (c == '"') {
        in_string_ = true;
      } else if (c == '{' || c == '[') {
        ++depth_;
      } else if (c == '}' || c == ']') {
        if (depth_ == 0) {
          ended_ = true;  // of what a scalar stands in
          return at;
        }
        ended_ = --depth_ == 0;
      } else if (depth_ == 0 && (c == ',' || kBlanks.find(c) != std::string_view::npos)) {
        ended_ = true;
        return at;
      }
      ++at;
    }
    return at;
  }

  bool ended() const { return ended_; }
  // A scalar ends where the input does.
  bool may_end() const { return depth_ == 0 && !in_string_; }

 private:
  size_t InString(std::string_view text) {
    size_t at{0};
    while (at < text.size()) {
      if (is_escaped_) {
        is_escaped_ = false;
        ++at;
        continue;
      }
      const size_t special{text.find_first_of("\"\\", at)};
      if (special == std::string_view::npos) return text.size();
      at = special + 1;
      if (text[special] == '\\') {
        is_escaped_ = true;
        continue;
      }
      in_string_ = false;
      ended_ = depth_ == 0;
      break;
    }
    return at;
  }

  uint64_t depth_{0};
  bool in_string_{false};
  bool is_escaped_{false};
  bool ended_{false};
};

}  // namespace

Status JsonCursor::Error(const std::string& text) const {
  return Status::Error(ErrorCode::kErr, path_ + ": line " + std::to_string(line_) + ", byte " +
                                            std::to_string(offset()) + ": " + text);
}

void JsonCursor::Consume(size_t bytes) {
  const std::string_view taken{input_->View().substr(0, bytes)};
  line_ += static_cast<uint64_t>(std::count(taken.begin(), taken.end(), '\n'));
  input_->Consume(bytes);
}

Result<char> JsonCursor::Peek() {
  while (true) {
    const std::string_view view{input_->View()};
    const size_t at{std::min(view.find_first_not_of(kBlanks), view.size())};
    Consume(at);
    if (at < view.size()) return input_->View().front();
    ASSIGN_OR_RETURN(const bool more, input_->Fill());
    if (!more) return '\0';
  }
}

Status JsonCursor::Take(char expected) {
  ASSIGN_OR_RETURN(const char found, Peek());
  if (found == expected) {
    Consume(1);
    return Status::Ok();
  }
  const std::string wanted{std::string("'") + expected + "' must stand here, not "};
  if (found == '\0') return Error("the input ends here, but more must follow");
  return Error(wanted + "'" + found + "'");
}

Status JsonCursor::Scan(std::string* text) {
  ASSIGN_OR_RETURN(const char first, Peek());
  if (first == '\0') return Error("the input ends here, but more must follow");
  if (first == ',' || first == ':' || first == ']' || first == '}') {
    return Error(std::string("a value must stand here, not '") + first + "'");
  }
  Extent extent;
  while (!extent.ended()) {
    const size_t taken{extent.Take(input_->View())};
    if (text != nullptr) {
      if (text->size() + taken > kValueBytesMax) {
        return Error("a value of more than 256 MiB");
      }
      text->append(input_->View().substr(0, taken));
    }
    Consume(taken);
    if (extent.ended()) break;
    ASSIGN_OR_RETURN(const bool more, input_->Fill());
    if (more) continue;
    return extent.may_end() ? Status::Ok() : Error("the input ends inside a value");
  }
  return Status::Ok();
}

Status JsonCursor::ReadValue(std::string* text) {
  text->clear();
  return Scan(text);
}

Status JsonCursor::SkipValue() { return Scan(nullptr); }

Status JsonCursor::ReadName(std::string* name) {
  ASSIGN_OR_RETURN(const char first, Peek());
  if (first != '"') return Take('"');
  std::string text;
  RETURN_IF_ERROR(ReadValue(&text));
  const Result<JsonTree> tree = JsonTree::Parse(text);
  if (!tree.ok()) return Error("a name is not JSON");
  *name = tree->text;
  return Take(':');
}

Result<bool> JsonCursor::Next(char close, bool* is_first) {
  ASSIGN_OR_RETURN(const char next, Peek());
  if (next == close) {
    RETURN_IF_ERROR(Take(close));
    return false;
  }
  if (!*is_first) RETURN_IF_ERROR(Take(','));
  *is_first = false;
  return true;
}

}  // namespace cellar::importer
