// See web_server.h.
#include "cellar-web/web_server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text/ascii.h"
#include "cellar-web/page.h"
#include "cellar-web/question.h"
#include "client/json_text.h"

namespace cellar::web {
namespace {

// More than doors.h lets in: those that it has closed are still to leave.
constexpr unsigned kConnectionsMax{4 * Doors::kMax};
constexpr size_t kStackBytes{512 << 10};
constexpr unsigned kIdleSeconds{30};
constexpr std::chrono::milliseconds kSweepPause{500};
constexpr size_t kBodyBytesMax{4096};
constexpr size_t kQuestionBytesMax{512 << 10};  // of who has logged in: keys have up to 64 KiB
constexpr int kOwnReplySeconds{10};
constexpr char kSessionHeader[]{"X-Cellar-Session"};

constexpr struct {
  const char* name;
  const char* value;
} kHeaders[]{
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
    {"Cache-Control", "no-store"},
};

std::string ErrorBody(std::string_view text) {
  std::string body{R"({"error":)"};
  client::AppendJsonText(text, &body);
  body += "}";
  return body;
}

std::string ToLower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  return text;
}

// The status of what the server of Cellar has said, or has not.
unsigned HttpStatusOf(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kIo:
      return MHD_HTTP_BAD_GATEWAY;
    case ErrorCode::kNoAuth:
      return MHD_HTTP_UNAUTHORIZED;
    case ErrorCode::kTooLarge:
      return MHD_HTTP_CONTENT_TOO_LARGE;
    case ErrorCode::kTryAgain:
      return MHD_HTTP_TOO_MANY_REQUESTS;
    default:
      return status.text().starts_with("NOPERM") ? MHD_HTTP_FORBIDDEN : MHD_HTTP_BAD_REQUEST;
  }
}

}  // namespace

struct WebServer::Request {
  MHD_Connection* connection{nullptr};
  std::string method;
  std::string path;
  std::string body;
  bool too_large{false};
  size_t body_bytes_max{kBodyBytesMax};

  std::string_view Header(const char* name) const {
    const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value == nullptr ? std::string_view() : std::string_view(value);
  }
  std::string Session() const { return std::string(Header(kSessionHeader)); }
  const sockaddr* Address() const {
    const auto* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info == nullptr ? nullptr : info->client_addr;
  }
};

namespace {

int DescriptorOf(MHD_Connection* connection) {
  const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == nullptr ? -1 : info->connect_fd;
}

// Whether a header that tells requests apart is there twice, or the length in two ways.
bool IsAmbiguous(MHD_Connection* connection) {
  struct Seen {
    size_t lengths{0};
    size_t hosts{0};
    size_t sessions{0};
    size_t codings{0};
  } seen;
  const auto count = [](void* seen_so_far, MHD_ValueKind, const char* name,
                        const char*) -> MHD_Result {
    auto& counts = *static_cast<Seen*>(seen_so_far);
    if (EqualsIgnoreCase(name, "CONTENT-LENGTH")) ++counts.lengths;
    if (EqualsIgnoreCase(name, "HOST")) ++counts.hosts;
    if (EqualsIgnoreCase(name, "X-CELLAR-SESSION")) ++counts.sessions;
    if (EqualsIgnoreCase(name, "TRANSFER-ENCODING")) ++counts.codings;
    return MHD_YES;
  };
  (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, +count, &seen);
  return seen.lengths + seen.codings > 1 || seen.hosts > 1 || seen.sessions > 1;
}

// How this program itself asks the server something.
client::ConnectionOptions AsUser(client::ConnectionOptions server, const std::string& user,
                                 const std::string& password) {
  server.user = user;
  server.password = password;
  server.reply_seconds = kOwnReplySeconds;
  return server;
}

}  // namespace

