// The form of a command, for errors: "CSCAN table cursor [option ...]".
#pragma once

#include <string>

#include "cellar/status.h"
#include "commands/catalog/command_table.h"

namespace cellar {

// Its name and its syntax line; a long line with options in brackets is cut to what has to be
// there, each run of options to "[option ...]".
std::string CommandForm(const CommandEntry& command);

// " CSCAN table cursor [option ...]" behind a colon for commands of Cellar's own; of those that
// Redis has too clients know the errors word by word, so nothing.
std::string FormBehindError(const CommandEntry& command);

// `status` with that behind it, for a word that another command has.
Status WithForm(const CommandEntry& command, const Status& status);

}  // namespace cellar
