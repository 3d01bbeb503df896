// What clients may make the server hold: the options client-output-buffer-limit, of one client, and
// maxmemory-clients, of all together.
#pragma once

#include <string>

#include "cellar/status.h"

namespace cellar {

struct Config;

Status CheckOutputLimits(std::string* text);
void DeriveOutputLimits(Config* config);
Status CheckMaxmemoryClients(std::string* text);
void DeriveMaxmemoryClients(Config* config);

}  // namespace cellar
