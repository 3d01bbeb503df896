// See cluster_state.h.
#include "engine/state/cluster_state.h"

#include "base/assert.h"
#include "base/coding.h"

namespace cellar {
namespace {

constexpr char kFormat{1};
constexpr char kFormatWithMoves{2};
constexpr char kFormatWithStanding{3};

void EncodeStanding(const ClusterState& state, std::string* to) {
  PutFixed64(to, state.opened_as);
  PutVarint64(to, state.recovered_cut);
}

bool DecodeStanding(std::string_view* from, ClusterState* state) {
  return GetFixed64(from, &state->opened_as) && GetVarint64(from, &state->recovered_cut) &&
         state->has_standing() && state->recovered_cut <= state->catalog;
}

}  // namespace

void EncodeClusterState(const ClusterState& state, const TabletsByTable& tables, std::string* to) {
  const bool with_standing = state.active() && state.has_standing();
  const bool with_moves = with_standing || (state.active() && !state.moves.empty());
  to->push_back(with_standing ? kFormatWithStanding : with_moves ? kFormatWithMoves : kFormat);
  PutFixed64(to, state.cluster_id);
  if (!state.active()) return;
  PutVarint64(to, state.set);
  PutVarint64(to, state.catalog);
  if (with_standing) EncodeStanding(state, to);
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
  if (from.empty() || from[0] < kFormat || from[0] > kFormatWithStanding) return false;
  const bool with_standing = from[0] == kFormatWithStanding;
  const bool with_moves = from[0] != kFormat;
  from.remove_prefix(1);
  if (!GetFixed64(&from, &state->cluster_id)) return false;
  if (!state->active()) return from.empty();
  uint64_t count = 0;
  if (!GetVarint64(&from, &state->set) || state->set >= kClusterSetsMax ||
      !GetVarint64(&from, &state->catalog) || (with_standing && !DecodeStanding(&from, state)) ||
      !GetVarint64(&from, &count)) {
    return false;
  }
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t id = 0;
    if (!GetVarint64(&from, &id) || (i > 0 && id <= tables->rbegin()->first)) return false;
    Tablets::Pointer tablets = Tablets::Decode(&from);
    if (tablets == nullptr) return false;
    tables->emplace(id, std::move(tablets));
  }
  if (with_moves && !state->moves.Decode(&from)) return false;
  if (with_moves && !with_standing && state->moves.empty()) return false;
  return from.empty();
}

std::string EncodeOpenAs(uint64_t set_id) {
  std::string body;
  PutFixed64(&body, set_id);
  return body;
}

bool DecodeOpenAs(std::string_view from, uint64_t* set_id) {
  return GetFixed64(&from, set_id) && from.empty();
}

}  // namespace cellar
