// Two stores get the same writes, and one of them packs: nobody may tell them apart, whatever is
// written, altered, saved or opened again in between.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/requests.h"
#include "tests/store/faulty_file_system.h"
#include "tests/store/rich_store.h"

namespace compression_store_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

class Pair {
 public:
  explicit Pair(uint64_t seed) : random_(seed) {
    for (RichStore* side : {&plain_, &packs_}) {
      side->options.value_bytes_max = 1 << 20;
      Reopen(side);
    }
    FamilyOptions kept;
    kept.versions_max = 1 + random_.Below(3);
    FamilyOptions text;
    text.type = ValueType::kString;
    FamilyOptions largest;
    largest.fold = FoldKind::kMax;
    largest.type = ValueType::kBytes;
    for (RichStore* side : {&plain_, &packs_}) {
      RichStore::Do(side->store->CreateTable(
          "0", "t", Order(), {{"f", kept}, {"t", text}, {"m", largest}, {"n", {}}}));
      const NewIndex by_value{"by_n", {{"n", "b", {}, false}}, {{"f", "a", {}, false}}};
      RichStore::Do(side->store->CreateIndex(side->Find("t"), by_value));
    }
  }

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      Step();
      if (random_.OneIn(100)) Compare();
    }
    Compare();
    // What nobody sees any more may have been swept in one of them alone.
    for (RichStore* side : {&plain_, &packs_}) {
      const uint64_t passes = side->store->sweeper_stats().passes;
      while (side->store->sweeper_stats().passes < passes + 2) (void)side->store->Sweep(1000);
    }
    const Table& plain = plain_.Find("t");
    const Table& packs = packs_.Find("t");
    for (size_t i = 0; i < packs.schema().families.size(); ++i) {
      const FamilyCounters& a = plain.counters().families[i];
      const FamilyCounters& b = packs.counters().families[i];
      CHECK(a.packed_cells == 0);
      CHECK(a.cells == b.cells);
      CHECK(a.bytes == b.bytes + b.saved_bytes);
    }
  }

  void Compare() {
    for (RichStore* side : {&plain_, &packs_}) {
      const Status sound = ValidateStore(side->store.get());
      INFO(sound.ToString());
      REQUIRE(sound.ok());
    }
    REQUIRE(plain_.store->Digest() == packs_.store->Digest());
    REQUIRE(plain_.store->DigestTable(plain_.Find("t")) ==
            packs_.store->DigestTable(packs_.Find("t")));
  }

  uint64_t packed_seen() const { return packed_seen_; }

 private:
  static void Reopen(RichStore* side) {
    if (side->store) RichStore::Do(side->store->journal().Close());
    RichStore::Do(side->Open());
  }

  std::string Value() {
    static constexpr std::string_view kWords[] = {"<td>", "</td>", "row", "value ", "häuser"};
    const size_t size = random_.OneIn(200)  ? random_.Below(1 << 20)
                        : random_.OneIn(10) ? random_.Below(20'000)
                        : random_.OneIn(2)  ? 120 + random_.Below(40)
                                            : random_.Below(600);
    std::string value;
    const bool noise = random_.OneIn(4);
    while (value.size() < size) {
      if (noise)
        value.push_back(static_cast<char>('!' + random_.Below(90)));
      else
        value += kWords[random_.Below(std::size(kWords))];
    }
    return value;
  }

  void Step() {
    if (random_.OneIn(60)) return Alter();
    if (random_.OneIn(150)) return Reopen(&packs_);
    if (random_.OneIn(150)) return RichStore::Do(packs_.store->journal().SaveNow());
    const std::string row = "row" + std::to_string(random_.Below(12));
    std::vector<CellOp> ops;
    std::vector<std::string> values(1 + random_.Below(3));
    for (std::string& value : values) {
      value = Value();
      ops.push_back(Op(value));
    }
    const auto micros = static_cast<int64_t>(random_.Below(1'000'000));
    const bool sweeps = random_.OneIn(20);
    RowWrite write;
    write.row = row;
    write.ops = ops;
    const Status plain = Do(&plain_, write, micros, sweeps);
    const Status packs = Do(&packs_, write, micros, sweeps);
    REQUIRE(plain.ToString() == packs.ToString());
    for (const FamilyCounters& family : packs_.Find("t").counters().families)
      packed_seen_ += family.packed_cells > 0 ? 1 : 0;
  }

  static Status Do(RichStore* side, const RowWrite& write, int64_t micros, bool sweeps) {
    const Status status = side->store->Write(side->Find("t"), write).status();
    side->clock.now_micros += micros;
    side->store->SetTurnTime();
    side->store->Flush();
    if (sweeps) (void)side->store->Sweep(1000);
    return status;
  }

  CellOp Op(const std::string& value) {
    static constexpr std::string_view kQualifiers[] = {"a", "b", "c"};
    static constexpr std::string_view kFamilies[] = {"f", "t", "m", "n"};
    const std::string_view family = kFamilies[random_.Below(4)];
    CellOp op = RichStore::Put(family, kQualifiers[random_.Below(3)], value);
    if (random_.OneIn(10)) {
      op = CellOp{};
      op.kind = random_.OneIn(4) ? CellOp::Kind::kDeleteRow : CellOp::Kind::kDelete;
      if (op.kind == CellOp::Kind::kDelete)
        op.selector = {ColumnSelector::Kind::kColumn, family, kQualifiers[random_.Below(3)], {}};
      return op;
    }
    if (family == "m" && random_.OneIn(2)) {
      op.kind = CellOp::Kind::kAdd;
      return op;
    }
    if (family != "m" && random_.OneIn(4)) {
      op.kind = CellOp::Kind::kAppend;
      return op;
    }
    if (random_.OneIn(2))
      op.timestamp_micros = RichStore::kNow + static_cast<int64_t>(random_.Below(1000));
    if (random_.OneIn(5)) op.expiry_micros = packs_.clock.now_micros + 3'000'000;
    return op;
  }

  void Alter() {
    static constexpr Compression kAll[] = {Compression::kNever, Compression::kLz4,
                                           Compression::kZstd};
    static constexpr std::string_view kFamilies[] = {"f", "t", "m", "n"};
    FamilyOptions options;
    options.compression = kAll[random_.Below(3)];
    const std::string family(kFamilies[random_.Below(4)]);
    auto alter = packs_.store->AlterFamily(packs_.Find("t"), {family, options}, nullptr);
    RichStore::Do(alter.status());
    while (!(*alter)->done()) RichStore::Do((*alter)->Step(1000));
  }

  Random random_;
  FaultyFileSystem plain_disk_;
  FaultyFileSystem packs_disk_;
  RichStore plain_{&plain_disk_};
  RichStore packs_{&packs_disk_};
  uint64_t packed_seen_{0};
};

TEST_CASE("A store that packs is told from no other", "[compression]") {
  uint64_t packed = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Pair pair(seed);
    pair.Run(700);
    packed += pair.packed_seen();
  }
  CHECK(packed > 1000);
}

}  // namespace compression_store_test
