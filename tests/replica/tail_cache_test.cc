// The newest records in memory, also where some void others.
#include "replica/links/tail_cache.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "store/format/log_format.h"
#include "store/log/log_stream.h"

namespace cellar::tail_cache_test {

struct Entry {
  Lsn lsn;
  std::string payload;
};

std::string Wire(Lsn lsn, RecordKind kind, const std::string& payload) {
  std::string bytes(kRecordHeaderBytes + payload.size(), '\0');
  LayOutRecord(bytes.data(), 0, {.lsn = lsn, .commit_micros = 1, .kind = kind}, payload);
  (void)SealRecord(bytes.data());
  return bytes;
}

TEST_CASE("The cache gives the records in force behind each position that it knows",
          "[replica][set]") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    TailCache cache(700'000);
    cache.SetVoids(true);
    std::vector<Entry> log;
    uint32_t epoch = 1;
    for (int turn = 0; turn < 60; ++turn) {
      std::string bytes;
      Lsn last = log.empty() ? Lsn{} : log.back().lsn;
      for (uint64_t i = 1 + random.Below(4); i > 0; --i) {
        uint64_t seq = log.size() + 1;
        if (random.OneIn(8)) seq = 1 + random.Below(log.size() + 1);
        const uint32_t before = seq > 1 ? log[seq - 2].lsn.epoch : 1;
        Lsn lsn{before, seq};
        if (random.OneIn(6)) ++epoch;
        if (random.OneIn(3))
          lsn.epoch = before + static_cast<uint32_t>(random.Below(epoch - before + 1));
        if (seq <= log.size() && lsn.epoch == log.back().lsn.epoch) lsn.epoch = ++epoch;
        log.resize(seq - 1);
        log.push_back(
            {lsn, std::string(random.Below(40'000), 'x') + std::to_string(random.Next())});
        bytes += Wire(lsn, RecordKind::kCommand, log.back().payload);
        if (random.OneIn(5)) bytes += Wire(lsn, RecordKind::kClaim, {});
        last = lsn;
      }
      cache.OnRecords(bytes, last);
      REQUIRE(cache.end() == last);
      REQUIRE(cache.memory_bytes() < 1'300'000);
      for (uint64_t i = 0; i <= log.size(); ++i) {
        const Lsn after = i == 0 ? Lsn{} : log[i - 1].lsn;
        const size_t bytes_max = 1 + random.Below(200'000);
        const auto piece = cache.Behind(after, bytes_max);
        if (!piece) continue;
        std::string_view rest = piece->records;
        LogRecord record;
        uint64_t next = i;
        while (const auto size = NextWireRecord(rest, &record)) {
          if (*size == 0) break;
          rest.remove_prefix(*size);
          if (!record.is_entry()) continue;
          REQUIRE(next < log.size());
          REQUIRE(record.lsn == log[next].lsn);
          REQUIRE(record.payload == log[next].payload);
          ++next;
        }
        REQUIRE(rest.empty());
        REQUIRE((i == log.size() || next > i));
        // A frame is that long at most, unless it holds one record.
        REQUIRE((piece->records.size() <= bytes_max || next == i + 1));
        REQUIRE(piece->last == (next == 0 ? Lsn{} : log[next - 1].lsn));
      }
      REQUIRE(cache.Behind(log.back().lsn, 1).has_value());
    }
  }
}

}  // namespace cellar::tail_cache_test
