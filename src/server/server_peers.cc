// Connections to other nodes, and what replication asks of the process (replica/links/peer.h).
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "base/os/thread.h"
#include "cluster/call_frames.h"
#include "commands/clients/set_users.h"
#include "replica/greeting.h"
#include "replica/set_node.h"
#include "server/connection/connection.h"
#include "server/connection/peer_side.h"
#include "server/neighbour.h"
#include "server/server.h"
#include "server/store_config.h"

namespace cellar {
namespace {

// The option `replicaof`: "host port", checked when it was set, or empty.
std::optional<NodeAddress> LeaderOf(const std::string& replicaof) {
  if (replicaof.empty()) return std::nullopt;
  const size_t space = replicaof.find(' ');
  CELLAR_ASSERT(space != std::string::npos);
  const int port = std::stoi(replicaof.substr(space + 1));
  return NodeAddress{replicaof.substr(0, space), static_cast<uint16_t>(port)};
}

// 0: it is none.
uint64_t HexNumber(std::string_view word) {
  uint64_t number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number, 16);
  return read.ec == std::errc{} && read.ptr == word.data() + word.size() ? number : 0;
}

}  // namespace

Result<std::string> Server::AcceptPeer(Session& session, std::string_view version,
                                       std::string_view cluster, std::string_view node,
                                       std::string_view purpose, std::string_view features) {
  // Who it says it is counts for votes and for what is committed, for commands that are not checked
  // again, and for copies.
  const Config& config = services_own_.config;
  const User& user = session.user != nullptr ? *session.user : services_own_.acl.default_user();
  const std::string_view name =
      config.masteruser.empty() ? kDefaultUser : std::string_view(config.masteruser);
  const bool is_known = config.masterauth.empty() || (user.name == name && !user.no_password);
  const bool is_of_cluster = purpose == "cluster";
  const bool is_from_node = purpose == "command" || purpose == "message";
  const bool of_set = purpose == "member" || is_from_node || is_of_cluster ||
                      (purpose == "bulk" && replication_.in_set());
  if (of_set && !is_known) {
    return Status::Error(
        ErrorCode::kErr,
        "PEER: a member of this set authenticates as masteruser and masterauth say");
  }
  Connection* const connection = Connection::Of(session);
  auto side = std::make_unique<PeerSide>(*this, *connection);
  PeerHandler* handler = nullptr;
  if (is_of_cluster) {
    const uint64_t set_id = HexNumber(cluster);
    const uint64_t caller = HexNumber(node);
    const bool is_node = version == fmt::format("{}", kPeerVersion) && set_id != 0 && caller != 0;
    if (!is_node || replication_.set() == nullptr)
      return Status::Error(ErrorCode::kErr, "PEER: this server is no member of a replica set");
    handler = command_links_.cluster().Accept(side.get(), set_id, caller, HexNumber(features));
  } else if (is_from_node) {
    const bool calls = purpose == "command";
    ASSIGN_OR_RETURN(const uint64_t caller, command_links_.CheckCaller(version, cluster, node));
    handler = calls ? command_links_.Accept(side.get(), caller)
                    : command_links_.messages().Accept(side.get(), caller);
  } else {
    ASSIGN_OR_RETURN(handler,
                     replication_.Accept(side.get(), version, cluster, node, purpose, features));
  }
  side->SetHandler(handler);
  connection->BecomePeer(std::move(side), PeerRole::kReplica);
  // Who says what it knows is told the same; an older node does not.
  const uint64_t knows = purpose == "command" ? HexNumber(features) : 0;
  return AcceptanceText(replication_.cluster_text(), replication_.node(),
                        knows == 0 ? 0 : kCallFeatures,
                        (knows & kCallNeighbours) == 0 ? Neighbour{} : NeighbourOf(config));
}

// --- dialling

// From the name to the connection. libuv's until its last callback, then gone.
struct Server::DialRequest {
  uv_getaddrinfo_t resolve;
  uv_connect_t connect;
  Server* server;
  PeerHandler* handler;  // null: nobody waits any more
  Connection* connection{nullptr};
};

