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

#include <functional>
#include <string>
#include <vector>

#include "cellar/status.h"
#include "commands/config/config.h"

namespace cellar {

// The users as CONFIG REWRITE writes them.
struct ConfigUsers {
  std::vector<std::string> lines;  // "user name rules" of all; none where they are an aclfile's
  bool plain{false};               // as at first start: no line is needed
  // The line of the user that the words of a `user` line make.
  std::function<Result<std::string>(const std::vector<std::string>& words)> line_of;
};

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

  // CONFIG REWRITE of `config` and the users.
  // What the file includes holds is not written again. The new text is read as a start would read
  // it, and takes the old one's place, once it is on disk, only if it says what is to be said.
  // REQUIRES: can_rewrite().
  Status Rewrite(Config config, const ConfigUsers& users);
  // The password of the default user that the next start knows without an aclfile.
  const std::string& requirepass() const { return all_.requirepass; }
  // The system has room for `fit` clients only, and maxclients has been lowered to that: as long as
  // it is that, the file keeps what was `wanted`. 0: it is not lowered.
  void NoteLoweredClients(int64_t wanted, int64_t fit) {
    clients_wanted_ = wanted;
    clients_fit_ = fit;
  }

 private:
  // Read; `defaults` are those of options that no source names.
  Status ReadOver(const Config& defaults, Config* config);
  std::string OverrideText(const Config& config, const std::vector<std::string>& user_lines) const;
  Status RewriteFile(const Config& config, const ConfigUsers& users) const;
  Status RewriteOverride(const Config& config, const ConfigUsers& users) const;

  std::string file_;
  std::vector<std::string> command_line_;
  // As they were read last.
  std::string override_path_;  // empty: there is no override file
  int64_t clients_wanted_{0};  // 0: maxclients is not lowered
  int64_t clients_fit_{0};
  Config base_;        // without override file and command line
  Config overridden_;  // without the command line
  Config all_;
};

}  // namespace cellar
