// Whether a feed may be read. Its name is no key of access control: what counts are the families
// that it tells of.
#pragma once

#include "commands/acl/acl_check.h"
#include "engine/feeds/feed.h"

namespace cellar {

// All families that the feed covers may be read. `rights` null: everything may.
bool MayReadFeed(const CommandRights* rights, const Feed& feed);

}  // namespace cellar
