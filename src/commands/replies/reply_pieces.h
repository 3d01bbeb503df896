// ReplyPieces: a reply whose size nobody knows beforehand.
//
//   at first   [ client's output ... | reply grows here ]
//   owned      [ piece ][ piece ][ piece ...   each about kPieceBytes, handed on one by one
//
// Most replies are small: they are written straight into the client's output. When a command pauses
// and goes on as a Task, what it has written so far moves into memory of the reply's own, and grows
// there in pieces, so that no step of it moves or copies more than a piece: a reply of 100 MB would
// otherwise stop the loop for as long as 100 MB take to be moved when its header is known at last.
// Headers that wait for their count stay in the piece where they stand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "commands/session/task.h"
#include "resp/output_buffer.h"
#include "resp/reply_writer.h"

namespace cellar {

class ReplyPieces {
 public:
  static constexpr size_t kPieceBytes{256 * 1024};
  static constexpr size_t kDeliveryBytes{512 * 1024};  // at once, about

  // An open aggregate, as ReplyWriter::Mark, that survives Own().
  struct Mark {
    size_t piece{0};
    ReplyWriter::Mark mark{};
  };

  // Where a part of the reply begins that may be taken back; survives Own().
  struct Place {
    size_t piece;
    size_t position;
  };

  // Writes behind what `client` holds already, of which the reply's own begins at `begin`.
  ReplyPieces(OutputBuffer* client, RespVersion version, size_t begin)
      : writer_(client, version), begin_(begin) {
    CELLAR_ASSERT(begin <= client->size());
  }
  ReplyPieces(OutputBuffer* client, RespVersion version)
      : ReplyPieces(client, version, client->size()) {}
  ReplyPieces(ReplyPieces&&) = default;
  ReplyPieces& operator=(ReplyPieces&&) = default;

  // To write into; dies with the next NextPiece() or Own().
  ReplyWriter& writer() { return writer_; }

  Mark BeginArray(uint64_t guess) { return Relative(writer_.BeginArray(guess)); }
  Mark BeginMap(uint64_t guess) { return Relative(writer_.BeginMap(guess)); }
  // What the reply's writer has begun before this was made. REQUIRES: !owned().
  Mark Adopt(const ReplyWriter::Mark& mark) const { return Relative(mark); }
  void EndArray(const Mark& mark, uint64_t elements) {
    const size_t before = ClosedBytes(mark);
    WriterOf(mark).EndArray(Absolute(mark), elements);
    bytes_before_ += ClosedBytes(mark) - before;
  }
  void EndMap(const Mark& mark, uint64_t pairs) {
    const size_t before = ClosedBytes(mark);
    WriterOf(mark).EndMap(Absolute(mark), pairs);
    bytes_before_ += ClosedBytes(mark) - before;
  }

  // Bytes of the reply so far.
  size_t bytes() const { return bytes_before_ + writer_.position() - begin_; }
  bool owned() const { return !pieces_.empty(); }
  bool resp3() const { return writer_.resp3(); }
  // What is held here and has not been delivered yet: bytes of the reply, and of memory for them.
  size_t held_bytes() const { return owned() ? bytes() + head_.size() - delivered_bytes_ : 0; }
  size_t memory_bytes() const;

  // Moves what has been written out of the client's output. REQUIRES: !owned(), nothing else has
  // been written there meanwhile.
  void Own();
  // Begins a new piece if the current one is full. Not between the bytes of one element.
  void NextPiece() {
    if (writer_.position() >= due_) [[unlikely]]
      GrowOrBeginPiece();
  }

  Place here() const {
    const size_t piece = owned() ? pieces_.size() - 1 : 0;
    return {piece, writer_.position() - Base(piece)};
  }
  // Takes back all that was written from `place` on. Marks behind it are void. REQUIRES: nothing
  // has been delivered.
  void Truncate(const Place& place);

  // Puts RESP in front of all that has been written: what could be known only at the end.
  void Prepend(std::string_view bytes);

  // Hands an owned reply to `client`, a few pieces each call until `budget` is spent. True when all
  // of it is there. REQUIRES: owned().
  bool Deliver(ReplyWriter& client, const TaskBudget& budget);

 private:
  void GrowOrBeginPiece();
  void BeginPiece();
  // Positions in the client's output count from where the reply begins.
  size_t Base(size_t piece) const { return piece == 0 ? begin_ : 0; }
  Mark Relative(ReplyWriter::Mark mark) const {
    const size_t piece = owned() ? pieces_.size() - 1 : 0;
    mark.position -= Base(piece);
    return {piece, mark};
  }
  ReplyWriter::Mark Absolute(const Mark& mark) const {
    ReplyWriter::Mark absolute = mark.mark;
    absolute.position += Base(mark.piece);
    return absolute;
  }
  // What bytes_before_ has of the mark's piece: a count with more digits than were guessed makes it
  // longer, one with fewer shorter.
  size_t ClosedBytes(const Mark& mark) const {
    return mark.piece + 1 < pieces_.size() ? pieces_[mark.piece]->size() : 0;
  }
  ReplyWriter WriterOf(const Mark& mark) {
    CELLAR_DEBUG_ASSERT(owned() ? mark.piece < pieces_.size() : mark.piece == 0);
    return owned() ? ReplyWriter(pieces_[mark.piece].get(), writer_.version()) : writer_;
  }

  ReplyWriter writer_;
  size_t begin_;  // of the first piece: where the reply begins in the client's output, 0 if owned
  std::vector<std::unique_ptr<OutputBuffer>> pieces_;
  size_t bytes_before_{0};  // in all pieces but the last
  // Where the last piece gets the memory of a whole one, or is full. Not before Own().
  size_t due_{SIZE_MAX};
  std::string head_;           // Prepend, when owned
  size_t delivered_{0};        // pieces
  size_t delivered_bytes_{0};  // of them
};

}  // namespace cellar
