// See config_sources.h.
#include "commands/config/config_sources.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/os/file.h"
#include "base/text/quote.h"
#include "commands/config/config_file.h"

namespace cellar {
namespace {

bool NamesOption(const std::vector<std::string>& command_line, const ConfigOption& option) {
  return std::any_of(command_line.begin(), command_line.end(), [&option](std::string_view word) {
    return word.starts_with("--") && FindConfigOption(word.substr(2)) == &option;
  });
}

// Reads the override file, if there is one, over what cellar.conf has said.
Status ReadOverride(const std::string& path, Config* config) {
  ASSIGN_OR_RETURN(const bool exists, FileSystem::Posix().Exists(path));
  if (!exists) return Status::Ok();
  Config read = *config;
  read.users.clear();
  RETURN_IF_ERROR(ReadConfigFile(&read, path));
  for (const std::string_view name : {"dir", "override-file"}) {
    const ConfigOption& option = *FindConfigOption(name);
    if (ConfigOptionText(read, option) == ConfigOptionText(*config, option)) continue;
    return Status::Error(
        ErrorCode::kErr,
        path + ": " + Quote(name) + " cannot be set here, because it says where this file is");
  }
  if (read.users.empty()) read.users = std::move(config->users);
  *config = std::move(read);
  return Status::Ok();
}

}  // namespace

Status ConfigSources::Read(Config* config) {
  Config read = *config;
  Config defaults;
  RETURN_IF_ERROR(ReadOver(defaults, &read));
  // A member of a replica set syncs each write, unless it is told not to.
  if (!read.cluster_nodes.empty()) {
    defaults.appendfsync = static_cast<int64_t>(AppendFsync::kAlways);
    const bool first = config->cluster_nodes.empty();
    read = *config;
    if (first) read.appendfsync = defaults.appendfsync;
    RETURN_IF_ERROR(ReadOver(defaults, &read));
  }
  *config = std::move(read);
  return Status::Ok();
}

Status ConfigSources::ReadOver(const Config& defaults, Config* config) {
  Config base = defaults;
  Config overridden = *config;
  if (!file_.empty()) {
    RETURN_IF_ERROR(ReadConfigFile(&base, file_));
    RETURN_IF_ERROR(ReadConfigFile(&overridden, file_));
  }
  Config all = overridden;
  RETURN_IF_ERROR(ReadCommandLine(&all, command_line_));
  std::string path = all.override_file;
  if (!path.empty()) {
    if (!path.starts_with('/')) path = JoinPath(all.dir, path);
    RETURN_IF_ERROR(ReadOverride(path, &overridden));
    all = overridden;
    RETURN_IF_ERROR(ReadCommandLine(&all, command_line_));
  }
  override_path_ = std::move(path);
  base_ = std::move(base);
  overridden_ = std::move(overridden);
  all_ = all;
  *config = std::move(all);
  return Status::Ok();
}

Status ConfigSources::Rewrite(const Config& config,
                              const std::vector<std::string>& user_lines) const {
  CELLAR_ASSERT(can_rewrite());
  if (override_path_.empty()) return RewriteConfigFile(config, user_lines, file_);
  return ReplaceFile(override_path_, OverrideText(config, user_lines));
}

std::string ConfigSources::OverrideText(const Config& config,
                                        const std::vector<std::string>& user_lines) const {
  std::string text = "# Written by CONFIG REWRITE, which replaces it: what differs from " +
                     (file_.empty() ? "the defaults" : file_) +
                     ".\n# This file is read after that one.\n";
  for (const ConfigOption& option : ConfigOptions()) {
    std::string value = ConfigOptionText(config, option);
    // The command line speaks for one run, and nothing that counts only at a start has changed
    // since: of these the file keeps what it had.
    const bool unchanged = value == ConfigOptionText(all_, option);
    if ((option.flags & kConfigImmutable) != 0 ||
        (unchanged && NamesOption(command_line_, option))) {
      value = ConfigOptionText(overridden_, option);
    }
    if (value == ConfigOptionText(base_, option)) continue;
    text.append(ConfigLine(option, value));
  }
  for (const std::string& line : user_lines) text.append(line).append("\n");
  return text;
}

}  // namespace cellar
