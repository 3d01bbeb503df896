// See large_intake.h.
#include "server/connection/large_intake.h"

#include <algorithm>

#include "base/assert.h"
#include "server/connection/connection.h"

namespace cellar {

bool LargeIntake::AdmitsLarge(Connection* connection, size_t bytes) {
  CELLAR_ASSERT(!connection->held_over);
  // Nobody passes those that were there before.
  const bool others_wait = !resuming_ && !held_.empty();
  if (!others_wait && !IsFull(bytes)) {
    taken_bytes_ += bytes;
    return true;
  }
  connection->held_over = true;
  held_.push_back(connection);
  return false;
}

void LargeIntake::Resume() {
  CELLAR_ASSERT(!resuming_);
  resuming_ = true;
  resumed_.swap(held_);
  for (Connection*& place : resumed_) {
    if (place == nullptr) continue;
    Connection* const connection = place;
    place = nullptr;
    if (IsFull(kLargeBytes)) {
      held_.push_back(connection);
      continue;
    }
    connection->held_over = false;
    connection->Feed({}, {});
  }
  resumed_.clear();
  resuming_ = false;
}

void LargeIntake::Forget(Connection* connection) {
  if (!connection->held_over) return;
  connection->held_over = false;
  std::erase(held_, connection);
  std::replace(resumed_.begin(), resumed_.end(), connection, static_cast<Connection*>(nullptr));
}

}  // namespace cellar
