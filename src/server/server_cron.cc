// What the server does now and then: rates for INFO, idle clients, output limits, the end of a
// pause, snapshots that are due, memory that can be given back.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/os/log.h"
#include "commands/clients/client_info.h"
#include "commands/session/pubsub.h"
#include "engine/keys/compression.h"
#include "server/client_eviction.h"
#include "server/connection/peer_side.h"
#include "server/server.h"

namespace cellar {

// Housekeeping, `hz` times a second; what keeps a period of its own asks the clock. The first part
// runs without a store too, while data is loaded.
void Server::OnCron() {
  BeginTurn();
  ServerStats& stats = services_own_.stats;
  const int64_t now = clock_.MonotonicMicros();
  stats.commands_rate.Sample(stats.commands, now);
  stats.input_rate.Sample(stats.input_bytes, now);
  stats.output_rate.Sample(stats.output_bytes, now);
  stats.link_input_rate.Sample(replication_.stats().link_bytes_in, now);
  stats.link_output_rate.Sample(replication_.stats().link_bytes_out, now);
  stats.turns_rate.Sample(stats.turns, now);
  stats.turn_nanos_rate.Sample(stats.turn_nanos, now);
  CheckConnections();
  GiveMemoryBack();
  UpdateMemory();
  if (pause_ != Pause::kNone && dispatcher_own_.now_micros() >= pause_until_micros_) {
    UnpauseClients();
  }
  if (store_ == nullptr) return;
  store_->journal().Poll();
  store_->PollFiles();
  if (replication_.active()) replication_.OnTick();
  command_links_.OnTick();
  TellOfMembers();
  if (leaving_) {
    ShutDownIfDue();
    if (stopping_) return;
  }
  persistence_log_.Look(store_->journal().Stats(), now);
  if (Archive* const archive = store_->archive(); archive != nullptr) {
    if (const std::string news = archive->TakeNews(); !news.empty())
      Log(LogSeverity::kWarning, news);
  }
  arrival_log_.Look(store_->arrivals(), now);
  SwitchLogIfDue();
  store_->UnpinStale();
  services_own_.heat.Tick(*store_, store_->now_micros());
  dispatcher_own_.sampler().Tick();
  if (store_->journal().MaybeStartSnapshot()) {
    Log(LogSeverity::kNotice, "Background saving started");
  }
  Sweep();
}

void Server::OnPoll() {
  BeginTurn();
  tasks_woken_ = true;
  command_links_.OnPoll();
  if (sweep_pending_) Sweep();
}

void Server::UpdatePollTimer() {
  const bool building = sweep_pending_ && store_ != nullptr && store_->building_indexes();
  const bool waits =
      sweep_pending_ || !tasks_.empty() || command_links_.waits() || command_links_.has_tasks();
  uint64_t wanted = waits ? kPollMillis : 0;
  if (building || replication_.postpones()) wanted = kBuildMillis;
  if (wanted == poll_millis_ || stopping_) return;
  poll_millis_ = wanted;
  if (wanted > 0) {
    (void)uv_timer_start(
        &poll_timer_, [](uv_timer_t* h) noexcept { static_cast<Server*>(h->loop->data)->OnPoll(); },
        wanted, wanted);
  } else {
    (void)uv_timer_stop(&poll_timer_);
  }
}

// One slice of reclaiming: a tenth of the time at most; of building indexes: half of it.
void Server::Sweep() {
  if (store_ == nullptr || stopping_) return;
  const TaskBudget budget(clock_, clock_.MonotonicMicros() + kTaskSliceMicros);
  sweep_pending_ = true;
  while (sweep_pending_ && !budget.Spent()) sweep_pending_ = store_->Sweep(kSweepCells);
}

// A bounded number of connections each time, so that ten thousand cost no pause.
void Server::CheckConnections() {
  const int64_t now = dispatcher_own_.now_micros();
  const int64_t timeout_micros = services_own_.config.timeout * 1'000'000;
  const size_t count = std::min(connections_.size(), kConnectionsPerCron);
  for (size_t i = 0; i < count && !connections_.empty(); ++i) {
    if (cron_next_ >= connections_.size()) cron_next_ = 0;
    Connection* connection = connections_[cron_next_++];
    const Session& session = connection->session;
    (void)Recount(connection);
    const bool idle = timeout_micros > 0 && now - session.last_activity_micros > timeout_micros &&
                      !session.pubsub && !IsBlocked(session) && !session.monitor &&
                      !connection->calls_under_way() && session.peer == PeerRole::kNone &&
                      !connection->IsTaking();
    const bool slow = now - session.created_micros > kHandshakeMicros && connection->handshaking();
    if (idle || slow) Log(LogSeverity::kVerbose, "Closing idle client");
    if (idle || slow || OutputExceeded(*connection)) {
      connection->Close();
    } else {
      connection->LookForClient();
    }
  }
}

bool Server::OutputExceeded(Connection& connection) {
  Session& session = connection.session;
  size_t waiting = session.reply_bytes();
  // A link bounds what waits by itself, but for a frame that one long record fills. Without that
  // the follower would never get further.
  if (const PeerSide* const peer = connection.peer(); peer != nullptr)
    waiting -= std::min(waiting, peer->longest_bytes());
  const OutputLimit& limit =
      services_own_.config.output_limits[static_cast<size_t>(ClassOf(session))];
  // A reply that waits for the disk is not the client's fault.
  const bool hard = limit.hard_bytes > 0 && waiting > static_cast<size_t>(limit.hard_bytes) &&
                    session.gates.empty();
  bool soft = limit.soft_bytes > 0 && waiting > static_cast<size_t>(limit.soft_bytes) &&
              session.gates.empty();
  if (!soft) {
    session.soft_limit_since_micros = 0;
  } else if (session.soft_limit_since_micros == 0) {
    session.soft_limit_since_micros = dispatcher_own_.now_micros();
    soft = false;
  } else {
    soft = dispatcher_own_.now_micros() - session.soft_limit_since_micros >=
           limit.soft_seconds * 1'000'000;
  }
  if (!hard && !soft) return false;
  NoteOutputExceeded(session);
  return true;
}

void Server::NoteOutputExceeded(const Session& session) {
  ++services_own_.stats.output_buffer_limit_disconnections;
  Log(LogSeverity::kWarning,
      fmt::format("Client {} closed for exceeding its output buffer limit: {} bytes pending",
                  session.address, session.reply_bytes()));
}

void Server::EndForOutput(Session& session) {
  NoteOutputExceeded(session);
  session.pushes.reset();
  if (!session.in_command) {
    session.output.Free();
    session.gates.clear();
  }
  KillSession(session);
}

void Server::Pushed(Session& session, size_t bytes) {
  session.pushed_bytes += bytes;
  if (PushesBeyondLimit(session, services_own_.config) && !session.ended()) [[unlikely]]
    return EndForOutput(session);
  ScheduleFlush(session);
}

bool Server::Recount(Connection* connection) {
  connection->NoteSent();
  const uint64_t bytes = connection->memory_bytes();
  clients_bytes_ += bytes - connection->counted_bytes;
  connection->counted_bytes = bytes;
  clients_bytes_high_ = std::max(clients_bytes_high_, clients_bytes_);
  return bytes > kRestingBytesMax;
}

uint64_t Server::ClientsBytes() const {
  return clients_bytes_ + command_links_.memory_bytes() + services_own_.tracking.memory_bytes() +
         services_own_.heat.memory_bytes() + services_own_.hot_keys.memory_bytes();
}

// Large buffers are the system's as soon as they are freed (base/buffer_memory.h); what else there
// was goes when the allocator is asked again and again, little by little as it comes of age.
void Server::GiveMemoryBack() {
  if (clients_bytes_high_ - clients_bytes_ >= kReturnedBytesMin) {
    clients_bytes_high_ = clients_bytes_;
    give_back_rounds_ = kGiveBackRounds;
  }
  if (give_back_rounds_ == 0) return;
  --give_back_rounds_;
  ReleaseAgedMemory();
}

void Server::EvictClients() {
  const ClientBound bound = ClientBoundOf(services_own_.config);
  // Usually that is enough to know.
  if (bound.bytes == 0 || clients_bytes_ <= bound.bytes) return;
  for (Connection* connection : ClientsToEvict(connections_, bound)) {
    ++services_own_.stats.evicted_clients;
    Log(LogSeverity::kWarning,
        fmt::format("Evicting client, since all clients hold more than {} bytes{}: {}", bound.bytes,
                    bound.requests_only ? " in requests" : "",
                    ClientLine(connection->session, dispatcher_own_.now_micros())));
    KillSession(connection->session);
  }
}

void Server::UpdateMemory() {
  // Of many connections those that have grown have been counted, and the others are in turn.
  if (connections_.size() < kConnectionsPerCron) {
    for (Connection* connection : connections_) (void)Recount(connection);
  }
  EvictClients();
  memory_used_bytes_ = memory_startup_bytes_ + ClientsBytes() + PackBuffer::held_bytes();
  if (store_ == nullptr) return;
  memory_used_bytes_ += data_figures().bytes;
  ServerStats& stats = services_own_.stats;
  stats.memory_peak_bytes = std::max(stats.memory_peak_bytes, memory_used_bytes_);
}

}  // namespace cellar