// Resolve, connect, greet: three callbacks that share one request, which EndDial frees whatever
// happens. It may be given up in between (CancelDial).
Server::DialRequest* Server::BeginDial(PeerHandler* handler) {
  auto request = std::make_unique<DialRequest>();
  request->server = this;
  request->handler = handler;
  request->resolve.data = request->connect.data = request.get();
  dials_.push_back(request.get());
  return request.release();
}

void Server::Dial(const std::string& host, uint16_t port, PeerHandler* handler) {
  DialRequest* const request = BeginDial(handler);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const auto resolved = [](uv_getaddrinfo_t* resolve, int status, addrinfo* found) noexcept {
    auto* const self = static_cast<DialRequest*>(resolve->data);
    Server* const server = self->server;
    Status begun = status == 0 ? Status::Ok() : Status::Error(ErrorCode::kIo, uv_strerror(status));
    if (begun.ok() && self->handler != nullptr && !server->stopping_)
      begun = server->ConnectTo(self, found->ai_addr);
    uv_freeaddrinfo(found);
    if (!begun.ok() || self->connection == nullptr) server->EndDial(self, begun.ToString());
  };
  const int error = uv_getaddrinfo(&loop_, &request->resolve, resolved, host.c_str(),
                                   std::to_string(port).c_str(), &hints);
  if (error != 0) EndDial(request, uv_strerror(error));
}

Status Server::ConnectTo(DialRequest* request, const sockaddr* address) {
  auto connection = std::make_unique<Connection>(connection_services_);
  Connection* const link = connection.release();  // its socket's from Init on, until it is closed
  link->OpenSocket(SocketKind::kTcp)->Init(&loop_);
  Register(link);
  const auto connected = [](uv_connect_t* connect, int status) noexcept {
    auto* const self = static_cast<DialRequest*>(connect->data);
    self->server->EndDial(self, status == 0 ? std::string_view{} : uv_strerror(status));
  };
  const int error = uv_tcp_connect(&request->connect, link->socket()->tcp(), address, connected);
  if (error != 0) {
    link->Close();
    return Status::Error(ErrorCode::kIo, uv_strerror(error));
  }
  request->connection = link;
  return Status::Ok();
}

// What is wrong is told by the callback.
void Server::DialSocket(const std::string& path, PeerHandler* handler) {
  DialRequest* const request = BeginDial(handler);
  auto connection = std::make_unique<Connection>(connection_services_);
  request->connection = connection.release();  // its socket's from Init on, until it is closed
  ClientSocket* const socket = request->connection->OpenSocket(SocketKind::kUnix);
  socket->Init(&loop_);
  Register(request->connection);
  Session& session = request->connection->session;
  session.unix_socket = true;
  session.address = session.local_address = path + ":0";
  uv_pipe_connect(&request->connect, socket->pipe(), path.c_str(),
                  [](uv_connect_t* connect, int status) noexcept {
                    auto* const self = static_cast<DialRequest*>(connect->data);
                    if (status != 0) return self->server->EndDial(self, uv_strerror(status));
                    ClientSocket* const connected = self->connection->socket();
                    connected->NoteDescriptor();
                    const bool may_stay = IsOwnOrRoots(connected->fd());
                    self->server->EndDial(
                        self, may_stay ? std::string_view{} : "somebody else listens there");
                  });
}

