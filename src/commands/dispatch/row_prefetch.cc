// See row_prefetch.h.
#include "commands/dispatch/row_prefetch.h"

#include <span>

#include "base/assert.h"
#include "commands/session/host.h"
#include "commands/session/session.h"
#include "commands/session/transaction.h"
#include "store/store.h"

namespace cellar {

void RowPrefetch::Begin(const Session& session) {
  // Of a restricted user nothing is read before access control has been asked.
  left_out_ = session.restricted || session.transaction != nullptr;
  if (EqualBytes(session.keyspace, keyspace_)) return;
  // What was gathered is of a table of the old keyspace.
  Ask();
  keyspace_ = session.keyspace;
  ForgetTable();
}

void RowPrefetch::BeginTable(std::string_view name) {
  Ask();
  name_ = name;
  table_ = host_.loading() ? nullptr : host_.store().TableToPrefetch(keyspace_, name);
}

void RowPrefetch::Flush() {
  Ask();
  // `keyspace_`, `name_` and the rows borrow from sessions and requests, which may go from now on.
  left_out_ = true;
  keyspace_ = {};
  ForgetTable();
}

void RowPrefetch::Ask() {
  CELLAR_DEBUG_ASSERT(count_ <= rows_.size());
  CELLAR_DEBUG_ASSERT(count_ == 0 || table_ != nullptr);
  // One alone has nothing to wait beside.
  if (count_ > 1) host_.store().PrefetchRows(*table_, std::span(rows_).first(count_));
  count_ = 0;
}

}  // namespace cellar
