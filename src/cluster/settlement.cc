// See settlement.h.
#include "cluster/settlement.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"
#include "cluster/lost_rows.h"
#include "engine/keys/key_range_set.h"

namespace cellar {
namespace {

const Tablets& TabletsOf(const TabletsByTable& tables, uint64_t table_id) {
  const auto found = tables.find(table_id);
  return found == tables.end() ? *Tablets::None() : *found->second;
}

// Those of a list that ascends and overlap `range`.
template <typename Entry, typename Visit>
void VisitOverlaps(const std::vector<Entry>& entries, const Tablet& range, Visit visit) {
  auto at = std::partition_point(entries.begin(), entries.end(), [&range](const Entry& entry) {
    return !entry.end.empty() && entry.end <= range.begin;
  });
  for (; at != entries.end() && (range.end.empty() || at->begin < range.end); ++at) visit(*at);
}

// In any order, one over the other.
class Ranges {
 public:
  void Add(std::string_view begin, std::string_view end) {
    KeyRange range;
    range.begin.bytes = begin;
    range.end = {std::string(end), end.empty()};
    ranges_.push_back(std::move(range));
  }
  void Add(const Tablets& tablets) {
    for (const Tablet& tablet : tablets.list()) Add(tablet.begin, tablet.end);
  }
  KeyRangeSet Take() {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const KeyRange& a, const KeyRange& b) { return a.begin < b.begin; });
    KeyRangeSet taken;
    for (KeyRange& range : ranges_) taken.Add(std::move(range));
    return taken;
  }

 private:
  std::vector<KeyRange> ranges_;
};

// What a set owns of a table, and has not given away, as it says.
std::vector<Tablet> OwnedOf(const ReportedState& report, uint64_t table_id) {
  const auto found = report.tablets.find(table_id);
  if (found == report.tablets.end()) return {};
  Tablets::Pointer own = found->second;
  for (const auto& [job, move] : report.state.moves.out()) {
    if (!move.given || move.table_id != table_id) continue;
    if (Tablets::Pointer without = WithoutTablet(*own, move.tablet); without != nullptr)
      own = std::move(without);
  }
  return own->list();
}

class Settler {
 public:
  explicit Settler(const ReturnedSet& in) : in_(in) {}

  Settlement Run() {
    settled_.state = in_.report.state;
    CollectOwn();
    EndOut();
    EndIn();
    NoteGiven();
    EndKnown();
    for (auto& [id, tablets] : own_) Keep(id, tablets);
    settled_.changes = settled_.changes || !(settled_.state.moves == in_.report.state.moves);
    return std::move(settled_);
  }

 private:
  const TabletMoves& moves() const { return in_.report.state.moves; }
  bool IsLive(uint64_t set) const { return in_.others.contains(set) && !in_.closed.contains(set); }
  void End(uint64_t job, MoveEnd end) {
    if (settled_.state.moves.End(job, end)) settled_.changes = true;
  }
  void SetAside(uint64_t table_id, Tablet range) {
    settled_.aside.push_back({table_id, std::move(range)});
  }