WebServer::WebServer(const Options& options)
    : sessions_(options.connection),
      console_(AsUser(options.connection, options.console_user, options.console_password)),
      past_(AsUser(options.connection, options.graph_user, options.graph_password)),
      prefix_(options.prefix) {
  names_ = {"localhost", "127.0.0.1", "[::1]", options.bind, "[" + options.bind + "]"};
  names_.insert(options.names.begin(), options.names.end());
  std::set<std::string> lowered;
  for (const std::string& name : names_) lowered.insert(ToLower(name));
  names_ = std::move(lowered);
  if (options.metrics_token.empty()) return;
  metrics_ = std::make_unique<Metrics>(
      AsUser(options.connection, options.metrics_user, options.metrics_password),
      options.metrics_token);
}

WebServer::~WebServer() {
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  if (!sweeper_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wakes_sweeper_.notify_one();
  sweeper_.join();
}

void WebServer::OnConnection(void* self, MHD_Connection* connection, bool begins) {
  Doors& doors = static_cast<WebServer*>(self)->doors_;
  const int descriptor = DescriptorOf(connection);
  if (!begins) return doors.Leave(descriptor);
  const auto* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  doors.Enter(descriptor, Doors::NameOf(info == nullptr ? nullptr : info->client_addr),
              Doors::Clock::now());
}

Result<std::unique_ptr<WebServer>> WebServer::Start(const Options& options) {
  std::unique_ptr<WebServer> server(new WebServer(options));
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  const bool is_v6 = options.bind.find(':') != std::string::npos;
  v4.sin_family = AF_INET;
  v4.sin_port = htons(options.port);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(options.port);
  const int parsed = is_v6 ? inet_pton(AF_INET6, options.bind.c_str(), &v6.sin6_addr)
                           : inet_pton(AF_INET, options.bind.c_str(), &v4.sin_addr);
  if (parsed != 1) return Status::Error(ErrorCode::kIo, options.bind + " is no address");
  const auto* const address =
      is_v6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  // A thread each: who waits for the server keeps no other waiting.
  const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
                         MHD_USE_POLL | static_cast<unsigned>(is_v6 ? MHD_USE_IPv6 : MHD_NO_FLAG);
  // Its type for what is called is an enumeration of ints.
  const auto handle = [](void* self, MHD_Connection* connection, const char* url,
                         const char* method, const char* version, const char* data, size_t* size,
                         void** context) -> MHD_Result {
    return static_cast<MHD_Result>(
        Handle(self, connection, url, method, version, data, size, context));
  };
  const auto completed = [](void* self, MHD_Connection* connection, void** context,
                            MHD_RequestTerminationCode) {
    delete static_cast<Request*>(*context);  // libmicrohttpd's pointer between two calls
    *context = nullptr;
    static_cast<WebServer*>(self)->doors_.SetWaiting(DescriptorOf(connection), Doors::Clock::now());
  };
  const auto came = [](void* self, MHD_Connection* connection, void**,
                       MHD_ConnectionNotificationCode code) {
    OnConnection(self, connection, code == MHD_CONNECTION_NOTIFY_STARTED);
  };
  server->daemon_ = MHD_start_daemon(
      flags, options.port, nullptr, nullptr, +handle, server.get(), MHD_OPTION_SOCK_ADDR, address,
      MHD_OPTION_THREAD_STACK_SIZE, kStackBytes, MHD_OPTION_CONNECTION_LIMIT, kConnectionsMax,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_NOTIFY_COMPLETED, +completed,
      server.get(), MHD_OPTION_NOTIFY_CONNECTION, +came, server.get(), MHD_OPTION_END);
  if (server->daemon_ == nullptr) {
    return Status::Error(ErrorCode::kIo, options.bind + ":" + std::to_string(options.port) +
                                             " cannot be listened on: " + std::strerror(errno));
  }
  const MHD_DaemonInfo* const info =
      MHD_get_daemon_info(server->daemon_, MHD_DAEMON_INFO_BIND_PORT);
  server->port_ = info == nullptr ? options.port : info->port;
  server->sweeper_ = std::thread([self = server.get()] {
    std::unique_lock lock(self->mutex_);
    while (!self->wakes_sweeper_.wait_for(lock, kSweepPause, [self] { return self->ends_; })) {
      self->doors_.Sweep(Doors::Clock::now());
    }
  });
  return server;
}

// Called when the head of a request is there, then for its body, then once more.
// NOLINTNEXTLINE(readability-function-size): the parameters are libmicrohttpd's.
int WebServer::Handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                      const char*, const char* data, size_t* size, void** context) {
  auto* request = static_cast<Request*>(*context);
  if (request == nullptr) {
    auto begun = std::make_unique<Request>();
    begun->connection = connection;
    begun->method = method;
    begun->path = url;
    auto* const server = static_cast<WebServer*>(self);
    if (!begun->path.ends_with("/login") && server->sessions_.IsThere(begun->Session()))
      begun->body_bytes_max = kQuestionBytesMax;
    *context = begun.release();
    if (!IsAmbiguous(connection)) return MHD_YES;
    // Its end cannot be told, so nothing that follows is read.
    return Send(connection,
                {.status = MHD_HTTP_BAD_REQUEST,
                 .body = ErrorBody("the request says its length, host or session twice")},
                true);
  }
  if (*size > 0) {
    request->too_large =
        request->too_large || request->body.size() + *size > request->body_bytes_max;
    if (!request->too_large) request->body.append(data, *size);
    *size = 0;
    return MHD_YES;
  }
  auto* const server = static_cast<WebServer*>(self);
  server->doors_.SetBusy(DescriptorOf(connection));
  return Send(connection, server->Respond(*request), false);
}

