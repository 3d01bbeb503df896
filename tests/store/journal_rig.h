// JournalRig: a journal over a MapMachine and a FaultyFileSystem, used as the server uses it:
// Reserve, Append, Apply, Flush, and an acknowledgement when the record is released. Mutation k
// sets "n" to k and two other keys to values made from k, so that any state of the map tells which
// mutations are in it, and whether one is in it only by half.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "store/journal/journal.h"
#include "tests/store/faulty_file_system.h"
#include "tests/store/map_machine.h"

namespace cellar {

inline std::string NumberedMutation(uint64_t k) {
  const std::string n = std::to_string(k);
  const std::string value(k * 7 % 90, static_cast<char>('a' + k % 26));
  return "n=" + n + ";a" + std::to_string(k % 37) + "=" + n + value + ";b" +
         std::to_string(k % 11) + "=" + value + n + ";";
}

using MutationMaker = std::string (*)(uint64_t);

// The map after mutations 1..k.
inline std::map<std::string, std::string> NumberedState(uint64_t k,
                                                        MutationMaker mutation = NumberedMutation) {
  MapMachine machine;
  for (uint64_t i = 1; i <= k; ++i) REQUIRE(machine.Apply(mutation(i)).ok());
  return machine.Content();
}

class JournalRig {
 public:
  explicit JournalRig(FaultyFileSystem* disk) : disk_(disk) {
    options.directory = "db";
    options.sync_policy = SyncPolicy::kAlways;
    options.segment_bytes_max = 4096;
    options.allocation_bytes_max = 2048;
    options.allocation_bytes_min = 512;
    options.retry_delay_micros = 500;
  }
  ~JournalRig() { journal.reset(); }
  JournalRig(const JournalRig&) = delete;
  JournalRig& operator=(const JournalRig&) = delete;

  Status Open() {
    journal.reset();
    machine = std::make_unique<MapMachine>();
    auto opened = Journal::Open(options, *disk_, Clock::System(), *machine, {});
    if (!opened.ok()) return opened.status();
    journal = *std::move(opened);
    const std::string n = machine->Get("n");
    written = n == "(none)" ? 0 : std::stoull(n);
    return Status::Ok();
  }

  // Applies the next mutation if the journal takes it.
  Status Write() {
    const std::string mutation = mutation_of(written + 1);
    RETURN_IF_ERROR(journal->Reserve(mutation.size()));
    ++written;
    lsn = joins ? journal->AppendJoined(mutation, 0, 1) : journal->Append(mutation, 1);
    REQUIRE(machine->Apply(mutation).ok());
    return Status::Ok();
  }
  // False after ten seconds, which only a hang needs.
  template <typename Condition>
  bool WaitUntil(Condition condition) {
    for (int i = 0; i < 200'000; ++i) {
      journal->Poll();
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return false;
  }
  bool WaitReleased() {
    return WaitUntil([&] { return journal->released_lsn() >= lsn; });
  }
  Status WriteAndWait() {
    RETURN_IF_ERROR(Write());
    journal->Flush();
    REQUIRE(WaitReleased());
    return Status::Ok();
  }
  // The number of mutations in the state; REQUIREs that exactly these are in it, each whole.
  uint64_t CheckState() const {
    const std::string n = machine->Get("n");
    const uint64_t k = n == "(none)" ? 0 : std::stoull(n);
    REQUIRE(machine->Content() == NumberedState(k, mutation_of));
    return k;
  }

  JournalOptions options;
  bool joins{false};                            // mutations of a turn may share a record
  MutationMaker mutation_of{NumberedMutation};  // k has to set "n" to k
  std::unique_ptr<MapMachine> machine;
  std::unique_ptr<Journal> journal;
  uint64_t written{0};  // mutations that the journal took
  Lsn lsn;              // of the last one

 private:
  FaultyFileSystem* const disk_;
};

}  // namespace cellar