  void CollectOwn() {
    for (const auto& [id, tablets] : in_.report.tablets)
      if (in_.tables.contains(id)) own_[id] = OwnedOf(in_.report, id);
  }
  // Those that have ended have ended at both sets, before either has forgotten it.
  bool Runs(uint64_t job) const {
    const auto found = in_.jobs.find(job);
    return found != in_.jobs.end() && !found->second.ended();
  }
  // Whether it is certain that `move` came to where it was given, or never will.
  bool HasCome(uint64_t job, const MoveOut& move) const {
    if (!Runs(job)) return true;
    if (move.to == in_.number) return moves().HasEnded(job);
    const auto to = in_.others.find(move.to);
    return IsLive(move.to) && to->second->state.moves.HasEnded(job);
  }
  // What another set has, and what is on its way from there to who may have it any moment.
  template <typename Visit>
  void VisitHeld(uint64_t table_id, const Tablet& range, Visit visit) const {
    for (const auto& other : in_.others) {
      const uint64_t number = other.first;
      if (in_.closed.contains(number)) continue;
      VisitClaimed(*other.second, table_id, range,
                   [&](const Tablet& tablet, bool is_given) { visit(number, tablet, is_given); });
    }
  }
  template <typename Visit>
  void VisitClaimed(const ReportedState& report, uint64_t table_id, const Tablet& range,
                    Visit visit) const {
    VisitOverlaps(TabletsOf(report.tablets, table_id).list(), range, [&](const Tablet& tablet) {
      const uint64_t job = report.state.moves.OutOf(table_id, tablet);
      const MoveOut* const out = job == 0 ? nullptr : report.state.moves.FindOut(job);
      const bool is_given = out != nullptr && out->given;
      if (!is_given || !HasCome(job, *out)) visit(tablet, is_given);
    });
  }
  // What is said by others that may not have it any more: sets that are closed, and the map.
  template <typename Visit>
  void VisitSaid(uint64_t table_id, const Tablet& range, Visit visit) const {
    for (const uint64_t number : in_.closed) {
      const auto other = in_.others.find(number);
      if (number == in_.number || other == in_.others.end()) continue;
      VisitClaimed(*other->second, table_id, range, [&](const Tablet& tablet, bool) {
        visit(tablet.begin, tablet.end, tablet.epoch);
      });
    }
    const MapTable* const table = in_.map.Find(table_id);
    if (table == nullptr) return;
    VisitOverlaps(table->tablets, range, [&](const MapEntry& entry) {
      const bool is_own = SetNumber(entry.set) == in_.number;
      if (!is_own) visit(entry.begin, entry.end, entry.epoch);
    });
  }
  bool IsHeld(uint64_t table_id, const Tablet& range, uint64_t but_given_by) const {
    bool is_held = false;
    VisitHeld(table_id, range, [&](uint64_t number, const Tablet&, bool is_given) {
      is_held = is_held || number != but_given_by || !is_given;
    });
    return is_held;
  }
  // Whether somebody is said to have had it with such an epoch.
  bool IsSaid(uint64_t table_id, const Tablet& range, uint64_t epoch) const {
    bool is_said = false;
    VisitSaid(table_id, range, [&](std::string_view, std::string_view, uint64_t said) {
      is_said = is_said || said >= epoch;
    });
    return is_said;
  }
  bool IsElsewhere(uint64_t table_id, const Tablet& range, uint64_t epoch,
                   uint64_t but_given_by) const {
    return IsHeld(table_id, range, but_given_by) || IsSaid(table_id, range, epoch);
  }
  // That the map says of it for the set itself; 0: nothing.
  uint64_t EpochMapped(uint64_t table_id, const Tablet& range) const {
    uint64_t epoch = 0;
    const MapTable* const table = in_.map.Find(table_id);
    if (table == nullptr) return epoch;
    VisitOverlaps(table->tablets, range, [&](const MapEntry& entry) {
      if (SetNumber(entry.set) == in_.number) epoch = std::max(epoch, entry.epoch);
    });
    return epoch;
  }

  // What it had given away is its own again where the director has made that come to nothing, or
  // who was to have it is no more.
  void EndOut() {
    for (const auto& [job, move] : moves().out()) {
      if (!move.given) {
        End(job, MoveEnd::kCancelled);
        continue;
      }
      const bool is_held = IsHeld(move.table_id, move.tablet, UINT64_MAX);
      const bool is_said = IsSaid(move.table_id, move.tablet, move.tablet.epoch + 1);
      const auto known = in_.jobs.find(job);
      const bool is_nothing =
          !in_.others.contains(move.to) ||
          (known != in_.jobs.end() && known->second.state != MoveJob::State::kDone);
      if (!is_held && !is_said && is_nothing) {
        End(job, MoveEnd::kCancelled);
        TakeBack(move, 2);
        continue;
      }
      End(job, MoveEnd::kMoved);
      if (is_held) continue;
      // It has had it again since, and has what it had then; or nobody has it any more.
      if (!is_said && EpochMapped(move.table_id, move.tablet) > move.tablet.epoch)
        TakeBack(move, 0);
      else
        SetAside(move.table_id, move.tablet);
    }
  }
  void LimitTo(uint64_t catalog) { settled_.catalog_max = std::min(settled_.catalog_max, catalog); }
  void TakeBack(const MoveOut& move, uint64_t epochs) {
    std::vector<Tablet>& own = own_[move.table_id];
    Tablet tablet = move.tablet;
    tablet.epoch += epochs;
    const auto at = std::find_if(own.begin(), own.end(), [&move](const Tablet& other) {
      return other.begin > move.tablet.begin;
    });
    own.insert(at, std::move(tablet));
  }

  // A tablet comes only from who still says so.
  void EndIn() {
    for (const auto& [job, in] : moves().in()) {
      const auto from = in_.others.find(in.from);
      const MoveOut* const out =
          from == in_.others.end() ? nullptr : from->second->state.moves.FindOut(job);
      const bool is_it = out != nullptr && out->table_id == in.table_id &&
                         out->tablet.begin == in.tablet.begin && out->tablet.end == in.tablet.end &&
                         (out->given ? Runs(job) : IsLive(in.from));
      const bool is_elsewhere = IsElsewhere(in.table_id, in.tablet, in.tablet.epoch, in.from);
      if (is_it && out->given && is_elsewhere) {
        End(job, MoveEnd::kMoved);
      } else if (!is_it) {
        End(job, MoveEnd::kCancelled);
        if (in.complete() && !is_elsewhere) SetAside(in.table_id, in.tablet);
      }
    }
  }

