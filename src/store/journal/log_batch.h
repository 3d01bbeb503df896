// LogBatch: records on their way from the loop to the disk. Each side of the hand-over owns it in
// turn, and its memory goes round, so that a record costs no allocation.
#pragma once

#include <cstdint>

#include "base/byte_buffer.h"
#include "cellar/lsn.h"

namespace cellar {

struct LogBatch {
  ByteBuffer bytes;  // whole records, see log_format.h
  Lsn last;          // of the last record
  // How many had been added with it. That, and not the LSN, says which of two was written first
  // where records void others; else it is the LSN's seq.
  uint64_t ordinal{0};
  uint64_t last_hash{0};
  int64_t last_commit_micros{0};
  // Position behind the batch in the stream of all record bytes since the journal was opened.
  uint64_t stream_end{0};
  int64_t submitted_micros{0};
  bool begins_segment{false};  // a snapshot was taken just before it
  bool is_written{false};      // by the loop, to the segment (tail_writer.h)
};

}  // namespace cellar
