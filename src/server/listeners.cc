// Listening: addresses of `bind`, the unix socket, and what happens to a client at the door.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/os/log.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "commands/clients/acl_sessions.h"
#include "commands/clients/set_users.h"
#include "server/net/descriptors.h"
#include "server/server.h"
#include "server/server_listener.h"

namespace cellar {
namespace {

constexpr std::string_view kTooMany = "-ERR max number of clients reached\r\n";
constexpr std::string_view kProtected =
    "-DENIED Cellar is running in protected mode because protected mode is enabled and no password "
    "is set for the default user. In this mode connections are only accepted from the loopback "
    "interface. Set a password (requirepass), or bind to addresses that only trusted machines can "
    "reach and set protected-mode to no.\r\n";

std::string AddressText(const sockaddr_storage& address) {
  char host[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof(in));
    (void)inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
    return std::string(host) + ":" + std::to_string(ntohs(in.sin_port));
  }
  sockaddr_in6 in{};
  std::memcpy(&in, &address, sizeof(in));
  (void)inet_ntop(AF_INET6, &in.sin6_addr, host, sizeof(host));
  return "[" + std::string(host) + "]:" + std::to_string(ntohs(in.sin6_port));
}

// 0 for what has no port.
int64_t PortOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof(in));
    return ntohs(in.sin_port);
  }
  if (address.ss_family != AF_INET6) return 0;
  sockaddr_in6 in{};
  std::memcpy(&in, &address, sizeof(in));
  return ntohs(in.sin6_port);
}

bool IsLoopback(const Session& session) {
  return session.unix_socket || session.address.starts_with("127.") ||
         session.address.starts_with("[::1]:") || session.address.starts_with("[::ffff:127.");
}

Status Failed(const std::string& what, int error) {
  return Status::Error(ErrorCode::kIo, "cannot listen on " + what + ": " + uv_strerror(error));
}

Status NoDoor() {
  return Status::Error(ErrorCode::kIo,
                       "nothing to listen on: port and tls-port are 0, or bind has no address that "
                       "is there, and unixsocket is empty");
}

}  // namespace

Status Server::Listen() {
  const Config& config = services_own_.config;
  // Before anybody can ask for the role.
  RETURN_IF_ERROR(CheckSetOptions());
  SetUsers::Await(*this);
  RETURN_IF_ERROR(FitClients());
  SetReplicationOptions();
  if (config.tls_port > 0) {
    RETURN_IF_ERROR(LoadTls());
  } else if (const Status unusable = CheckTls(); !unusable.ok()) {
    // No reason not to start: nobody speaks TLS yet. CONFIG SET tls-port would be refused, though.
    Log(LogSeverity::kWarning, "TLS is off, and could not be turned on: " + unusable.text());
  }
  StartIoThreads();
  ASSIGN_OR_RETURN(const int inherited, ListenInherited());
  listeners_inherited_ = inherited > 0;
  if (listeners_inherited_) return Status::Ok();  // the unit says where, not `bind` and `port`
  if (config.port > 0) {
    RETURN_IF_ERROR(ListenBind(static_cast<int>(config.port), SocketSpeech::kPlain));
  }
  if (config.tls_port > 0) {
    RETURN_IF_ERROR(ListenBind(static_cast<int>(config.tls_port), SocketSpeech::kTls));
  }
  if (!config.unixsocket.empty()) RETURN_IF_ERROR(ListenUnix(config.unixsocket));
  return listeners_.empty() ? NoDoor() : Status::Ok();
}