  // What was given to it, and is not here: it is still to come, or it came and went before who gave
  // it heard of that.
  void NoteGiven() {
    for (const auto& [number, report] : in_.others) {
      for (const auto& [job, move] : report->state.moves.out()) {
        if (!move.given || move.to != in_.number || HasCome(job, move)) continue;
        Tablet tablet = move.tablet;
        ++tablet.epoch;
        if (IsElsewhere(move.table_id, tablet, tablet.epoch, number)) {
          End(job, MoveEnd::kMoved);
          continue;
        }
        const uint64_t catalog = report->state.catalog;
        LimitTo(catalog);
        const MoveIn* const in = moves().FindIn(job);
        // From here on a change of the schema waits for it.
        const bool awaits = in == nullptr ? catalog == in_.report.state.catalog : !in->binds;
        const MoveIn none{
            .table_id = move.table_id, .tablet = tablet, .from = number, .attempt = 1};
        if (awaits) (void)settled_.state.moves.Await(job, in == nullptr ? none : *in);
      }
    }
  }

  // What has ended, as the director knows, does not begin again because of a step that comes late.
  void EndKnown() {
    TabletMoves& moves = settled_.state.moves;
    for (const auto& [job, ordered] : in_.jobs) {
      const bool is_its = ordered.from == in_.number || ordered.to == in_.number;
      const bool goes_on = moves.FindOut(job) != nullptr || moves.FindIn(job) != nullptr;
      if (!is_its || goes_on || ordered.state == MoveJob::State::kOrdered) continue;
      End(job, ordered.state == MoveJob::State::kDone ? MoveEnd::kMoved : MoveEnd::kCancelled);
    }
    if (in_.floor > moves.floor() && moves.Raise(in_.floor)) settled_.changes = true;
  }

  void Keep(uint64_t table_id, const std::vector<Tablet>& own) {
    std::vector<Tablet> kept;
    for (const Tablet& tablet : own) {
      Ranges elsewhere;
      VisitHeld(table_id, tablet, [&](uint64_t, const Tablet& other, bool) {
        elsewhere.Add(other.begin, other.end);
      });
      VisitSaid(table_id, tablet,
                [&](std::string_view begin, std::string_view end, uint64_t epoch) {
                  if (epoch >= tablet.epoch) elsewhere.Add(begin, end);
                });
      Ranges left;
      for (Tablet& piece : Uncovered(tablet, elsewhere.Take())) {
        left.Add(piece.begin, piece.end);
        if (const uint64_t epoch = EpochMapped(table_id, piece); epoch > piece.epoch)
          piece.epoch = epoch + 1;
        kept.push_back(std::move(piece));
      }
      for (Tablet& piece : Uncovered(tablet, left.Take())) SetAside(table_id, std::move(piece));
    }
    settled_.changes = settled_.changes || kept != OwnedOf(in_.report, table_id);
    Tablets::Pointer made = Tablets::Make(std::move(kept));
    settled_.fits = settled_.fits && made != nullptr;
    settled_.tablets[table_id] = made == nullptr ? Tablets::None() : std::move(made);
  }

  const ReturnedSet& in_;
  Settlement settled_;
  std::map<uint64_t, std::vector<Tablet>> own_;
};

}  // namespace

std::vector<uint64_t> JobsToEnd(uint64_t number, const std::map<uint64_t, MoveJob>& jobs) {
  std::vector<uint64_t> to_end;
  for (const auto& [job, ordered] : jobs)
    if (!ordered.ended() && (IsLost(ordered.from) || ordered.from == number)) to_end.push_back(job);
  return to_end;
}

bool IsOver(const MoveJob& job, const std::set<uint64_t>& closed) {
  return job.ended() || (job.state == MoveJob::State::kCancelling && closed.contains(job.to));
}

Settlement Settle(const ReturnedSet& returned) { return Settler(returned).Run(); }

