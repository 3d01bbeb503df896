// Worker: one thread of a phase, with its connections (phase.h has the picture).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/random.h"
#include "phase.h"
#include "reply_skipper.h"
#include "socket.h"

namespace cellar::benchmark {

// What the threads of a phase share.
struct PhaseShared {
  std::atomic<uint64_t> next_key{0};        // the number that the next insert takes
  std::atomic<int64_t> operations_left{0};  // only if the phase has a limit of number
  std::atomic<uint32_t> tick{0};            // counts up each second: workers hand over histograms
  std::atomic<uint32_t> workers_running{0};
  std::mutex mutex;  // guards what follows
  std::vector<Histogram> by_operation;
  Histogram interval;  // since the last progress line
};

class Worker {
 public:
  Worker(const Workload& workload, const PhaseOptions& options, uint32_t index,
         PhaseShared* shared);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Opens the connections. kIo, or the server's answer to an on_connect command.
  Status Connect();
  // Sends and receives until the phase is over. Called on a thread of its own.
  Status Run(int64_t begin_ns);
  // Adds this worker's counters to *result. Called after Run.
  void AddTo(PhaseResult* result) const;
  int64_t finished_ns() const { return finished_ns_; }

 private:
  struct Slot {
    const Operation* operation;
    uint32_t operation_index;
    uint64_t key;
    int64_t due_ns;
    uint64_t replies_owed;
  };
  struct Connection {
    Socket socket;
    std::string out;
    size_t out_sent{0};
    bool waits_for_room{false};
    ReplySkipper skipper;
    std::vector<Slot> slots;  // the batch under way; empty: free
    size_t slot_at{0};        // the slot that the next reply belongs to
    size_t round{0};
  };

  bool open_loop() const { return options_.rate_per_second > 0.0; }
  // How many operations may begin now, `wanted` at most; 0 at the end of the phase.
  uint64_t TakeOperations(uint64_t wanted, int64_t now_ns);
  Status BeginBatch(Connection* connection, int64_t now_ns);
  Status BeginRound(Connection* connection);
  Status Flush(Connection* connection);
  Status OnReadable(Connection* connection);
  Status TakeReplies(Connection* connection, uint64_t replies, int64_t now_ns);
  Status StartDue(int64_t now_ns);
  Status Wait();
  void HandOver();
  uint32_t PickOperation();

  const Workload& workload_;
  const PhaseOptions& options_;
  PhaseShared* const shared_;
  const uint32_t index_;
  Random random_;
  KeyDistribution keys_;
  int epoll_fd_{-1};
  std::vector<Connection> connections_;
  std::vector<size_t> free_;  // connections without a batch (open loop)
  std::vector<char> buffer_;
  std::vector<double> weights_;  // summed up
  std::vector<Histogram> by_operation_;
  RenderContext context_;
  uint32_t tick_seen_{0};
  size_t busy_{0};
  bool over_{false};
  int64_t end_ns_{0};
  int64_t begin_ns_{0};
  uint64_t due_count_{0};  // open loop: operations of this worker that have begun
  int64_t finished_ns_{0};
  uint64_t operations_{0};
  uint64_t commands_{0};
  uint64_t bytes_sent_{0};
  uint64_t bytes_received_{0};
};

int64_t NowNanos();  // of the monotonic clock

}  // namespace cellar::benchmark
