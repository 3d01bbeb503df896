// A store of any step of its history: made from its data directory, from an archive, from both.
#include "store/offline/point_recovery.h"

#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/store/rich_store.h"
#include "tests/store/set_member.h"

namespace cellar::point_recovery_test {

uint64_t Seed() {
  const char* text = std::getenv("CELLAR_TEST_SEED");
  return text == nullptr ? 27 : std::strtoull(text, nullptr, 10);
}

std::vector<std::string> NamesIn(FaultyFileSystem& disk, const std::string& directory) {
  REQUIRE(disk.CreateDirectory(directory).ok());  // if it is not there
  auto names = disk.List(directory);
  if (!names.ok()) FAIL(names.status().text());
  return *std::move(names);
}

// What there was behind a step.
struct Moment {
  int64_t micros{0};  // commit time
  int64_t clock_micros{0};
  std::string digest;
};

// All that a store tells of itself: tables, and those of its snapshots.
std::string DigestOf(Store& store) {
  std::string all = store.Digest();
  for (const NamedSnapshot* snapshot : store.engine().snapshots().In("0")) {
    all += " " + snapshot->name + "@" + std::to_string(snapshot->created_micros);
    for (const auto& [name, table] : snapshot->tables)
      all += ":" + name + "=" + store.DigestTable(*table);
  }
  for (const Feed* feed : store.engine().feeds().Feeds("0")) all += " feed " + feed->name;
  return all;
}

class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {
    rig.options.journal.segment_bytes_max = 2048;
    rig.options.journal.allocation_bytes_max = 2048;
    rig.options.journal.allocation_bytes_min = 512;
    rig.options.journal.sync_policy = SyncPolicy::kAlways;
    rig.options.journal.snapshots_kept = 3;
    RichStore::Do(disk.CreateDirectory("arc"));
    RichStore::Do(rig.Open());
    Tick();
    rig.MakeTables();
    Note();
  }
  void Tick() {
    rig.clock.now_micros += static_cast<int64_t>(random_.Below(4000)) + 20;
    rig.store->SetTurnTime();
  }
  // Some commands of one turn; what comes behind it is noted after each.
  void Turn() {
    Tick();
    const uint64_t commands = 1 + random_.Below(5);
    for (uint64_t i = 0; i < commands; ++i) {
      const int64_t before = rig.store->journal().last_commit_micros();
      Command();
      if (rig.store->journal().last_commit_micros() != before) Note();
    }
    rig.store->Flush();
  }
  void Save() {
    rig.store->Flush();
    REQUIRE(rig.store->journal().SaveNow().ok());
  }
  // As an archive would: what is closed, and the snapshots, under their names.
  void Archive() {
    const Manifest manifest = rig.store->journal().CopyManifest();
    if (manifest.snapshot)
      Copy(FormatFileName(StoreFileKind::kSnapshot, manifest.snapshot->number));
    for (const SegmentEntry& segment : manifest.segments)
      if (segment.end) Copy(FormatFileName(StoreFileKind::kSegment, segment.number));
  }
  void Close() {
    REQUIRE(rig.store->journal().Close().ok());
    rig.store.reset();
  }

  FaultyFileSystem disk;
  RichStore rig{&disk};
  std::vector<Moment> moments;

 private:
  void Note() {
    moments.push_back(
        {rig.store->journal().last_commit_micros(), rig.clock.now_micros, DigestOf(*rig.store)});
  }
  void Copy(const std::string& name) {
    if (!*disk.Exists("arc/" + name)) disk.SetContent("arc/" + name, disk.Content("db/" + name));
  }
  void Command() {
    Store& store = *rig.store;
    Table& plain = rig.Find("plain");
    const std::string row = "row" + std::to_string(random_.Below(9));
    const std::string value(random_.Below(60), static_cast<char>('a' + random_.Below(20)));
    CellOp drop;
    drop.kind = CellOp::Kind::kDeleteRow;
    switch (random_.Below(12)) {
      case 0:
        return rig.Write(plain, row, {drop});
      case 1:
        store.BeginTransaction(Store::Atomicity::kAll);
        rig.Write(plain, row, {RichStore::Put("f", "x", value)});
        rig.Write(plain, "both", {RichStore::Put("f", "x", value)});
        return store.CommitTransaction();
      case 2:
        return rig.Write(rig.Find("numbers"), "*", {RichStore::Put("f", "q", value)}, true);
      case 3:
        return rig.Write(plain, row, {RichStore::Increment("n", "age", "3")});
      case 4: {
        const std::string name = random_.Below(2) == 0 ? "monday" : "tuesday";
        return RichStore::Do(store.CreateSnapshot("0", name, {&plain}, 0, Store::Overwrite::kYes));
      }
      case 5: {
        CellOp expires = RichStore::Put("f", "soon", value);
        expires.ttl_micros = 9'000;
        return rig.Write(plain, row, {expires});
      }
      default:
        return rig.Write(plain, row,
                         {RichStore::Put("f", "a" + std::to_string(random_.Below(3)), value)});
    }
  }