TabletsByTable UnownedRows(const ReturnedSet& returned, const std::set<uint64_t>& table_ids) {
  TabletsByTable unowned;
  // Who has not all changes of the schema yet may be about to have what the map says.
  const bool is_current =
      std::all_of(returned.others.begin(), returned.others.end(), [&](const auto& other) {
        return returned.closed.contains(other.first) ||
               other.second->state.catalog >= returned.report.state.catalog;
      });
  const auto is_awaited = [&](const MapEntry& entry) {
    return !is_current && returned.others.contains(entry.set) &&
           !returned.closed.contains(entry.set);
  };
  for (const uint64_t id : table_ids) {
    Ranges owned;
    owned.Add(TabletsOf(returned.report.tablets, id));
    for (const auto& [number, other] : returned.others) owned.Add(TabletsOf(other->tablets, id));
    const MapTable* const table = returned.map.Find(id);
    const std::vector<MapEntry> none;
    const std::vector<MapEntry>& mapped = table == nullptr ? none : table->tablets;
    for (const MapEntry& entry : mapped)
      if (IsLost(entry.set) || is_awaited(entry)) owned.Add(entry.begin, entry.end);
    std::vector<Tablet> list;
    for (const Tablet& hole : Uncovered({}, owned.Take())) {
      Ranges said;
      std::vector<Tablet> pieces;
      VisitOverlaps(mapped, hole, [&](const MapEntry& entry) {
        Tablet piece{std::max(entry.begin, hole.begin), entry.end, entry.epoch};
        if (piece.end.empty() || (!hole.end.empty() && hole.end < piece.end)) piece.end = hole.end;
        said.Add(piece.begin, piece.end);
        pieces.push_back(std::move(piece));
      });
      for (Tablet& piece : Uncovered(hole, said.Take())) pieces.push_back(std::move(piece));
      std::sort(pieces.begin(), pieces.end(),
                [](const Tablet& a, const Tablet& b) { return a.begin < b.begin; });
      list.insert(list.end(), pieces.begin(), pieces.end());
    }
    if (Tablets::Pointer made = Tablets::Make(std::move(list));
        made != nullptr && !made->list().empty())
      unowned.emplace(id, std::move(made));
  }
  return unowned;
}

bool IsWithin(const Settlement& settlement, const ReportedState& report) {
  const ClusterState& state = settlement.state;
  if (state.cluster_id != report.state.cluster_id || state.set != report.state.set) return false;
  for (const auto& [id, tablets] : settlement.tablets) {
    Ranges had;
    had.Add(TabletsOf(report.tablets, id));
    const KeyRangeSet all = had.Take();
    for (const Tablet& tablet : tablets->list())
      if (!Uncovered(tablet, all).empty()) return false;
  }
  const TabletMoves& before = report.state.moves;
  for (const auto& [job, move] : state.moves.out())
    if (const MoveOut* const known = before.FindOut(job); known == nullptr || !(*known == move))
      return false;
  return std::all_of(state.moves.in().begin(), state.moves.in().end(), [&](const auto& entry) {
    MoveIn move = entry.second;
    const MoveIn* const known = before.FindIn(entry.first);
    if (known == nullptr) return !move.clear && move.parts == 0 && !move.complete();
    move.binds = known->binds;
    return move == *known;
  });
}

uint64_t HashOf(const ReportedState& report) {
  std::string bytes;
  EncodeClusterState(report.state, report.tablets, &bytes);
  return Hash64(bytes);
}

// of u64, b state with tablets, v count { v table id, b begin, b end, v epoch }
void EncodeSettlement(const SettlementOrder& order, std::string* to) {
  PutFixed64(to, order.of);
  std::string state;
  EncodeClusterState(order.settlement.state, order.settlement.tablets, &state);
  PutLengthPrefixed(to, state);
  PutVarint64(to, order.settlement.aside.size());
  for (const auto& [table_id, range] : order.settlement.aside) {
    PutVarint64(to, table_id);
    PutLengthPrefixed(to, range.begin);
    PutLengthPrefixed(to, range.end);
    PutVarint64(to, range.epoch);
  }
}

bool DecodeSettlement(std::string_view from, SettlementOrder* order) {
  *order = {};
  Settlement& settlement = order->settlement;
  std::string_view state;
  uint64_t count = 0;
  if (!GetFixed64(&from, &order->of) || !GetLengthPrefixed(&from, &state) ||
      !DecodeClusterState(state, &settlement.state, &settlement.tablets) ||
      !GetVarint64(&from, &count))
    return false;
  for (uint64_t i = 0; i < count; ++i) {
    Settlement::Aside& aside = settlement.aside.emplace_back();
    std::string_view begin;
    std::string_view end;
    if (!GetVarint64(&from, &aside.table_id) || !GetLengthPrefixed(&from, &begin) ||
        !GetLengthPrefixed(&from, &end) || !GetVarint64(&from, &aside.range.epoch))
      return false;
    aside.range.begin = begin;
    aside.range.end = end;
  }
  settlement.changes = true;
  return from.empty();
}

}  // namespace cellar
