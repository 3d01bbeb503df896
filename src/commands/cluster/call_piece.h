// CallPiece: what a command that goes over several sets of a cluster asks one of them: the client's
// own command, restricted to rows of one table that the asking node's map says the set owns.
//
//   a call's text   CLUSTER PIECE <table id> <limits> <begin> <end> [<begin> <end> ...]
//                   the client's command
//   limits          flags v, rows v, cells v, bytes v, rows before v, seed v; cursor b, if it lists
//                   rows
//
// The ranges are of encoded row keys, ascending; an empty end is none. PIECE is a word of calls
// between nodes (cluster/call_frames.h) and no command: the session that carries out the call takes
// it itself, and it holds for the next command of the call alone. If the set does not own all of
// the rows nothing is done, and the reply is kMovedPiece, which never reaches a client.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/keys/key_range_set.h"
#include "engine/request/read_options.h"
#include "engine/table/tablets.h"

namespace cellar {

class Host;
class OutputBuffer;

inline constexpr std::string_view kMovedPiece{"-MOVEDPIECE\r\n"};

struct CallPiece {
  uint64_t table_id{0};
  KeyRangeSet rows;
  // CSCAN: what is left of the page, whose rows so far are other sets' (ScanRunOptions).
  uint64_t rows_max{kUnlimited};  // and of a CUPDATE's LIMIT
  uint64_t cells_max{kUnlimited};
  uint64_t bytes_max{kUnlimited};
  uint64_t rows_before{0};
  uint64_t seed{0};          // of SAMPLE, if there is no cursor that has it
  bool tells_place{false};   // the reply says where the scan stands in EACH
  bool tells_places{false};  // and where each of its rows does
  // CCOUNT, CAGG, CUPDATE: the reply is a page of the rows that the command would find, as that of
  // CSCAN ... KEYSONLY, with their places, from `cursor` on (ListRows), and nothing else is done.
  bool lists_rows{false};
  std::string cursor{"0"};
  // The rows are those that were found so: no others are looked for.
  bool names_rows{false};

  // Whether these words of a call are a piece.
  static bool Is(std::span<const std::string_view> words);
  // REQUIRES: Is. Of words that say none that can be: one that no set owns.
  static CallPiece Parse(std::span<const std::string_view> words);
  // Appended to a call's text as a command (PutCallWords).
  void Put(std::string* text) const;
};

// While it lives the table shows the piece alone to reads and changes that begin, and
// Services::piece is it.
class PieceScope {
 public:
  // `piece` outlives it.
  PieceScope(Host& host, const CallPiece& piece);
  ~PieceScope();
  PieceScope(const PieceScope&) = delete;
  PieceScope& operator=(const PieceScope&) = delete;
  // Whether the set owns all of it. If not, nothing has happened.
  bool owned() const { return owned_; }

 private:
  Host& host_;
  const uint64_t table_id_;
  bool owned_{false};
};

}  // namespace cellar
