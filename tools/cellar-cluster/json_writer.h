// JSON, member by member. Texts are any bytes: what is not UTF-8 is {"b64": ...}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "client/json_text.h"

namespace cellar::cluster_tool {

class JsonWriter {
 public:
  // Name of the next member. REQUIRES: within an object.
  JsonWriter& Name(std::string_view name) {
    Separate();
    client::AppendJsonString(name, &text_);
    text_ += ':';
    is_first_ = true;
    return *this;
  }
  void Text(std::string_view value) {
    Separate();
    client::AppendJsonText(value, &text_);
  }
  void Number(uint64_t value) {
    Separate();
    text_ += std::to_string(value);
  }
  void Number(const std::optional<uint64_t>& value) {
    Separate();
    text_ += value ? std::to_string(*value) : "null";
  }
  void Flag(bool value) {
    Separate();
    text_ += value ? "true" : "false";
  }
  void BeginObject() { Begin('{'); }
  void EndObject() { End('}'); }
  void BeginList() { Begin('['); }
  void EndList() { End(']'); }

  // The whole, as a line.
  std::string Take() {
    CELLAR_ASSERT(depth_ == 0);
    return std::move(text_) + "\n";
  }

 private:
  void Separate() {
    if (!is_first_) text_ += ',';
    is_first_ = false;
  }
  void Begin(char mark) {
    Separate();
    text_ += mark;
    ++depth_;
    is_first_ = true;
  }
  void End(char mark) {
    CELLAR_ASSERT(depth_ > 0);
    text_ += mark;
    --depth_;
    is_first_ = false;
  }

  std::string text_;
  int depth_{0};
  bool is_first_{true};
};

}  // namespace cellar::cluster_tool
