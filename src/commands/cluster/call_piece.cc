// See call_piece.h.
#include "commands/cluster/call_piece.h"

#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/coding.h"
#include "base/text/number.h"
#include "cluster/call_frames.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "store/store.h"

namespace cellar {
namespace {

constexpr std::string_view kContainerWord{"CLUSTER"};
constexpr std::string_view kPieceWord{"PIECE"};
constexpr size_t kWordsBeforeRanges{4};
constexpr uint64_t kTellsPlace{1};
constexpr uint64_t kTellsPlaces{2};
constexpr uint64_t kListsRows{4};
constexpr uint64_t kNamesRows{8};

// Null: it is none.
Tablets::Pointer TabletsOf(const KeyRangeSet& rows) {
  std::vector<Tablet> tablets;
  tablets.reserve(rows.ranges().size());
  for (const KeyRange& range : rows.ranges())
    tablets.push_back({range.begin.bytes, range.end.at_end ? std::string() : range.end.bytes, 1});
  return Tablets::Make(std::move(tablets));
}

}  // namespace

bool CallPiece::Is(std::span<const std::string_view> words) {
  return words.size() > kWordsBeforeRanges && words[0] == kContainerWord && words[1] == kPieceWord;
}

CallPiece CallPiece::Parse(std::span<const std::string_view> words) {
  CELLAR_ASSERT(Is(words));
  CallPiece piece;
  std::string_view limits = words[3];
  uint64_t flags = 0;
  uint64_t table_id = 0;
  const bool read = ParseUint64(words[2], &table_id) == NumberError::kNone &&
                    GetVarint64(&limits, &flags) && GetVarint64(&limits, &piece.rows_max) &&
                    GetVarint64(&limits, &piece.cells_max) &&
                    GetVarint64(&limits, &piece.bytes_max) &&
                    GetVarint64(&limits, &piece.rows_before) && GetVarint64(&limits, &piece.seed);
  if (!read || words.size() % 2 != 0) return {};
  piece.tells_place = (flags & kTellsPlace) != 0;
  piece.tells_places = (flags & kTellsPlaces) != 0;
  piece.lists_rows = (flags & kListsRows) != 0;
  piece.names_rows = (flags & kNamesRows) != 0;
  std::string_view cursor{"0"};
  if (piece.lists_rows && !GetLengthPrefixed(&limits, &cursor)) return {};
  if (!limits.empty()) return {};
  piece.cursor = cursor;
  for (size_t i = kWordsBeforeRanges; i < words.size(); i += 2) {
    KeyRange range;
    range.begin.bytes = words[i];
    range.end = {std::string(words[i + 1]), words[i + 1].empty()};
    if (range.empty()) return {};
    piece.rows.Add(std::move(range));
  }
  piece.table_id = table_id;
  return piece;
}

void CallPiece::Put(std::string* text) const {
  CELLAR_ASSERT(!rows.empty());
  std::string limits;
  PutVarint64(&limits, (tells_place ? kTellsPlace : 0) | (tells_places ? kTellsPlaces : 0) |
                           (lists_rows ? kListsRows : 0) | (names_rows ? kNamesRows : 0));
  for (const uint64_t number : {rows_max, cells_max, bytes_max, rows_before, seed})
    PutVarint64(&limits, number);
  if (lists_rows) PutLengthPrefixed(&limits, cursor);
  const std::string id = FormatUint64(table_id);
  std::vector<std::string_view> words{kContainerWord, kPieceWord, id, limits};
  for (const KeyRange& range : rows.ranges()) {
    words.emplace_back(range.begin.bytes);
    words.emplace_back(range.end.at_end ? std::string_view() : range.end.bytes);
  }
  PutCallWords(words, text);
}

namespace {

Table* TableOf(Host& host, uint64_t id) {
  Table* const live = host.store().TableById(id);
  return live != nullptr ? live : host.store().engine().FindFrozenById(id);
}

}  // namespace

PieceScope::PieceScope(Host& host, const CallPiece& piece)
    : host_(host), table_id_(piece.table_id) {
  CELLAR_ASSERT(host.services().piece == nullptr);
  Table* const table = TableOf(host, table_id_);
  // One of a snapshot that is older than the cluster is here as a whole.
  if (table == nullptr || (table->tablets() == nullptr && !table->frozen())) return;
  KeyRangeSet both = piece.rows;
  if (table->tablets() != nullptr) both.IntersectWith(table->tablets()->owned());
  if (both.ranges() != piece.rows.ranges()) return;
  Tablets::Pointer shown = TabletsOf(piece.rows);
  CELLAR_ASSERT(shown != nullptr);
  table->ShowPiece(std::move(shown));
  host.services().piece = &piece;
  owned_ = true;
}

PieceScope::~PieceScope() {
  if (!owned_) return;
  host_.services().piece = nullptr;
  // A command that has let the table go has let go of what it shows.
  if (Table* const table = TableOf(host_, table_id_); table != nullptr) table->ShowPiece(nullptr);
}

}  // namespace cellar