int WebServer::Send(MHD_Connection* connection, const Answer& answer, bool closes) {
  MHD_Response* const response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  for (const auto& header : kHeaders)
    (void)MHD_add_response_header(response, header.name, header.value);
  (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type.c_str());
  if (!answer.location.empty())
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, answer.location.c_str());
  if (closes) (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
  const MHD_Result queued = MHD_queue_response(connection, answer.status, response);
  MHD_destroy_response(response);
  return queued;
}

bool WebServer::IsAskedByItsName(const Request& request) const {
  std::string host(request.Header(MHD_HTTP_HEADER_HOST));
  const size_t bracket = host.find(']');
  const size_t colon = host.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos) host.resize(colon);
  return names_.contains(ToLower(host));
}

WebServer::Answer WebServer::Respond(const Request& request) {
  std::string_view path = request.path;
  // A proxy may take the prefix off, or leave it.
  if (!prefix_.empty() && path.starts_with(prefix_)) path.remove_prefix(prefix_.size());
  // Whoever has the token is no page of another origin: any name will do.
  if (path == "/metrics" && metrics_ != nullptr) return TellMetrics(request);
  if (!IsAskedByItsName(request)) {
    return {.status = MHD_HTTP_FORBIDDEN,
            .body = ErrorBody("this is not a name of this page; --name NAME makes it one")};
  }
  if (request.too_large)
    return {.status = MHD_HTTP_CONTENT_TOO_LARGE, .body = ErrorBody("the request is too large")};
  if (path.starts_with("/api/")) return Api(request, path.substr(5));
  const bool reads = request.method == "GET" || request.method == "HEAD";
  // The page names its files from where it is.
  if (path.empty() && reads)
    return {.status = MHD_HTTP_MOVED_PERMANENTLY, .location = prefix_ + "/"};
  for (const PageFile& file : PageFiles()) {
    if (file.path != path || !reads) continue;
    return {.type = std::string(file.type), .body = std::string(file.content)};
  }
  return {.status = MHD_HTTP_NOT_FOUND, .body = ErrorBody("there is nothing here")};
}

