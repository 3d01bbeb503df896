// A replica set: what it needs of the configuration, and its timer.
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/os/log.h"
#include "replica/set/raft_core.h"
#include "replica/set_node.h"
#include "server/server.h"
#include "server/store_config.h"

namespace cellar {

std::vector<NodeAddress> NodesOf(const std::string& text) {
  std::vector<NodeAddress> nodes;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    const size_t colon = word.rfind(':');
    CELLAR_ASSERT(colon != std::string::npos);  // the option has been checked
    nodes.push_back(
        {word.substr(0, colon), static_cast<uint16_t>(std::stoi(word.substr(colon + 1)))});
    at = end + 1;
  }
  return nodes;
}

namespace {

// Whether one of the addresses that the name stands for is of this machine.
bool IsHere(const std::string& host) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  bool here = false;
  for (const addrinfo* each = found; each != nullptr && !here; each = each->ai_next) {
    // Only to an address of its own can a socket be bound.
    const int socket = ::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    here = socket >= 0 && ::bind(socket, each->ai_addr, each->ai_addrlen) == 0;
    if (socket >= 0) ::close(socket);
  }
  ::freeaddrinfo(found);
  return here;
}

}  // namespace

Status Server::CheckSetOptions() {
  const Config& config = services_own_.config;
  const auto refuse = [](std::string text) {
    return Status::Error(ErrorCode::kErr, std::move(text));
  };
  if (config.cluster_nodes.empty()) {
    return config.cluster_join.empty() ? Status::Ok()
                                       : refuse("cluster-join needs cluster-nodes: a set joins");
  }
  if (raft_core_available() == 0)
    return refuse("cluster-nodes: this build has no libraft 0.22 or newer, and so no replica sets");
  if (!config.replicaof.empty()) return refuse("cluster-nodes and replicaof exclude each other");
  if (!config.appendonly) return refuse("cluster-nodes needs a log: appendonly is no");
  size_t count = 0;
  for (const NodeAddress& node : NodesOf(config.cluster_nodes)) {
    const bool announced = !config.replica_announce_ip.empty() && config.replica_announce_port > 0;
    const bool is_it =
        announced
            ? node.host == config.replica_announce_ip && node.port == config.replica_announce_port
            : (node.port == config.port || node.port == config.tls_port) && IsHere(node.host);
    if (!is_it) continue;
    self_ = node;
    ++count;
  }
  if (count == 1) return Status::Ok();
  return refuse(fmt::format("cluster-nodes names {} of this node",
                            count == 0 ? "no address" : "two addresses"));
}

std::string Server::members_payload() const {
  const SetNode* const set = replication_.set();
  return set == nullptr ? std::string() : set->members_payload();
}

// For clients that follow Sentinel's channels. A member is described as the last message has left
// things: as a replica of the leader that was announced. The first leader that is seen is none that
// has switched, and is noted without a message.
void Server::TellOfMembers() {
  const SetNode* const set = replication_.set();
  if (set == nullptr) return;
  const std::string& given = services_own_.config.sentinel_name;
  const std::string name = given.empty() ? "mymaster" : given;
  const auto publish = [this](std::string_view channel, const std::string& message) {
    services_own_.pubsub.Publish(*this, ChannelKind::kChannel, channel, message, Lsn{});
  };
  const auto text_of = [&](const MemberFigures& member) {
    const NodeAddress& at = member.address;
    if (!told_.leader || *told_.leader == at)
      return fmt::format("master {} {} {}", name, at.host, at.port);
    return fmt::format("{} {}:{} {} {} @ {} {} {}", member.kind == "witness" ? "sentinel" : "slave",
                       at.host, at.port, at.host, at.port, name, told_.leader->host,
                       told_.leader->port);
  };
  const std::vector<MemberFigures> members = set->Members();
  std::erase_if(told_.down, [&members](uint64_t node) {  // one that comes back is told of anew
    return std::none_of(members.begin(), members.end(),
                        [node](const MemberFigures& member) { return member.node == node; });
  });
  const MemberFigures* leader = nullptr;
  for (const MemberFigures& member : members) {
    if (member.state == "leader") leader = &member;
    const bool down = member.state == "down";
    if (down == told_.down.contains(member.node)) continue;
    if (down) {
      told_.down.insert(member.node);
    } else {
      told_.down.erase(member.node);
    }
    publish(down ? "+sdown" : "-sdown", text_of(member));
  }
  if (leader == nullptr || leader->address == told_.leader) return;
  const std::optional<NodeAddress> before = std::exchange(told_.leader, leader->address);
  if (!before) return;
  publish("+switch-master", fmt::format("{} {} {} {} {}", name, before->host, before->port,
                                        leader->address.host, leader->address.port));
  for (const MemberFigures& member : members)
    if (&member != leader && member.kind != "witness") publish("+slave", text_of(member));
}

void Server::OnSetTimer() {
  if (replication_.set() == nullptr) return;
  BeginTurn();
  replication_.set()->OnTimer();
}

void Server::WakeReads() {
  for (Connection* connection : connections_) {
    Session& session = connection->session;
    if (session.read_ticket == 0 || !session.postponed) continue;
    session.postponed = false;
    session.last_activity_micros = dispatcher_own_.now_micros();
    ScheduleFlush(session);
  }
}

bool Server::ShutdownLater(ShutdownMode mode) {
  const int64_t timeout_micros = services_own_.config.shutdown_timeout * 1'000'000;
  const SetNode* const set = replication_.set();
  if (stopping_ || leaving_ || set == nullptr || timeout_micros == 0) return false;
  command_links_.LeaveBy(clock_.MonotonicMicros() + timeout_micros);
  const bool later = !set->open()
                         ? command_links_.answers_first()
                         : set->failover_state() != FailoverState::kNone ||
                               replication_.BeginFailover(std::nullopt, timeout_micros, false).ok();
  if (!later) {
    command_links_.LeaveBy(0);
    return false;
  }
  leaving_ = mode;
  if (!set->open()) return true;
  notify_.Send("STOPPING=1\nSTATUS=Handing over to another node");
  return true;
}

bool Server::CancelShutdown() {
  const bool answers = command_links_.answers_first();
  if (!leaving_ || (!replication_.AbortFailover().ok() && !answers)) return false;
  leaving_.reset();
  command_links_.LeaveBy(0);
  notify_.Send("STATUS=Ready to accept connections");
  return true;
}

void Server::ShutDownIfDue() {
  if (!leaving_ || replication_.failover_state() != FailoverState::kNone ||
      command_links_.answers_first())
    return;
  const ShutdownMode mode = *std::exchange(leaving_, std::nullopt);
  if (Shutdown(mode).ok()) return Log(LogSeverity::kNotice, "SHUTDOWN: leaving");
  command_links_.LeaveBy(0);  // it stays, and passes on what comes
}

}  // namespace cellar
