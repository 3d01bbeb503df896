// See command_form.h.
#include "commands/catalog/command_form.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/text/ascii.h"

namespace cellar {
namespace {

constexpr size_t kWholeBytesMax{120};
constexpr std::string_view kOptions{"[option ...]"};

// Behind the bracket that opens at `at`, and dots behind it.
size_t EndOfBrackets(std::string_view syntax, size_t at) {
  int depth = 0;
  do {
    depth += syntax[at] == '[' ? 1 : syntax[at] == ']' ? -1 : 0;
  } while (++at < syntax.size() && depth > 0);
  while (at < syntax.size() && syntax[at] == '.') ++at;
  return at;
}

// Brackets at any depth of parentheses become "[option ...]", those that follow one another one.
std::string WithoutOptions(std::string_view syntax) {
  std::string form;
  for (size_t at = 0; at < syntax.size();) {
    if (syntax[at] != '[') {
      form.push_back(syntax[at++]);
      continue;
    }
    at = EndOfBrackets(syntax, at);
    const std::string_view last = std::string_view(form).substr(0, form.find_last_not_of(' ') + 1);
    if (last.ends_with(kOptions)) {
      form.resize(last.size());
    } else {
      form += kOptions;
    }
  }
  return form;
}

}  // namespace

std::string CommandForm(const CommandEntry& command) {
  std::string form = UpperText(command.full_name);
  std::replace(form.begin(), form.end(), '|', ' ');
  const std::string_view syntax = command.row->syntax;
  if (syntax.empty()) return form;
  form.push_back(' ');
  return form + (syntax.size() <= kWholeBytesMax ? std::string(syntax) : WithoutOptions(syntax));
}

std::string FormBehindError(const CommandEntry& command) {
  constexpr std::string_view kOwnGroups[]{"cell", "schema"};
  const std::string_view group = command.row->group;
  const bool is_own =
      std::find(std::begin(kOwnGroups), std::end(kOwnGroups), group) != std::end(kOwnGroups);
  return is_own ? ": " + CommandForm(command) : std::string();
}

Status WithForm(const CommandEntry& command, const Status& status) {
  if (status.ok()) return status;
  return Status::Error(status.code(), std::string(status.text()) + FormBehindError(command));
}

}  // namespace cellar