WebServer::Answer WebServer::Api(const Request& request, std::string_view path) {
  if (request.Header("X-Cellar").empty())
    return {.status = MHD_HTTP_FORBIDDEN, .body = ErrorBody("the header X-Cellar is missing")};
  if (path == "login" || path == "logout") {
    if (request.method != "POST")
      return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = ErrorBody("POST it")};
    if (path == "login") return LogIn(request);
    sessions_.End(request.Session());
    return {.body = R"({"answer":true})"};
  }
  if (request.method != "GET" && request.method != "POST")
    return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = ErrorBody("GET or POST it")};
  if (path == "session") {
    const bool there = sessions_.IsThere(request.Session());
    return {.body = there ? R"({"answer":true})" : R"({"answer":false})"};
  }
  return request.method == "POST" ? AskByBody(request, path) : AskByAddress(request, path);
}

WebServer::Answer WebServer::AskByAddress(const Request& request, std::string_view path) {
  return Ask(request, path, [&](std::string_view name) -> std::optional<std::string> {
    const char* value = nullptr;
    size_t size = 0;
    if (MHD_lookup_connection_value_n(request.connection, MHD_GET_ARGUMENT_KIND, name.data(),
                                      name.size(), &value, &size) != MHD_YES)
      return std::nullopt;
    return value == nullptr ? std::string() : std::string(value, size);
  });
}

// Keys and cursors may be longer than an address may be.
WebServer::Answer WebServer::AskByBody(const Request& request, std::string_view path) {
  const auto json = nlohmann::json::parse(request.body, nullptr, false);
  if (!json.is_object())
    return {.status = MHD_HTTP_BAD_REQUEST,
            .body = ErrorBody("parameters are expected, as an object of JSON")};
  return Ask(request, path, [&json](std::string_view name) -> std::optional<std::string> {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_string()) return std::nullopt;
    return found->get<std::string>();
  });
}

WebServer::Answer WebServer::Ask(const Request& request, std::string_view path,
                                 const Parameters& parameters) {
  const Result<Question> question = QuestionOf(path, parameters);
  if (!question.ok())
    return {.status = MHD_HTTP_BAD_REQUEST, .body = ErrorBody(question.status().text())};
  if (question->is_typed) {
    if (!sessions_.IsThere(request.Session()))
      return {.status = MHD_HTTP_UNAUTHORIZED, .body = ErrorBody("log in first")};
    const Status may = console_.Check(question->words);
    if (!may.ok()) return {.status = HttpStatusOf(may), .body = ErrorBody(may.text())};
  }
  std::string body{R"({"answer":)"};
  const Status asked = sessions_.Ask(request.Session(), *question, &body);
  if (!asked.ok()) return {.status = HttpStatusOf(asked), .body = ErrorBody(asked.text())};
  if (question->past_hours > 0) {
    body = R"({"answer":)";
    past_.Tell(question->past_hours, &body);
  }
  body += "}";
  return {.body = std::move(body)};
}

WebServer::Answer WebServer::TellMetrics(const Request& request) {
  if (request.method != "GET")
    return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = ErrorBody("GET it")};
  if (!metrics_->Allows(request.Header(MHD_HTTP_HEADER_AUTHORIZATION)))
    return {.status = MHD_HTTP_UNAUTHORIZED, .body = ErrorBody("the token is missing or wrong")};
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_->Scrape()};
}

WebServer::Answer WebServer::LogIn(const Request& request) {
  const auto json = nlohmann::json::parse(request.body, nullptr, false);
  const auto text = [&json](const char* name) {
    return json.is_object() && json.contains(name) && json[name].is_string()
               ? std::optional(json[name].get<std::string>())
               : std::nullopt;
  };
  const auto user = text("user");
  const auto password = text("password");
  if (!user || !password)
    return {.status = MHD_HTTP_BAD_REQUEST,
            .body = ErrorBody("user and password are expected, as JSON")};
  const Result<std::string> name =
      sessions_.Begin(Doors::NameOf(request.Address()), *user, *password);
  if (!name.ok()) {
    const unsigned status = HttpStatusOf(name.status());
    return {.status = status == MHD_HTTP_BAD_REQUEST ? MHD_HTTP_UNAUTHORIZED : status,
            .body = ErrorBody(name.status().text())};
  }
  return {.body = R"({"answer":")" + *name + R"("})"};
}

}  // namespace cellar::web
