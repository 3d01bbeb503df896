// A client as CLIENT LIST and CLIENT INFO show it, and the classes that CLIENT KILL TYPE and the
// output limits know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cellar/status.h"
#include "commands/config/config.h"
#include "commands/session/session.h"

namespace cellar {

// One line, with a newline. `now_micros` is the wall clock.
std::string ClientLine(const Session& session, int64_t now_micros);

// Whether it gets no answer before something else has happened, as CLIENT LIST and INFO count it.
inline bool IsBlocked(const Session& session) {
  return session.task != nullptr || session.postponed || session.switches.waits_elsewhere;
}

// Whether it is a channel: a session of commands that another node has passed on. Then whose,
// "host:port".
bool IsChannel(const Session& session);
std::string_view NodeOfChannel(const Session& session);

// Whether the session may be made to keep more (Session::kept_bytes).
Status CheckKept(const Session& session, const Config& config);

ClientClass ClassOf(const Session& session);
// client-output-buffer-limit: whether more waits for the client than the hard limit of its class;
// and whether messages do that it has not asked for one by one (published, MONITOR's lines,
// invalidations): for those that of the class pubsub holds, whoever gets them.
bool BeyondHardLimit(const Session& session, const Config& config);
bool PushesBeyondLimit(const Session& session, const Config& config);
// "normal", "master", "replica" (or "slave"), "pubsub"; nullopt for another word.
std::optional<ClientClass> ClientClassOfWord(std::string_view word);

}  // namespace cellar
