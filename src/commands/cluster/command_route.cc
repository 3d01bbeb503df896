// See command_route.h.
#include "commands/cluster/command_route.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/text/ascii.h"
#include "base/text/quote.h"
#include "cluster/cluster_map.h"
#include "cluster/lost_rows.h"
#include "cluster/set_directory.h"
#include "commands/arguments/scan_cursor.h"
#include "commands/catalog/command_keys.h"
#include "commands/clients/set_users.h"
#include "commands/cluster/cluster_part.h"
#include "commands/cluster/row_place.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "commands/session/session.h"
#include "commands/session/transaction.h"
#include "engine/keys/time_uuid.h"
#include "replica/replication.h"
#include "replica/set_node.h"
#include "resp/decimal.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

using Kind = CommandRoute::Kind;

CommandRoute Set(uint64_t set, uint64_t epoch) { return {Kind::kSet, set, epoch, {}}; }

std::string CommandText(const CommandEntry& command) {
  std::string text = UpperText(command.full_name);
  std::replace(text.begin(), text.end(), '|', ' ');
  return text;
}

// Whether a command of CommandReach::kInfo asks for what this node has.
bool SaysLocal(const CommandEntry& command, Arguments args) {
  return args.size() > command.words_min && EqualsIgnoreCase(args.back(), "LOCAL");
}

// Of several things that one command concerns: where all of them are.
class RouteSum {
 public:
  explicit RouteSum(std::string command) : command_(std::move(command)) {}

  // `thing` is what people call what the route is of. False: the sum is settled.
  bool Add(const CommandRoute& route, const std::string& thing) {
    if (route.Is(Kind::kHere)) return true;
    if (!route.Is(Kind::kSet)) {
      sum_ = route;
      return false;
    }
    if (sum_.Is(Kind::kHere)) {
      sum_ = route;
      first_ = thing;
      return true;
    }
    if (sum_.set == route.set) {
      if (sum_.epoch != route.epoch) sum_.epoch = 0;
      return true;
    }
    sum_ = {Kind::kSeveral, 0, 0,
            fmt::format("CROSSSET {} touches set {} ({}) and set {} ({})", command_, sum_.set,
                        first_, route.set, thing)};
    return false;
  }
  const CommandRoute& route() const { return sum_; }

 private:
  const std::string command_;
  CommandRoute sum_;
  std::string first_;
};

class RouteFinder {
 public:
  enum class Of : uint8_t { kCommand, kTransaction };
  RouteFinder(const RouteSources& sources, std::string_view keyspace, Of of = Of::kCommand)
      : sources_(sources), keyspace_(keyspace), of_(of) {}

  CommandRoute Find(const CommandEntry& command, Arguments args) {
    if (!command.Takes(args.size())) return {};
    switch (command.reach) {
      case CommandReach::kNode:
      case CommandReach::kExec:
        return {};
      case CommandReach::kRow:
        return OfNamedRow(command, args);
      case CommandReach::kSureRow:
        return args.size() == 5 ? OfBounds(command, args.first(4)) : CommandRoute();
      case CommandReach::kRows:
        return OfRows(command, args);
      case CommandReach::kRange:
        return OfNamedTable(command, args);
      case CommandReach::kInfo:
        return SaysLocal(command, args) ? CommandRoute() : OfNamedTable(command, args);
      case CommandReach::kTables:
        return OfTables(command, args);
      case CommandReach::kBounds:
        return OfBounds(command, args);
      case CommandReach::kFeeds:
        return OfFeeds(command, args);
      case CommandReach::kSchema:
        return Set(0, 0);
      case CommandReach::kUsers:
        return sources_.users_are_shared ? Set(0, 0) : CommandRoute();
    }
    return {};
  }

 private:
  const Table* TableNamed(std::string_view name) const {
    return sources_.store.FindTableIfAny(keyspace_, name);
  }
  static CommandRoute Unknown(std::string error) {
    return {Kind::kUnknown, 0, 0, std::move(error)};
  }
  // Whether the map says that it is this set's, where the truth here says that it is not: where
  // this node leads the truth is no older than a map.
  bool Contradicts(uint64_t set) const { return set == sources_.own_set && sources_.leads; }

