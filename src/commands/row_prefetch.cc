// See row_prefetch.h.
#include "commands/row_prefetch.h"

#include <span>

#include "commands/host.h"
#include "commands/session.h"
#include "store/store.h"

namespace cellar {

void RowPrefetch::AddRow(const Session& session, const CommandEntry& command, Arguments args) {
  if (session.restricted || session.in_multi()) return;
  const auto row = static_cast<size_t>(command.row->keys.row);
  const auto table = static_cast<size_t>(command.row->keys.first);
  if (row >= args.size()) return;
  if (count_ == rows_.size() || args[table] != table_ || session.keyspace != keyspace_) {
    Flush();
    table_ = args[table];
    keyspace_ = session.keyspace;
  }
  rows_[count_++] = args[row];
}

void RowPrefetch::Flush() {
  // One alone has nothing to wait beside.
  if (count_ > 1 && !host_.loading()) {
    host_.store().PrefetchRows(keyspace_, table_, std::span(rows_).first(count_));
  }
  count_ = 0;
}

}  // namespace cellar
