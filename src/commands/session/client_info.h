// A client as CLIENT LIST and CLIENT INFO show it, and the classes that CLIENT KILL TYPE and the
// output limits know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "commands/config/config.h"
#include "commands/session/session.h"

namespace cellar {

// One line, with a newline. `now_micros` is the wall clock.
std::string ClientLine(const Session& session, int64_t now_micros);

ClientClass ClassOf(const Session& session);
// "normal", "master", "replica" (or "slave"), "pubsub"; nullopt for another word. There are no
// masters among the clients: that class is empty.
struct ClientType {
  bool none{false};  // nobody is of this type
  ClientClass value{ClientClass::kNormal};
};
std::optional<ClientType> ClientTypeOfWord(std::string_view word);

}  // namespace cellar
