// See cluster_state.h.
#include "engine/state/cluster_state.h"

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {
namespace {

constexpr char kFormat{1};
constexpr char kFormatWithMoves{2};

}  // namespace

void EncodeClusterState(const ClusterState& state, const TabletsByTable& tables, std::string* to) {
  const bool with_moves = state.active() && !state.moves.empty();
  to->push_back(with_moves ? kFormatWithMoves : kFormat);
  PutFixed64(to, state.cluster_id);
  if (!state.active()) return;
  PutVarint64(to, state.set);
  PutVarint64(to, state.catalog);
  PutVarint64(to, tables.size());
  for (const auto& [id, tablets] : tables) {
    PutVarint64(to, id);
    tablets->Encode(to);
  }
  if (with_moves) state.moves.Encode(to);
}

bool DecodeClusterState(std::string_view from, ClusterState* state, TabletsByTable* tables) {
  *state = {};
  tables->clear();
  if (from.empty() || (from[0] != kFormat && from[0] != kFormatWithMoves)) return false;
  const bool with_moves = from[0] == kFormatWithMoves;
  from.remove_prefix(1);
  if (!GetFixed64(&from, &state->cluster_id)) return false;
  if (!state->active()) return from.empty();
  uint64_t count = 0;
  if (!GetVarint64(&from, &state->set) || state->set >= kClusterSetsMax ||
      !GetVarint64(&from, &state->catalog) || !GetVarint64(&from, &count)) {
    return false;
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t id = 0;
    if (!GetVarint64(&from, &id) || (i > 0 && id <= tables->rbegin()->first)) return false;
    Tablets::Pointer tablets = Tablets::Decode(&from);
    if (tablets == nullptr) return false;
    tables->emplace(id, std::move(tablets));
  }
  if (with_moves && (!state->moves.Decode(&from) || state->moves.empty())) return false;
  return from.empty();
}

}  // namespace cellar
