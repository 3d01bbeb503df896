// See parameters.h.
#include "cellar-web/parameters.h"

#include <charconv>
#include <utility>

namespace cellar::web {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t end = 0;
  while ((end = text.find(separator)) != std::string_view::npos) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  parts.push_back(text);
  return parts;
}

}  // namespace

std::optional<std::string> ParameterReader::Optional(const std::string& name) {
  if (auto plain = parameters_(name)) return plain;
  const auto encoded = parameters_(name + "64");
  if (!encoded) return std::nullopt;
  auto bytes = DecodeBase64(*encoded);
  if (!bytes) Complain(name + "64 is not base64");
  return bytes;
}

std::string ParameterReader::Text(const std::string& name) {
  auto value = Optional(name);
  if (!value) Complain("the parameter " + name + " is missing");
  return value.value_or(std::string());
}

uint64_t ParameterReader::Number(const std::string& name, NumberBounds bounds) {
  const auto value = parameters_(name);
  if (!value) return bounds.usual;
  uint64_t number = 0;
  const char* const end = value->data() + value->size();
  const auto [stopped, error] = std::from_chars(value->data(), end, number);
  if (error == std::errc() && stopped == end && number >= bounds.min && number <= bounds.max)
    return number;
  Complain("the parameter " + name + " is not a number from " + std::to_string(bounds.min) +
           " to " + std::to_string(bounds.max));
  return bounds.usual;
}

bool ParameterReader::Flag(const std::string& name) {
  return Number(name, {.usual = 0, .min = 0, .max = 1}) == 1;
}

std::vector<std::string> ParameterReader::Words(const std::string& name, std::string_view list) {
  std::vector<std::string> words;
  for (const std::string_view part : Split(list, '.')) {
    auto word = DecodeBase64(part);
    if (!word) Complain(name + "64 is not base64");
    words.push_back(std::move(word).value_or(std::string()));
  }
  return words;
}

std::vector<std::string> ParameterReader::List(const std::string& name) {
  const auto list = parameters_(name + "64");
  return list ? Words(name, *list) : std::vector<std::string>();
}

std::vector<std::vector<std::string>> ParameterReader::Lists(const std::string& name) {
  std::vector<std::vector<std::string>> lists;
  const auto text = parameters_(name + "64");
  if (!text) return lists;
  for (const std::string_view list : Split(*text, ',')) lists.push_back(Words(name, list));
  return lists;
}

void ParameterReader::Complain(std::string mistake) {
  if (mistake_.empty()) mistake_ = std::move(mistake);
}

Status ParameterReader::status() const {
  return mistake_.empty() ? Status::Ok() : Status::Error(ErrorCode::kErr, mistake_);
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    uint32_t digit = 0;
    if (c >= 'A' && c <= 'Z') {
      digit = static_cast<uint32_t>(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      digit = static_cast<uint32_t>(c - 'a') + 26;
    } else if (c >= '0' && c <= '9') {
      digit = static_cast<uint32_t>(c - '0') + 52;
    } else if (c == '+' || c == '-') {
      digit = 62;
    } else if (c == '/' || c == '_') {
      digit = 63;
    } else {
      return std::nullopt;
    }
    bits = bits << 6 | digit;
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<char>(bits >> held & 0xff));
  }
  return bytes;
}

}  // namespace cellar::web
