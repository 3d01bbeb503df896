// FeedLook: whether a set has told more of a feed, asked once for all readers at this node that
// wait for it.
//
//   readers at their end --Join--> FeedLook --FEED RESOLVED f@n PAST id--> who leads the set
//                        <--news--          <- when there is an entry behind id, or after a while
//
// A reader notes `news` before it asks up to where each set tells all, and looks again when it is
// another one: what came in between is either told, or news.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "commands/session/host.h"
#include "commands/session/session.h"
#include "engine/feeds/feed.h"

namespace cellar {

class FeedLook {
 public:
  // The one for that part of a feed, f@n in the session's keyspace; made if nobody waits for it. It
  // lives for as long as somebody holds it, and no longer than `host`. `past`: the reader has
  // looked at all up to there, and looks once more if this one is further.
  static std::shared_ptr<FeedLook> Join(Host& host, const Session& session, uint64_t set,
                                        const std::string& name, const FeedId& past);
  FeedLook(Host& host, std::string key, uint64_t set, std::string name, const FeedId& past);
  ~FeedLook();
  FeedLook(const FeedLook&) = delete;
  FeedLook& operator=(const FeedLook&) = delete;

  // Another number whenever there may be more, or its set cannot be asked. Asks if nothing is being
  // asked, with the rights of `session`.
  uint64_t News(const Session& session);
  // All up to there is told by now.
  const FeedId& past() const { return past_; }

 private:
  Host& host_;
  const std::string key_;
  const uint64_t set_;
  const std::string name_;
  FeedId past_;
  uint64_t ticket_{0};  // 0: nothing is being asked
  uint64_t news_{1};
  int64_t retry_micros_{0};  // monotonic
};

}  // namespace cellar
