// Parameters of a question, as the page sends them: texts under names.
//
// A name that ends in 64 says that the text is in base64: names and keys are any bytes. A list is
// base64 words with dots between, a list of lists has commas between those.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"

namespace cellar::web {

// The value of a parameter; nothing if it was not given.
using Parameters = std::function<std::optional<std::string>(std::string_view name)>;

struct NumberBounds {
  uint64_t usual;
  uint64_t min;
  uint64_t max;
};

// Reads parameters. The first that is wrong is remembered, and what is read of a wrong one is
// empty.
class ParameterReader {
 public:
  explicit ParameterReader(const Parameters& parameters) : parameters_(parameters) {}

  std::optional<std::string> Optional(const std::string& name);
  std::string Text(const std::string& name);
  uint64_t Number(const std::string& name, NumberBounds bounds);
  bool Flag(const std::string& name);
  // Only as `name`64. Empty: it was not given.
  std::vector<std::string> List(const std::string& name);
  std::vector<std::vector<std::string>> Lists(const std::string& name);
  void Complain(std::string mistake);
  // ERR with what was wrong first.
  Status status() const;

 private:
  std::vector<std::string> Words(const std::string& name, std::string_view list);

  const Parameters& parameters_;
  std::string mistake_;
};

// Nothing if it is none. Takes both alphabets, with padding or without.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace cellar::web
