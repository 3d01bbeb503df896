// What options about other nodes may say; the text is put into its canonical form.
#pragma once

#include <string>

#include "cellar/status.h"

namespace cellar {

// Two words, host and port, or NO ONE, which is none.
Status CheckReplicaOf(std::string* text);
// It stands among other words in what is published, so it is one; letters as Sentinel has them.
// A zone or machine: at most 64 bytes.
Status CheckPlaceName(std::string* text);
Status CheckSentinelName(std::string* text);
// One word, as a host is, or nothing.
Status CheckAnnouncedHost(std::string* text);
// Words host:port, each once.
Status CheckClusterNodes(std::string* text);
Status CheckClusterJoin(std::string* text);

}  // namespace cellar
