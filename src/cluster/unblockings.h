// Unblockings: who has asked the owner of a client's calls to end their waiting (CLIENT UNBLOCK),
// and what each of them is told. Plain data.
//
//   Ask ---> Answered, no: told at once
//        `-> Answered, yes ---> Replied: told that it is so
//                          `--> Lost: told that it is not
//
// That a client waits no more is told once its reply is here: what is lost before is asked again,
// and then waits anew.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace cellar {

class Unblockings {
 public:
  struct Told {
    uint64_t ticket;
    bool done;
  };

  // REQUIRES: the call is not one before the last that was asked about.
  void Ask(uint64_t call, uint64_t ticket) { asked_.push_back({call, ticket, false}); }
  // The owner's answer to the oldest question about that call, if there still is one.
  std::vector<Told> Answered(uint64_t call, bool done);
  // Calls before that one have been answered.
  std::vector<Told> Replied(uint64_t first);
  // The calls' channel is gone.
  std::vector<Told> Lost();

 private:
  struct Question {
    uint64_t call;
    uint64_t ticket;
    bool done;
  };
  std::deque<Question> asked_;
};

}  // namespace cellar
