// See config_sources.h.
#include "commands/config/config_sources.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/os/file.h"
#include "base/text/quote.h"
#include "base/text/sealed_text.h"
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
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(FileSystem::Posix(), path));
  if (SealOfOptions(text) == Seal::kWrong)
    return Status::Error(ErrorCode::kErr,
                         path +
                             ": its checksum is wrong: the file is damaged, or was changed by "
                             "hand. If it is right as it is, take its first and last line out");
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

Status Refused(std::string why) { return Status::Error(ErrorCode::kErr, std::move(why)); }

// Of "user name rules".
std::string_view NameOfUserLine(std::string_view line) {
  const size_t begin = line.find(' ') + 1;
  return line.substr(begin, line.find(' ', begin) - begin);
}

// Whether a start that reads `read` has the users that there are.
Status CheckUsers(const Config& read, const ConfigUsers& users) {
  size_t found = 0;
  for (const std::vector<std::string>& words : read.users) {
    const auto line = std::find_if(
        users.lines.begin(), users.lines.end(),
        [&words](const std::string& each) { return NameOfUserLine(each) == words[0]; });
    if (line == users.lines.end()) {
      return Refused("the user " + Quote(words[0]) +
                     " is gone, and a file that is only read defines it: take it out there");
    }
    ASSIGN_OR_RETURN(const std::string read_line, users.line_of(words));
    if (read_line != *line) {
      return Refused("the user " + Quote(words[0]) +
                     " has changed, and a file that is only read defines it: change it there");
    }
    ++found;
  }
  if (users.plain || found == users.lines.size()) return Status::Ok();
  return Refused("the file would not define all users");
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

Status ConfigSources::Rewrite(Config config, const ConfigUsers& users) {
  CELLAR_ASSERT(can_rewrite());
  if (clients_wanted_ > 0 && config.maxclients == clients_fit_) config.maxclients = clients_wanted_;
  RETURN_IF_ERROR(override_path_.empty() ? RewriteFile(config, users)
                                         : RewriteOverride(config, users));
  if (!NamesOption(command_line_, *FindConfigOption("requirepass")))
    all_.requirepass = config.requirepass;
  return Status::Ok();
}

// The users that an included file has stay there: a second line of a name would be an error.
Status ConfigSources::RewriteFile(const Config& config, const ConfigUsers& users) const {
  FileSystem& files = FileSystem::Posix();
  std::string text;
  ASSIGN_OR_RETURN(const bool exists, files.Exists(file_));
  if (exists) RETURN_IF_ERROR(ReadWholeFile(files, file_, &text));
  std::vector<std::string> lines;
  if (!users.plain) lines = users.lines;
  for (const std::vector<std::string>& included : IncludedUsers(text)) {
    std::erase_if(lines, [&included](const std::string& line) {
      return NameOfUserLine(line) == included[0];
    });
  }
  text = RewriteConfigText(config, lines, text);
  Config read;
  RETURN_IF_ERROR(ReadConfigText(&read, text, file_));
  for (const ConfigOption& option : ConfigOptions()) {
    if (ConfigOptionText(read, option) != ConfigOptionText(config, option))
      return Refused("the file would not set " + Quote(option.name) + " to what it is");
  }
  RETURN_IF_ERROR(CheckUsers(read, users));
  return ReplaceFile(file_, text);
}

Status ConfigSources::RewriteOverride(const Config& config, const ConfigUsers& users) const {
  const std::string text =
      OverrideText(config, users.plain ? std::vector<std::string>() : users.lines);
  Config read;
  if (!file_.empty()) RETURN_IF_ERROR(ReadConfigFile(&read, file_));
  Config over = read;
  over.users.clear();
  RETURN_IF_ERROR(ReadConfigText(&over, text, override_path_));
  if (over.users.empty()) over.users = std::move(read.users);
  RETURN_IF_ERROR(CheckUsers(over, users));
  return ReplaceFile(override_path_, text);
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
  return SealOptions(std::move(text));
}

}  // namespace cellar
