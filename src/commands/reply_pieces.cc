// See reply_pieces.h.
#include "commands/reply_pieces.h"

#include "base/assert.h"

namespace cellar {
namespace {

// A piece with the memory for all that goes into it: what comes last may be larger than what is
// left. What is not used is not touched.
std::unique_ptr<OutputBuffer> NewPiece() {
  auto piece = std::make_unique<OutputBuffer>();
  (void)piece->Reserve(ReplyPieces::kPieceBytes / 8 * 9);
  return piece;
}

}  // namespace

void ReplyPieces::Own() {
  CELLAR_ASSERT(!owned());
  OutputBuffer& client = writer_.buffer();
  CELLAR_ASSERT(client.size() >= begin_);
  auto piece = NewPiece();
  piece->Append(client.view().substr(begin_));
  client.Truncate(begin_);
  begin_ = 0;
  writer_ = ReplyWriter(piece.get(), writer_.version());
  pieces_.push_back(std::move(piece));
}

void ReplyPieces::BeginPiece() {
  bytes_before_ += pieces_.back()->size();
  auto piece = NewPiece();
  writer_ = ReplyWriter(piece.get(), writer_.version());
  pieces_.push_back(std::move(piece));
}

void ReplyPieces::Prepend(std::string_view bytes) {
  if (owned()) {
    CELLAR_ASSERT(head_.empty());
    head_ = bytes;
  } else {
    writer_.buffer().Insert(begin_, bytes);
  }
}

bool ReplyPieces::Deliver(ReplyWriter& client, const TaskBudget& budget) {
  CELLAR_ASSERT(owned());
  client.Raw(head_);
  head_.clear();
  while (delivered_ < pieces_.size()) {
    std::unique_ptr<OutputBuffer>& piece = pieces_[delivered_++];
    if (client.buffer().empty()) {
      client.buffer().Swap(*piece);
    } else {
      client.Raw(piece->view());
    }
    piece.reset();
    if (delivered_ == pieces_.size() || budget.unlimited()) continue;
    if (client.buffer().size() >= kDeliveryBytes || budget.Spent()) return false;
  }
  return true;
}

}  // namespace cellar