  CommandRoute OfKey(const Table& table, std::string_view key, std::string_view row) const {
    const Tablets* const tablets = table.tablets();
    if (tablets == nullptr) return {};
    const KeyOwner owner = OwnerOfKey(table, key, {sources_.map, sources_.own_set, sources_.leads});
    switch (owner.kind) {
      case KeyOwner::Kind::kSet: {
        if (owner.entry != nullptr) return Set(owner.set, owner.entry->epoch);
        const Tablet* const tablet = tablets->Find(key);
        return Set(owner.set, tablet == nullptr ? 0 : tablet->epoch);
      }
      case KeyOwner::Kind::kLost:
        return {Kind::kLost, 0, 0, LostRowText(table.shown_name(), row, owner.set)};
      case KeyOwner::Kind::kUnknown:
        break;
    }
    return Unknown(fmt::format("TRYAGAIN the map does not say who owns row {} of table {}",
                               Quote(row), Quote(table.shown_name())));
  }

  CommandRoute OfRow(const CommandEntry& command, const Table& table, std::string_view row) const {
    const Order& order = table.schema().key;
    // `*` is the next record number: who has the last of them gives it.
    if (row == "*" && order.is_recno() && command.Has(kWrite)) {
      std::string last;
      order.EncodeRecno(INT64_MAX, &last);
      return OfKey(table, last, row);
    }
    Result<std::string> key = sources_.store.RowKey(table, row);
    // Who makes the row says which moment `now` is; where it lies depends on little more than that.
    std::string expanded;
    if (!key.ok() && command.Has(kWrite) && ExpandTimes(order, row, &expanded))
      key = sources_.store.RowKey(table, expanded);
    return key.ok() ? OfKey(table, *key, row) : CommandRoute();
  }

  CommandRoute OfNamedRow(const CommandEntry& command, Arguments args) const {
    const KeySpec& keys = command.row->keys;
    const auto table_at = static_cast<size_t>(keys.first);
    const auto row_at = static_cast<size_t>(keys.row);
    if (args.size() <= std::max(table_at, row_at)) return {};
    const Table* const table = TableNamed(args[table_at]);
    if (table == nullptr) return {};
    CommandRoute route = OfRow(command, *table, args[row_at]);
    route.table = table;
    return route;
  }

  // CROWS table count row ...
  CommandRoute OfRows(const CommandEntry& command, Arguments args) const {
    const Table* const table = TableNamed(args[1]);
    int64_t count = 0;
    const bool fits = ParseStrictInt64(args[2], &count) && count > 0 &&
                      static_cast<uint64_t>(count) <= args.size() - 3;
    if (table == nullptr || !fits) return {};
    RouteSum sum(CommandText(command));
    for (const std::string_view row : args.subspan(3, static_cast<size_t>(count))) {
      const CommandRoute route = OfRow(command, *table, row);
      if (!sum.Add(route, table->shown_name() + ' ' + Quote(row))) break;
    }
    return sum.route();
  }

  // Where all rows of the table are. *sets: how many sets have some, if it is kSeveral.
  CommandRoute OfWhole(const Table& table, size_t* sets) const {
    const Tablets* const tablets = table.tablets();
    if (tablets == nullptr) return {};
    if (tablets->owns_all()) return Set(sources_.own_set, tablets->list().front().epoch);
    const auto unknown = [&table] {
      return Unknown(fmt::format("TRYAGAIN the map does not say who owns all rows of table {}",
                                 Quote(table.shown_name())));
    };
    const MapTable* const mapped =
        sources_.map == nullptr ? nullptr : sources_.map->Find(table.id());
    if (mapped == nullptr || mapped->tablets.empty()) return unknown();
    std::set<uint64_t> owners;
    std::string_view end;
    for (const MapEntry& entry : mapped->tablets) {
      const bool joins = entry.begin == end && (owners.empty() || !end.empty());
      if (!joins) return unknown();
      owners.insert(entry.set);
      end = entry.end;
    }
    if (!end.empty()) return unknown();
    *sets = owners.size();
    if (owners.size() > 1) return {Kind::kSeveral, 0, 0, {}};
    const MapEntry& first = mapped->tablets.front();
    if (IsLost(first.set)) {
      return {Kind::kLost, 0, 0,
              fmt::format("CLUSTERDOWN all rows of table {} are lost with set {}",
                          Quote(table.shown_name()), SetNumber(first.set))};
    }
    const bool one = mapped->tablets.size() == 1;
    return Contradicts(first.set) ? unknown() : Set(first.set, one ? first.epoch : 0);
  }

