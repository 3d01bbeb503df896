// See worker.h.
#include "worker.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace cellar::benchmark {
namespace {

constexpr size_t kReadBytes{256 * 1024};
constexpr int kEventsMax{256};
constexpr int64_t kIdleNanos{100'000'000};  // the longest sleep: ticks and the end are noticed then

}  // namespace

int64_t NowNanos() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

Worker::Worker(const Workload& workload, const PhaseOptions& options, uint32_t index,
               PhaseShared* shared)
    : workload_(workload),
      options_(options),
      shared_(shared),
      index_(index),
      random_(options.seed * 1000003 + index),
      keys_(options.keys, options.key_count, options.key_count / options.threads * index),
      buffer_(kReadBytes),
      by_operation_(workload.operations.size()) {
  double sum = 0.0;
  for (const Operation& operation : workload.operations)
    weights_.push_back(sum += operation.weight);
  context_.random = &random_;
}

Worker::~Worker() {
  if (epoll_fd_ >= 0) close(epoll_fd_);
}

Status Worker::Connect() {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  const uint32_t count = options_.connections / options_.threads +
                         (index_ < options_.connections % options_.threads ? 1 : 0);
  connections_.resize(std::max(1U, count));
  for (size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[i];
    ASSIGN_OR_RETURN(connection.socket, Socket::Connect(options_.host, options_.port));
    for (const std::string& text : options_.on_connect) {
      ASSIGN_OR_RETURN(const CommandTemplate command, CommandTemplate::Parse(text, {}));
      std::string request;
      command.Render(context_, &request);
      ASSIGN_OR_RETURN(const std::string error, connection.socket.Call(request, 1));
      if (!error.empty()) return Status::Error(ErrorCode::kErr, text + ": " + error);
    }
    RETURN_IF_ERROR(connection.socket.SetNonBlocking());
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    if (epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, connection.socket.fd(), &event) != 0) {
      return Status::Error(ErrorCode::kIo, std::string("epoll_ctl: ") + std::strerror(errno));
    }
  }
  return Status::Ok();
}

uint32_t Worker::PickOperation() {
  if (weights_.size() == 1) return 0;
  const double at = random_.Fraction() * weights_.back();
  uint32_t i = 0;
  while (i + 1 < weights_.size() && at >= weights_[i]) ++i;
  return i;
}

uint64_t Worker::TakeOperations(uint64_t wanted, int64_t now_ns) {
  if (over_) return 0;
  if (end_ns_ != 0 && now_ns >= end_ns_) {
    over_ = true;
    return 0;
  }
  if (open_loop()) {
    const double per_ns = options_.rate_per_second / options_.threads * 1e-9;
    const auto due = static_cast<uint64_t>(static_cast<double>(now_ns - begin_ns_) * per_ns);
    wanted = std::min(wanted, due - std::min(due, due_count_));
  }
  if (options_.operations > 0 && wanted > 0) {
    const int64_t left = shared_->operations_left.fetch_sub(static_cast<int64_t>(wanted));
    if (left <= static_cast<int64_t>(wanted)) over_ = true;
    wanted = static_cast<uint64_t>(std::clamp<int64_t>(left, 0, static_cast<int64_t>(wanted)));
  }
  return wanted;
}

Status Worker::BeginBatch(Connection* connection, int64_t now_ns) {
  const uint64_t count = TakeOperations(options_.pipeline, now_ns);
  if (count == 0) {
    if (open_loop() && !over_) free_.push_back(static_cast<size_t>(connection - &connections_[0]));
    return Status::Ok();
  }
  const double ns_each = open_loop() ? 1e9 * options_.threads / options_.rate_per_second : 0.0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t index = PickOperation();
    Slot slot{&workload_.operations[index], index, 0, now_ns, 0};
    const uint64_t keys_now = shared_->next_key.load(std::memory_order_relaxed);
    slot.key =
        slot.operation->inserts ? shared_->next_key.fetch_add(1) : keys_.Next(random_, keys_now);
    if (open_loop()) {
      slot.due_ns = begin_ns_ + static_cast<int64_t>(static_cast<double>(due_count_++) * ns_each);
    }
    connection->slots.push_back(slot);
  }
  ++busy_;
  connection->round = 0;
  return BeginRound(connection);
}

Status Worker::BeginRound(Connection* connection) {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  context_.now_micros = wall.tv_sec * 1'000'000LL + wall.tv_nsec / 1000;
  connection->out.clear();
  connection->out_sent = 0;
  connection->slot_at = 0;
  for (Slot& slot : connection->slots) {
    if (slot.operation->steps.size() <= connection->round) continue;
    const Step& step = slot.operation->steps[connection->round];
    for (uint32_t i = 0; i < step.keys; ++i) {
      context_.key = slot.key + i;
      ++context_.sequence;
      for (const CommandTemplate& command : step.commands) {
        command.Render(context_, &connection->out);
      }
    }
    slot.replies_owed = step.keys * step.commands.size();
    commands_ += slot.replies_owed;
  }
  return Flush(connection);
}

Status Worker::Flush(Connection* connection) {
  while (connection->out_sent < connection->out.size()) {
    const ssize_t sent =
        send(connection->socket.fd(), connection->out.data() + connection->out_sent,
             connection->out.size() - connection->out_sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) {
      return Status::Error(ErrorCode::kIo, std::string("sending: ") + std::strerror(errno));
    }
    if (sent < 0) break;
    connection->out_sent += static_cast<size_t>(sent);
    bytes_sent_ += static_cast<uint64_t>(sent);
  }
  const bool waits = connection->out_sent < connection->out.size();
  if (waits != connection->waits_for_room) {
    connection->waits_for_room = waits;
    epoll_event event{};
    event.events = waits ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.u64 = static_cast<uint64_t>(connection - &connections_[0]);
    epoll_ctl(epoll_fd_, EPOLL_CTL_MOD, connection->socket.fd(), &event);
  }
  return Status::Ok();
}

