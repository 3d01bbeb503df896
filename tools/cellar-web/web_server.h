// WebServer: HTTP, by libmicrohttpd: the page's files, logging in and out, questions.
//
//   GET  /, /style.css, /app.js ... the page
//   GET  /api/<question>?...        {"answer": ...} or {"error": "..."}     question.h
//   POST /api/login                 {"user": "", "password": ""}; sets the cookie of a session
//   POST /api/logout
//   GET  /api/session              {"answer": true} if somebody is logged in
//
// What keeps other pages that the same browser shows from using it:
//
//   - the cookie is HttpOnly and SameSite=Strict
//   - /api needs the header X-Cellar, which a form cannot send, and a script of another origin only
//     if it were allowed to, which nothing here does
//   - Host must be an address or a name by which this server is meant to be asked, so that a name
//     of an attacker's that is made to point here is of no use
//   - no script but /app.js runs on the page (Content-Security-Policy), and no page may frame it
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cellar-web/options.h"
#include "cellar-web/sessions.h"
#include "cellar/status.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace cellar::web {

class WebServer {
 public:
  // Serves until it is destroyed. kIo: the address cannot be had.
  static Result<std::unique_ptr<WebServer>> Start(const Options& options);
  ~WebServer();

  uint16_t port() const { return port_; }

 private:
  struct Request;
  struct Answer {
    unsigned status{200};
    std::string type{"application/json"};
    std::string body;
    std::string cookie;  // of Set-Cookie; empty: none
  };

  explicit WebServer(const Options& options);
  static int Handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                    const char* version, const char* data, size_t* size, void** context);
  Answer Respond(const Request& request);
  Answer Api(const Request& request, std::string_view path);
  Answer LogIn(const Request& request);
  bool IsAskedByItsName(const Request& request) const;

  Sessions sessions_;
  std::set<std::string> names_;  // that may stand in Host, without a port
  uint16_t port_{0};
  MHD_Daemon* daemon_{nullptr};
};

}  // namespace cellar::web
