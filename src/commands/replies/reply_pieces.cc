// See reply_pieces.h.
#include "commands/replies/reply_pieces.h"

#include "base/assert.h"
#include "base/buffer_memory.h"
#include "base/free_string.h"

namespace cellar {
namespace {

// Below, a piece has the memory that it needs, since many replies remain as small: a scan whose
// conditions hold nowhere. Above, it gets all at once: doubling would move it four times.
constexpr size_t kSmallBytes{16 * 1024};
// What is written last may be larger than what is left.
constexpr size_t kRoomBytes{kKeptBytes};
static_assert(kRoomBytes > ReplyPieces::kPieceBytes);

}  // namespace

void ReplyPieces::Own() {
  CELLAR_ASSERT(!owned());
  OutputBuffer& client = writer_.buffer();
  CELLAR_ASSERT(client.size() >= begin_);
  const std::string_view written = client.view().substr(begin_);
  auto piece = std::make_unique<OutputBuffer>();
  due_ = kSmallBytes;
  if (written.size() >= kSmallBytes) {
    piece->GrowTo(kRoomBytes);
    due_ = kPieceBytes;
  }
  piece->Append(written);
  // Output may be sent before this reply is whole: nothing of it may stay there.
  client.Truncate(begin_);
  begin_ = 0;
  writer_ = ReplyWriter(piece.get(), writer_.version());
  pieces_.push_back(std::move(piece));
}

void ReplyPieces::GrowOrBeginPiece() {
  CELLAR_ASSERT(owned());
  // The first piece, which was small, grows once to full size; a full one gets a neighbour.
  if (writer_.position() >= kPieceBytes) return BeginPiece();
  writer_.buffer().GrowTo(kRoomBytes);
  due_ = kPieceBytes;
}

void ReplyPieces::BeginPiece() {
  CELLAR_ASSERT(owned());
  bytes_before_ += pieces_.back()->size();
  auto piece = std::make_unique<OutputBuffer>();
  piece->GrowTo(kRoomBytes);
  due_ = kPieceBytes;
  writer_ = ReplyWriter(piece.get(), writer_.version());
  pieces_.push_back(std::move(piece));
}

void ReplyPieces::Truncate(const Place& place) {
  CELLAR_ASSERT(delivered_ == 0);
  if (!owned()) return writer_.Truncate(place.position + begin_);
  CELLAR_ASSERT(place.piece < pieces_.size());
  while (pieces_.size() > place.piece + 1) {
    pieces_.pop_back();
    CELLAR_ASSERT(bytes_before_ >= pieces_.back()->size());
    bytes_before_ -= pieces_.back()->size();
    due_ = kPieceBytes;  // one that is full
  }
  OutputBuffer& last = *pieces_.back();
  CELLAR_ASSERT(place.position <= last.size());
  last.Truncate(place.position);
  writer_ = ReplyWriter(&last, writer_.version());
}

size_t ReplyPieces::memory_bytes() const {
  size_t bytes = head_.capacity();
  for (const auto& piece : pieces_) bytes += piece == nullptr ? 0 : piece->capacity();
  return bytes;
}

void ReplyPieces::Prepend(std::string_view bytes) {
  // Pieces are not moved for it: it is kept beside them and delivered first. A reply that still
  // stands in the client's output is small, so that moving it costs little.
  if (owned()) {
    CELLAR_ASSERT(head_.empty());
    head_ = bytes;
  } else {
    writer_.buffer().Insert(begin_, bytes);
  }
}

// Pieces change hands without being copied where the client's output is empty.
bool ReplyPieces::Deliver(ReplyWriter& client, const TaskBudget& budget) {
  CELLAR_ASSERT(owned());
  client.Raw(head_);
  FreeString(&head_);
  while (delivered_ < pieces_.size()) {
    std::unique_ptr<OutputBuffer>& piece = pieces_[delivered_++];
    CELLAR_ASSERT(piece != nullptr);
    delivered_bytes_ += piece->size();
    if (client.buffer().empty()) {
      client.buffer().Swap(*piece);
    } else {
      client.Raw(piece->view());
    }
    piece.reset();
    // It stops between two pieces only: the next step goes on with a whole one.
    if (delivered_ == pieces_.size() || budget.unlimited()) continue;
    if (client.buffer().size() >= kDeliveryBytes || budget.Spent()) return false;
  }
  return true;
}

}  // namespace cellar
