// CSCAN ... SNAPSHOT of a table whose rows lie on several sets: all pages show one moment.
//
//   first page    set 0 is asked for a snapshot of the table, at a cut (CLUSTER CURSOR OPEN)
//   each page     a scan of the snapshot's table, whose id the cursor has; set 0 hears of it
//   last page     set 0 drops the snapshot
//
// It is a named snapshot but for its name, which no client gives and none is shown: so the cursor
// is good at any node, over moves, restarts and changes of leaders, until it was not used for
// snapshot-cursor-timeout.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cellar/lsn.h"
#include "commands/cluster/scatter_task.h"
#include "commands/session/task.h"

namespace cellar {

class CursorScan final : public Task {
 public:
  // `page` is a scan of the live table; `frozen`: what the cursor is of; null: it begins.
  CursorScan(CommandContext& ctx, const Table& live, std::unique_ptr<ScatterTask> page,
             const Table* frozen);
  ~CursorScan() override;

  TaskProgress Step(TaskContext& context) override;
  bool Streams() const override { return page_->Streams(); }
  char FirstByte() const override { return page_->FirstByte(); }
  size_t reply_bytes() const override { return page_->reply_bytes(); }
  size_t memory_bytes() const override { return page_->memory_bytes(); }

 private:
  uint64_t Ask(std::string_view word, std::string_view what);
  // False: it waits, or has failed.
  bool Open(TaskContext& context, bool* failed);

  Host& host_;
  Session& session_;
  const std::string table_;  // keyspace/table
  std::unique_ptr<ScatterTask> page_;
  uint64_t frozen_id_{0};
  std::optional<uint64_t> ticket_{};
  int64_t deadline_micros_{0};
  bool opened_{false};
};

// What a cursor of such a scan reads; null: it is gone, or is none of this table.
const Table* FrozenOfCursor(Host& host, const Table& live, uint64_t pin);

// Whether these words of a call between nodes are that.
bool IsCursorCall(std::span<const std::string_view> words);
// CLUSTER CURSOR OPEN table | USE id | CLOSE id: what nodes ask set 0.
void CmdClusterCursor(CommandContext& ctx);

}  // namespace cellar
