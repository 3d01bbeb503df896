// See near_task.h.
#include "commands/replies/near_task.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "commands/replies/cell_reply.h"
#include "commands/replies/sliced_read.h"
#include "engine/table/table.h"

namespace cellar {
namespace {

void ReplyPlace(ReplyWriter& reply, const NearPlace* place, NearReply form) {
  if (place == nullptr) return reply.Null();
  if (form == NearReply::kPlacedEntry) {
    reply.Array(3);
    reply.Bulk(place->key);
    reply.Unsigned(place->direction < 0 ? 1 : 0);
  }
  reply.Array(form == NearReply::kRow ? 2 : 3);
  if (form != NearReply::kRow) {
    reply.Array(place->values.size());
    for (const IndexOrder::Value& value : place->values) {
      ReplyValue(reply, value.type, value.stored);
    }
  }
  reply.Bulk(place->row);
  reply.Integer(place->direction);
}

struct NearRead {
  std::unique_ptr<NearSearch> search;
  NearReply form;

  bool Pull(uint64_t cells) { return search->Step(cells); }
  void Detach() { search->Detach(); }
  void Reply(ReplyWriter& reply) const { ReplyPlace(reply, search->place(), form); }
  char FirstByte() const { return 0; }  // a row, or null
};

}  // namespace

void RunNear(CommandContext& ctx, const Table& table, std::unique_ptr<NearSearch> search,
             NearReply form) {
  RunInSlices(ctx, NearRead{std::move(search), form}, table.last_lsn());
}

}  // namespace cellar
