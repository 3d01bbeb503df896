// What an export keeps in files so that another run goes on where this one ended (--resume).
//
//   STATE, or STATE.0, STATE.1, ... with --split: of each part, a JSON object
//     {"table", "words", "format", "snapshot", "marker", "bytes", "cursor", "rows", "cells", "done"}
//   STATE.parts, with --split: the keys at which the table is divided, quoted, and the snapshot
//
// The output up to `bytes` holds whole rows, and `cursor` goes on behind them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cellar-export/options.h"
#include "cellar/status.h"

namespace cellar::exporter {

// What has been done of a part.
struct State {
  bool is_begun{false};  // there is a file
  std::string snapshot;  // that is read; empty: the table itself
  std::string marker;    // of the format (RowWriter::marker)
  uint64_t bytes{0};
  std::string cursor{"0"};
  uint64_t rows{0};
  uint64_t cells{0};
  bool done{false};
};

Status SaveState(const std::string& path, const Options& options,
                 const std::vector<std::string>& words, const State& state);
// A file that is not there gives a state of nothing. ERR if it is of another export.
Result<State> LoadState(const std::string& path, const Options& options,
                        const std::vector<std::string>& words);

// How a table is divided, the same for every run of an export.
struct Division {
  bool is_begun{false};  // there is a file
  std::vector<std::string> keys;
  std::string snapshot;
};

Status SaveDivision(const std::string& path, const Division& division);
Result<Division> LoadDivision(const std::string& path);

}  // namespace cellar::exporter
