// Records with right checksums that say what cannot be: made by a mistake of another version, of a
// tool, of memory before the checksum was taken. Each is refused with file, offset and record, at
// the start and by --check alike, or what it says is possible, and then the store is sound.
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <sstream>

#include "base/random.h"
#include "store/offline/check.h"
#include "tests/store/rich_store.h"

namespace cellar::payload_damage_test {

const std::string kLog = "db/cellar-000001.log";

// Opens the store with this log. "" if it opened and is sound, else what was said.
std::string OpenWith(const FaultyFileSystem& disk, const std::string& log) {
  const auto copy = disk.Clone();
  copy->SetContent(kLog, log);
  std::ostringstream said;
  Engine engine;
  const Status checked = CheckStore(*copy, "db", CheckMode::kLook, engine, said);
  RichStore rich(copy.get());
  rich.clock.now_micros += 100'000'000;
  const Status opened = rich.Open();
  INFO(said.str());
  INFO(opened.ToString());
  REQUIRE(checked.ok() == opened.ok());
  if (opened.ok()) {
    const Status sound = ValidateStore(rich.store.get());
    INFO(sound.ToString());
    REQUIRE(sound.ok());
    // And it can be changed and saved.
    while (rich.store->Sweep(1000)) {
    }
    for (const std::string& keyspace : rich.store->Keyspaces()) {
      for (Table* table : rich.store->Tables(keyspace)) {
        auto all = rich.store->DeleteRows(*table, {});
        REQUIRE(all.ok());
        while (!(*all)->done()) REQUIRE((*all)->Step(1000).ok());
        CHECK(table->counters().rows == 0);
      }
    }
    REQUIRE(rich.store->journal().SaveNow().ok());
    return {};
  }
  REQUIRE(opened.code() == ErrorCode::kCorruption);
  REQUIRE(opened.text().find(kLog) != std::string::npos);
  REQUIRE(opened.text().find("offset ") != std::string::npos);
  REQUIRE(opened.text().find("record 1-") != std::string::npos);
  REQUIRE(said.str().find("DAMAGED: offset ") != std::string::npos);
  return opened.text();
}

// A mutation of the rows of `table`, whose id is 1 and which has the family 1.
std::string Forged(const std::function<void(MutationBuilder*)>& build) {
  MutationBuilder mutation;
  mutation.SetStamp(RichStore::kNow + 50'000'000);
  build(&mutation);
  return std::string(mutation.payload());
}

TEST_CASE("A record with right checksums that no server writes is refused by name", "[damage]") {
  FaultyFileSystem disk;
  RichStore rich(&disk);
  rich.Fill(2);
  const std::string log = disk.Content(kLog);
  const std::vector<std::string> payloads = PayloadsOf(log);
  REQUIRE(OpenWith(disk, SegmentOf(log, payloads)).empty());
  using namespace std::string_literals;
  const std::string row = "r\0\1"s;
  const std::string keyed = "h\0\1\x7f\xff\xff\xff"s + std::string(16, '\1');
  const std::string value = "\0v"s;
  struct Case {
    std::function<void(MutationBuilder*)> build;
    std::string_view what;
  };
  const Case cases[] = {
      {[&](auto* m) { m->Row(1, "no end"); }, "malformed row key in table 'plain'"},
      {[&](auto* m) { m->Row(1, row + "x"); }, "malformed row key"},
      {[&](auto* m) { m->Row(1, std::string(150'000, 'x') + "\0\1"s); }, "malformed row key"},
      {[&](auto* m) { m->Row(2, "\xff\0\1\x7f\xff\xff\xff"s + std::string(16, '\1')); },
       "malformed row key in table 'keyed'"},
      {[&](auto* m) { m->Row(2, keyed.substr(0, 20)); }, "malformed row key"},
      {[&](auto* m) { m->Row(3, "\x7f\0\0\0\0\0\0\1"s); }, "malformed row key"},
      {[&](auto* m) {
         m->Row(1, row);
         m->Put(1, "q", 5, value);
       },
       "malformed qualifier of family 'f'"},
      {[&](auto* m) {
         m->Row(1, row);
         m->DeleteCell(1, "q\0"s, 5);
       },
       "malformed qualifier"},
      {[&](auto* m) {
         m->Row(1, row);
         m->ReclaimColumn(1, "", 5);
       },
       "malformed qualifier"},
      {[&](auto* m) {
         m->Row(1, row);
         m->Put(1, "q\0\1"s, 5, "");
       },
       "malformed value of family 'f'"},
      {[&](auto* m) {
         m->Row(1, row);
         m->Put(1, "q\0\1"s, 5, "\x02\x07");  // a bool of 7
       },
       "malformed value"},
      {[&](auto* m) {
         m->Row(1, row);
         m->Put(1, "q\0\1"s, 5, "\x40v");  // an unknown flag
       },
       "malformed value"},
      {[&](auto* m) {
         m->Row(1, row);
         m->DeleteRange(1, "q\0\1\x55"s, "");
       },
       "a range that is none of columns"},
      {[&](auto* m) { m->DeleteRows(1, "row1\0\1\1"s, ""); }, "a range that is none of rows"},
      {[&](auto* m) { m->DeleteRows(1, "s", "r"); }, "a range that is none of rows"},
      {[&](auto* m) { m->RecordNumber(1, 5); }, "an impossible record number"},
      {[&](auto* m) { m->RecordNumber(3, 0); }, "an impossible record number"},
      {[&](auto* m) { m->CreateKeyspace("a b"); }, "an impossible name of a keyspace"},
      {[&](auto* m) { m->RenameTable(1, "0", "a/b"); }, "an impossible name of a table"},
      {[&](auto* m) { m->TruncateTable(1, 1); }, "the number of a tree that is not free"},
      {[&](auto* m) {
         m->SetStamp(INT64_MAX);
         m->DropTable(1);
       },
       "a stamp at the end of time"},
  };
  for (const Case& one : cases) {
    INFO(one.what);
    std::vector<std::string> forged = payloads;
    forged.push_back(Forged(one.build));
    forged.push_back(payloads.back());
    CHECK(OpenWith(disk, SegmentOf(log, forged)).find(one.what) != std::string::npos);
  }
}

TEST_CASE("A schema that cannot follow the one before it is refused", "[damage]") {
  FaultyFileSystem disk;
  RichStore rich(&disk);
  rich.Fill(1);
  REQUIRE(rich.Open().ok());
  const TableSchema good = rich.Find("plain").schema();
  const uint64_t tree_id_next = rich.store->engine().tree_id_next();
  rich.store.reset();
  const std::string log = disk.Content(kLog);
  const std::vector<std::string> payloads = PayloadsOf(log);
  const std::function<void(TableSchema*)> changes[] = {
      [](TableSchema* s) { s->key = *Order::Parse("u64"); },
      [](TableSchema* s) { s->families[0].order = *Order::Parse("u8"); },
      [](TableSchema* s) { s->families[0].id = s->families[1].id; },
      [](TableSchema* s) { s->families[0].name = "zzz"; },
      [](TableSchema* s) { s->family_id_next = 1; },
      [](TableSchema* s) { s->groups[0].tree_id += 100; },
      [](TableSchema* s) { s->groups.clear(); },
      [](TableSchema* s) {
        s->groups.push_back({"more", 1});
      },
      [](TableSchema* s) { s->indexes[0].id = s->indexes[1].id; },
      [](TableSchema* s) { s->indexes[0].unique = !s->indexes[0].unique; },
      [](TableSchema* s) { s->indexes[0].on[0].qualifier = "cut"; },
      [](TableSchema* s) { s->indexes[0].name = "not a name"; },
      [](TableSchema* s) { s->index_id_next = 1; },
  };
  const auto open_with = [&](const TableSchema& schema) {
    std::string bytes;
    EncodeTableSchema(schema, &bytes);
    std::vector<std::string> forged = payloads;
    forged.push_back(Forged([&](auto* m) { m->SetSchema(1, bytes); }));
    return OpenWith(disk, SegmentOf(log, forged));
  };
  CHECK(open_with(good).empty());
  TableSchema grown = good;
  grown.groups.push_back({"more", tree_id_next});
  CHECK(open_with(grown).empty());
  // Versions of old let a family take another type under its indexes.
  TableSchema retyped = good;
  retyped.FindFamily("n")->type = ValueType::kI32;
  CHECK(open_with(retyped).empty());
  for (const auto& change : changes) {
    TableSchema changed = good;
    change(&changed);
    CHECK_FALSE(open_with(changed).empty());
  }
}

// One change to the bytes of a payload, of the kinds that mistakes are made of.
void Damage(Random* random, const std::vector<std::string>& payloads, std::string* payload) {
  const size_t at = random->Below(payload->size());
  const size_t count = std::min<size_t>(1 + random->Below(6), payload->size() - at);
  switch (random->Below(7)) {
    case 0:
      (*payload)[at] = static_cast<char>((*payload)[at] ^ (1 << random->Below(8)));
      break;
    case 1:
      (*payload)[at] = static_cast<char>(random->Below(256));
      break;
    case 2:
      (*payload)[at] = "\0\1\xff\x7f\x80\2\3\x0a\x14\x19"[random->Below(10)];
      break;
    case 3:
      payload->erase(at, count);
      break;
    case 4:
      payload->insert(at, payload->substr(at, count));
      break;
    case 5: {  // the rest of another record
      const std::string& other = payloads[random->Below(payloads.size())];
      payload->erase(at).append(other.substr(random->Below(other.size())));
      break;
    }
    default:
      payload->insert(at, count, static_cast<char>(random->Below(256)));
  }
}

// Returns how many were refused.
uint64_t DamagePayloads(uint64_t seed, uint64_t rounds) {
  FaultyFileSystem disk;
  RichStore rich(&disk);
  rich.Fill(2);
  const std::string log = disk.Content(kLog);
  const std::vector<std::string> payloads = PayloadsOf(log);
  REQUIRE(payloads.size() > 15);
  CAPTURE(seed);
  Random random(seed);
  Engine reader;
  uint64_t refused = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    CAPTURE(round);
    std::vector<std::string> damaged = payloads;
    std::string* payload = &damaged[random.Below(damaged.size())];
    for (uint64_t n = 1 + random.Below(2); n > 0 && !payload->empty(); --n)
      Damage(&random, payloads, payload);
    INFO(reader.Describe(*payload));
    std::erase(damaged, std::string());
    if (!OpenWith(disk, SegmentOf(log, damaged)).empty()) ++refused;
  }
  return refused;
}

TEST_CASE("Logs with changed payloads are refused with the place, or are sound", "[damage]") {
  const uint64_t refused = DamagePayloads(1, 2000);
  CHECK(refused > 200);
  CHECK(refused < 1800);
}

TEST_CASE("Payloads are changed for SOAK_SECONDS", "[.][soak]") {
  const char* seconds = std::getenv("SOAK_SECONDS");
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::seconds(seconds == nullptr ? 10 : std::atoi(seconds));
  for (uint64_t seed = 2; std::chrono::steady_clock::now() < end; ++seed)
    (void)DamagePayloads(seed, 1000);
}

}  // namespace cellar::payload_damage_test
