// RowPrefetch: brings into the cache what commands that are about to be executed will read.
//
// Commands are added in the order in which they will run; those that name a row of the same table
// are gathered, and the store descends to all of them together. It changes nothing, and it promises
// nothing: whatever it leaves out is only slower.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/equal_bytes.h"
#include "base/inline.h"
#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"

namespace cellar {

class Host;
class Table;
struct Session;

class RowPrefetch {
 public:
  explicit RowPrefetch(Host& host) : host_(host) {}
  RowPrefetch(const RowPrefetch&) = delete;
  RowPrefetch& operator=(const RowPrefetch&) = delete;

  // The commands of this session follow, which must stay as it is until Flush.
  void Begin(const Session& session);
  // `args` must stay until Flush; `command` may be null. REQUIRES: a session has begun.
  CELLAR_INLINE void Add(const CommandEntry* command, Arguments args) {
    if (command == nullptr || left_out_) return;
    const KeySpec& keys = command->row->keys;
    const auto row = static_cast<size_t>(keys.row);
    if (row == 0 || row >= args.size()) return;
    const std::string_view table = args[static_cast<size_t>(keys.first)];
    if (count_ == rows_.size() || !EqualBytes(table, name_)) BeginTable(table);
    if (table_ != nullptr) rows_[count_++] = args[row];
  }
  // Asks for what has been added, and forgets it. To be called at the end.
  void Flush();

 private:
  // Rows of one table that are asked for together.
  static constexpr size_t kRowsMax{16};

  // Asks for the rows gathered.
  void Ask();
  // Rows of this table follow.
  void BeginTable(std::string_view name);
  void ForgetTable() {
    name_ = {};
    table_ = nullptr;
  }

  Host& host_;
  bool left_out_{true};  // the session's commands are
  std::string_view keyspace_;
  std::string_view name_;        // of the table that the last command named
  const Table* table_{nullptr};  // null: it is not worth it
  size_t count_{0};
  std::array<std::string_view, kRowsMax> rows_;
};

}  // namespace cellar
