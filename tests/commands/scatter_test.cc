// Commands over several sets: what they reply is taken against one server that has all the rows.
// The sets are stores in this process, each of which owns other rows of a table and has rows of
// others' besides; who is asked answers late, and bounces what the asking node's map says wrongly.
#include "commands/cluster/scatter.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/log.h"
#include "base/random.h"
#include "base/text/number.h"
#include "cluster/call_frames.h"
#include "commands/all_commands.h"
#include "commands/cluster/call_piece.h"
#include "commands/cluster/reply_reader.h"
#include "commands/replies/note_sum.h"
#include "store/store.h"
#include "store/tablet_changes.h"
#include "tests/commands/fake_host.h"

namespace scatter_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)
using Words = std::vector<std::string>;

std::vector<std::string_view> Views(const Words& words) { return {words.begin(), words.end()}; }

// A node with a store.
class Node {
 public:
  explicit Node(bool in_cluster) {
    SilenceLog(true);
    char name[] = "/tmp/cellar-scatter-test-XXXXXX";
    REQUIRE(mkdtemp(name) != nullptr);
    directory_ = name;
    StoreOptions options;
    options.journal.directory = directory_;
    options.journal.sync_policy = SyncPolicy::kNo;
    options.journal.segment_bytes_max = 1 << 20;
    options.journal.allocation_bytes_min = 4096;
    options.journal.allocation_bytes_max = 65536;
    Result<std::unique_ptr<Store>> opened =
        Store::Open(options, FileSystem::Posix(), Clock::System(), {});
    if (!opened.ok()) FAIL(opened.status().ToString());
    store = *std::move(opened);
    host.set_store(store.get());
    host.own_services.config.read_threads = 0;
    host.own_services.config.agg_threads = 0;
    AddAllCommands(&host.own_services.commands);
    host.session.authenticated = true;
    if (in_cluster) REQUIRE(TabletChanges(*store).Init(7).ok());
  }
  ~Node() {
    host.session.task.reset();
    host.set_store(nullptr);
    store.reset();
    std::filesystem::remove_all(directory_);
  }

  // In small steps, as long as it takes.
  void Finish(Session& session) {
    for (int steps = 0; session.task != nullptr; ++steps) {
      REQUIRE(steps < 2'000'000);
      const TaskBudget budget(Clock::System(), 0);
      (void)host.dispatcher().StepTask(session, budget);
    }
  }
  std::string Say(const Words& words) {
    host.dispatcher().BeginTurn(host.now_micros(), {});
    store->SetTurnTime();
    host.Execute(Views(words));
    Finish(host.session);
    return TakeReply(host.session);
  }
  static std::string TakeReply(Session& session) {
    std::string reply(session.output.view());
    session.output.Clear();
    session.gates.clear();
    return reply;
  }
  // As the sets' commands are carried out for others.
  std::string Answer(const std::string& text, RespVersion version) {
    host.session.version = version;
    std::optional<CallPiece> piece;
    const Status read = VisitCall(text, [&](std::span<const std::string_view> words, bool) {
      if (CallPiece::Is(words)) {
        piece = CallPiece::Parse(words);
        return;
      }
      REQUIRE(piece);
      const PieceScope scope(host, *piece);
      if (!scope.owned()) {
        host.session.output.Append(kMovedPiece);
        return;
      }
      host.dispatcher().BeginTurn(host.now_micros(), {});
      host.Execute({words.begin(), words.end()});
    });
    REQUIRE(read.ok());
    Finish(host.session);
    REQUIRE(host.own_services.piece == nullptr);
    return TakeReply(host.session);
  }
  // The command as one over several sets.
  std::string Scatter(const Words& words) {
    const std::vector<std::string_view> args = Views(words);
    CommandEntry* command = host.own_services.commands.Find(args[0]);
    REQUIRE(command != nullptr);
    if (!command->subcommands.empty()) command = CommandTable::FindSubcommand(*command, args[1]);
    REQUIRE(ScatterCommands::Takes(*command));
    CommandContext context{.args = args,
                           .command = *command,
                           .session = host.session,
                           .host = host,
                           .reply = host.session.writer(),
                           .now_micros = host.now_micros()};
    ScatterCommands::Begin(context);
    if (host.session.task != nullptr) host.session.task->command = command;
    Finish(host.session);
    return TakeReply(host.session);
  }

  std::unique_ptr<Store> store;
  fake_host::FakeHost host;

 private:
  std::string directory_;
};

// What a set says, some looks later.
class FakeCalls final : public RemoteCalls {
 public:
  explicit FakeCalls(uint64_t seed) : random_(seed) {}

