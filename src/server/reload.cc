// SIGHUP: the configuration file is read again while clients are served, and what it points to. The
// log file is opened anew first, so that logrotate can rename it.
//
// An option that the file names gets the file's value, as CONFIG SET would give it; the override
// file still beats the file, the command line both, and options that none of them names stay as
// they are. What cannot be changed while the server runs is told in the log and left. Users are
// read again too, from `user` lines or the aclfile, and the files of the certificate, which may be
// new ones under the old names. All or nothing: with a mistake in one of the files, or an option
// that cannot be carried out (a port in use), the server goes on with the options, the users and
// the certificate that it had.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/os/log.h"
#include "commands/clients/acl_sessions.h"
#include "commands/clients/set_users.h"
#include "commands/config/config_sources.h"
#include "server/net/tls_context.h"
#include "server/server.h"

namespace cellar {

void Server::OnHangup() {
  BeginTurn();
  notify_.Send(fmt::format("RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=Rereading the configuration",
                           clock_.MonotonicMicros()));
  if (!SetLogFile(services_own_.config.logfile)) {
    Log(LogSeverity::kWarning, "SIGHUP: cannot open the logfile " + services_own_.config.logfile +
                                   " again, going on with the one that is open");
  }
  if (const Status status = Reload(); !status.ok()) {
    Log(LogSeverity::kWarning, "SIGHUP: nothing has changed: " + status.text());
  }
  notify_.Send("READY=1\nSTATUS=Ready to accept connections");
}

// Makes the server what its configuration says, which was `before`; `options` are the ones that
// differ. What can fail comes first: users and the certificate are read before anything is changed,
// and changed when all options stand. The password goes before the users, as at the start: their
// lines beat it.
Status Server::ApplyReload(const std::vector<const ConfigOption*>& options, const Config& before) {
  const auto comes_last = [](const ConfigOption& option) {
    return option.topic == ConfigTopic::kPassword || option.topic == ConfigTopic::kTls;
  };
  Config& config = services_own_.config;
  Acl::Users users_of_file;
  std::vector<User> users_of_lines;
  const bool password = config.requirepass != before.requirepass;
  if (!config.aclfile.empty()) {
    ASSIGN_OR_RETURN(users_of_file, ReadAclFile(*this));
  } else if (password || config.users != before.users) {
    ASSIGN_OR_RETURN(users_of_lines, ReadConfigUsers(*this));
  }
  std::unique_ptr<TlsContext> tls;
  if (tls_context_ != nullptr || config.tls_port > 0) {
    ASSIGN_OR_RETURN(tls, MakeTls());
  } else {
    RETURN_IF_ERROR(CheckTls());
  }
  for (size_t i = 0; i < options.size(); ++i) {
    if (comes_last(*options[i])) continue;
    const Status status = ApplyConfig(options[i]->topic);
    if (status.ok()) continue;
    config = before;
    for (size_t k = 0; k <= i; ++k) {
      if (!comes_last(*options[k])) (void)ApplyConfig(options[k]->topic);
    }
    return Status::Error(status.code(), std::string(options[i]->name) + ": " + status.text());
  }
  if (tls != nullptr) UseTls(std::move(tls));
  // What the files say of users counts where no replica set says it.
  if (SetUsers::AreLogged(*this)) return Status::Ok();
  if (password) {
    const Status applied = ApplyConfig(ConfigTopic::kPassword);
    CELLAR_ASSERT(applied.ok());
  }
  if (!config.aclfile.empty()) {
    InstallUsers(*this, std::move(users_of_file), LoadVictims::kChanged, nullptr);
  } else {
    PutUsers(*this, std::move(users_of_lines));
  }
  return Status::Ok();
}

// The sources are read into a copy, which takes the configuration's place before it is carried out:
// ApplyConfig reads the new values there. After a failure the old one is back. An option that needs
// a restart keeps its old value in the copy too.
Status Server::Reload() {
  Config& config = services_own_.config;
  if (services_own_.config_sources.file().empty()) {
    Log(LogSeverity::kNotice, "SIGHUP: there is no configuration file to reread");
    return ApplyReload({}, Config(config));
  }
  Config changed = config;
  changed.users.clear();
  RETURN_IF_ERROR(services_own_.config_sources.Read(&changed));
  LowerMaxClients(&changed);
  std::vector<const ConfigOption*> options;
  for (const ConfigOption& option : ConfigOptions()) {
    const std::string text = ConfigOptionText(changed, option);
    const std::string before = ConfigOptionText(config, option);
    if (text == before) continue;
    if ((option.flags & kConfigImmutable) != 0) {
      Log(LogSeverity::kWarning,
          fmt::format("SIGHUP: {} takes effect at the next start", option.name));
      RETURN_IF_ERROR(SetConfigOption(&changed, option, before));
      continue;
    }
    options.push_back(&option);
  }
  const Config before = std::exchange(config, std::move(changed));
  if (Status status = ApplyReload(options, before); !status.ok()) {
    config = before;
    return status;
  }
  for (const ConfigOption* option : options) {
    const bool hidden = (option->flags & kConfigHidden) != 0;
    Log(LogSeverity::kNotice,
        fmt::format("SIGHUP: {} is now {}", option->name,
                    hidden ? "another" : "'" + ConfigOptionText(config, *option) + "'"));
  }
  Log(LogSeverity::kNotice, fmt::format("SIGHUP: {} options have changed", options.size()));
  return Status::Ok();
}

}  // namespace cellar
