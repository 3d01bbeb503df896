// A member of a replica set over the real store, journal and their threads, on a disk in memory and
// a network of one queue a link: what is acknowledged is there afterwards, and all nodes are equal,
// whatever was killed, cut off, voided or given up in between.
//
// Time is the test's, the journal's threads are not: a run is much the same for the same seed, not
// exactly.
#include "replica/set/set_store.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "replica/links/identity_file.h"
#include "replica/set/raft_core.h"
#include "store/snapshot/snapshot_reader.h"
#include "tests/manual_clock.h"
#include "tests/store/faulty_file_system.h"

namespace cellar::set_store_test {

uint64_t Seeds(uint64_t usual) {
  const char* text = std::getenv("CELLAR_TEST_SEEDS");
  return text == nullptr ? usual : std::strtoull(text, nullptr, 10);
}

// Of records in a frame.
constexpr size_t kPieceBytes{4'000};

class Set;

class Node final : public SetStoreHost {
 public:
  Node(Set& set, uint64_t its_id) : id(its_id), set_(set) {}
  ~Node() override { Stop(); }

  void Start(bool founds);
  void Stop() {
    member.reset();
    store.reset();
    identity_file.reset();
  }
  // What the end of a turn does.
  void Turn();
  bool Put(const std::string& row, const std::string& value);
  std::string Get(const std::string& row);
  bool up() const { return member != nullptr; }
  bool open() const { return up() && member->set().may_append() && !witness; }

  // --- SetStoreHost
  Status SaveVote(uint32_t term, uint64_t vote) override {
    Identity next = identity_file->identity();
    next.term = term;
    next.vote = vote;
    return identity_file->Write(next);
  }
  void Send(uint64_t node, std::string frame) override;
  bool IsSendingLong(uint64_t) override { return false; }
  std::optional<SnapshotOffer> OfferSnapshot(const SnapshotEntry& entry) override;
  void FetchSnapshot(uint64_t node, const SnapshotOffer& offer) override;
  void OnRoleChanged() override {
    if (!member->set().leads()) waiting.clear();
  }
  void OnBroken(std::string_view why) override { FAIL("broken: " << why); }
  void OnContradicted(std::string_view why) override { FAIL("contradicted: " << why); }
  void RunInBackground(std::function<void()> work, std::function<void()> done) override {
    work();
    later.push_back(std::move(done));
  }
  Status ReloadStore(const std::function<Status()>& reload) override { return reload(); }

  void FinishFetch();
  void StepAside();

  const uint64_t id;
  bool witness{false};
  FaultyFileSystem disk;
  ManualClock clock;
  std::unique_ptr<Store> store;
  std::unique_ptr<IdentityFile> identity_file;
  std::unique_ptr<SetStore> member;
  std::vector<std::function<void()>> later;
  std::optional<SnapshotOffer> fetching;
  uint64_t fetching_from{0};
  std::deque<std::pair<Lsn, uint64_t>> waiting;  // writes that are not acknowledged: their numbers
  size_t tail_bytes{64 << 20};

 private:
  Set& set_;
};

class Set {
 public:
  explicit Set(size_t nodes, uint64_t seed) : random(seed) {
    for (size_t i = 0; i < nodes; ++i) all.push_back(std::make_unique<Node>(*this, i + 1));
  }
  Node& node(uint64_t id) { return *all[id - 1]; }
  Node* Leader() {
    for (const auto& node : all)
      if (node->open()) return node.get();
    return nullptr;
  }
  // One round: a little time, what is on its way, the turns.
  void Round(int64_t micros = 1000) {
    for (const auto& node : all) node->clock.now_micros += micros;
    std::map<std::pair<uint64_t, uint64_t>, std::deque<std::string>> now;
    now.swap(links);
    for (auto& [link, frames] : now) {
      Node& to = node(link.second);
      for (const std::string& bytes : frames) {
        if (!to.up() || IsCut(link.first, link.second) || random.Fraction() < loss) continue;
        FrameReader reader = MakeSetFrameReader();
        reader.Add(bytes);
        Frame frame;
        REQUIRE(*reader.Next(&frame));
        const Status taken = to.member->OnFrame(frame);
        if (!taken.ok()) FAIL(taken.ToString());
      }
    }
    for (const auto& node : all)
      if (node->up()) node->Turn();
  }
  // The disks' threads are real.
  template <typename Holds>
  bool WaitFor(Holds holds, int rounds = 20'000) {
    for (int i = 0; i < rounds; ++i) {
      if (holds()) return true;
      Round();
      if (i % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return false;
  }
  bool AllEqual() {
    const Lsn commit = all[0]->member->commit();
    for (const auto& node : all) {
      if (!node->up() || node->member->commit() != commit || node->store->applied_lsn() != commit ||
          node->store->last_lsn() != commit)
        return false;
    }
    return Leader() != nullptr;
  }
  std::string Describe() const {
    std::string text;
    for (const auto& node : all) {
      text += "node " + std::to_string(node->id);
      if (node->up()) {
        const ReplicaSet& set = node->member->set();
        text += (set.leads() ? set.open() ? " leads" : " opens" : " follows") +
                std::string(", term ") + std::to_string(set.term()) + ", leader " +
                std::to_string(set.leader()) + ", commit " + FormatLsn(set.commit()) +
                ", applied " + FormatLsn(node->store->applied_lsn()) + ", last " +
                FormatLsn(node->store->last_lsn()) + ", core's " + FormatLsn(set.log().last()) +
                ", snapshot " + FormatLsn(set.log().snapshot()) + ", durable " +
                std::to_string(set.durable()) + " of " + std::to_string(set.log().appended()) +
                (set.installing() ? ", installing" : "") + (set.stopped() ? ", stopped" : "") +
                (node->store->journal().healthy() ? "" : ", log not healthy");
      }
      text += "\n";
    }
    return text;
  }
  bool IsCut(uint64_t from, uint64_t to) const {
    return cut.contains(from) || cut.contains(to) || one_way.contains({from, to});
  }

  Random random;
  double loss{0};
  std::vector<std::unique_ptr<Node>> all;
  std::map<std::pair<uint64_t, uint64_t>, std::deque<std::string>> links;
  std::set<uint64_t> cut;
  std::set<std::pair<uint64_t, uint64_t>> one_way;
  uint64_t writes{0};
  uint64_t acknowledged{0};  // the newest
  std::vector<uint64_t> acknowledged_all;
};

void Node::Start(bool founds) {
  StoreOptions options;
  options.journal.directory = "n";
  options.journal.sync_policy = SyncPolicy::kAlways;
  options.journal.set_member = true;
  options.journal.log_only = witness;
  options.journal.segment_bytes_max = 16 << 10;
  options.journal.allocation_bytes_max = 64 << 10;
  options.journal.save_points = {};
  options.journal.rewrite_percentage = 0;
  options.journal.members = [this] {
    return member == nullptr ? std::string() : member->members_payload();
  };
  options.following = true;
  auto opened = Store::Open(options, disk, clock, {});
  if (!opened.ok()) FAIL(opened.status().ToString());
  store = *std::move(opened);
  REQUIRE(store->holds_log_only() == witness);
  auto file = IdentityFile::Open(disk, "n", {.term = 0, .cluster = 7, .node = id});
  if (!file.ok()) FAIL(file.status().ToString());
  identity_file = *std::move(file);
  ReplicaSetOptions replica;
  replica.node = id;
  replica.inflight_entries_max = 64;
  replica.install_micros = 2'000'000;
  replica.frame_bytes_max = kPieceBytes;
  replica.seed = set_.random.Next();
  member = std::make_unique<SetStore>(*this, *store, disk, clock, replica, tail_bytes);
  if (founds) {
    SetMembers members;
    members.index = 1;
    for (const auto& node : set_.all)
      members.list.push_back({.id = node->id,
                              .kind = node->witness ? MemberKind::kWitness : MemberKind::kVoter,
                              .host = "h",
                              .port = 1});
    REQUIRE(member->Found(members).ok());
  }
  const Identity identity = identity_file->identity();
  const Status started = member->Start(identity.term, identity.vote);
  if (!started.ok()) FAIL(started.ToString());
}

void Node::Send(uint64_t node, std::string frame) {
  // A frame is that long at most, or holds one record.
  if (static_cast<FrameKind>(frame[kFrameHashEnd]) == FrameKind::kAppend) {
    const auto records = std::string_view(frame).substr(kFrameHeadBytes + kAppendHeadBytes);
    REQUIRE((records.size() <= kPieceBytes || PlaceOfRecord(records).bytes == records.size()));
  }
  set_.links[{id, node}].push_back(std::move(frame));
}

std::optional<SnapshotOffer> Node::OfferSnapshot(const SnapshotEntry& entry) {
  SnapshotOffer offer;
  offer.lsn = entry.lsn;
  offer.bytes = entry.bytes;
  offer.hash = entry.hash;
  offer.number = entry.number;
  return offer;
}

void Node::FetchSnapshot(uint64_t node, const SnapshotOffer& offer) {
  fetching = offer;
  fetching_from = node;
}

// The bulk goes over at once, if it is still there.
void Node::FinishFetch() {
  const SnapshotOffer offer = *fetching;
  fetching.reset();
  if (witness) {
    return member->Install([&] {
      Status status;
      REQUIRE(
          store->RestartLog(offer.lsn, offer.commit_micros, EncodeMembers(offer.members), &status)
              .ok());
      return status;
    });
  }
  Node& from = set_.node(fetching_from);
  const std::string name = "n/" + FormatFileName(StoreFileKind::kSnapshot, offer.number);
  const auto bytes = ReadWholeFile(from.disk, name);
  if (!from.up() || !bytes.ok() || set_.random.OneIn(4)) return member->InstallFailed();
  {
    auto file = disk.Create("n/cellar-sync.tmp");
    REQUIRE(file.ok());
    REQUIRE((*file)->WriteAt(0, *bytes).ok());
    REQUIRE((*file)->Sync().ok());
  }
  auto loaded = std::make_unique<Engine>();
  auto reader = SnapshotReader::Open(disk, "n/cellar-sync.tmp");
  REQUIRE(reader.ok());
  REQUIRE(LoadSnapshot(reader->get(), *loaded, [](uint64_t) { return Status::Ok(); }).ok());
  member->Install([&] {
    const SnapshotEntry entry{
        .number = 0, .lsn = offer.lsn, .bytes = offer.bytes, .hash = offer.hash};
    Status status;
    const Status opened =
        store->ReplaceContent("n/cellar-sync.tmp", entry, std::move(loaded), &status);
    REQUIRE(opened.ok());
    return status;
  });
}

bool Node::Put(const std::string& row, const std::string& value) {
  if (!open()) return false;
  store->SetTurnTime();
  if (!store->FindTable("0", "t").ok()) {
    Result<Order> key = Order::Parse("bytes");
    REQUIRE(store->CreateTable("0", "t", *key, {{.name = "f", .options = {}}}).ok());
  }
  RowWrite write;
  write.row = row;
  CellOp put;
  put.family = "f";
  put.qualifier = "q";
  put.text = value;
  write.ops.push_back(put);
  const auto done = store->Write(**store->FindTable("0", "t"), write);
  if (!done.ok()) {
    CHECK(done.status().code() == ErrorCode::kMisconf);
    return false;
  }
  return true;
}

std::string Node::Get(const std::string& row) {
  const auto table = store->FindTable("0", "t");
  if (!table.ok()) return {};
  const auto opened = store->OpenRow(**table, row);
  if (!opened.ok()) return {};
  const auto cell = (*opened)->Get("f:q");
  if (!cell.ok() || *cell == nullptr) return {};
  return std::string((*cell)->value.stored);
}

// As SetNode does.
void Node::StepAside() {
  if (!witness || !member->set().may_append()) return;
  uint64_t best = 0;
  for (const auto& node : set_.all) {
    const bool fits = !node->witness && member->set().heard_micros(node->id) != 0 &&
                      clock.now_micros - member->set().heard_micros(node->id) < 300'000;
    if (fits && (best == 0 || member->set().MatchOf(node->id) > member->set().MatchOf(best)))
      best = node->id;
  }
  if (best != 0) (void)member->Transfer(best);
}

void Node::Turn() {
  store->SetTurnTime();
  std::vector<std::function<void()>> due;
  due.swap(later);
  for (const auto& done : due) done();
  if (fetching && set_.random.OneIn(50)) FinishFetch();
  store->journal().Poll();
  if (clock.now_micros >= member->set().timer_micros()) member->OnTimer();
  const auto more = member->Advance(INT64_MAX);
  if (!more.ok()) FAIL(more.status().ToString());
  StepAside();
  member->OnTick();
  store->Flush();
  const Lsn released = member->released();
  while (!waiting.empty() && member->set().open() && waiting.front().first <= released) {
    set_.acknowledged = std::max(set_.acknowledged, waiting.front().second);
    set_.acknowledged_all.push_back(waiting.front().second);
    waiting.pop_front();
  }
}

// Writes a few rows on the leader; each row tells the number of the write.
void Load(Set& set, uint64_t count) {
  Node* const leader = set.Leader();
  if (leader == nullptr) return;
  for (uint64_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(++set.writes);
    const size_t bytes = set.random.Below(set.random.OneIn(20) ? 3 * kPieceBytes : 300);
    if (!leader->Put("row" + number, number + std::string(bytes, '.'))) return;
    leader->waiting.emplace_back(leader->store->last_lsn(), set.writes);
    leader->Put("same" + std::to_string(set.random.Below(20)), number);
  }
}

bool HasCore() {
  if (raft_core_available() != 0) return true;
  WARN("built without libraft: skipped");
  return false;
}

TEST_CASE("Three stores elect, agree and answer", "[replica][set_store]") {
  if (!HasCore()) return;
  Set set(3, 1);
  set.node(1).Start(true);
  set.node(2).Start(false);
  set.node(3).Start(false);
  REQUIRE(set.WaitFor([&] { return set.Leader() != nullptr; }));
  Load(set, 50);
  REQUIRE(set.WaitFor([&] { return set.acknowledged == 50; }));
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  for (const auto& node : set.all) {
    CHECK(node->Get("row7").starts_with("7"));
    CHECK(node->store->Digest() == set.node(1).store->Digest());
    CHECK(node->member->set().members().list.size() == 3);
  }
  // Two are a majority; what one alone writes is not acknowledged, and goes.
  Node& old = *set.Leader();
  set.cut.insert(old.id);
  Load(set, 5);
  const uint64_t lost = set.writes;
  REQUIRE(set.WaitFor([&] { return set.Leader() != nullptr && set.Leader() != &old; }));
  CHECK(set.acknowledged == 50);
  CHECK_FALSE(old.member->set().open());
  Load(set, 5);
  REQUIRE(set.WaitFor([&] { return set.acknowledged == lost + 5; }));
  CHECK(old.member->released() < old.store->last_lsn());
  set.cut.clear();
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  CHECK(old.member->reloads() == 1);
  CHECK(old.Get("row" + std::to_string(lost)).empty());
  CHECK(old.store->Digest() == set.Leader()->store->Digest());
}

TEST_CASE("Without a lease a reply waits for a record of its own", "[replica][set_store]") {
  if (!HasCore()) return;
  Set set(3, 2);
  for (const auto& node : set.all) node->Start(node->id == 1);
  REQUIRE(set.WaitFor([&] { return set.Leader() != nullptr; }));
  Node& leader = *set.Leader();
  Load(set, 1);
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  CHECK(leader.member->released() == leader.store->last_lsn());
  CHECK(leader.member->floor() <= leader.member->released());
  // The lease runs out, and nothing leaves.
  set.cut.insert(leader.id);
  leader.clock.now_micros += 280'000;
  CHECK(leader.member->set().open());
  CHECK(leader.member->released() == Lsn{});
  CHECK(leader.member->floor() > leader.member->released());
  CHECK_FALSE(leader.member->Transfer(0).ok());
}

TEST_CASE("A member that is far behind gets records from files, or a copy",
          "[replica][set_store]") {
  if (!HasCore()) return;
  for (const bool snapshot : {false, true}) {
    Set set(3, 3);
    for (const auto& node : set.all) {
      node->tail_bytes = 0;
      node->Start(node->id == 1);
    }
    REQUIRE(set.WaitFor([&] { return set.Leader() != nullptr; }));
    Node& leader = *set.Leader();
    Node& away = set.node(leader.id % 3 + 1);
    Load(set, 20);
    REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
    set.cut.insert(away.id);
    // The tail keeps a chunk or two, of a quarter of a MiB each.
    for (int i = 0; i < 300; ++i) {
      Load(set, 10);
      set.Round();
    }
    REQUIRE(set.WaitFor([&] { return set.acknowledged == set.writes; }));
    if (snapshot) {
      REQUIRE(leader.store->journal().StartSnapshot().ok());
      const uint64_t before = leader.member->set().log().snapshot().seq;
      REQUIRE(set.WaitFor([&] { return leader.member->set().log().snapshot().seq > before; }));
      CHECK(leader.member->set().log().first() > 20);
    }
    set.cut.clear();
    REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
    CHECK(away.store->Digest() == leader.store->Digest());
    CHECK((away.member->set().log().snapshot() != Lsn{}) == snapshot);
    // And a start finds all of it again.
    away.Stop();
    away.Start(false);
    REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
    CHECK(away.store->Digest() == leader.store->Digest());
  }
}

TEST_CASE("A follower takes a snapshot although records keep coming", "[replica][set_store]") {
  if (!HasCore()) return;
  Set set(3, 4);
  for (const auto& node : set.all) node->Start(node->id == 1);
  REQUIRE(set.WaitFor([&] { return set.Leader() != nullptr; }));
  Node& follower = set.node(set.Leader()->id % 3 + 1);
  bool taken = false;
  REQUIRE(set.WaitFor([&] {
    Load(set, 2);
    if (!follower.store->journal().snapshot_running() && !taken)
      taken = follower.store->journal().StartSnapshot().ok();
    return follower.member->set().log().snapshot() != Lsn{};
  }));
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  const std::string digest = set.Leader()->store->Digest();
  follower.Stop();
  follower.Start(false);
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  CHECK(follower.store->Digest() == digest);
}

TEST_CASE("A full disk of a follower holds nothing up", "[replica][set_store]") {
  if (!HasCore()) return;
  Set set(3, 5);
  for (const auto& node : set.all) node->Start(node->id == 1);
  REQUIRE(set.WaitFor([&] { return set.Leader() != nullptr; }));
  Node& leader = *set.Leader();
  Node& full = set.node(leader.id % 3 + 1);
  Load(set, 5);
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  full.disk.SetCapacity(full.disk.used_bytes());
  // More than what it has laid aside for its log.
  for (int i = 0; i < 100; ++i) {
    Load(set, 100);
    set.Round();
  }
  REQUIRE(set.WaitFor([&] { return set.acknowledged == set.writes; }));
  CHECK(leader.open());
  CHECK(full.store->last_lsn() < leader.store->last_lsn());
  full.disk.SetCapacity(UINT64_MAX);
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  CHECK(full.store->Digest() == leader.store->Digest());
}

TEST_CASE("A set begins with what a single server has written", "[replica][set_store]") {
  if (!HasCore()) return;
  Set set(3, 8);
  Node& first = set.node(1);
  StoreOptions options;
  options.journal.directory = "n";
  {
    auto opened = Store::Open(options, first.disk, first.clock, {});
    REQUIRE(opened.ok());
    Result<Order> key = Order::Parse("bytes");
    REQUIRE((*opened)->CreateTable("0", "t", *key, {{.name = "f", .options = {}}}).ok());
    REQUIRE((*opened)->journal().Close().ok());
  }
  first.Start(true);
  set.node(2).Start(false);
  set.node(3).Start(false);
  REQUIRE(set.WaitFor([&] { return set.Leader() != nullptr; }));
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  for (const auto& node : set.all) CHECK(node->store->FindTable("0", "t").ok());
  Load(set, 3);
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  CHECK(set.node(3).store->Digest() == first.store->Digest());
  first.Stop();
  first.Start(false);
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  CHECK(set.node(2).store->Digest() == first.store->Digest());
}

TEST_CASE("What only a witness has comes to the one that has data", "[replica][set_store]") {
  if (!HasCore()) return;
  Set set(3, 5);
  set.node(3).witness = true;
  set.node(1).Start(true);
  set.node(2).Start(false);
  set.node(3).Start(false);
  REQUIRE(set.WaitFor([&] { return set.Leader() != nullptr; }));
  Node& leader = *set.Leader();
  Node& second = set.node(3 - leader.id);
  Load(set, 5);
  REQUIRE(set.WaitFor([&] { return set.AllEqual(); }));
  set.cut.insert(second.id);
  Load(set, 50);
  REQUIRE(set.WaitFor([&] { return set.acknowledged == 55; }));
  leader.Stop();
  set.cut.clear();
  REQUIRE(set.WaitFor([&] { return set.Leader() == &second; }));
  CHECK(second.Get("row55").starts_with("55"));
  CHECK(set.node(3).store->engine().FindTableFrom(0) == nullptr);
  // A start finds the log, and no state; who takes it for a store of its own is told.
  set.node(3).Stop();
  set.node(3).Start(false);
  CHECK(set.node(3).store->engine().FindTableFrom(0) == nullptr);
  set.node(3).Stop();
  StoreOptions options;
  options.journal.directory = "n";
  const auto opened = Store::Open(options, set.node(3).disk, set.node(3).clock, {});
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.status().text().find("belongs to a witness") != std::string::npos);
}

TEST_CASE("A single server does not open what belongs to a set", "[replica][set_store]") {
  if (!HasCore()) return;
  Set set(1, 6);
  set.node(1).Start(true);
  REQUIRE(set.WaitFor([&] { return set.Leader() != nullptr; }));
  Load(set, 3);
  REQUIRE(set.WaitFor([&] { return set.acknowledged == 3; }));
  set.node(1).Stop();
  StoreOptions options;
  options.journal.directory = "n";
  const auto opened = Store::Open(options, set.node(1).disk, set.node(1).clock, {});
  REQUIRE_FALSE(opened.ok());
  CHECK(opened.status().text().find("cluster-nodes") != std::string::npos);
}

// Kills, power losses, cuts, loss, snapshots and transfers at random.
void RunChaos(uint64_t seed) {
  Set set(seed % 4 == 0 ? 5 : 3, seed);
  INFO("seed " << seed);
  set.all.back()->witness = seed % 3 == 0;
  set.loss = 0.02;
  for (const auto& node : set.all) {
    node->tail_bytes = set.random.OneIn(2) ? 0 : 64 << 20;
    node->clock.now_micros += static_cast<int64_t>(set.random.Below(1'000'000'000));
    node->Start(node->id == 1);
  }
  for (int round = 0; round < 6'000; ++round) {
    if (set.random.OneIn(4)) Load(set, 1 + set.random.Below(4));
    set.Round(500 + static_cast<int64_t>(set.random.Below(1'000)));
    if (round % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (!set.random.OneIn(120)) continue;
    Node& node = *set.all[set.random.Below(set.all.size())];
    switch (set.random.Below(8)) {
      case 0:
      case 1:
        if (!node.up()) break;
        if (set.random.OneIn(2)) {
          node.disk.PowerLoss(set.random.Next());
        } else {
          node.disk.Kill();
        }
        node.Stop();
        node.later.clear();
        node.fetching.reset();
        node.waiting.clear();
        node.disk.Reboot();
        break;
      case 2:
        set.cut.insert(node.id);
        break;
      case 3:
        if (set.Leader() != nullptr) set.cut.insert(set.Leader()->id);
        break;
      case 4:
        set.one_way.insert({node.id, set.random.Below(set.all.size()) + 1});
        break;
      case 5:
        if (node.up()) (void)node.store->journal().StartSnapshot();
        break;
      case 6:
        if (set.Leader() != nullptr) (void)set.Leader()->member->Transfer(0);
        break;
      default:
        set.cut.clear();
        set.one_way.clear();
        break;
    }
    if (set.random.OneIn(2)) {
      for (const auto& each : set.all)
        if (!each->up()) each->Start(false);
    }
  }
  set.loss = 0;
  set.cut.clear();
  set.one_way.clear();
  for (const auto& each : set.all)
    if (!each->up()) each->Start(false);
  if (!set.WaitFor([&] { return set.AllEqual(); })) FAIL(set.Describe());
  const std::string digest = set.Leader()->store->Digest();
  for (const auto& node : set.all) {
    if (!node->witness) CHECK(node->store->Digest() == digest);
    if (node->witness) CHECK(node->store->engine().FindTableFrom(0) == nullptr);
  }
  for (const uint64_t number : set.acknowledged_all) {
    CHECK(set.Leader()->Get("row" + std::to_string(number)).starts_with(std::to_string(number)));
  }
}

TEST_CASE("Stores agree through kills, power losses, cuts and snapshots", "[replica][set_store]") {
  if (!HasCore()) return;
  const char* from = std::getenv("CELLAR_TEST_SEED");
  const uint64_t first = from == nullptr ? 1 : std::strtoull(from, nullptr, 10);
  for (uint64_t seed = first; seed < first + Seeds(6); ++seed) RunChaos(seed);
}

}  // namespace cellar::set_store_test