  // CSCAN ... SNAPSHOT of one moment over all sets, also where all rows lie on one: they may move
  // before the next page. Inside EXEC there is one page, of the set that has the rows.
  bool IsOfMoment(const CommandEntry& command, Arguments args) const {
    const bool scans = command.full_name == "cscan" && args.size() > 2;
    if (!scans || sources_.map == nullptr) return false;
    const Table* const table = TableNamed(args[1]);
    if (table == nullptr || table->frozen() || table->tablets() == nullptr) return false;
    if (IsStartCursor(args[2])) {
      const auto is_word = [](std::string_view word) { return EqualsIgnoreCase(word, "SNAPSHOT"); };
      return of_ == Of::kCommand && std::any_of(args.begin() + 3, args.end(), is_word) &&
             HasOtherSets();
    }
    const std::optional<uint64_t> pin = PinOfCursor(args[2]);
    return pin && (*pin & kFrozenPin) != 0;
  }

  CommandRoute OfNamedTable(const CommandEntry& command, Arguments args) const {
    const std::vector<size_t> keys = KeyPositions(command.row->keys, args);
    const Table* const table = keys.empty() ? nullptr : TableNamed(args[keys[0]]);
    if (table == nullptr) return {};
    size_t sets = 0;
    CommandRoute route = OfWhole(*table, &sets);
    // It reads where the rows were then.
    if (!route.Is(Kind::kLost) && IsOfMoment(command, args)) route = {Kind::kSeveral, 0, 0, {}};
    if (route.Is(Kind::kSeveral)) {
      route.error = fmt::format("CROSSSET table {} lies on {} sets: no {} goes over them",
                                Quote(table->shown_name()), sets, CommandText(command));
    }
    return route;
  }

  CommandRoute OfTables(const CommandEntry& command, Arguments args) const {
    RouteSum sum(CommandText(command));
    for (const size_t at : KeyPositions(command.row->keys, args)) {
      const Table* const table = TableNamed(args[at]);
      if (table == nullptr) continue;
      size_t sets = 0;
      CommandRoute route = OfWhole(*table, &sets);
      if (route.Is(Kind::kSeveral)) {
        route.error =
            fmt::format("CROSSSET table {} lies on {} sets; watch its rows: CWATCH table row",
                        Quote(table->shown_name()), sets);
      }
      if (!sum.Add(route, table->shown_name())) break;
    }
    return sum.route();
  }

