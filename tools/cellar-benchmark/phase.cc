// See phase.h.
#include "phase.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "process_time.h"
#include "worker.h"

namespace cellar::benchmark {
namespace {

double OwnCpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

// Once a second until the workers are done: asks for their histograms, prints a line.
void WatchProgress(const PhaseOptions& options, int64_t begin_ns, PhaseShared* shared,
                   PhaseResult* result) {
  int64_t next_ns = begin_ns + 1'000'000'000;
  while (shared->workers_running.load() > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (NowNanos() < next_ns) continue;
    next_ns += 1'000'000'000;
    shared->tick.fetch_add(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(110));  // the longest sleep of a worker
    const std::lock_guard lock(shared->mutex);
    PhaseSecond second;
    second.seconds = static_cast<double>(next_ns - 1'000'000'000 - begin_ns) * 1e-9;
    second.operations = shared->interval.count();
    second.p99_ns = shared->interval.ValueAt(0.99);
    shared->interval = Histogram();
    result->per_second.push_back(second);
    if (!options.progress) continue;
    std::fprintf(stderr, "%6.0f s  %10llu ops/s  p99 %9.1f us\n", second.seconds,
                 static_cast<unsigned long long>(second.operations),
                 static_cast<double>(second.p99_ns) * 1e-3);
  }
}

}  // namespace

Result<PhaseResult> RunPhase(const Workload& workload, const PhaseOptions& options) {
  CELLAR_ASSERT(options.seconds > 0 || options.operations > 0);
  PhaseShared shared;
  shared.next_key = options.first_insert;
  shared.operations_left = static_cast<int64_t>(options.operations);
  shared.by_operation.resize(workload.operations.size());
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint32_t i = 0; i < options.threads; ++i) {
    workers.push_back(std::make_unique<Worker>(workload, options, i, &shared));
    RETURN_IF_ERROR(workers.back()->Connect());
  }
  PhaseResult result;
  const double server_cpu_before = ProcessCpuSeconds(options.server_pid);
  const double client_cpu_before = OwnCpuSeconds();
  const int64_t begin_ns = NowNanos();
  shared.workers_running = options.threads;
  std::vector<Status> statuses(workers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < workers.size(); ++i) {
    threads.emplace_back([&, i] {
      statuses[i] = workers[i]->Run(begin_ns);
      shared.workers_running.fetch_sub(1);
    });
  }
  WatchProgress(options, begin_ns, &shared, &result);
  for (std::thread& thread : threads) thread.join();
  result.client_cpu_seconds = OwnCpuSeconds() - client_cpu_before;
  if (server_cpu_before >= 0) {
    result.server_cpu_seconds = ProcessCpuSeconds(options.server_pid) - server_cpu_before;
  }
  for (size_t i = 0; i < workers.size(); ++i) {
    RETURN_IF_ERROR(statuses[i]);
    workers[i]->AddTo(&result);
    result.seconds =
        std::max(result.seconds, static_cast<double>(workers[i]->finished_ns() - begin_ns) * 1e-9);
  }
  for (size_t i = 0; i < workload.operations.size(); ++i) {
    result.all.Merge(shared.by_operation[i]);
    result.by_operation[workload.operations[i].name].Merge(shared.by_operation[i]);
  }
  return result;
}

}  // namespace cellar::benchmark