Status Server::ListenAgain() {
  const Config& config = services_own_.config;
  if (listeners_inherited_) {
    return Status::Error(ErrorCode::kErr, "the service manager holds the sockets");
  }
  // Nobody could say otherwise any more.
  const bool unix_socket =
      std::any_of(listeners_.begin(), listeners_.end(),
                  [](const Listener* listener) { return listener->kind == SocketKind::kUnix; });
  if (config.port == 0 && config.tls_port == 0 && !unix_socket) return NoDoor();
  // uv_close closes the descriptor at once, so the same address can be bound again right away.
  std::erase_if(listeners_, [](Listener* listener) {
    if (listener->kind != SocketKind::kTcp) return false;
    listener->Close();
    return true;
  });
  if (config.port > 0) {
    RETURN_IF_ERROR(ListenBind(static_cast<int>(config.port), SocketSpeech::kPlain));
  }
  if (config.tls_port > 0) {
    RETURN_IF_ERROR(ListenBind(static_cast<int>(config.tls_port), SocketSpeech::kTls));
  }
  return listeners_.empty() ? NoDoor() : Status::Ok();
}

Status Server::ListenBind(int port, SocketSpeech speech) {
  std::string_view rest = services_own_.config.bind;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    std::string address(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (address.empty()) continue;
    // As in Redis: an address with `-` in front may be missing on this machine.
    const bool optional = address[0] == '-';
    if (optional) address.erase(0, 1);
    if (address == "*") address = "0.0.0.0";
    if (address == "::*") address = "::";
    Status status = ListenTcp(address, port, speech);
    if (!status.ok() && !optional) return status;
  }
  return Status::Ok();
}

Status Server::ListenTcp(const std::string& address, int port, SocketSpeech speech) {
  sockaddr_storage storage{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the socket API.
  auto* generic = reinterpret_cast<sockaddr*>(&storage);
  sockaddr_in in{};
  sockaddr_in6 in6{};
  unsigned flags = 0;
  if (uv_ip4_addr(address.c_str(), port, &in) == 0) {
    std::memcpy(&storage, &in, sizeof(in));
  } else if (uv_ip6_addr(address.c_str(), port, &in6) == 0) {
    std::memcpy(&storage, &in6, sizeof(in6));
    // Else `::` would take the port of `0.0.0.0` too, and the second of them could not be bound.
    flags = UV_TCP_IPV6ONLY;
  } else {
    return Status::Error(ErrorCode::kIo,
                         "cannot listen on " + Quote(address) + ": bind takes IP addresses and *");
  }
  auto listener = std::make_unique<Listener>(SocketKind::kTcp, speech);
  (void)uv_tcp_init(&loop_, &listener->handle.tcp);
  listener->handle.handle.data = listener.get();
  Listener* owned = listener.release();  // libuv's from here on
  listeners_.push_back(owned);
  int error = uv_tcp_bind(&owned->handle.tcp, generic, flags);
  if (error == 0) error = StartListening(owned);
  if (error == 0) return Status::Ok();
  listeners_.pop_back();
  owned->Close();
  return Failed(address + ":" + std::to_string(port), error);
}

Status Server::ListenUnix(const std::string& path) {
  const auto mode = static_cast<mode_t>(services_own_.config.unixsocketperm);
  auto made = std::make_unique<Listener>(SocketKind::kUnix, SocketSpeech::kPlain);
  ASSIGN_OR_RETURN(const int socket, made->name.Bind(path, mode));
  Listener* const listener = made.release();  // libuv's from here on
  (void)uv_pipe_init(&loop_, &listener->handle.pipe, 0);
  listener->handle.handle.data = listener;
  int error = uv_pipe_open(&listener->handle.pipe, socket);
  if (error == 0) error = StartListening(listener);
  listener->name.Keep();
  if (error == 0) {
    listeners_.push_back(listener);
    return Status::Ok();
  }
  listener->Close();
  return Failed(path, error);
}

int Server::StartListening(Listener* listener) {
  return uv_listen(&listener->handle.stream, static_cast<int>(services_own_.config.tcp_backlog),
                   [](uv_stream_t* stream, int status) noexcept {
                     auto* self = static_cast<Server*>(stream->loop->data);
                     const auto* owner = static_cast<const Listener*>(stream->data);
                     if (status == 0) self->Accept(stream, *owner);
                   });
}

// sd_listen_fds() by hand, without libsystemd. The sockets are meant for this process only if
// LISTEN_PID names it; else the variables were inherited from a parent.
Result<int> Server::ListenInherited() {
  constexpr int kFirstDescriptor{3};
  const char* pid = std::getenv("LISTEN_PID");
  const char* fds = std::getenv("LISTEN_FDS");
  int64_t number{0};
  if (pid == nullptr || fds == nullptr) return 0;
  if (ParseInt64(pid, &number) != NumberError::kNone || number != getpid()) return 0;
  if (ParseInt64(fds, &number) != NumberError::kNone || number < 0 || number > INT16_MAX) {
    return Failed("LISTEN_FDS", UV_EINVAL);
  }
  const int count{static_cast<int>(number)};
  for (int fd{kFirstDescriptor}; fd < kFirstDescriptor + count; ++fd) {
    sockaddr_storage address{};
    socklen_t size{sizeof(address)};
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the socket API.
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      return Failed("inherited socket " + std::to_string(fd), uv_translate_sys_error(errno));
    }
    const bool is_unix{address.ss_family == AF_UNIX};
    // A socket on the port of `tls-port` speaks TLS.
    const bool is_tls{services_own_.config.tls_port > 0 &&
                      PortOf(address) == services_own_.config.tls_port};
    auto* listener = new Listener(is_unix ? SocketKind::kUnix : SocketKind::kTcp,
                                  is_tls ? SocketSpeech::kTls : SocketSpeech::kPlain);  // libuv's
    int error{0};
    if (is_unix) {
      (void)uv_pipe_init(&loop_, &listener->handle.pipe, 0);
      listener->handle.handle.data = listener;
      error = uv_pipe_open(&listener->handle.pipe, fd);
    } else {
      (void)uv_tcp_init(&loop_, &listener->handle.tcp);
      listener->handle.handle.data = listener;
      error = uv_tcp_open(&listener->handle.tcp, fd);
    }
    if (error == 0) error = StartListening(listener);
    if (error != 0) {
      listener->Close();
      return Failed("inherited socket " + std::to_string(fd), error);
    }
    listeners_.push_back(listener);
  }
  return count;
}