Status Worker::OnReadable(Connection* connection) {
  const ssize_t got = recv(connection->socket.fd(), buffer_.data(), buffer_.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Status::Ok();
  if (got < 0) return Status::Error(ErrorCode::kIo, std::string("recv: ") + std::strerror(errno));
  if (got == 0) return Status::Error(ErrorCode::kIo, "the server closed a connection");
  bytes_received_ += static_cast<uint64_t>(got);
  const uint64_t replies = connection->skipper.Skip(buffer_.data(), static_cast<size_t>(got));
  return replies == 0 ? Status::Ok() : TakeReplies(connection, replies, NowNanos());
}

Status Worker::TakeReplies(Connection* connection, uint64_t replies, int64_t now_ns) {
  std::vector<Slot>& slots = connection->slots;
  bool more_rounds = false;
  while (connection->slot_at < slots.size()) {
    Slot& slot = slots[connection->slot_at];
    const uint64_t taken = std::min(replies, slot.replies_owed);
    slot.replies_owed -= taken;
    replies -= taken;
    if (slot.replies_owed > 0) return Status::Ok();
    ++connection->slot_at;
    if (taken == 0 || slot.operation->steps.size() != connection->round + 1) continue;
    ++operations_;
    by_operation_[slot.operation_index].RecordCorrected(
        static_cast<uint64_t>(std::max<int64_t>(0, now_ns - slot.due_ns)),
        open_loop() ? 0 : options_.expected_interval_ns);
  }
  if (replies > 0) return Status::Error(ErrorCode::kIo, "a reply that nobody asked for");
  for (const Slot& slot : slots) {
    more_rounds = more_rounds || slot.operation->steps.size() > connection->round + 1;
  }
  if (more_rounds) {
    ++connection->round;
    return BeginRound(connection);
  }
  slots.clear();
  --busy_;
  return BeginBatch(connection, now_ns);
}

Status Worker::StartDue(int64_t now_ns) {
  size_t tries = free_.size();
  while (tries-- > 0 && !over_ && !free_.empty()) {
    const size_t before = free_.size();
    const size_t i = free_.back();
    free_.pop_back();
    RETURN_IF_ERROR(BeginBatch(&connections_[i], now_ns));
    if (free_.size() == before) break;  // nothing is due
  }
  return Status::Ok();
}

Status Worker::Wait() {
  int64_t sleep_ns = kIdleNanos;
  const int64_t now_ns = NowNanos();
  if (end_ns_ != 0) sleep_ns = std::min(sleep_ns, std::max<int64_t>(0, end_ns_ - now_ns));
  if (open_loop() && !free_.empty()) {
    const double ns_each = 1e9 * options_.threads / options_.rate_per_second;
    const int64_t next =
        begin_ns_ + static_cast<int64_t>(static_cast<double>(due_count_ + 1) * ns_each);
    sleep_ns = std::min(sleep_ns, std::max<int64_t>(0, next - now_ns));
  }
  timespec timeout{};
  timeout.tv_sec = sleep_ns / 1'000'000'000;
  timeout.tv_nsec = sleep_ns % 1'000'000'000;
  epoll_event events[kEventsMax];
  const int count = epoll_pwait2(epoll_fd_, events, kEventsMax, &timeout, nullptr);
  for (int i = 0; i < count; ++i) {
    Connection& connection = connections_[events[i].data.u64];
    if ((events[i].events & EPOLLOUT) != 0) RETURN_IF_ERROR(Flush(&connection));
    if ((events[i].events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) {
      RETURN_IF_ERROR(OnReadable(&connection));
    }
  }
  return Status::Ok();
}

Status Worker::Run(int64_t begin_ns) {
  begin_ns_ = begin_ns;
  if (options_.seconds > 0) end_ns_ = begin_ns + static_cast<int64_t>(options_.seconds * 1e9);
  for (Connection& connection : connections_) {
    RETURN_IF_ERROR(BeginBatch(&connection, NowNanos()));
  }
  while (busy_ > 0 || !over_) {
    if (end_ns_ != 0 && NowNanos() >= end_ns_) over_ = true;
    if (open_loop()) RETURN_IF_ERROR(StartDue(NowNanos()));
    RETURN_IF_ERROR(Wait());
    if (shared_->tick.load(std::memory_order_relaxed) != tick_seen_) HandOver();
  }
  finished_ns_ = NowNanos();
  HandOver();
  return Status::Ok();
}

void Worker::HandOver() {
  const std::lock_guard lock(shared_->mutex);
  for (size_t i = 0; i < by_operation_.size(); ++i) {
    if (by_operation_[i].count() == 0) continue;
    shared_->by_operation[i].Merge(by_operation_[i]);
    shared_->interval.Merge(by_operation_[i]);
    by_operation_[i] = Histogram();
  }
  tick_seen_ = shared_->tick.load(std::memory_order_relaxed);
}

void Worker::AddTo(PhaseResult* result) const {
  result->operations += operations_;
  result->commands += commands_;
  result->bytes_sent += bytes_sent_;
  result->bytes_received += bytes_received_;
  for (const Connection& connection : connections_) {
    result->errors += connection.skipper.errors();
    result->nulls += connection.skipper.nulls();
    if (result->first_error.empty()) result->first_error = connection.skipper.first_error();
  }
}

}  // namespace cellar::benchmark
