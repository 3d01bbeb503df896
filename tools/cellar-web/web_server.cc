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

#include "cellar-web/page.h"
#include "cellar-web/question.h"
#include "client/json_text.h"

namespace cellar::web {
namespace {

constexpr unsigned kThreads{4};
constexpr unsigned kConnectionsMax{64};
constexpr unsigned kIdleSeconds{60};
constexpr size_t kBodyBytesMax{4096};
constexpr char kCookie[]{"cellar"};

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

// The status of what the server of Cellar has said, or has not.
unsigned HttpStatusOf(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kIo:
      return MHD_HTTP_BAD_GATEWAY;
    case ErrorCode::kNoAuth:
      return MHD_HTTP_UNAUTHORIZED;
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

  std::string_view Header(const char* name) const {
    const char* const value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value == nullptr ? std::string_view() : std::string_view(value);
  }
  std::string Session() const {
    const char* const value = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, kCookie);
    return value == nullptr ? std::string() : std::string(value);
  }
};

WebServer::WebServer(const Options& options) : sessions_(options.connection) {
  names_ = {"localhost", "127.0.0.1", "[::1]", options.bind, "[" + options.bind + "]"};
  names_.insert(options.names.begin(), options.names.end());
}

WebServer::~WebServer() {
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
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
  const unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO |
                         static_cast<unsigned>(is_v6 ? MHD_USE_IPv6 : MHD_NO_FLAG);
  // Its type for what is called is an enumeration of ints.
  const auto handle = [](void* self, MHD_Connection* connection, const char* url,
                         const char* method, const char* version, const char* data, size_t* size,
                         void** context) -> MHD_Result {
    return static_cast<MHD_Result>(
        Handle(self, connection, url, method, version, data, size, context));
  };
  const auto completed = [](void*, MHD_Connection*, void** context, MHD_RequestTerminationCode) {
    delete static_cast<Request*>(*context);  // libmicrohttpd's pointer between two calls
    *context = nullptr;
  };
  server->daemon_ = MHD_start_daemon(
      flags, options.port, nullptr, nullptr, +handle, server.get(), MHD_OPTION_SOCK_ADDR, address,
      MHD_OPTION_THREAD_POOL_SIZE, kThreads, MHD_OPTION_CONNECTION_LIMIT, kConnectionsMax,
      MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_NOTIFY_COMPLETED, +completed, nullptr,
      MHD_OPTION_END);
  if (server->daemon_ == nullptr) {
    return Status::Error(ErrorCode::kIo, options.bind + ":" + std::to_string(options.port) +
                                             " cannot be listened on: " + std::strerror(errno));
  }
  const MHD_DaemonInfo* const info =
      MHD_get_daemon_info(server->daemon_, MHD_DAEMON_INFO_BIND_PORT);
  server->port_ = info == nullptr ? options.port : info->port;
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
    *context = begun.release();
    return MHD_YES;
  }
  if (*size > 0) {
    request->too_large = request->too_large || request->body.size() + *size > kBodyBytesMax;
    if (!request->too_large) request->body.append(data, *size);
    *size = 0;
    return MHD_YES;
  }
  const Answer answer = static_cast<WebServer*>(self)->Respond(*request);
  MHD_Response* const response = MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  for (const auto& header : kHeaders)
    (void)MHD_add_response_header(response, header.name, header.value);
  (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type.c_str());
  if (!answer.cookie.empty())
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_SET_COOKIE, answer.cookie.c_str());
  const MHD_Result queued = MHD_queue_response(connection, answer.status, response);
  MHD_destroy_response(response);
  return queued;
}

bool WebServer::IsAskedByItsName(const Request& request) const {
  std::string host(request.Header(MHD_HTTP_HEADER_HOST));
  const size_t bracket = host.find(']');
  const size_t colon = host.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos) host.resize(colon);
  return names_.contains(host);
}

WebServer::Answer WebServer::Respond(const Request& request) {
  if (!IsAskedByItsName(request)) {
    return {.status = MHD_HTTP_FORBIDDEN,
            .body = ErrorBody("this is not a name of this page; --name NAME makes it one"),
            .cookie = {}};
  }
  if (request.too_large)
    return {.status = MHD_HTTP_CONTENT_TOO_LARGE,
            .body = ErrorBody("the request is too large"),
            .cookie = {}};
  const std::string_view path = request.path;
  if (path.starts_with("/api/")) return Api(request, path.substr(5));
  for (const PageFile& file : PageFiles()) {
    if (file.path != path) continue;
    if (request.method != "GET" && request.method != "HEAD") break;
    return {.type = std::string(file.type), .body = std::string(file.content), .cookie = {}};
  }
  return {.status = MHD_HTTP_NOT_FOUND, .body = ErrorBody("there is nothing here"), .cookie = {}};
}

WebServer::Answer WebServer::Api(const Request& request, std::string_view path) {
  if (request.Header("X-Cellar").empty())
    return {.status = MHD_HTTP_FORBIDDEN,
            .body = ErrorBody("the header X-Cellar is missing"),
            .cookie = {}};
  if (path == "login" || path == "logout") {
    if (request.method != "POST")
      return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = ErrorBody("POST it"), .cookie = {}};
    if (path == "login") return LogIn(request);
    sessions_.End(request.Session());
    return {.body = R"({"answer":true})",
            .cookie = std::string(kCookie) + "=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"};
  }
  if (request.method != "GET")
    return {.status = MHD_HTTP_METHOD_NOT_ALLOWED, .body = ErrorBody("GET it"), .cookie = {}};
  if (path == "session") {
    const bool there = sessions_.IsThere(request.Session());
    return {.body = there ? R"({"answer":true})" : R"({"answer":false})", .cookie = {}};
  }
  const Parameters parameters = [&](std::string_view name) -> std::optional<std::string> {
    const char* value = nullptr;
    size_t size = 0;
    if (MHD_lookup_connection_value_n(request.connection, MHD_GET_ARGUMENT_KIND, name.data(),
                                      name.size(), &value, &size) != MHD_YES)
      return std::nullopt;
    return value == nullptr ? std::string() : std::string(value, size);
  };
  const Result<Question> question = QuestionOf(path, parameters);
  if (!question.ok())
    return {
        .status = MHD_HTTP_BAD_REQUEST, .body = ErrorBody(question.status().text()), .cookie = {}};
  std::string body{R"({"answer":)"};
  const Status asked = sessions_.Ask(request.Session(), *question, &body);
  if (!asked.ok())
    return {.status = HttpStatusOf(asked), .body = ErrorBody(asked.text()), .cookie = {}};
  body += "}";
  return {.body = std::move(body), .cookie = {}};
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
            .body = ErrorBody("user and password are expected, as JSON"),
            .cookie = {}};
  const Result<std::string> name = sessions_.Begin(*user, *password);
  if (!name.ok()) {
    const unsigned status = HttpStatusOf(name.status());
    return {.status = status == MHD_HTTP_BAD_REQUEST ? MHD_HTTP_UNAUTHORIZED : status,
            .body = ErrorBody(name.status().text()),
            .cookie = {}};
  }
  return {.body = R"({"answer":true})",
          .cookie = std::string(kCookie) + "=" + *name + "; Path=/; HttpOnly; SameSite=Strict"};
}

}  // namespace cellar::web
