// ScatterTask: what the commands over several sets have in common: which set has which rows of the
// table by this node's map, how a set is asked for its rows, and what becomes of the answers.
//
// The map may be old, and a set may be electing its leader. A piece that a set does not own is
// bounced as a whole; then the map is looked at again, as long as cluster-wait lets it, and behind
// that the command fails: TRYAGAIN. A set that cannot be asked makes it fail: CLUSTERDOWN. Of a
// change the client hears when every set has answered, so that nothing of it is done behind its
// reply; if nobody can say what has become of a part, its connection is closed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/lsn.h"
#include "cluster/map_cache.h"
#include "commands/cluster/call_piece.h"
#include "commands/cluster/command_route.h"
#include "commands/cluster/tracked_sets.h"
#include "commands/session/command_context.h"
#include "commands/session/task.h"
#include "commands/session/tracking.h"
#include "engine/keys/key_range_set.h"

namespace cellar {

class ScatterChoice;
class Table;

// By set: what it has of `rows`. False: some of it is nobody's by this map (null: it has nothing of
// the table). O(tablets)
[[nodiscard]] bool DivideRows(const MapTable* map, const KeyRangeSet& rows,
                              std::map<uint64_t, KeyRangeSet>* parts);
// The rows of one set that begin where `from` does, or, in reverse, end where it ends, tablets that
// stand side by side as one range. False: these rows are nobody's. REQUIRES: `from` is not empty.
[[nodiscard]] bool FindRun(const MapTable* map, const KeyRange& from, bool reverse, uint64_t* set,
                           KeyRange* run);
// The rows of the selectors; of those that are wrong, all: who is asked says what is wrong.
KeyRangeSet RowsOf(const Table& table, const std::vector<RowSelector>& rows);

class ScatterTask : public Task {
 public:
  ScatterTask(const CommandContext& ctx, const Table& table);
  ~ScatterTask() override;
  TaskProgress Step(TaskContext& context) final;
  // It reads this table of a snapshot in the place of the client's, which was that table. REQUIRES:
  // nothing was asked yet.
  void ReadFrozen(const Table& frozen);
  // Of a page: whether it was the last one. REQUIRES: it is done.
  virtual bool at_end() const { return false; }

 protected:
  // Asks what there is to ask and takes what has come. kDone: it has replied, or has failed.
  virtual TaskProgress Advance(TaskContext& context) = 0;
  // Of cursors that it gives out.
  virtual void SetPin(uint64_t) {}

  Host& host() const { return host_; }
  const MapTable* map() const { return MapOf(host_).Find(table_id_); }
  // With which set some of these rows are lost, as far as this node knows: before a change of rows
  // that would be made in part.
  std::optional<uint64_t> LostAmong(const KeyRangeSet& rows) const;
  uint64_t table_id() const { return table_id_; }
  const std::string& table_name() const { return table_name_; }
  std::vector<std::string>& words() { return words_; }
  bool failed() const { return failed_; }
  bool writes() const { return writes_; }

  // The piece of the client's command, as words() has it. A ticket, for Take.
  uint64_t Ask(uint64_t set, const CallPiece& piece);
  uint64_t Ask(uint64_t set, const CallPiece& piece, std::span<const std::string_view> words);
  enum class Came : uint8_t {
    kNothing,  // yet
    kReply,    // which is no error
    kMoved,    // it is to be asked anew, of whoever has it now
    kError,    // *reply is the line
    kUnknown,  // the client's connection is being closed
  };
  // What has come of an ask, which is gone then, unless nothing has.
  Came Take(uint64_t ticket, std::string* reply);
  // Of one that asks a set at a time: what has come of *ticket, if it is a reply. Else how the step
  // ends.
  std::optional<TaskProgress> TakeOnly(TaskContext& context, std::optional<uint64_t>* ticket,
                                       std::string* reply);
  bool asks() const { return !tickets_.empty(); }
  // It goes on.
  void NoteProgress() { waits_since_micros_ = 0; }
  // Somebody has rows that this node does not know of. kDone: it has waited for too long, and has
  // failed.
  TaskProgress Wait(TaskContext& context);
  void Fail(TaskContext& context, std::string_view line);
  // What is to stand behind the line of any error.
  virtual std::string EndOfErrors() const { return {}; }

 private:
  friend class ScatterChoice;  // which asks for the task that it chooses for
  Host& host_;
  Session& session_;
  uint64_t table_id_;
  std::string table_name_;
  std::string inner_name_;  // by which others know it; empty: by the same
  const Lsn depends_on_;
  const bool writes_;
  std::vector<std::string> words_;
  std::vector<Tracking::ReadName> read_names_;  // that a client that tracks keeps
  TrackedSets::Mark read_mark_;
  std::vector<uint64_t> tickets_;  // under way
  int64_t waits_since_micros_{0};  // monotonic; 0: it does not
  bool failed_{false};
};

}  // namespace cellar