  // Each set has the part of a feed that tells of its rows.
  CommandRoute OfFeeds(const CommandEntry& command, Arguments args) const {
    RouteSum sum(CommandText(command));
    for (const size_t at : KeyPositions(command.row->feeds, args)) {
      const std::optional<FeedWord> word = ParseFeedWord(args[at]);
      if (!word || sources_.store.FindFeed(keyspace_, word->feed) == nullptr) continue;
      CommandRoute route;
      if (word->set) {
        const bool is_known =
            *word->set == sources_.own_set || sources_.sets.Find(*word->set) != nullptr;
        if (is_known) route = Set(*word->set, 0);
        const SetDirectory& sets = sources_.sets;
        const bool knows_all = sets.Find(0) != nullptr && sets.Find(sources_.own_set) != nullptr;
        if (!is_known && !knows_all) route = Unknown(std::string(ClusterView::kSetsUnknown));
      } else if (HasOtherSets() && IsOfGroups(command, args)) {
        route = Set(sources_.store.FindFeed(keyspace_, word->feed)->home.set, 0);
      } else if (HasOtherSets()) {
        route = {Kind::kSeveral, 0, 0, ManySetsText(word->feed)};
      }
      if (!sum.Add(route, std::string(args[at]))) break;
    }
    return sum.route();
  }
  // Groups of a whole feed are at its home.
  static bool IsOfGroups(const CommandEntry& command, Arguments args) {
    constexpr std::string_view kOfGroups[]{"xreadgroup", "xack",         "xpending",       "xclaim",
                                           "xautoclaim", "xinfo|groups", "xinfo|consumers"};
    return command.full_name.starts_with("xgroup|") ||
           std::find(std::begin(kOfGroups), std::end(kOfGroups), command.full_name) !=
               std::end(kOfGroups) ||
           (command.full_name == "xinfo|stream" && args.size() > 3);
  }
  bool HasOtherSets() const {
    return sources_.own_set != 0 || sources_.cluster_map.Sets(sources_.store).size() > 1;
  }
  std::string ManySetsText(std::string_view feed) const {
    constexpr size_t kNamedMax{8};
    std::string names;
    size_t count = 0;
    for (const auto& [number, set] : sources_.sets.sets()) {
      if (count++ < kNamedMax)
        names += fmt::format("{}{}@{}", names.empty() ? "" : ", ", feed, number);
    }
    if (count > kNamedMax) names += " ...";
    return fmt::format("CROSSSET feed {} lies on several sets: read {}", Quote(feed), names);
  }

  // TABLET SPLIT table row ..., MERGE table row, ROUTE table row.
  CommandRoute OfBounds(const CommandEntry& command, Arguments args) const {
    const Table* const table = TableNamed(args[2]);
    if (table == nullptr || table->frozen()) return {};
    RouteSum sum(CommandText(command));
    for (const std::string_view row : args.subspan(3)) {
      const Result<std::string> bound = EncodeTabletBound(table->schema(), row);
      if (!bound.ok()) return {};
      if (!sum.Add(OfKey(*table, *bound, row), table->name() + ' ' + Quote(row))) break;
    }
    return sum.route();
  }

  const RouteSources& sources_;
  const std::string_view keyspace_;
  const Of of_;
};

// What a queued command concerns, for people: its table and row, as far as it names them.
std::string ThingOf(const CommandEntry& command, Arguments words) {
  const KeySpec& keys = command.row->keys;
  const std::vector<size_t> positions = KeyPositions(keys, words);
  if (positions.empty()) return CommandText(command);
  std::string thing(words[positions[0]]);
  const auto row_at = static_cast<size_t>(keys.row);
  if (row_at > 0 && row_at < words.size()) thing += ' ' + Quote(words[row_at]);
  return thing;
}

bool IsOfSchema(CommandReach reach) { return reach == CommandReach::kSchema; }

CommandRoute OfTransaction(const RouteSources& sources) {
  RouteSum sum("EXEC");
  std::string keyspace(sources.keyspace);
  std::vector<std::string_view> words;
  CommandRoute route;
  for (const QueuedCommand& queued : sources.transaction->queue) {
    const CommandEntry& command = *queued.command;
    sources.transaction->WordsOf(queued, &words);
    if (IsOfSchema(command.reach)) {
      return {Kind::kSeveral, 0, 0,
              fmt::format("CROSSSET {} goes over all sets, not into an EXEC; nothing was done",
                          CommandText(command))};
    }
    RouteFinder finder(sources, keyspace, RouteFinder::Of::kTransaction);
    if (!sum.Add(finder.Find(command, words), ThingOf(command, words))) break;
    FollowSelect(sources.store, command, words, &keyspace);
  }
  route = sum.route();
  if (route.Is(Kind::kSeveral)) route.error += "; nothing was done";
  return route;
}

RouteSources SourcesOf(Host& host, std::string_view keyspace, const TransactionState* transaction) {
  const SetNode* const set = host.replication().set();
  return {.store = host.store(),
          .map = &MapOf(host),
          .own_set = host.store().engine().cluster().set,
          .leads = set != nullptr && set->open(),
          .users_are_shared = SetUsers::AreOfSet(host),
          .keyspace = keyspace,
          .transaction = transaction,
          .sets = host.services().cluster_view.sets,
          .cluster_map = host.services().cluster_map};
}

}  // namespace

