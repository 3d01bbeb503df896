// See move_jobs.h.
#include "cluster/move_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/os/log.h"
#include "cluster/lost_rows.h"
#include "cluster/map_tables.h"
#include "store/store.h"

namespace cellar {
namespace {

std::string OrderText(const MoveJob& job) {
  if (IsLost(job.from))
    return fmt::format("job {}: set {} is to have lost rows of {}, empty", job.number, job.to,
                       job.table);
  return fmt::format("job {}: a tablet of {} is to move from set {} to set {}", job.number,
                     job.table, job.from, job.to);
}

}  // namespace

std::string_view MoveJobStateName(MoveJob::State state) {
  switch (state) {
    case MoveJob::State::kOrdered:
      return "ordered";
    case MoveJob::State::kCancelling:
    case MoveJob::State::kCancelled:
      return "cancelled";
    case MoveJob::State::kDone:
      return "done";
  }
  return "ordered";
}

void MoveJobs::Load(Store& store) {
  MapTables tables(store);
  const Table* const table = tables.jobs();
  if (table == nullptr) {
    jobs_.clear();
    running_ = 0;
    next_ = 1;
    table_id_ = 0;
    return;
  }
  const bool is_known =
      table_id_ == table->id() && lineage_ == store.lineage() && lsn_ == table->last_lsn();
  if (is_known || store.in_transaction()) return;
  Result<MapTables::JobRows> rows = tables.Jobs();
  if (!rows.ok()) {
    Log(LogSeverity::kWarning, "The cluster's jobs cannot be read: " + rows.status().text());
    return;
  }
  jobs_ = std::move(rows->jobs);
  next_ = rows->next;
  Took(store);
}

// What is in memory is what the table has now.
void MoveJobs::Took(Store& store) {
  const Table* const table = MapTables(store).jobs();
  CELLAR_ASSERT(table != nullptr);
  running_ = static_cast<size_t>(std::count_if(
      jobs_.begin(), jobs_.end(), [](const auto& job) { return !job.second.ended(); }));
  table_id_ = table->id();
  lineage_ = store.lineage();
  lsn_ = table->last_lsn();
}

const std::map<uint64_t, MoveJob>& MoveJobs::All(Store& store) {
  Load(store);
  return jobs_;
}

const MoveJob* MoveJobs::Find(Store& store, uint64_t number) {
  Load(store);
  const auto found = jobs_.find(number);
  return found == jobs_.end() ? nullptr : &found->second;
}

const MoveJob* MoveJobs::Of(Store& store, uint64_t table_id, const Tablet& range) {
  Load(store);
  for (const auto& [number, job] : jobs_)
    // Of one that is being cancelled the donor knows nothing any more. Rows that were lost have
    // none, and the recipient may come to own them until it has said that the job has ended.
    if ((IsLost(job.from) ? !job.ended() : job.state == MoveJob::State::kOrdered) &&
        job.table_id == table_id && job.tablet.Overlaps(range))
      return &job;
  return nullptr;
}

bool MoveJobs::AreOver(Store& store, uint64_t table_id, const Tablet& range) {
  Load(store);
  return std::none_of(jobs_.begin(), jobs_.end(), [&](const auto& job) {
    return !job.second.ended() && job.second.table_id == table_id &&
           job.second.tablet.Overlaps(range);
  });
}

uint64_t MoveJobs::Floor(Store& store) {
  Load(store);
  for (const auto& [number, job] : jobs_)
    if (!job.ended()) return number - 1;
  return next_ - 1;
}

Result<uint64_t> MoveJobs::Order(Store& store, MoveJob job) {
  Load(store);
  MapTables tables(store);
  job.number = next_;
  job.state = MoveJob::State::kOrdered;
  job.started_ms = std::max<int64_t>(0, store.now_micros() / 1000);
  const Status done = MapTables::AsOne(store, [&]() -> Status {
    RETURN_IF_ERROR(tables.CreateJobs());
    RETURN_IF_ERROR(tables.WriteJob(job));
    RETURN_IF_ERROR(tables.WriteNextJob(job.number + 1));
    return tables.AddEvent({job.started_ms, OrderText(job), job.why});
  });
  RETURN_IF_ERROR(done);
  const uint64_t number = job.number;
  next_ = number + 1;
  jobs_[number] = std::move(job);
  Took(store);
  return number;
}

Status MoveJobs::Note(Store& store, uint64_t number, MoveJob::State state, std::string error) {
  const MoveJob* const found = Find(store, number);
  if (found == nullptr || found->ended() || found->state == state) return Status::Ok();
  MapTables tables(store);
  MoveJob job = *found;
  job.state = state;
  if (!error.empty()) job.error = std::move(error);
  if (job.ended()) job.ended_ms = std::max<int64_t>(0, store.now_micros() / 1000);
  const Status done = MapTables::AsOne(store, [&]() -> Status {
    RETURN_IF_ERROR(tables.WriteJob(job));
    if (!job.ended()) return Status::Ok();
    return tables.AddEvent(
        {job.ended_ms, fmt::format("job {} is {}", number, MoveJobStateName(state)), job.error});
  });
  RETURN_IF_ERROR(done);
  jobs_[number] = std::move(job);
  Took(store);
  return Status::Ok();
}

Status MoveJobs::Tell(Store& store, std::string what, std::string why) {
  MapTables tables(store);
  return MapTables::AsOne(store, [&]() -> Status {
    return tables.AddEvent({store.now_micros() / 1000, std::move(what), std::move(why)});
  });
}

Status MoveJobs::Forget(Store& store, int64_t now_ms) {
  Load(store);
  std::vector<uint64_t> old;
  size_t ended = 0;
  for (auto job = jobs_.rbegin(); job != jobs_.rend(); ++job) {
    if (!job->second.ended()) continue;
    if (++ended > kToldMax || job->second.ended_ms + kToldMs <= now_ms) old.push_back(job->first);
  }
  if (old.empty()) return Status::Ok();
  MapTables tables(store);
  const Status done = MapTables::AsOne(store, [&]() -> Status {
    for (const uint64_t number : old) RETURN_IF_ERROR(tables.DeleteJob(number));
    return Status::Ok();
  });
  RETURN_IF_ERROR(done);
  for (const uint64_t number : old) jobs_.erase(number);
  Took(store);
  return Status::Ok();
}

}  // namespace cellar
