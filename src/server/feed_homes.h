// FeedHomes: how groups of whole feeds come from one home to another (engine/feeds/feed.h,
// FeedHome). Three sets log something, each what those before it have committed:
//
//   set 0      home T from S       FEED MOVE, or S is draining; all sets have it, in the order of
//                                  the schema
//   S          has it              and changes its groups no more: it is not home
//   T          has it              and asks S for one group after the other, which it logs; then
//                                  that it has all
//   set 0      home T              once T says so; S, and whoever else has any, drops them
//
// Until T has all of them they can do nothing (TRYAGAIN). Each step may come twice, and whoever
// leads goes on from what its set has logged: S has its groups until all is over, and who begins
// anew takes each again in place of what it has.
//
// Groups whose home is a set that was given up (CLUSTER REMOVE FORCE) are lost with it: set 0 says
// which set is home from then on. Those on their way to it stay where they are, and of those on
// their way from it, what has come is what there is.
//
// The calls are steps as of moving tablets (cluster/move_steps.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "cluster/move_steps.h"
#include "server/move_calls.h"

namespace cellar {

class Host;
class Store;
struct Feed;

class FeedHomes {
 public:
  explicit FeedHomes(Host& host) : host_(host), calls_(host) {}
  ~FeedHomes();
  FeedHomes(const FeedHomes&) = delete;
  FeedHomes& operator=(const FeedHomes&) = delete;

  // Goes on with what there is to do. O(feeds) when something has changed, or is under way.
  void OnTurn();

  // What this set, whose leader this node is, has to say to one of these steps.
  static MoveAnswer Answer(Store& store, const MoveStep& step);

 private:
  // Of a feed: who is asked what, or when to ask again.
  struct Asked {
    uint64_t ticket{0};
    int64_t next_micros{0};  // monotonic
    bool has_some{false};    // of the groups
    std::string after;       // the last one that has come
    bool is_told{false};     // one that cannot be taken has been told of in the log
  };

  int64_t now() const;
  void Forget();
  void Ask(const Feed& feed, uint64_t set, MoveStep::Kind kind, Asked* asked);
  // False: there is no answer yet, or it is not the time to ask.
  bool Take(const Feed& feed, uint64_t set, MoveStep::Kind kind, MoveAnswer* answer);
  void StepArrival(const Feed& feed);
  void StepSettling(const Feed& feed);
  void LeaveDraining(const Feed& feed);
  bool LeaveLost(const Feed& feed);

  Host& host_;
  MoveCalls calls_;
  std::map<uint64_t, Asked> asked_;  // by feed
  uint64_t schema_seen_{0};
  uint32_t term_{0};
  int64_t look_micros_{0};
  bool busy_{false};
};

}  // namespace cellar