  uint64_t Ask(const Session& session, uint64_t set, std::string text, bool) override {
    REQUIRE(set < sets.size());
    ++asked;
    calls_[++last_] = {set, session.version, std::move(text), random_.Below(4), {}};
    return last_;
  }
  uint64_t AskToWait(const Session&, uint64_t, std::string) override {
    FAIL("no command over sets waits for others");
    return 0;
  }
  uint64_t AskNode(const Session&, uint64_t, std::string) override {
    FAIL("no command over sets asks nodes");
    return 0;
  }
  Answer& AnswerTo(uint64_t ticket) override {
    Call& call = calls_.at(ticket);
    if (call.answer.state != State::kPending) return call.answer;
    if (call.looks_left > 0) {
      --call.looks_left;
      return call.answer;
    }
    if (failing.contains(call.set)) {
      call.answer = {failing.at(call.set), "CLUSTERDOWN no leader: set 1: none"};
    } else if (bounces && random_.OneIn(4)) {
      call.answer.state = State::kMoved;
    } else {
      call.answer = {State::kAnswered, sets[call.set]->Answer(call.text, call.version)};
      if (call.answer.bytes == kMovedPiece && on_moved) on_moved();
    }
    return call.answer;
  }
  void Forget(uint64_t ticket) override { REQUIRE(calls_.erase(ticket) == 1); }
  size_t open() const { return calls_.size(); }

  std::vector<std::unique_ptr<Node>> sets;
  std::map<uint64_t, State> failing;
  bool bounces{false};
  std::function<void()> on_moved;  // somebody was asked for what another one has
  uint64_t asked{0};

 private:
  struct Call {
    uint64_t set;
    RespVersion version;
    std::string text;
    uint64_t looks_left;
    Answer answer;
  };
  mutable Random random_;
  uint64_t last_{0};
  mutable std::map<uint64_t, Call> calls_;
};

// One server with all rows, sets that have a part of them each, and a node that asks these.
class Cluster {
 public:
  explicit Cluster(uint64_t seed, size_t sets = 3)
      : random(seed), calls(seed), single(false), entry(true) {
    for (size_t i = 0; i < sets; ++i) calls.sets.push_back(std::make_unique<Node>(true));
    entry.host.own_services.remote = &calls;
  }
  ~Cluster() { CHECK(calls.open() == 0); }

  void Everywhere(const Words& words) {
    const std::string reply = single.Say(words);
    REQUIRE_FALSE(reply.starts_with('-'));
    REQUIRE(entry.Say(words) == reply);
    for (const auto& set : calls.sets) REQUIRE(set->Say(words) == reply);
    // An index is built in slices of time, and may not be at its end yet.
    while (single.store->Sweep(1000)) {
    }
    for (const auto& set : calls.sets) {
      while (set->store->Sweep(1000)) {
      }
    }
  }
  // Tablets of the table end there (encoded); whose they are is drawn.
  void Spread(const std::string& name, const std::set<std::string>& ends) {
    name_ = name;
    tablets_.assign(calls.sets.size(), {});
    std::string begin;
    std::vector<std::string> all(ends.begin(), ends.end());
    all.emplace_back();
    for (const std::string& end : all) {
      tablets_[random.Below(calls.sets.size())].push_back({begin, end, 1});
      begin = end;
    }
    const Table* const table = *entry.store->FindTable("0", name);
    for (size_t i = 0; i < tablets_.size(); ++i) {
      Store& store = *calls.sets[i]->store;
      Table* const of_set = *store.FindTable("0", name);
      REQUIRE(of_set->id() == table->id());
      REQUIRE(TabletChanges(store).Assign(*of_set, tablets_[i]).ok());
    }
    calls.on_moved = [this] { Map(false); };
    Map(false);
  }
  // What the asking node believes; stale: wrongly, until somebody says so.
  void Map(bool stale) {
    const uint64_t id = (*entry.store->FindTable("0", name_))->id();
    MapCache& map = entry.host.own_services.cluster_view.map;
    map.Begin(++version_, 0, 1);
    uint64_t number = 0;
    for (size_t i = 0; i < tablets_.size(); ++i) {
      for (const Tablet& tablet : tablets_[i]) {
        const uint64_t set = stale && random.OneIn(3) ? random.Below(tablets_.size()) : i;
        map.Add(id, "0/" + name_, {tablet.begin, tablet.end, set, 1, ++number, version_});
      }
    }
    map.Sort();
  }
  // To the single server, and to who owns the row; some have been put elsewhere before.
  void Put(const std::string& name, const std::string& row, const Words& rest) {
    Words words{"CPUT", name, row};
    words.insert(words.end(), rest.begin(), rest.end());
    REQUIRE(single.Say(words) == "+OK\r\n");
    const Table* const table = *entry.store->FindTable("0", name);
    const std::string key = *entry.store->RowKey(*table, row);
    for (size_t i = 0; i < calls.sets.size(); ++i) {
      const bool owns = OwnerOf(key) == i;
      if (owns) REQUIRE(calls.sets[i]->Say(words) == "+OK\r\n");
    }
  }
  size_t OwnerOf(const std::string& key) const {
    for (size_t i = 0; i < tablets_.size(); ++i)
      for (const Tablet& tablet : tablets_[i])
        if (tablet.Contains(key)) return i;
    return SIZE_MAX;
  }
  void SetVersion(RespVersion version) {
    single.host.session.version = version;
    entry.host.session.version = version;
  }
  // Both must say the same.
  std::string Same(const Words& words) {
    std::string shown;
    for (const std::string& word : words) shown += word + " ";
    INFO(shown);
    const std::string reply = single.Say(words);
    Map(random.OneIn(4));
    const std::string scattered = entry.Scatter(words);
    CHECK(scattered == reply);
    return reply;
  }