CommandRoute FindRoute(const RouteSources& sources, const CommandEntry& command, Arguments args) {
  if (command.reach != CommandReach::kExec)
    return RouteFinder(sources, sources.keyspace).Find(command, args);
  const TransactionState* const transaction = sources.transaction;
  const bool runs = transaction != nullptr && transaction->queueing && !transaction->aborted;
  return runs ? OfTransaction(sources) : CommandRoute();
}

const MapCache& MapOf(Host& host) {
  Services& services = host.services();
  const bool has_own = host.store().engine().cluster().set == 0;
  // Nobody tells a node of set 0 of another one.
  if (has_own && services.cluster_view.map.version() == 0)
    return services.cluster_map.Current(host.store());
  return services.cluster_view.map;
}

namespace {

// A set that has just come says within a moment what its members know.
bool WaitsForSets(Host& host, const CommandEntry& command) {
  if (command.reach != CommandReach::kSchema || command.full_name != "feed|create" ||
      !ClusterPart::Directs(host))
    return false;
  const ClusterMap& map = host.services().cluster_map;
  return map.has_others() && !map.KnowHomes();
}

}  // namespace

bool WaitsForTablets(const Engine& engine, const CommandEntry& command) {
  if (command.reach != CommandReach::kSchema || !command.Has(kWrite)) return false;
  // CLUSTER and TABLET change no table's schema, and cancel what would be waited for.
  if (command.row->group == "cluster") return false;
  const TabletMoves& moves = engine.cluster().moves;
  const auto is_given = [](const auto& move) { return move.second.given; };
  const auto may_be_given = [](const auto& move) { return move.second.binds; };
  return std::any_of(moves.out().begin(), moves.out().end(), is_given) ||
         std::any_of(moves.in().begin(), moves.in().end(), may_be_given);
}

std::string_view WhySchemaWaits(Host& host, const CommandEntry& command) {
  if (WaitsForTablets(host.store().engine(), command))
    return "TRYAGAIN a tablet is on its way from one set to another";
  if (WaitsForSets(host, command))
    return "TRYAGAIN not all sets have said that they know feeds of several sets";
  return {};
}

CommandRoute RouteOf(Host& host, const Session& session, const CommandEntry& command,
                     Arguments args) {
  // Most concern nothing, and cost no more than this.
  if (command.reach == CommandReach::kNode) return {};
  if (const std::string_view why = WhySchemaWaits(host, command); !why.empty())
    return {CommandRoute::Kind::kUnknown, 0, 0, std::string(why)};
  return FindRoute(SourcesOf(host, session.keyspace, session.transaction.get()), command, args);
}

CommandRoute RouteIn(Host& host, std::string_view keyspace, const CommandEntry& command,
                     Arguments args) {
  return FindRoute(SourcesOf(host, keyspace, nullptr), command, args);
}

// One that is not there is an error in its place, and what comes behind goes on in the old one.
void FollowSelect(const Store& store, const CommandEntry& command, Arguments args,
                  std::string* keyspace) {
  const bool selects =
      command.Is(CommandRole::kSelect) && args.size() == 2 && store.KeyspaceExists(args[1]);
  if (selects) *keyspace = args[1];
}

bool BelongsToOwnSet(Host& host, std::string_view keyspace, const CommandEntry& command,
                     Arguments args) {
  if (command.reach == CommandReach::kNode) return true;
  const uint64_t own = host.store().engine().cluster().set;
  const CommandRoute route = FindRoute({.store = host.store(),
                                        .map = nullptr,
                                        .own_set = own,
                                        .leads = true,
                                        .users_are_shared = SetUsers::AreOfSet(host),
                                        .keyspace = keyspace,
                                        .sets = host.services().cluster_view.sets,
                                        .cluster_map = host.services().cluster_map},
                                       command, args);
  return route.Is(Kind::kHere) || (route.Is(Kind::kSet) && route.set == own);
}

}  // namespace cellar
