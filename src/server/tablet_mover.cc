// See tablet_mover.h.
#include "server/tablet_mover.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "cluster/director_desk.h"
#include "cluster/lost_rows.h"
#include "commands/cluster/cluster_part.h"
#include "commands/session/services.h"
#include "replica/replication.h"
#include "replica/set_node.h"
#include "store/store.h"

namespace cellar {

TabletMover::TabletMover(Host& host)
    : host_(host),
      calls_(host),
      party_(host),
      balancer_(host, calls_),
      leads_(host, calls_, balancer_) {}

TabletMover::~TabletMover() { donors_.clear(); }

SetNode* TabletMover::set() const { return host_.replication().set(); }

bool TabletMover::leads() const {
  return set() != nullptr && !host_.loading() && !set()->is_witness() && !set()->is_empty() &&
         !set()->member().state_is_void() && set()->open() && set()->may_append() &&
         host_.store().engine().cluster().active() && !host_.closed();
}

void TabletMover::DropDonors() {
  for (const auto& [job, donor] : donors_)
    if (donor.ticket != 0) calls_.Forget(donor.ticket);
  donors_.clear();
}

void TabletMover::DropOrdered() {
  for (const auto& [job, ordered] : ordered_)
    if (ordered.ticket != 0) calls_.Forget(ordered.ticket);
  ordered_.clear();
}

// Also of a follower, which may lead soon.
void TabletMover::KeepLog() {
  const bool has_state = set() != nullptr && !host_.loading() && !set()->is_witness() &&
                         !set()->is_empty() && !set()->member().state_is_void();
  if (has_state && host_.store().engine().cluster().active()) party_.KeepLog();
}

void TabletMover::Step() {
  if (!leads()) {
    DropDonors();
    DropOrdered();
    if (std::exchange(directs_, false)) StopBalance();
    busy_ = purges_ = false;
    return;
  }
  Store& store = host_.store();
  if (store.in_transaction()) return;
  const uint32_t term = host_.replication().term();
  if (term != term_ || lineage_ != store.lineage()) {
    term_ = term;
    lineage_ = store.lineage();
    DropDonors();
    DropOrdered();
    purges_ = true;
  }
  wake_ = false;
  // Whoever owns something else than before may hold what it does not own.
  if (schema_seen_ != store.schema_lsn()) {
    schema_seen_ = store.schema_lsn();
    purges_ = true;
  }
  StepDonors();
  NoteEnds();
  const bool directs = ClusterPart::Directs(host_);
  if (directs != std::exchange(directs_, directs)) StopBalance();
  if (directs) {
    StepJobs();
    const ClusterTelling telling(host_);
    balancer_.Step();
    leads_.Step();
  } else {
    DropOrdered();
  }
  if (purges_ && now() >= purge_micros_ && !host_.writes_paused()) {
    const Result<bool> more = party_.Purge();
    if (more.ok())
      purges_ = *more;
    else
      purge_micros_ = now() + kPurgeRetryMicros;  // as where the disk is full
  }
  figures_.purges = purges_;
  busy_ = !donors_.empty() || !ordered_.empty() || purges_ || Balances();
}

void TabletMover::StopBalance() {
  balancer_.Stop();
  leads_.Stop();
}

void TabletMover::OnTurn() {
  KeepLog();
  if (!busy_) {
    // What has come about since is looked at by Step.
    const bool may = leads();
    busy_ = may && (wake_ || Balances() || schema_seen_ != host_.store().schema_lsn() ||
                    host_.replication().term() != term_);
    if (busy_) host_.WakeTasks();
    return;
  }
  const bool gives = std::any_of(donors_.begin(), donors_.end(),
                                 [](const auto& donor) { return donor.second.given_micros != 0; });
  if (!gives || host_.loading()) return;
  const Lsn settled = host_.store().journal().settled_lsn();
  if (settled == settled_seen_) return;
  settled_seen_ = settled;
  host_.WakeTasks();
}

void TabletMover::NoteRate(uint64_t bytes_per_second) { rate_ = bytes_per_second; }

void TabletMover::OnSets() {
  balancer_.Hurry();
  Wake();
}

void TabletMover::Wake() {
  wake_ = busy_ = true;
  host_.WakeTasks();
}

// --- the donor

void TabletMover::StepDonors() {
  const auto& out = party_.moves().out();
  for (const auto& [job, move] : out) donors_.try_emplace(job, party_, job);
  for (auto& [job, donor] : donors_) {
    const MoveOut* const move = party_.moves().FindOut(job);
    if (move != nullptr) StepDonor(move->to, &donor);
  }
}

void TabletMover::StepDonor(uint64_t to, Donor* donor) {
  if (donor->ticket != 0) {
    if (calls_.IsPending(donor->ticket)) return;
    const std::optional<MoveAnswer> answer = calls_.Take(std::exchange(donor->ticket, 0));
    if (answer) {
      donor->donor.OnAnswer(*answer);
    } else {
      donor->donor.OnLost();
      donor->next_micros = now() + kRetryMicros;
    }
    // Copies leave the turn to others: a part for each answer.
  }
  if (donor->donor.ended()) return;
  if (now() < donor->restart_micros) return;
  if (now() < donor->next_micros && donor->given_micros == 0) return;
  const bool copies = donor->donor.progress().state == "copying";
  if (copies && now() < copy_micros_) return;
  const std::optional<MoveStep> step = donor->donor.Next();
  if (donor->donor.ended()) return;
  if (donor->restarts != donor->donor.restarts()) {
    donor->restarts = donor->donor.restarts();
    donor->restart_micros =
        now() + std::min(kRestartMicrosMax, kRetryMicros << std::min(donor->restarts, 8));
  }
  if (donor->given_micros == 0 && donor->donor.is_given()) {
    donor->given_micros = now();
    donor->given_bytes = donor->donor.progress().bytes;
  }
  if (step && copies && rate_ != 0) {
    const auto micros = static_cast<int64_t>(step->ops.size() * 1'000'000 / rate_);
    copy_micros_ = std::max(copy_micros_, now() - 10'000) + micros;
  }
  if (step)
    donor->ticket = calls_.Ask(to, *step);
  else if (donor->donor.waits())
    donor->next_micros = now() + kRetryMicros / 2;
  if (step || donor->donor.waits()) return;
  host_.WakeTasks();
}

void TabletMover::NoteEnds() {
  for (auto donor = donors_.begin(); donor != donors_.end();) {
    const uint64_t job = donor->first;
    if (!donor->second.donor.ended()) {
      ++donor;
      continue;
    }
    if (donor->second.ticket != 0) calls_.Forget(donor->second.ticket);
    const auto end = party_.moves().ended().find(job);
    const bool moved = end != party_.moves().ended().end() && end->second == MoveEnd::kMoved;
    ++(moved ? figures_.done : figures_.cancelled);
    if (moved && donor->second.given_micros != 0) {
      const int64_t pause = now() - donor->second.given_micros;
      figures_.pause_micros_max = std::max(figures_.pause_micros_max, pause);
      Log(LogSeverity::kNotice,
          fmt::format("Job {}: the tablet is the other set's; nobody had it for {:.1f} ms, while "
                      "{} bytes went over",
                      job, static_cast<double>(pause) / 1000,
                      donor->second.donor.progress().bytes - donor->second.given_bytes));
    }
    donor = donors_.erase(donor);
  }
}

std::optional<MoveProgress> TabletMover::DonorProgress(uint64_t job) const {
  const auto found = donors_.find(job);
  if (found == donors_.end() || found->second.donor.ended()) return std::nullopt;
  const MoveDonor& donor = found->second.donor;
  MoveProgress progress;
  progress.state = donor.progress().state;
  progress.bytes = donor.progress().bytes;
  progress.why = donor.progress().why;
  progress.given = donor.is_given();
  const uint64_t behind = donor.source() == nullptr ? 0 : donor.source()->bytes_behind();
  progress.behind = behind == UINT64_MAX ? 0 : behind;
  return progress;
}

MoveFigures TabletMover::figures() const {
  MoveFigures figures = figures_;
  for (const auto& [job, donor] : donors_) {
    if (donor.given_micros != 0 && !donor.donor.ended())
      figures.given_micros = std::max(figures.given_micros, now() - donor.given_micros);
  }
  return figures;
}

// --- the director

void TabletMover::StepJobs() {
  Store& store = host_.store();
  MoveJobs& jobs = host_.services().move_jobs;
  const auto& all = jobs.All(store);
  std::erase_if(ordered_, [&](const auto& ordered) {
    const auto found = all.find(ordered.first);
    if (found != all.end() && !found->second.ended()) return false;
    if (ordered.second.ticket != 0) calls_.Forget(ordered.second.ticket);
    return true;
  });
  // What cannot be written now goes another time.
  if (now() >= forget_micros_) {
    forget_micros_ = now() + kForgetMicros;
    (void)jobs.Forget(store, store.now_micros() / 1000);
  }
  if (jobs.running() == 0) return;
  // Another director must not give the number of a job that a set has heard of to another one.
  const Table* const table = MapTables(store).jobs();
  if (table == nullptr || host_.released_lsn() < table->last_lsn()) return;
  // Nor must a set that it does not know to be lost be lost to others.
  if (host_.released_lsn() < MapTables(store).sets().last_lsn()) return;
  floor_ = jobs.Floor(store);
  std::vector<uint64_t> running;
  for (const auto& [number, job] : all)
    if (!job.ended()) running.push_back(number);
  const ClusterTelling telling(host_);
  for (const uint64_t number : running) {
    const MoveJob* const job = jobs.Find(store, number);
    if (job == nullptr || job->ended()) continue;
    auto [ordered, is_new] = ordered_.try_emplace(number);
    if (is_new) ordered->second.moved_micros = now();
    const MoveJob copy = *job;
    StepJob(copy, &ordered->second);
  }
}

void TabletMover::StepJob(const MoveJob& job, Ordered* ordered) {
  if (ordered->ticket != 0) {
    if (calls_.IsPending(ordered->ticket)) return;
    const std::optional<MoveAnswer> answer = calls_.Take(std::exchange(ordered->ticket, 0));
    ordered->next_micros = now() + (ordered->progress.given ? kPollGivenMicros : kPollMicros);
    if (answer)
      TakeAnswer(job, *answer, ordered);
    else
      ordered->progress.why = "the set does not answer";
  }
  const MoveJob* const known = host_.services().move_jobs.Find(host_.store(), job.number);
  if (known == nullptr || known->ended() || now() < ordered->next_micros) return;
  if (!ordered->progress.given && !ordered->cancel && now() - ordered->moved_micros >= Patience()) {
    ordered->cancel = true;
    ordered->why = fmt::format("no progress for {} s", Patience() / 1'000'000) +
                   (ordered->progress.why.empty() ? std::string() : ": " + ordered->progress.why);
  }
  AskOf(*known, ordered);
}

bool TabletMover::IsOfCluster(uint64_t set) const {
  return host_.services().cluster_map.Has(host_.store(), set);
}

// Of a set that is lost nothing is asked: what had begun with it as donor comes no more, and what
// was to go to it stays.
void TabletMover::AskOf(const MoveJob& job, Ordered* ordered) {
  const bool is_adoption = IsLost(job.from);
  const bool drops = job.state == MoveJob::State::kCancelling;
  if (drops && !IsOfCluster(job.to)) return Note(job, MoveJob::State::kCancelled, {}, ordered);
  if (is_adoption && !drops && (ordered->cancel || !IsOfCluster(job.to)))
    return Note(job, MoveJob::State::kCancelling, ordered->why, ordered);
  if (!is_adoption && !drops && !IsOfCluster(job.from)) {
    return Note(job, MoveJob::State::kCancelling, fmt::format("set {} is lost", job.from), ordered);
  }
  if (!is_adoption || drops) {
    ordered->ticket = calls_.Ask(drops ? job.to : job.from, StepOf(job, *ordered));
    return;
  }
  // What it denies to have now it may be given by a change that it has not taken.
  const DirectorDesk* const desk = host_.services().director;
  const auto lacks =
      desk == nullptr ? std::optional<uint64_t>(0) : desk->WhoLacks(party_.catalog());
  if (lacks) {
    ordered->progress.why = fmt::format("set {} has not taken all changes of the schema", *lacks);
    return;
  }
  std::vector<uint64_t> sets;
  for (const auto& set : host_.services().cluster_map.Sets(host_.store()))
    sets.push_back(set.number);
  Adoption::Question question = ordered->adoption.Next(job, sets, party_.catalog());
  question.step.cluster_id = party_.cluster_id();
  question.step.floor = floor_;
  ordered->progress.state = "adopting";
  ordered->ticket = calls_.Ask(question.set, question.step);
}

void TabletMover::Note(const MoveJob& job, MoveJob::State state, std::string why,
                       Ordered* ordered) {
  const Status noted =
      host_.services().move_jobs.Note(host_.store(), job.number, state, std::move(why));
  if (!noted.ok()) {
    ordered->progress.why = noted.text();
    return;
  }
  ordered->next_micros = 0;
  if (state == MoveJob::State::kDone) party_.StopIfToldTo(MoveTrials::Step::kMap);
  host_.WakeTasks();
  balancer_.Hurry();
}

// Whether the director has not heard yet that the set has it: until then nobody is sent there, and
// others might be let have it, too.
bool TabletMover::IsStillLost(const MoveJob& job) const {
  const MapEntry* const entry = host_.services()
                                    .cluster_map.Current(host_.store())
                                    .FindTablet(job.table_id, job.tablet.begin);
  const bool is_there = host_.store().TableById(job.table_id) != nullptr;
  return is_there && (entry == nullptr ? IsLost(job.from) : IsLost(entry->set)) &&
         IsOfCluster(job.to);
}

MoveStep TabletMover::StepOf(const MoveJob& job, const Ordered& ordered) const {
  MoveStep step;
  step.kind = job.state == MoveJob::State::kCancelling ? MoveStep::Kind::kDrop
              : !IsOfCluster(job.to)                   ? MoveStep::Kind::kReclaim
              : ordered.cancel                         ? MoveStep::Kind::kCancel
                                                       : MoveStep::Kind::kJob;
  step.cluster_id = party_.cluster_id();
  step.job = job.number;
  step.floor = floor_;
  step.rate = balancer_.rate();
  step.out = {.table_id = job.table_id, .tablet = job.tablet, .to = job.to, .given = false};
  return step;
}

void TabletMover::TakeAnswer(const MoveJob& job, const MoveAnswer& answer, Ordered* ordered) {
  const bool drops = job.state == MoveJob::State::kCancelling;
  if (IsLost(job.from) && !drops && answer.code != MoveAnswer::Code::kEnded) {
    ordered->adoption.Take(answer);
    ordered->progress.why = answer.text;
    const bool purges = answer.text == kPurgingText;
    if (purges || answer.code == MoveAnswer::Code::kOk) ordered->moved_micros = now();
    if (purges || answer.code != MoveAnswer::Code::kWait) ordered->next_micros = 0;
    return;
  }
  switch (answer.code) {
    case MoveAnswer::Code::kOk: {
      const bool further =
          answer.bytes != ordered->progress.bytes || answer.state != ordered->progress.state;
      if (further) ordered->moved_micros = now();
      ordered->progress = {answer.state, answer.bytes, answer.behind, answer.given, answer.text};
      if (answer.given) ordered->cancel = false;  // it is past the point
      return;
    }
    case MoveAnswer::Code::kEnded: {
      MoveJob::State state = MoveJob::State::kCancelled;
      if (answer.end == MoveEnd::kMoved)
        state = MoveJob::State::kDone;
      else if (!drops)
        state = MoveJob::State::kCancelling;
      if (state == MoveJob::State::kDone && IsStillLost(job)) {
        ordered->progress.why = "the director has not heard yet that the set has it";
        return;
      }
      Note(job, state, !ordered->why.empty() ? ordered->why : answer.text, ordered);
      return;
    }
    default:
      ordered->progress.why = answer.text;
      return;
  }
}

int64_t TabletMover::Patience() const {
  return host_.services().move_trials.patience_micros.value_or(kStuckMicros);
}

MoveProgress TabletMover::JobProgress(uint64_t job) const {
  const auto found = ordered_.find(job);
  return found == ordered_.end() ? MoveProgress{} : found->second.progress;
}

void TabletMover::WantCancel(uint64_t job, std::string why) {
  Ordered& ordered = ordered_[job];
  if (ordered.moved_micros == 0) ordered.moved_micros = now();
  ordered.cancel = true;
  ordered.why = std::move(why);
  ordered.next_micros = 0;
  Wake();
}

}  // namespace cellar