  Random random;
  FakeCalls calls;
  Node single;
  Node entry;

 private:
  uint64_t version_{0};
  std::string name_;
  std::vector<std::vector<Tablet>> tablets_;  // by set
};

constexpr std::string_view kOrders[]{"utf8", "-utf8", "u32", "utf8#u16", "-utf8#utf8"};

std::string RandomRow(Random& random, std::string_view order) {
  const std::string letters(1, static_cast<char>('a' + random.Below(6)));
  if (order == "u32") return FormatUint64(random.Below(200));
  if (order == "utf8#u16") return letters + "#" + FormatUint64(random.Below(12));
  if (order == "-utf8#utf8") return letters + "#" + std::string(1 + random.Below(4), 'x');
  return letters + std::string(random.Below(3), 'b') + FormatUint64(random.Below(9));
}

// With rows, some of which are also where they are not owned.
void FillAtRandom(Cluster& cluster, std::string_view order, uint64_t rows) {
  Random& random = cluster.random;
  cluster.Everywhere({"TABLE", "CREATE", "t", "KEY", std::string(order), "FAMILY", "f", "VERSIONS",
                      "3", "FAMILY", "g", "TYPE", "i64", "FAMILY", "n"});
  cluster.Everywhere({"INDEX", "CREATE", "t", "by-n", "ON", "1", "g:n", "INCLUDE", "1", "g:m"});
  for (const auto& set : cluster.calls.sets) {
    for (int i = 0; i < 8; ++i)
      REQUIRE(set->Say({"CPUT", "t", RandomRow(random, order), "f:a", "stranger", "g:n", "7"}) ==
              "+OK\r\n");
  }
  std::set<std::string> ends;
  const Table* const table = *cluster.entry.store->FindTable("0", "t");
  for (uint64_t i = random.Below(9); i > 0; --i) {
    std::string row = RandomRow(random, order);
    if (row.find('#') != std::string::npos && random.OneIn(2)) row.resize(row.find('#'));
    ends.insert(*EncodeTabletBound(table->schema(), row));
  }
  cluster.Spread("t", ends);
  // What strangers had put where it is owned now is another's value.
  for (const auto& set : cluster.calls.sets)
    REQUIRE(set->Say({"CDELRANGE", "t", "ALL"}).starts_with(':'));
  uint64_t at = 1000;
  for (uint64_t i = 0; i < rows; ++i) {
    Words rest;
    const uint64_t columns = 1 + random.Below(4);
    for (uint64_t c = 0; c < columns; ++c) {
      rest.push_back("f:" + std::string(1, static_cast<char>('a' + random.Below(5))));
      rest.push_back(std::string(random.OneIn(8) ? 60 : random.Below(6), 'v'));
    }
    if (random.OneIn(2)) {
      rest.emplace_back("g:n");
      rest.push_back(FormatUint64(random.Below(5)));
    }
    if (random.OneIn(3)) {
      rest.emplace_back("g:m");
      rest.push_back(FormatUint64(random.Below(100)));
    }
    Words timed;
    for (size_t word = 0; word < rest.size(); word += 2)
      timed.insert(timed.end(), {rest[word], rest[word + 1], "TS", FormatUint64(at += 10)});
    cluster.Put("t", RandomRow(random, order), timed);
  }
}

std::string RandomBound(Random& random, std::string_view order) {
  if (random.OneIn(6)) return random.OneIn(2) ? "-" : "+";
  return (random.OneIn(2) ? "[" : "(") + RandomRow(random, order);
}

// Row options, which CCOUNT has too.
void AddRowOptions(Random& random, std::string_view order, Words* words) {
  for (uint64_t i = random.OneIn(2) ? random.Below(4) : 0; i > 0; --i) {
    switch (random.Below(3)) {
      case 0:
        words->insert(words->end(),
                      {"RANGE", RandomBound(random, order), RandomBound(random, order)});
        break;
      case 1: {
        std::string row = RandomRow(random, order);
        if (row.find('#') != std::string::npos) row.resize(row.find('#') + 1);
        words->insert(words->end(), {"PREFIX", order == "u32" ? row : row.substr(0, 2)});
        break;
      }
      default:
        words->insert(words->end(),
                      {"ROWS", "2", RandomRow(random, order), RandomRow(random, order)});
    }
  }
  if (random.OneIn(5))
    words->insert(words->end(), {"WHERE", "g:n", "GT", FormatUint64(random.Below(5))});
  if (random.OneIn(8)) words->insert(words->end(), {"FILTER", "value = \"vv\" | latest(1)"});
  if (random.OneIn(8)) words->insert(words->end(), {"PERROW", FormatUint64(1 + random.Below(3))});
  if (random.OneIn(8)) words->insert(words->end(), {"COLUMNS", "1", "f"});
  if (random.OneIn(8)) words->insert(words->end(), {"VERSIONS", "ALL"});
}

