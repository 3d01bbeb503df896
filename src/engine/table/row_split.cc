// See row_split.h.
#include "engine/table/row_split.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace cellar {
namespace {

// Each tree is cut into pieces of about the same size everywhere, finer than the parts asked for,
// so that groups of different sizes add up to even parts.
constexpr uint64_t kPiecesPerPart{8};

struct Piece {
  std::string row;  // where it ends
  double bytes;
};

void AddPieces(const Table& table, size_t group, uint64_t pieces, std::vector<Piece>* to) {
  const BTree& tree = table.tree(group);
  const Order& key = table.schema().key;
  const std::vector<std::string> ends = tree.SplitKeys(pieces);
  const double bytes =
      static_cast<double>(tree.payload_bytes()) / static_cast<double>(ends.size() + 1);
  for (const std::string& end : ends) {
    const size_t row_bytes = key.EncodedSize(end);
    CELLAR_ASSERT(row_bytes > 0);
    to->push_back({end.substr(0, row_bytes), bytes});
  }
}

}  // namespace

// Groups have the same rows and differ in size: their pieces are put into one order by row, and
// their bytes added up until a part is full. One row may end several parts, so there may be fewer
// keys.
std::vector<std::string> SplitRowKeys(const Table& table, uint64_t parts) {
  CELLAR_ASSERT(parts >= 1);
  parts = std::min(parts, kSplitPartsMax);
  double bytes_total = 0;
  for (size_t i = 0; i < table.groups(); ++i) {
    bytes_total += static_cast<double>(table.tree(i).payload_bytes());
  }
  std::vector<std::string> rows;
  if (bytes_total == 0) return rows;
  const double pieces_total = static_cast<double>(parts * kPiecesPerPart);
  std::vector<Piece> pieces;
  for (size_t i = 0; i < table.groups(); ++i) {
    const double share = static_cast<double>(table.tree(i).payload_bytes()) / bytes_total;
    const auto count = static_cast<uint64_t>(pieces_total * share);
    if (count > 1) AddPieces(table, i, count, &pieces);
  }
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.row < b.row; });
  double bytes_before = 0;
  uint64_t part = 1;
  for (Piece& piece : pieces) {
    bytes_before += piece.bytes;
    if (part == parts) break;
    const double wanted = bytes_total * static_cast<double>(part) / static_cast<double>(parts);
    // Half a piece early is as good as half a piece late.
    if (bytes_before + piece.bytes / 2 < wanted) continue;
    if (rows.empty() || rows.back() != piece.row) rows.push_back(std::move(piece.row));
    while (part < parts && bytes_before + piece.bytes / 2 >= bytes_total *
                                                                 static_cast<double>(part) /
                                                                 static_cast<double>(parts)) {
      ++part;
    }
  }
  return rows;
}

}  // namespace cellar
