// SetMember: the store of a replica set's member on a disk of its own, whose records are kept, so
// that a test can hand them to others.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "store/log/log_stream.h"
#include "store/store.h"
#include "tests/manual_clock.h"
#include "tests/store/faulty_file_system.h"

namespace cellar {

class SetMember : public RecordSink {
 public:
  SetMember() { Open(); }
  ~SetMember() override { store.reset(); }

  // Begins, again if it has begun, as a follower.
  void Open() {
    store.reset();
    StoreOptions options;
    options.journal.directory = "db";
    options.journal.sync_policy = SyncPolicy::kAlways;
    options.journal.set_member = true;
    options.following = true;
    Result<std::unique_ptr<Store>> opened = Store::Open(options, disk, clock, {});
    if (!opened.ok()) FAIL(opened.status().ToString());
    store = *std::move(opened);
    store->journal().SetSink(this);
  }
  void Lead(uint32_t epoch) {
    store->SetFollowing(false);
    REQUIRE(store->BeginEpoch(epoch).ok());
  }
  void Follow() { store->SetFollowing(true); }
  // What is written next gets a time of its own.
  void Tick() {
    clock.now_micros += 10;
    store->SetTurnTime();
  }
  void OnRecords(std::string_view records, Lsn) override {
    LogRecord record;
    while (const auto bytes = NextWireRecord(records, &record)) {
      if (*bytes == 0) break;
      if (record.is_entry()) {
        wires_.resize(record.lsn.seq - 1);
        wires_.emplace_back(records.substr(0, *bytes));
      }
      records.remove_prefix(*bytes);
    }
  }
  // Gives `to` what this member has from `seq` on. All is on both disks then.
  void Send(SetMember& to, uint64_t seq) {
    Settle();
    for (; seq <= wires_.size(); ++seq) {
      LogRecord record;
      REQUIRE(NextWireRecord(wires_[seq - 1], &record));
      to.store->AppendEntry(record);
    }
    to.Settle();
  }
  // All that was written is on disk.
  void Settle() {
    store->Flush();
    for (int i = 0; i < 200'000; ++i) {
      store->journal().Poll();
      if (store->journal().durable_appended() == store->journal().appended()) return;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    FAIL("it does not get to disk");
  }
  Lsn last() const { return store->journal().last_lsn(); }

  FaultyFileSystem disk;
  ManualClock clock;
  std::unique_ptr<Store> store;

 private:
  std::vector<std::string> wires_;  // the entries, in order; "" for those voided by now
};

}  // namespace cellar
