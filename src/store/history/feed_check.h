// The part of --check that reads feeds: every entry of every feed is decoded from the log once, so
// that a record is found that no reader could get past.
#pragma once

#include <iosfwd>
#include <string>

#include "base/os/file.h"
#include "cellar/lsn.h"
#include "cellar/status.h"
#include "engine/feeds/feed_set.h"

namespace cellar {

// `feeds` as the store in `directory` has them at its end, which is sound; `shown`: the last record
// that readers may be shown. Prints a line for each feed that cannot be read. kCorruption if any
// cannot.
Status CheckFeeds(FileSystem& files, const std::string& directory, const FeedSet& feeds, Lsn shown,
                  std::ostream& out);

}  // namespace cellar