void Server::CloseListeners() {
  for (Listener* listener : listeners_) listener->Close();
  listeners_.clear();
}

void Server::Accept(uv_stream_t* listener, const Listener& owner) {
  BeginTurn();
  if (!io_threads_.empty()) return AcceptForThread(listener, owner);
  auto connection = std::make_unique<Connection>(connection_services_);
  Connection* const client = connection.release();  // its socket's from Init on, until it is closed
  ClientSocket* const socket = client->OpenSocket(owner.kind);
  socket->Init(&loop_);
  Register(client);
  if (uv_accept(listener, socket->stream()) != 0) return client->Close();
  socket->NoteDescriptor();
  client->session.fd = socket->fd();
  Welcome(client, owner);
}

void Server::Welcome(Connection* client, const Listener& owner) {
  ++services_own_.stats.connections;
  NameAddresses(client, owner.kind);
  if (owner.speech == SocketSpeech::kTls) client->BeginTls(*tls_context_);
  if (!Refuse(client)) client->UpdateReading();
}

void Server::Register(Connection* client) {
  Session& session = client->session;
  session.id = next_id_++;
  session.created_micros = session.last_activity_micros = dispatcher_own_.now_micros();
  BecomeDefaultUser(*this, session);
  client->index = connections_.size();
  connections_.push_back(client);
  connections_by_id_.emplace(session.id, client);
}