  Random random_;
};

struct Outcome {
  Status status;
  std::string said;
  std::string digest;
};

Status RecoverTo(FaultyFileSystem& disk, const std::vector<std::string>& from,
                 const std::string& until, std::string* said) {
  const auto point = ParseRecoverPoint(until);
  if (!point.ok()) FAIL(point.status().text());
  std::ostringstream out;
  Status status = RecoverToPoint(disk, Clock::System(), {from, *point, "new"}, out);
  *said = out.str();
  return status;
}

// The store that is made, as it is at that time by its clock; and NEW is empty again.
Outcome Recover(FaultyFileSystem& disk, const std::vector<std::string>& from,
                const std::string& until, int64_t clock_micros) {
  Outcome outcome;
  outcome.status = RecoverTo(disk, from, until, &outcome.said);
  if (outcome.status.ok()) {
    RichStore made(&disk);
    made.options.journal.directory = "new";
    made.clock.now_micros = clock_micros;
    const Status opened = made.Open();
    if (!opened.ok()) FAIL(opened.ToString());
    outcome.digest = DigestOf(*made.store);
    const Status sound = ValidateStore(made.store.get());
    if (!sound.ok()) FAIL(sound.ToString());
  }
  for (const std::string& name : NamesIn(disk, "new")) {
    if (!outcome.status.ok()) FAIL(name << " is left in NEW");
    REQUIRE(disk.Remove("new/" + name).ok());
  }
  return outcome;
}

TEST_CASE("A small history is recovered to every step, and to times between", "[recover]") {
  const uint64_t seed = Seed();
  INFO("CELLAR_TEST_SEED=" << seed);
  History history(seed);
  Feed feed;
  feed.keep_micros = 86'400'000'000;
  RichStore::Do(history.rig.store->CreateFeed("0", "changes", feed));
  const size_t begin = history.moments.size();
  for (int i = 0; i < 60; ++i) {
    history.Turn();
    if (i % 12 == 7) history.Save();
    if (i % 3 == 0) history.Archive();
  }
  history.Close();
  const std::vector<Moment>& moments = history.moments;
  REQUIRE(moments.size() > begin + 60);
  using Directories = std::vector<std::string>;
  const std::array<Directories, 2> all{Directories{"arc", "db"}, Directories{"db", "arc"}};
  for (size_t i = begin; i < moments.size(); ++i) {
    const Moment& moment = moments[i];
    INFO("step " << i << " of " << moment.micros);
    const Outcome at =
        Recover(history.disk, all[i % 2], std::to_string(moment.micros), moment.clock_micros);
    INFO(at.status.ToString() << '\n' << at.said);
    REQUIRE(at.status.ok());
    REQUIRE(at.digest == moment.digest);
    REQUIRE(at.said.find("recovered to " + FeedId::Of(moment.micros, 0).text() + " " +
                         FormatTime(moment.micros) + ", ") != std::string::npos);
    const std::string id = FeedId::Of(moment.micros, 7).text();
    REQUIRE(Recover(history.disk, all[i % 2], id, moment.clock_micros).digest == moment.digest);
    if (i + 1 < moments.size() && moments[i + 1].micros - moment.micros < 2) continue;
    const std::string between = FormatTime(moment.micros + 1);
    const Outcome after = Recover(history.disk, all[i % 2], between, moment.clock_micros);
    REQUIRE(after.digest == moment.digest);
    const bool is_last = i + 1 == moments.size();
    REQUIRE((after.said.find("behind the last step") != std::string::npos) == is_last);
  }
}

// A history with an archive of all of it, and a data directory that has the end.
struct Kept {
  explicit Kept(uint64_t seed) : history(seed) {
    for (int i = 0; i < 50; ++i) {
      history.Turn();
      if (i == 7 || i == 17) history.Save();
      if (i % 2 == 0) history.Archive();
    }
    history.Archive();
    history.Close();
  }
  const Moment& last() const { return history.moments.back(); }