void Server::EndDial(DialRequest* request, std::string_view failure) {
  const std::unique_ptr<DialRequest> self(request);
  std::erase(dials_, request);
  Connection* const link = request->connection;
  if (!failure.empty() || request->handler == nullptr || link == nullptr || link->closing()) {
    if (link != nullptr) link->Close();
    if (request->handler != nullptr)
      request->handler->OnClosed(failure.empty() ? "the connection was closed" : failure);
    return;
  }
  BeginTurn();
  link->socket()->NoteDescriptor();
  link->session.fd = link->socket()->fd();
  const bool is_near = link->socket()->kind() == SocketKind::kUnix;
  if (!is_near) NameAddresses(link, SocketKind::kTcp);
  const bool speaks_tls = services_own_.config.tls_replication && !is_near;
  if (speaks_tls) {
    if (const Status loaded = LoadTlsClient(); !loaded.ok()) {
      link->Close();
      return request->handler->OnClosed(loaded.text());
    }
    link->BeginTls(*tls_client_context_);
  }
  auto side = std::make_unique<PeerSide>(*this, *link);
  side->SetHandler(request->handler);
  PeerSide* const raw = side.get();
  link->BecomePeer(std::move(side), PeerRole::kMaster);
  link->UpdateReading();
  // The client speaks first in TLS.
  if (speaks_tls) link->Receive({}, {});
  request->handler->OnConnected(raw);
}

void Server::CancelDial(PeerHandler* handler) {
  for (DialRequest* request : dials_) {
    if (request->handler != handler) continue;
    request->handler = nullptr;
    if (request->connection != nullptr) request->connection->Close();
  }
}

// --- what replication asks for

// In libuv's thread pool. `done` runs in the loop, as the beginning of a turn.
void Server::RunInBackground(std::function<void()> work, std::function<void()> done) {
  struct Work {
    uv_work_t request;
    Server* server;
    std::function<void()> work;
    std::function<void()> done;
  };
  auto job = std::make_unique<Work>();
  job->server = this;
  job->work = std::move(work);
  job->done = std::move(done);
  job->request.data = job.get();
  const auto run = [](uv_work_t* request) noexcept {
    // Of each thread once; a copy to a follower has it woken some thousand times a second.
    thread_local const bool kIsSet = (WaitForOthersWhenWoken(), true);
    (void)kIsSet;
    static_cast<Work*>(request->data)->work();
  };
  const auto end = [](uv_work_t* request, int) noexcept {
    const std::unique_ptr<Work> self(static_cast<Work*>(request->data));
    self->server->BeginTurn();
    self->done();
  };
  const int failure = uv_queue_work(&loop_, &job->request, run, end);
  CELLAR_ASSERT(failure == 0);
  (void)job.release();
}

void Server::DisconnectClients() {
  for (Connection* connection : connections_) {
    Session& session = connection->session;
    if (session.peer != PeerRole::kNone) continue;
    session.EndAfterReplies();  // what it has been answered still goes
    ScheduleFlush(session);
  }
}

void Server::KillClients() {
  for (Connection* connection : connections_) {
    if (connection->session.peer == PeerRole::kNone) KillSession(connection->session);
  }
}

// A node that passes commands on keeps its clients. Where it has lost the lead without handing over
// nobody can say what becomes of what they wait for; what a leader had read or committed before it
// handed over stands.
void Server::DropClients() {
  const bool hands_over = replication_.failover_state() != FailoverState::kNone;
  const Lsn told = hands_over ? released_lsn() : Lsn{};
  command_links_.OnOwnerNoMore(told);
  if (!services_own_.config.cluster_forward) return KillClients();
  for (Connection* connection : connections_) {
    Session& session = connection->session;
    const bool writes = session.task != nullptr && (session.task->command->Has(kWrite) ||
                                                    SetUsers::IsChange(*session.task->command));
    const bool waits = connection->newest_gate() > told;
    if (session.peer == PeerRole::kNone && (waits || writes)) KillSession(session);
  }
}

void Server::EndProcess(const std::string& why) {
  Log(LogSeverity::kWarning, why);
  std::_Exit(1);
}

void Server::HoldWrites(bool held) {
  if (held) {
    PauseClients(INT64_MAX, Pause::kWrites);
  } else {
    UnpauseClients();
  }
}