void Server::NameAddresses(Connection* client, SocketKind kind) {
  Session& session = client->session;
  if (kind == SocketKind::kUnix) {
    session.unix_socket = true;
    session.address = session.local_address = services_own_.config.unixsocket + ":0";
    return;
  }
  const int on = 1;
  (void)setsockopt(session.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  SetKeepalive(session);
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the socket API.
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (getpeername(session.fd, generic, &size) == 0) session.address = AddressText(address);
  size = sizeof(address);
  if (getsockname(session.fd, generic, &size) == 0) session.local_address = AddressText(address);
}

// Clients of I/O threads that have closed their sides, which their threads have not told yet: their
// places are free, as they are at once where the server's thread reads. Asked only where all places
// are taken. Who is not read at the moment keeps its place: its end may be heard long after. It is
// O(connections), so looks that find none take a tenth of the time at most.
size_t Server::CountLeaving() {
  constexpr int64_t kPauseFactor{10};
  const int64_t begin = clock_.MonotonicMicros();
  if (io_threads_.empty() || begin < look_for_leaving_micros_) return 0;
  std::vector<pollfd> sockets;
  sockets.reserve(connections_.size());
  for (const Connection* connection : connections_) {
    if (connection->closing() || !connection->reading()) continue;
    sockets.push_back({.fd = connection->session.fd, .events = POLLRDHUP, .revents = 0});
  }
  const int leaving = ::poll(sockets.data(), sockets.size(), 0);
  const int64_t end = clock_.MonotonicMicros();
  if (leaving <= 0) look_for_leaving_micros_ = end + kPauseFactor * (end - begin);
  return static_cast<size_t>(std::max(leaving, 0));
}

void Server::LowerMaxClients(Config* config) {
  const int64_t fit = ClientsThatFit(*config, config->maxclients);
  if (fit >= config->maxclients) return services_own_.config_sources.NoteLoweredClients(0, 0);
  Log(LogSeverity::kWarning,
      fmt::format("the system allows {} open files: fewer than maxclients {} needs, so it is {} "
                  "(ulimit -n, or LimitNOFILE= of the unit, says how many)",
                  DescriptorLimit(), config->maxclients, fit));
  services_own_.config_sources.NoteLoweredClients(config->maxclients, fit);
  config->maxclients = fit;
}

Status Server::FitClients() {
  LowerMaxClients(&services_own_.config);
  if (services_own_.config.maxclients > 0) return Status::Ok();
  return Status::Error(ErrorCode::kIo,
                       fmt::format("the system allows {} open files, which leaves none for clients",
                                   DescriptorLimit()));
}

bool Server::BeyondPlaces(size_t clients) {
  const Config& config = services_own_.config;
  if (std::cmp_less_equal(clients, config.maxclients)) return false;
  // The places of those that leave are free as far as there are descriptors besides theirs.
  const auto leaving = static_cast<int64_t>(CountLeaving());
  return std::cmp_greater(clients, ClientsThatFit(config, config.maxclients + leaving));
}

bool Server::RefuseUnadopted(int fd) {
  if (!BeyondPlaces(connections_.size() + 1)) return false;
  ++services_own_.stats.connections;
  ++services_own_.stats.rejected_connections;
  (void)::send(fd, kTooMany.data(), kTooMany.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  (void)::close(fd);
  return true;
}

bool Server::Refuse(Connection* client) {
  const Config& config = services_own_.config;
  std::string_view reason;
  // The client at the door is in connections_ already (Register).
  if (BeyondPlaces(connections_.size())) reason = kTooMany;
  const bool open = services_own_.acl.default_user().no_password;
  if (config.protected_mode && open && !IsLoopback(client->session)) {
    reason = kProtected;
  }
  if (reason.empty()) return false;
  ++services_own_.stats.rejected_connections;
  // A TLS client could not read it.
  if (!client->handshaking()) {
    (void)::send(client->session.fd, reason.data(), reason.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  client->Close();
  return true;
}

void Server::SetKeepalive(const Session& session) const {
  if (session.unix_socket) return;
  const auto seconds = static_cast<int>(services_own_.config.tcp_keepalive);
  const int on = seconds > 0 ? 1 : 0;
  (void)setsockopt(session.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  if (seconds > 0)
    (void)setsockopt(session.fd, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
}

}  // namespace cellar