  History history;
};

TEST_CASE("What is left out is counted, and that the clock was set back is said", "[recover]") {
  for (uint64_t seed = Seed(); seed < Seed() + 4; ++seed) {
    History history(seed);
    const bool goes_back = seed % 2 == 1;
    for (int i = 0; i < 12; ++i) history.Turn();
    if (goes_back) history.rig.clock.now_micros -= 3'600'000'000;
    history.Save();
    for (int i = 0; i < 12; ++i) history.Turn();
    history.Close();
    const std::vector<Moment>& moments = history.moments;
    REQUIRE(moments.size() > 20);
    // The first was noted behind many steps of one turn.
    for (size_t i = 1; i < moments.size(); ++i) {
      const Outcome outcome =
          Recover(history.disk, {"db"}, std::to_string(moments[i].micros), moments[i].clock_micros);
      INFO("seed " << seed << " moment " << i << " of " << moments.size() << ": "
                   << outcome.status.ToString() << '\n'
                   << outcome.said);
      REQUIRE(outcome.status.ok());
      const size_t later = moments.size() - 1 - i;
      const std::string count =
          fmt::format("{} later step{} left out", later, later == 1 ? " is" : "s are");
      REQUIRE((outcome.said.find('\n' + count) != std::string::npos) == (later > 0));
      REQUIRE((outcome.said.find("clock was set back") != std::string::npos) ==
              (goes_back && later > 0));
    }
  }
}

TEST_CASE("A flipped bit is refused with its file, or was not needed", "[recover]") {
  const uint64_t seed = Seed();
  INFO("CELLAR_TEST_SEED=" << seed);
  Kept kept(seed);
  FaultyFileSystem& disk = kept.history.disk;
  Random random(seed);
  const std::vector<Moment>& moments = kept.history.moments;
  uint64_t refused = 0;
  for (int round = 0; round < 600; ++round) {
    const Moment& moment = moments[moments.size() / 2 + random.Below(moments.size() / 2)];
    const std::vector<std::string> names = NamesIn(disk, "arc");
    const std::string path = "arc/" + names[random.Below(names.size())];
    const std::string sound = disk.Content(path);
    std::string flipped = sound;
    flipped[random.Below(flipped.size())] ^= static_cast<char>(1 << random.Below(8));
    disk.SetContent(path, flipped);
    const Outcome outcome =
        Recover(disk, {"arc"}, std::to_string(moment.micros), moment.clock_micros);
    INFO(path << ", step of " << moment.micros << ": " << outcome.status.ToString());
    if (outcome.status.ok()) {
      // The archive ends with the last closed segment.
      const bool is_behind = outcome.said.find("behind the last step") != std::string::npos;
      REQUIRE((is_behind || outcome.digest == moment.digest));
    } else {
      ++refused;
      REQUIRE(outcome.status.code() == ErrorCode::kCorruption);
      REQUIRE(outcome.status.text().find(path) != std::string::npos);
      REQUIRE(outcome.status.text().find("offset") != std::string::npos);
    }
    disk.SetContent(path, sound);
  }
  CHECK(refused > 50);
}

TEST_CASE("A flipped bit in the last closed segment is no torn tail", "[recover]") {
  Kept kept(Seed());
  FaultyFileSystem& disk = kept.history.disk;
  std::string last;
  for (const std::string& name : NamesIn(disk, "arc"))
    if (name.ends_with(".log")) last = "arc/" + name;
  const std::string sound = disk.Content(last);
  for (size_t at = 0; at < sound.size(); ++at) {
    std::string flipped = sound;
    flipped[at] ^= 0x20;
    disk.SetContent(last, flipped);
    const Outcome outcome = Recover(disk, {"arc"}, "4102444800000000", kept.last().clock_micros);
    INFO("offset " << at << outcome.said);
    REQUIRE(outcome.status.code() == ErrorCode::kCorruption);
    REQUIRE(outcome.status.text().find(last) != std::string::npos);
  }
}

