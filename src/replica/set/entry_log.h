// EntryLog: what consensus must know of each record of the log that is retained: its term, and whom
// it names if it names members. Not its payload: a million records in three terms are three runs.
//
//   snapshot        first()                                  last()
//   |...............| term 3 ......... | term 5 .. | term 6 .. |
//                        ^ members       ^ members
//
// Indices are the records' seqs, terms their epochs. A record whose seq is not above the last one
// voids all from there on, as in the log (log_format.h). What is on the disk is therefore said by
// the number of records appended so far: (term, index) may go back when a leader of a high term
// sends what one of a low term has written, and the same record may come, go and come again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "cellar/lsn.h"
#include "replica/set/set_members.h"
#include "store/format/log_format.h"
#include "store/journal/journal.h"

namespace cellar {

class EntryLog {
 public:
  // As a start has found it. Nothing: members are named that cannot be read. O(records).
  static std::optional<EntryLog> Of(const LogShape& shape);

  // Nothing is there but a snapshot up to `snapshot`, in which these were the members. Lsn{}: none.
  void Restart(Lsn snapshot, SetMembers members);
  // REQUIRES: lsn.seq <= last().seq + 1, its epoch is not below that of the record before it, and
  // it voids nothing that a snapshot holds. False, changing nothing: a kMembers record that names
  // none.
  [[nodiscard]] bool Append(Lsn lsn, RecordKind kind, std::string_view payload);
  // A snapshot of its own; records before `first` have gone. REQUIRES: the record of `snapshot` is
  // there or is that of the snapshot before.
  void TakeSnapshot(Lsn snapshot, uint64_t first);

  uint64_t first() const { return first_; }  // behind last().seq if none is retained
  Lsn last() const { return last_; }
  Lsn snapshot() const { return snapshot_; }
  // 0: that record is not retained, nor the last one of the snapshot.
  uint32_t TermOf(uint64_t index) const;
  Lsn At(uint64_t index) const { return {TermOf(index), index}; }
  // How many records have been appended, here or to what this is a copy of.
  uint64_t appended() const { return appended_; }
  // The last record of this log that is durable if the first `appended` of these are; what a
  // snapshot holds is.
  uint64_t DurableIndex(uint64_t appended) const;

  // Those that the record at `index` or the newest before it names.
  const SetMembers& MembersAt(uint64_t index) const;
  const SetMembers& members() const { return MembersAt(UINT64_MAX); }
  // The record at `index` names members.
  bool NamesMembers(uint64_t index) const { return named_.contains(index); }

 private:
  struct Run {
    uint64_t first;
    uint32_t term;
    uint64_t ordinal;  // the first one's, counting all that were appended from 1 on
  };

  uint64_t first_{1};
  Lsn last_;
  Lsn snapshot_;
  uint64_t appended_{0};
  std::vector<Run> runs_;                 // ascending; empty if nothing is retained
  std::map<uint64_t, SetMembers> named_;  // by the retained records
  SetMembers before_;                     // in force before the first of these
};

}  // namespace cellar
