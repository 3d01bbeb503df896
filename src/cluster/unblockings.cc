// See unblockings.h.
#include "cluster/unblockings.h"

#include <algorithm>

namespace cellar {

std::vector<Unblockings::Told> Unblockings::Answered(uint64_t call, bool done) {
  const auto question = std::find_if(asked_.begin(), asked_.end(), [call](const Question& each) {
    return each.call == call && !each.done;
  });
  if (question == asked_.end()) return {};
  question->done = done;
  if (done) return {};
  const uint64_t ticket = question->ticket;
  asked_.erase(question);
  return {{ticket, false}};
}

std::vector<Unblockings::Told> Unblockings::Replied(uint64_t first) {
  std::vector<Told> told;
  for (; !asked_.empty() && asked_.front().call < first; asked_.pop_front())
    told.push_back({asked_.front().ticket, asked_.front().done});
  return told;
}

std::vector<Unblockings::Told> Unblockings::Lost() {
  std::vector<Told> told;
  for (const Question& question : asked_) told.push_back({question.ticket, false});
  asked_.clear();
  return told;
}

}  // namespace cellar