TEST_CASE("A missing segment is a gap, unless it is not needed", "[recover]") {
  Kept kept(Seed());
  FaultyFileSystem& disk = kept.history.disk;
  const std::string behind = "4102444800000000";
  const std::vector<std::string> names = NamesIn(disk, "arc");
  const Outcome whole = Recover(disk, {"arc"}, behind, kept.last().clock_micros);
  REQUIRE(whole.status.ok());
  uint64_t refused = 0;
  for (const std::string& name : names) {
    const std::string path = "arc/" + name;
    const std::string bytes = disk.Content(path);
    REQUIRE(disk.Remove(path).ok());
    const Outcome outcome = Recover(disk, {"arc"}, behind, kept.last().clock_micros);
    INFO(name << ": " << outcome.status.ToString());
    const bool is_used = whole.said.find(path) != std::string::npos;
    if (outcome.status.ok()) {
      // Without its last segment an archive ends earlier; without a base the log does as well.
      CHECK((outcome.digest == whole.digest || name == names.back()));
    } else {
      CHECK(is_used);
      CHECK(outcome.status.text().find("gap") != std::string::npos);
      ++refused;
    }
    disk.SetContent(path, bytes);
  }
  // Segments end where the journal's thread has come to: a snapshot may cover all but the last one.
  if (refused == 0) WARN("no segment was needed but the last one");
  // The data directory has it too.
  for (const std::string& name : names) {
    if (!*disk.Exists("db/" + name)) continue;
    const std::string bytes = disk.Content("arc/" + name);
    REQUIRE(disk.Remove("arc/" + name).ok());
    const Outcome outcome = Recover(disk, {"arc", "db"}, behind, kept.last().clock_micros);
    INFO(name << ": " << outcome.status.ToString());
    CHECK(outcome.digest == kept.last().digest);
    disk.SetContent("arc/" + name, bytes);
  }
}

TEST_CASE("What cannot be recovered is refused, and nothing is left", "[recover]") {
  Kept kept(Seed());
  FaultyFileSystem& disk = kept.history.disk;
  const std::string behind = "4102444800000000";
  const auto refusal = [&](const std::vector<std::string>& from, const std::string& until) {
    const Outcome outcome = Recover(disk, from, until, kept.last().clock_micros);
    INFO(outcome.said);
    REQUIRE_FALSE(outcome.status.ok());
    return outcome.status.text();
  };
  CHECK(refusal({"arc"}, "1000000000000000").find("is before the first step") != std::string::npos);
  REQUIRE(disk.CreateDirectory("base").ok());
  for (const std::string& name : NamesIn(disk, "arc"))
    if (name.ends_with(".snapshot")) disk.SetContent("base/" + name, disk.Content("arc/" + name));
  CHECK(refusal({"base"}, "1000000000000000").find("is before the oldest base") !=
        std::string::npos);
  CHECK(refusal({"arc"}, "sunday").find("'sunday'") != std::string::npos);
  CHECK(refusal({"nowhere"}, behind) == "nowhere does not exist");
  REQUIRE(disk.CreateDirectory("empty").ok());
  CHECK(refusal({"empty"}, behind).find("empty holds neither") != std::string::npos);
  // Files of another store.
  Kept other(Seed() + 1);
  REQUIRE(disk.CreateDirectory("other").ok());
  for (const std::string& name : NamesIn(other.history.disk, "arc"))
    disk.SetContent("other/" + name, other.history.disk.Content("arc/" + name));
  CHECK(refusal({"arc", "other"}, behind).find("are not of the same store") != std::string::npos);
  // Something is there.
  REQUIRE(disk.CreateDirectory("new").ok());
  disk.SetContent("new/notes", "mine");
  std::string said;
  const Status not_empty = RecoverTo(disk, {"arc"}, behind, &said);
  CHECK(not_empty.text().starts_with("new is not empty: notes is there"));
  CHECK(disk.Content("new/notes") == "mine");
  REQUIRE(disk.Remove("new/notes").ok());
  // That a new store may begin there is no hindrance.
  disk.SetContent("new/" + std::string(kNewStoreName), "");
  CHECK(Recover(disk, {"arc", "db"}, behind, kept.last().clock_micros).digest ==
        kept.last().digest);
}

TEST_CASE("A recovery that fails at any call leaves nothing", "[recover]") {
  Kept kept(Seed());
  FaultyFileSystem& disk = kept.history.disk;
  const std::string behind = "4102444800000000";
  const uint64_t before = disk.calls();
  REQUIRE(Recover(disk, {"arc", "db"}, behind, kept.last().clock_micros).status.ok());
  const uint64_t calls = disk.calls() - before;
  uint64_t failed = 0;
  for (uint64_t n = 1; n < calls; ++n) {
    std::string said;
    disk.FailCall(n);
    const Status status = RecoverTo(disk, {"arc", "db"}, behind, &said);
    disk.Heal();
    const std::vector<std::string> left = NamesIn(disk, "new");
    INFO("call " << n << ": " << status.ToString());
    if (status.ok()) break;
    ++failed;
    REQUIRE(left.empty());
  }
  CHECK(failed > 20);
}

