// ConfigSources: where the options of a running server come from, and where CONFIG REWRITE puts
// them. A later source beats an earlier one:
//
//   cellar.conf       and what it includes
//   the override file the one that `override-file` names; a relative name is one in `dir`
//   the command line
//
// Without an override file CONFIG REWRITE writes cellar.conf anew, as Redis does. With one, as the
// package has it, cellar.conf belongs to the operator and is only read: the server may lack the
// right to write it. The override file belongs to the server. CONFIG REWRITE puts there what
// differs from cellar.conf, and nothing else: an option that is set back leaves the file, one that
// only the command line has set does not enter it. The file need not exist.
//
// `user` lines in the override file replace those of cellar.conf.
#pragma once

#include <string>
#include <vector>

#include "cellar/status.h"
#include "commands/config/config.h"

namespace cellar {

class ConfigSources {
 public:
  ConfigSources() = default;
  // `file` is absolute, or empty if there is none; `command_line` is what stood behind its name.
  ConfigSources(std::string file, std::vector<std::string> command_line)
      : file_(std::move(file)), command_line_(std::move(command_line)) {}

  const std::string& file() const { return file_; }
  // Whether CONFIG REWRITE has a file to write.
  bool can_rewrite() const { return !file_.empty() || !override_path_.empty(); }

  // Reads all sources into *config; an option that none of them names stays as it is. On an error,
  // which names file and line, nothing has changed.
  Status Read(Config* config);

  // CONFIG REWRITE of `config`, in which all users are `user_lines` (empty: as at first start).
  // The new file takes the old one's place when it is on disk. REQUIRES: can_rewrite().
  Status Rewrite(const Config& config, const std::vector<std::string>& user_lines) const;

 private:
  // Read; `defaults` are those of options that no source names.
  Status ReadOver(const Config& defaults, Config* config);
  std::string OverrideText(const Config& config, const std::vector<std::string>& user_lines) const;

  std::string file_;
  std::vector<std::string> command_line_;
  // As they were read last.
  std::string override_path_;  // empty: there is no override file
  Config base_;                // without override file and command line
  Config overridden_;          // without the command line
  Config all_;
};

}  // namespace cellar
