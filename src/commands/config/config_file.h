// The configuration file and the command line, in redis.conf's style.
//
//   # comment
//   name word [word ...]        words in quotes as in redis-cli
//   include other.conf          a pattern stands for all files that match it, or none
//
// On the command line `--name word ...` is one line; several words go on until the next `--`. A
// name that may be repeated (save, client-output-buffer-limit) adds up within one source; the
// command line beats the file. `user name rule ...` makes a user (acl.h), each name once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/config/config.h"

namespace cellar {

// For the error of an option that there is not: ", did you mean 'port'?", or nothing.
std::string NearConfigOption(std::string_view word);

// Reads `text` into `config`. The error names `source` and each line that is at fault, up to
// twenty; the others have been read then.
Status ReadConfigText(Config* config, std::string_view text, std::string_view source);
// Reads a file, and the files it includes.
Status ReadConfigFile(Config* config, const std::string& path);
// `words` are the arguments behind the file name.
Status ReadCommandLine(Config* config, const std::vector<std::string>& words);

// CONFIG REWRITE: `text` with the values of `config`: lines of known options are replaced where
// they stand, comments and order stay, what it and the files that it includes do not say is added
// at the end. `user` lines make room for `user_lines`.
std::string RewriteConfigText(const Config& config, const std::vector<std::string>& user_lines,
                              std::string_view text);
// A line that sets `option`.
std::string ConfigLine(const ConfigOption& option, const std::string& value);
// The users that files define which `text` includes, as far as these can be read.
std::vector<std::vector<std::string>> IncludedUsers(std::string_view text);

}  // namespace cellar