uint64_t SeedOfRun() {
  const char* const given = std::getenv("CELLAR_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10)
                          : static_cast<uint64_t>(Clock::System().WallMicros());
}

// Groups of rows, by key or by an index, which may lie on several sets.
void AddGroups(Random& random, std::string_view order, Words* words) {
  const bool composite = order.find('#') != std::string_view::npos;
  if (random.OneIn(2)) {
    constexpr std::string_view kIndexes[]{"by-n", "by-nm", "by-f"};
    words->insert(words->end(), {"INDEX", std::string(kIndexes[random.Below(3)])});
  }
  if (random.OneIn(3)) words->emplace_back("REVERSE");
  words->insert(words->end(), {"EACH", composite && random.OneIn(2) ? "2" : "1",
                               FormatUint64(1 + random.Below(4))});
  if (random.OneIn(4)) words->insert(words->end(), {"WHERE", "g:n", "GT", "1"});
  if (random.OneIn(4)) words->insert(words->end(), {"COLUMNS", "1", "f:a"});
}

// The options of a page.
void AddPageOptions(Random& random, std::string_view order, Words* words) {
  const bool composite = order.find('#') != std::string_view::npos;
  if (random.OneIn(3)) words->emplace_back("REVERSE");
  if (random.OneIn(3))
    words->insert(words->end(), {"EACH", composite && random.OneIn(2) ? "2" : "1",
                                 FormatUint64(1 + random.Below(3))});
  if (!random.OneIn(4)) words->insert(words->end(), {"COUNT", FormatUint64(1 + random.Below(9))});
  if (random.OneIn(3)) words->insert(words->end(), {"CELLS", FormatUint64(1 + random.Below(12))});
  if (random.OneIn(4)) words->emplace_back("KEYSONLY");
  if (random.OneIn(5)) words->emplace_back("WITHTS");
}

// A scan to its end. Which rows are drawn is another thing each time, unless a cursor says it.
void ScanToEnd(Cluster& cluster, Words words, bool sampled) {
  int pages = 0;
  do {
    const std::string reply =
        sampled && pages == 0 ? cluster.single.Say(words) : cluster.Same(words);
    if (reply.starts_with('-')) break;
    ReplyReader reader(reply);
    uint64_t elements = 0;
    std::string_view cursor;
    REQUIRE(reader.Array(&elements));
    REQUIRE(reader.Bulk(&cursor));
    words[2] = cursor;
  } while (words[2] != "0" && ++pages < 3000);
  REQUIRE(pages < 3000);
}

// Pages are short where the bytes of a head do not depend on what was guessed for it.
void DrawVersion(Cluster& cluster) {
  const bool is_short = cluster.random.OneIn(3);
  cluster.SetVersion(!is_short && cluster.random.OneIn(2) ? RespVersion::k2 : RespVersion::k3);
  cluster.single.host.own_services.config.scan_reply_max_bytes =
      cluster.entry.host.own_services.config.scan_reply_max_bytes =
          is_short ? static_cast<int64_t>(40 + cluster.random.Below(500)) : 16 << 20;
}

TEST_CASE("A scan over several sets replies as one server, page by page", "[scatter]") {
  const uint64_t first = SeedOfRun();
  for (uint64_t seed = first; seed < first + 24; ++seed) {
    INFO("CELLAR_TEST_SEED=" << seed);
    Cluster cluster(seed);
    Random& random = cluster.random;
    const std::string_view order = kOrders[random.Below(std::size(kOrders))];
    FillAtRandom(cluster, order, 60);
    for (int scan = 0; scan < 30; ++scan) {
      cluster.calls.bounces = random.OneIn(2);
      DrawVersion(cluster);
      Words words{"CSCAN", "t", "0"};
      AddRowOptions(random, order, &words);
      AddPageOptions(random, order, &words);
      const bool sampled = random.OneIn(6);
      if (sampled) words.insert(words.end(), {"SAMPLE", "0.6"});
      ScanToEnd(cluster, words, sampled);
    }
  }
}

TEST_CASE("A scan by an index over several sets replies as one server", "[scatter]") {
  const uint64_t first = SeedOfRun();
  for (uint64_t seed = first; seed < first + 24; ++seed) {
    INFO("CELLAR_TEST_SEED=" << seed);
    Cluster cluster(seed);
    Random& random = cluster.random;
    const std::string_view order = kOrders[random.Below(std::size(kOrders))];
    FillAtRandom(cluster, order, 80);
    cluster.Everywhere({"INDEX", "CREATE", "t", "by-nm", "ON", "2", "g:n", "g:m"});
    cluster.Everywhere({"INDEX", "CREATE", "t", "by-f", "ON", "1", "f"});
    for (int scan = 0; scan < 30; ++scan) {
      cluster.calls.bounces = random.OneIn(2);
      DrawVersion(cluster);
      Words words{"CSCAN", "t", "0"};
      constexpr std::string_view kIndexes[]{"by-n", "by-nm", "by-f"};
      words.insert(words.end(), {"INDEX", std::string(kIndexes[random.Below(3)])});
      if (random.OneIn(4)) words.insert(words.end(), {"BETWEEN", "[1", "[3"});
      if (random.OneIn(5)) words.insert(words.end(), {"WHERE", "g:n", "GT", "1"});
      if (random.OneIn(6)) words.insert(words.end(), {"RANGE", "-", RandomBound(random, order)});
      if (random.OneIn(6)) words.insert(words.end(), {"VERSIONS", "ALL"});
      AddPageOptions(random, order, &words);
      const bool sampled = random.OneIn(6);
      if (sampled) words.insert(words.end(), {"SAMPLE", "0.6"});
      ScanToEnd(cluster, words, sampled);
    }
  }
}

TEST_CASE("Counts of several sets are added", "[scatter]") {
  const uint64_t first = SeedOfRun();
  for (uint64_t seed = first; seed < first + 16; ++seed) {
    INFO("CELLAR_TEST_SEED=" << seed);
    Cluster cluster(seed);
    Random& random = cluster.random;
    const std::string_view order = kOrders[random.Below(std::size(kOrders))];
    FillAtRandom(cluster, order, 60);
    cluster.Everywhere({"INDEX", "CREATE", "t", "by-nm", "ON", "2", "g:n", "g:m"});
    cluster.Everywhere({"INDEX", "CREATE", "t", "by-f", "ON", "1", "f"});
    for (int count = 0; count < 40; ++count) {
      cluster.calls.bounces = random.OneIn(2);
      Words words{"CCOUNT", "t"};
      if (random.OneIn(2))
        AddGroups(random, order, &words);
      else
        AddRowOptions(random, order, &words);
      if (random.OneIn(5) && words.size() == 2) words.insert(words.end(), {"INDEX", "by-n"});
      constexpr std::string_view kBy[]{"ROWS", "GROUPS", "COLUMNS", "CELLS"};
      words.insert(words.end(), {"BY", std::string(kBy[random.Below(4)])});
      cluster.Same(words);
    }
  }
}

// Not MIN and MAX of values that are equal and not the same, nor the last digit of a STDDEV: these
// depend on the order.
TEST_CASE("Groups of several sets are those of one server", "[scatter]") {
  const uint64_t first = SeedOfRun();
  for (uint64_t seed = first; seed < first + 16; ++seed) {
    INFO("CELLAR_TEST_SEED=" << seed);
    Cluster cluster(seed);
    Random& random = cluster.random;
    const std::string_view order = kOrders[random.Below(std::size(kOrders))];
    FillAtRandom(cluster, order, 80);
    cluster.Everywhere({"INDEX", "CREATE", "t", "by-nm", "ON", "2", "g:n", "g:m"});
    cluster.Everywhere({"INDEX", "CREATE", "t", "by-f", "ON", "1", "f"});
    for (int i = 0; i < 60; ++i) {
      const std::string number = FormatUint64(random.Below(1000)) + "." +
                                 FormatUint64(random.Below(1000)) + (random.OneIn(5) ? "e60" : "");
      cluster.Put("t", RandomRow(random, order),
                  {"n:x", number, "TS", FormatUint64(1 + random.Below(500'000'000))});
    }
    for (int i = 0; i < 40; ++i) {
      cluster.calls.bounces = random.OneIn(2);
      cluster.SetVersion(random.OneIn(2) ? RespVersion::k2 : RespVersion::k3);
      Words words{"CAGG", "t"};
      if (random.OneIn(3)) {
        AddGroups(random, order, &words);
      } else {
        AddRowOptions(random, order, &words);
        if (random.OneIn(4)) words.emplace_back("REVERSE");
      }
      switch (random.Below(6)) {
        case 0:
          break;
        case 1:
          words.insert(words.end(), {"BY", "KEY"});
          break;
        case 2:
          words.insert(words.end(), {"BY", "COLUMN"});
          break;
        case 3:
          words.insert(words.end(), {"BY", "FAMILY"});
          break;
        case 4:
          words.insert(words.end(), {"BY", "VALUE", "g:n"});
          break;
        default:
          words.insert(words.end(), {"BY", "TIME", "1m"});
          if (random.OneIn(2)) words.insert(words.end(), {"FILL", "PREVIOUS"});
      }
      constexpr std::string_view kFunctions[]{"ROWS", "COUNT", "SUM",  "AVG",     "FIRST",
                                              "LAST", "DELTA", "RATE", "DISTINCT"};
      if (words.back() == "PREVIOUS") {
        words.pop_back();
        words.pop_back();
        words.insert(words.end(), {"REDUCE", "COUNT", "*", "AS", "filled"});
        words.insert(words.end(), {"FILL", "PREVIOUS"});
      } else {
        for (uint64_t reduces = 1 + random.Below(3); reduces > 0; --reduces) {
          const std::string target = random.OneIn(2) ? "n:x" : random.OneIn(2) ? "g" : "*";
          words.insert(words.end(), {"REDUCE", std::string(kFunctions[random.Below(9)]), target,
                                     "AS", "r" + FormatUint64(reduces)});
        }
        if (random.OneIn(2))
          words.insert(words.end(), {"REDUCE", "QUANTILE", "n:x", "2", "0.5", "0.9", "AS", "q"});
        if (random.OneIn(2))
          words.insert(words.end(), {"REDUCE", "HISTOGRAM", "n", "2", "100", "500", "AS", "h"});
        if (random.OneIn(3)) words.insert(words.end(), {"REDUCE", "MAX", "n:x", "AS", "m"});
        words.insert(words.end(), {"REDUCE", "COUNT", "*", "AS", "all"});
        if (random.OneIn(3)) words.insert(words.end(), {"HAVING", "all", "GT", "1"});
        if (random.OneIn(3)) words.insert(words.end(), {"SORT", "all", "DESC"});
        if (random.OneIn(3)) words.insert(words.end(), {"LIMIT", "1", "3"});
      }
      cluster.Same(words);
    }
    cluster.calls.bounces = false;
    const std::string reply =
        cluster.entry.Scatter({"CAGG", "t", "BY", "KEY", "REDUCE", "STDDEV", "n:x", "AS", "s"});
    CHECK(reply.starts_with('*'));
  }
}

TEST_CASE("The nearest row is found on whichever set it lies", "[scatter]") {
  const uint64_t first = SeedOfRun();
  for (uint64_t seed = first; seed < first + 16; ++seed) {
    INFO("CELLAR_TEST_SEED=" << seed);
    Cluster cluster(seed);
    Random& random = cluster.random;
    const std::string_view order = kOrders[random.Below(std::size(kOrders))];
    FillAtRandom(cluster, order, random.Below(12));
    cluster.Everywhere({"INDEX", "CREATE", "t", "by-f", "ON", "1", "f"});
    for (int i = 0; i < 40; ++i) {
      cluster.calls.bounces = random.OneIn(2);
      cluster.SetVersion(random.OneIn(2) ? RespVersion::k2 : RespVersion::k3);
      cluster.Same({"CNEAR", "t", RandomRow(random, order)});
      cluster.Same({"CNEAR", "t", "INDEX", "by-n", "1", FormatUint64(random.Below(8))});
      cluster.Same({"CNEAR", "t", "INDEX", random.OneIn(9) ? "none" : "by-f", "1",
                    std::string(1, static_cast<char>('a' + random.Below(6)))});
    }
  }
}

TEST_CASE("Rows of several sets come in the order in which they are named", "[scatter]") {
  const uint64_t first = SeedOfRun();
  for (uint64_t seed = first; seed < first + 8; ++seed) {
    INFO("CELLAR_TEST_SEED=" << seed);
    Cluster cluster(seed);
    Random& random = cluster.random;
    const std::string_view order = kOrders[random.Below(std::size(kOrders))];
    FillAtRandom(cluster, order, 60);
    for (int i = 0; i < 30; ++i) {
      cluster.calls.bounces = random.OneIn(2);
      cluster.SetVersion(random.OneIn(2) ? RespVersion::k2 : RespVersion::k3);
      cluster.single.host.own_services.config.reply_max_bytes =
          cluster.entry.host.own_services.config.reply_max_bytes =
              random.OneIn(3) ? static_cast<int64_t>(40 + random.Below(500)) : 16 << 20;
      const uint64_t count = 1 + random.Below(12);
      Words words{"CROWS", "t", FormatUint64(count)};
      for (uint64_t row = 0; row < count; ++row) words.push_back(RandomRow(random, order));
      if (random.OneIn(3)) words.emplace_back("WITHTS");
      if (random.OneIn(5)) words.insert(words.end(), {"COLUMNS", "1", "f:a"});
      if (random.OneIn(20)) words.emplace_back("NONSENSE");
      cluster.Same(words);
    }
  }
}

TEST_CASE("Changes of several sets leave what one server has", "[scatter]") {
  const uint64_t first = SeedOfRun();
  for (uint64_t seed = first; seed < first + 16; ++seed) {
    INFO("CELLAR_TEST_SEED=" << seed);
    Cluster cluster(seed);
    Random& random = cluster.random;
    const std::string_view order = kOrders[random.Below(std::size(kOrders))];
    FillAtRandom(cluster, order, 80);
    cluster.Everywhere({"INDEX", "CREATE", "t", "by-f", "ON", "1", "f"});
    for (int i = 0; i < 12; ++i) {
      cluster.calls.bounces = random.OneIn(2);
      Words words;
      if (random.OneIn(3)) {
        // What an update leaves as it is does not count.
        words = {"CUPDATE", "t", "INDEX", random.OneIn(2) ? "by-n" : "by-f"};
        if (random.OneIn(3)) words.insert(words.end(), {"WHERE", "g:n", "GT", "1"});
        words.insert(words.end(), {"LIMIT", FormatUint64(1 + random.Below(12))});
        switch (random.Below(4)) {
          case 0:
            words.insert(words.end(), {"INCR", "g:n", "1"});
            break;
          case 1:
            words.insert(words.end(), {"DEL", "f:a"});
            break;
          case 2:
            words.insert(words.end(), {"PUT", random.OneIn(9) ? "none:z" : "f:z",
                                       FormatUint64(random.Below(99)), "TS", "9000"});
            break;
          default:
            words.emplace_back("DELROW");
        }
      } else if (random.OneIn(2)) {
        words = {"CDELRANGE", "t"};
        const std::string row = RandomRow(random, order);
        if (random.OneIn(8))
          words.emplace_back("ALL");
        else
          words.insert(words.end(), {"RANGE", "[" + row, "(" + RandomRow(random, order)});
      } else {
        words = {"CUPDATE", "t"};
        if (random.OneIn(2))
          words.emplace_back("ALL");
        else
          words.insert(words.end(),
                       {"RANGE", RandomBound(random, order), RandomBound(random, order)});
        if (random.OneIn(2)) words.insert(words.end(), {"WHERE", "g:n", "GT", "1"});
        if (random.OneIn(2))
          words.insert(words.end(), {"LIMIT", FormatUint64(1 + random.Below(12))});
        words.insert(words.end(), {"INCR", "g:n", "1", "PUT", "f:z", FormatUint64(random.Below(99)),
                                   "TS", "9000"});
      }
      cluster.Same(words);
      std::string change;
      for (const std::string& word : words) change += word + " ";
      INFO("behind " << change);
      cluster.Same({"CSCAN", "t", "0", "COUNT", "1000"});
    }
  }
}

TEST_CASE("Rows that split several sets", "[scatter]") {
  const uint64_t first = SeedOfRun();
  for (uint64_t seed = first; seed < first + 8; ++seed) {
    INFO("CELLAR_TEST_SEED=" << seed);
    Cluster cluster(seed);
    FillAtRandom(cluster, "u32", 0);
    for (uint64_t row = 0; row < 200; ++row)
      cluster.Put("t", FormatUint64(row), {"f:pad", std::string(40, 'p')});
    std::string told;
    for (int i = 0; i < 4; ++i) {
      cluster.calls.bounces = i > 0;
      const std::string reply = cluster.entry.Scatter({"TABLE", "SAMPLE", "t", "4"});
      if (i == 0) told = reply;
      if (cluster.random.OneIn(2)) cluster.Map(true);
      ReplyReader reader(reply);
      uint64_t rows = 0;
      REQUIRE(reader.Array(&rows));
      REQUIRE(rows < 4);
      uint64_t last = 0;
      for (; rows > 0; --rows) {
        uint64_t row = 0;
        REQUIRE(reader.Unsigned(&row));
        CHECK(row > last);
        last = row;
      }
    }
    const std::string empty = cluster.entry.Scatter({"TABLE", "SAMPLE", "t", "1"});
    CHECK(empty == "*0\r\n");
    CHECK(told.starts_with('*'));
  }
}

TEST_CASE("Notes of several sets", "[scatter]") {
  std::vector<std::string> notes;
  for (const std::string_view note :
       {"'f:n' holds text in 2 cells: LT 3 compared text", "a range is empty",
        "'f:n' holds text in 1 cell: LT 3 compared text", "a range is empty",
        "index 'i' leaves out 1 row: its 'f:n' is of another type",
        "'f:m' holds text in 1 cell: LT 3 compared text", "FILTER met text in 1 cell, which",
        "index 'i' leaves out 1 row: its 'f:n' is of another type",
        "index 'i' leaves out 40 rows: their 'f:n' is of another type",
        "index 'j' leaves out 2 rows: their 'f:n' is of another type",
        "FILTER met text in 4 cells, which"})
    AddNote(note, &notes);
  CHECK(notes ==
        std::vector<std::string>{
            "a range is empty", "index 'i' leaves out 42 rows: their 'f:n' is of another type",
            "index 'j' leaves out 2 rows: their 'f:n' is of another type",
            "'f:n' holds text in 3 cells: LT 3 compared text",
            "'f:m' holds text in 1 cell: LT 3 compared text", "FILTER met text in 5 cells, which"});
}

TEST_CASE("A set that does not answer is named, and nothing comes short", "[scatter]") {
  Cluster cluster(1);
  FillAtRandom(cluster, "utf8", 40);
  cluster.Spread("t", {"b\x00\x01", "d\x00\x01", "e\x00\x01"});
  for (const uint64_t set : {0, 1, 2}) {
    cluster.calls.failing = {{set, RemoteCalls::State::kFailed}};
    for (const Words& words :
         {Words{"CCOUNT", "t", "BY", "ROWS"}, Words{"CDELRANGE", "t", "ALL"}}) {
      const std::string reply = cluster.entry.Scatter(words);
      if (!reply.starts_with('-')) continue;
      const std::string line = "-CLUSTERDOWN no leader: set 1: none";
      REQUIRE(reply.starts_with(line));
      // What the others have deleted stays, and is told.
      const std::string rest = reply.substr(line.size());
      const bool counts = rest.starts_with(" after ") && rest.ends_with(" rows\r\n");
      CHECK((rest == "\r\n" || (words[0] == "CDELRANGE" && counts)));
    }
  }
  cluster.calls.failing = {{0, RemoteCalls::State::kUnknown},
                           {1, RemoteCalls::State::kUnknown},
                           {2, RemoteCalls::State::kUnknown}};
  CHECK(cluster.entry.Scatter({"CDELRANGE", "t", "ALL"}).empty());
  CHECK(cluster.entry.host.session.ending());
}

TEST_CASE("What was changed is told where the rest cannot be", "[scatter]") {
  Cluster cluster(2);
  FillAtRandom(cluster, "utf8", 40);
  cluster.Spread("t", {"b\x00\x01", "d\x00\x01", "e\x00\x01"});
  cluster.entry.host.own_services.config.cluster_wait = 1;
  // One never has what the map says it has.
  cluster.calls.failing = {{1, RemoteCalls::State::kMoved}};
  const std::string counted = cluster.entry.Scatter({"CCOUNT", "t"});
  CHECK(counted == "-TRYAGAIN the map does not say who owns rows of table 't'\r\n");
  const std::string said = cluster.entry.Scatter({"CDELRANGE", "t", "ALL"});
  CHECK(said.starts_with("-TRYAGAIN the map does not say who owns rows of table 't' after "));
  CHECK(said.ends_with(" rows\r\n"));
}

TEST_CASE("Rows that the map does not know are waited for", "[scatter]") {
  Cluster cluster(1);
  FillAtRandom(cluster, "utf8", 10);
  cluster.entry.host.own_services.config.cluster_wait = 20;
  MapCache& map = cluster.entry.host.own_services.cluster_view.map;
  const uint64_t id = (*cluster.entry.store->FindTable("0", "t"))->id();
  cluster.calls.on_moved = nullptr;
  map.Begin(90, 0, 1);
  map.Add(id, "0/t", {"", "c", 0, 1, 1, 90});
  map.Sort();
  for (const Words& words : {Words{"CCOUNT", "t", "BY", "ROWS"}, Words{"CSCAN", "t", "0"},
                             Words{"CROWS", "t", "2", "a", "z"}, Words{"CDELRANGE", "t", "ALL"}}) {
    const std::string reply = cluster.entry.Scatter(words);
    INFO(words[0]);
    CHECK(reply == "-TRYAGAIN the map does not say who owns rows of table 't'\r\n");
  }
}

TEST_CASE("A piece is read from the words that it is put as", "[scatter]") {
  CallPiece piece;
  piece.table_id = 9;
  piece.rows.Add({{"", false}, {"b", false}});
  piece.rows.Add({{std::string("c\0", 2), false}, {{}, true}});
  piece.rows_max = 0;
  piece.seed = 77;
  piece.tells_places = true;
  piece.lists_rows = true;
  piece.cursor = "Axyz";
  std::string text;
  PutCallCount(1, &text);
  piece.Put(&text);
  const Status read = VisitCall(text, [&](std::span<const std::string_view> words, bool) {
    REQUIRE(CallPiece::Is(words));
    const CallPiece parsed = CallPiece::Parse(words);
    CHECK(parsed.table_id == 9);
    CHECK(parsed.rows.ranges() == piece.rows.ranges());
    CHECK(parsed.rows_max == 0);
    CHECK(parsed.cells_max == kUnlimited);
    CHECK(parsed.seed == 77);
    CHECK(parsed.tells_places);
    CHECK_FALSE(parsed.tells_place);
    CHECK(parsed.lists_rows);
    CHECK(parsed.cursor == "Axyz");
    CHECK_FALSE(parsed.names_rows);
  });
  CHECK(read.ok());
}

}  // namespace scatter_test