// Replies that wait for records of the old content end with their clients: its numbers mean nothing
// any more. What else clients hold on to goes on as under DEBUG RELOAD.
Status Server::ReplaceStore(const std::function<Status(Status* status)>& replace) {
  for (Connection* connection : connections_) {
    Session& session = connection->session;
    const bool waits = connection->newest_gate() != Lsn{};
    if (session.peer == PeerRole::kNone && waits) KillSession(session);
  }
  Status status;
  if (const Status opened = replace(&status); !opened.ok()) EndWithoutStore(opened);
  // The journal is another one, with the options of the start.
  if (store_ != nullptr) ApplyStoreConfig();
  released_seen_ = Lsn{};
  dispatcher_own_.SetReleased(released_lsn());
  if (store_ != nullptr && services_own_.tracking.active())
    services_own_.tracking.AllChanged(*this);
  UpdateMemory();
  return status;
}

// --- configuration and the turn

void Server::SetReplicationOptions() {
  const Config& config = services_own_.config;
  ReplicationOptions options;
  options.announce_host = config.replica_announce_ip;
  options.announce_port =
      static_cast<uint16_t>(config.replica_announce_port > 0 ? config.replica_announce_port
                            : config.tls_replication && config.tls_port > 0 ? config.tls_port
                                                                            : config.port);
  options.priority = static_cast<uint32_t>(config.replica_priority);
  options.user = config.masteruser;
  options.password = config.masterauth;
  options.timeout_micros = config.repl_timeout * 1'000'000;
  options.tail_bytes = static_cast<size_t>(config.repl_tail_size);
  options.backlog_bytes = static_cast<uint64_t>(config.repl_backlog_size);
  options.sync_bytes_per_second = static_cast<uint64_t>(config.repl_sync_rate);
  options.nodes = NodesOf(config.cluster_nodes);
  options.follows = LeaderOf(config.replicaof);
  options.self = self_;
  const auto kind = static_cast<ReplicaKind>(config.replica_kind);
  options.kind = kind == ReplicaKind::kWitness   ? MemberKind::kWitness
                 : kind == ReplicaKind::kStandby ? MemberKind::kStandby
                                                 : MemberKind::kVoter;
  options.election_micros = config.replica_election_timeout * 1000;
  options.lease = config.replica_lease;
  options.seed = static_cast<uint64_t>(clock_.WallMicros()) ^ static_cast<uint64_t>(uv_os_getpid())
                                                                  << 40;
  replication_.SetOptions(std::move(options));
  UpdateRestraint();
}

Status Server::ApplyReplicaOf() {
  const std::optional<NodeAddress> leader = LeaderOf(services_own_.config.replicaof);
  return leader ? replication_.Follow(*leader) : replication_.Lead();
}

Status Server::FollowLeader(const std::string& leader, uint16_t port) {
  if (replication_.failover_state() != FailoverState::kNone)
    return Status::Error(ErrorCode::kErr, "REPLICAOF not allowed while failing over.");
  if (leader.empty()) return replication_.Lead();
  return replication_.Follow({leader, port});
}

// The option says what is so, for CONFIG GET and REWRITE, whoever has changed it.
void Server::OnRoleChanged() {
  if (replication_.set() != nullptr) {
    TellOfMembers();
    UpdateRestraint();
    return command_links_.OnRoleChanged();
  }
  std::string& replicaof = services_own_.config.replicaof;
  replicaof.clear();
  if (!replication_.is_leader()) {
    const NodeAddress& leader = replication_.leader();
    replicaof = fmt::format("{} {}", leader.host, leader.port);
  }
  UpdateRestraint();
}

void Server::UpdateRestraint() {
  if (const SetNode* const set = replication_.set(); set != nullptr)
    return RestrainWrites(!set->may_append() || !set->has_room());
  RestrainWrites(!replication_.is_leader() || services_own_.config.min_replicas_to_write > 0);
}

void Server::ApplyFromLeader() {
  if (store_ == nullptr || replication_.set() != nullptr || replication_.is_leader()) return;
  BeginTurn();
  if (replication_.ApplySlice(clock_.MonotonicMicros() + kTaskSliceMicros)) WakeSoon();
}

}  // namespace cellar
