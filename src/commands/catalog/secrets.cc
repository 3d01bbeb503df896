// See secrets.h.
#include "commands/catalog/secrets.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "commands/config/config.h"

namespace cellar {
namespace {

constexpr std::string_view kRedacted{"(redacted)"};

using Words = std::vector<std::string_view>;

void HideFrom(Words* words, size_t first) {
  for (size_t i = first; i < words->size(); ++i) (*words)[i] = kRedacted;
}

// The two words behind each AUTH.
void HideCredentials(Words* words) {
  for (size_t i = 1; i < words->size(); ++i) {
    if (!EqualsIgnoreCase((*words)[i], "auth")) continue;
    const size_t end = std::min(words->size(), i + 3);
    while (++i < end) (*words)[i] = kRedacted;
    // It stands behind the words that were hidden, and the loop adds one.
    --i;
  }
}

// Options of Redis that people set though there are none here count too.
bool IsSecretOption(std::string_view name) {
  const ConfigOption* const option = FindConfigOption(name);
  if (option != nullptr) return (option->flags & kConfigHidden) != 0;
  constexpr std::string_view kPass{"-pass"};
  return EqualsIgnoreCase(name, "masterauth") || EqualsIgnoreCase(name, "masteruser") ||
         (name.size() > kPass.size() &&
          EqualsIgnoreCase(name.substr(name.size() - kPass.size()), kPass));
}

}  // namespace

Arguments WithoutSecrets(const CommandEntry& command, Arguments args) {
  const std::string_view name = command.full_name;
  const bool is_acl = name == "acl|setuser" || name == "acl|deluser";
  if (name != "auth" && name != "hello" && name != "config|set" && !is_acl) {
    return args;
  }
  static Words shown;  // the loop's thread alone dispatches commands
  shown.assign(args.begin(), args.end());
  if (name == "auth") {
    HideFrom(&shown, 1);
  } else if (is_acl) {
    HideFrom(&shown, 2);
  } else if (name == "hello") {
    HideCredentials(&shown);
  } else {
    for (size_t i = 2; i + 1 < shown.size(); i += 2) {
      if (IsSecretOption(shown[i])) shown[i + 1] = kRedacted;
    }
  }
  return shown;
}

}  // namespace cellar
