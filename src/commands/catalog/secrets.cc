// See secrets.h.
#include "commands/catalog/secrets.h"

#include <string_view>
#include <vector>

namespace cellar {

Arguments WithoutSecrets(const CommandEntry& command, Arguments args) {
  // The loop's thread alone dispatches commands.
  static std::vector<std::string_view> shown;
  constexpr std::string_view kRedacted = "(redacted)";
  const std::string_view name = command.full_name;
  size_t first = args.size();
  if (name == "auth") first = 1;
  if (name == "acl|setuser" || name == "acl|deluser") first = 2;
  if (name == "hello" || name == "config|set") first = 1;
  if (first >= args.size()) return args;
  shown.assign(args.begin(), args.end());
  for (size_t i = first; i < args.size(); ++i) {
    if (name == "hello") {
      if (EqualsIgnoreCase(args[i], "auth")) {
        if (i + 1 < args.size()) shown[i + 1] = kRedacted;
        if (i + 2 < args.size()) shown[i + 2] = kRedacted;
      }
    } else if (name == "config|set") {
      if (EqualsIgnoreCase(args[i], "requirepass") && i + 1 < args.size()) shown[i + 1] = kRedacted;
    } else {
      shown[i] = kRedacted;
    }
  }
  return shown;
}

}  // namespace cellar
