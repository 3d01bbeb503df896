// RangeTail: what has changed in a tablet behind a record of the log, as the log on disk has it: in
// order, as ops of mutations, a bounded piece at a time. In a replica set that is what is
// committed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/os/file.h"
#include "cellar/status.h"
#include "engine/state/tablet_moves.h"
#include "engine/table/mutation.h"
#include "store/journal/journal.h"
#include "store/log/log_index.h"

namespace cellar {

class RangeTail {
 public:
  // `from`: the record behind which it begins.
  RangeTail(FileSystem& files, std::string directory, uint64_t table_id, Tablet tablet,
            const LogMark& from)
      : index_(files, std::move(directory)),
        table_id_(table_id),
        tablet_(std::move(tablet)),
        through_(from) {}

  // Looks at what there is now; `applied` as of FeedLog. ERR: the log has not all of it any more.
  Status Update(Journal& journal, Lsn applied);
  // Adds what is in the next piece of the log. True: that was all, as of Update.
  Result<bool> Next(MutationBuilder* to);
  // All up to here has been added.
  const LogMark& through() const { return through_; }
  // Bytes of the log that are behind it, about; all of it, as of Update.
  uint64_t bytes_behind() const { return placed_ ? index_.BytesFrom(place_) : UINT64_MAX; }
  // The first segment that it needs; 0: not known yet.
  uint64_t segment() const { return placed_ ? place_.segment : 0; }

 private:
  void AddOps(const LogRecord& record, MutationBuilder* to);
  bool Touches(std::string_view row_key) const { return tablet_.Contains(row_key); }

  LogIndex index_;
  const uint64_t table_id_;
  const Tablet tablet_;
  LogMark through_;
  LogPlace place_{};
  bool placed_{false};
  bool is_checked_{false};  // that it is behind a record of this log
};

}  // namespace cellar