TEST_CASE("A snapshot's name stands for the last step that made it", "[recover]") {
  History history(Seed());
  history.Turn();
  Store& store = *history.rig.store;
  const auto create = [&] {
    history.Tick();
    RichStore::Do(store.CreateSnapshot("0", "friday", {&history.rig.Find("plain")}, 0,
                                       Store::Overwrite::kYes));
    store.Flush();
    return store.Digest();
  };
  (void)create();
  history.Turn();
  history.Archive();
  const std::string digest = create();
  const auto check = [&](const std::vector<std::string>& from) {
    const Outcome outcome = Recover(history.disk, from, "friday", history.rig.clock.now_micros);
    INFO(outcome.status.ToString() << outcome.said);
    CHECK(outcome.digest.starts_with(digest));
  };
  history.Turn();
  // In the catalog of a later base, from there in the log behind an earlier one.
  history.Save();
  history.Turn();
  history.Archive();
  RichStore::Do(store.DropSnapshot(**store.FindSnapshot("0", "friday")));
  history.Save();
  history.Turn();
  history.Archive();
  history.Close();
  check({"arc"});
  check({"arc", "db"});
}

// A member whose log holds records that others have voided.
TEST_CASE("Of a member of a set what is committed is recovered", "[recover][set]") {
  SetMember one;
  SetMember two;
  const auto put = [](SetMember& member, const std::string& row, const std::string& value) {
    member.Tick();
    RowWrite write;
    write.row = row;
    write.ops = {RichStore::Put("f", "q", value)};
    RichStore::Do(member.store->Write(**member.store->FindTable("0", "t"), write).status());
    member.store->Flush();
    return member.store->journal().last_commit_micros();
  };
  const auto commit = [](SetMember& member, Lsn lsn) {
    RichStore::Do(member.store->journal().Reserve(kMarkBytesMax));
    member.store->journal().AppendMark({.lsn = lsn, .retention_micros = 0});
    member.store->Flush();
  };
  one.Tick();
  one.store->AppendOwn(RecordKind::kMembers, 1, "members");
  REQUIRE(*one.store->ApplyCommitted(one.last(), INT64_MAX));
  one.Lead(1);
  RichStore::Do(one.store->CreateTable("0", "t", Order(), {{"f", {}}}));
  const int64_t first = put(one, "a", "1");
  const std::string digest_first = one.store->Digest();
  one.Send(two, 1);
  const Lsn common = one.last();
  REQUIRE(*two.store->ApplyCommitted(common, INT64_MAX));
  commit(one, common);
  const int64_t lost = put(one, "b", "lost");
  two.clock.now_micros += 100'000;
  two.Lead(2);
  const int64_t second = put(two, "b", "2");
  const std::string digest_second = two.store->Digest();
  one.Follow();
  two.Send(one, common.seq + 1);
  const Lsn committed = two.last();
  commit(one, committed);
  (void)put(two, "c", "not known to be committed");
  two.Send(one, committed.seq + 1);
  one.store.reset();
  const auto recovered = [&](int64_t micros) {
    const Outcome outcome = Recover(
        one.disk, {"db"}, std::to_string(micros + 1'000'000'000'000'000), one.clock.now_micros);
    INFO(outcome.status.ToString() << outcome.said);
    CHECK(outcome.status.ok());
    return outcome;
  };
  (void)first;
  (void)lost;
  (void)second;
  const Outcome all = recovered(0);
  CHECK(all.digest == digest_second);
  CHECK(all.said.find("1 records are left out") != std::string::npos);
  CHECK(all.said.find("a store of its own") != std::string::npos);
  const auto at = [&](int64_t micros) {
    // Times of a clock that has just begun are no microseconds by their digits.
    return Recover(one.disk, {"db"}, FeedId::Of(micros, 0).text(), one.clock.now_micros);
  };
  CHECK(at(first).digest == digest_first);
  CHECK(at(lost).digest == digest_first);
  CHECK(at(second).digest == digest_second);
}

}  // namespace cellar::point_recovery_test
