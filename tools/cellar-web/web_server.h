// WebServer: HTTP, by libmicrohttpd: the page's files, logging in and out, questions.
//
//   GET  /, /style.css, /main.js .. the page
//   GET  /api/<question>?...        {"answer": ...} or {"error": "..."}     question.h
//   POST /api/<question>            the same, its parameters as JSON
//   POST /api/login                 {"user": "", "password": ""}; {"answer": name of the session}
//   POST /api/logout
//   GET  /api/session              {"answer": true} if somebody is logged in
//   GET  /metrics                  figures for Prometheus, to who has the token: metrics.h
//
// What keeps other pages that the same browser shows from using it, and other servers:
//
//   - the session's name goes in the header X-Cellar-Session, and the page keeps it where only its
//     own origin can read it. A cookie would go to every port of the host, whoever listens there
//   - /api needs the header X-Cellar, which a form cannot send, and a script of another origin only
//     if it were allowed to, which nothing here does
//   - Host must be an address or a name by which this server is meant to be asked, so that a name
//     of an attacker's that is made to point here is of no use
//   - no script but those files run on the page (Content-Security-Policy), and no page may frame it
//   - a request that says its length, its host or its session twice is refused: who stands in front
//     may have read the other one
//
// All of it also stands below --prefix, since a proxy may leave that on what it passes on.
//
// What keeps one visitor from the others' way: doors.h, and sessions.h for passwords.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "cellar-web/console.h"
#include "cellar-web/doors.h"
#include "cellar-web/metrics.h"
#include "cellar-web/options.h"
#include "cellar-web/parameters.h"
#include "cellar-web/past.h"
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
    std::string body{};
    std::string location{};
  };

  explicit WebServer(const Options& options);
  static int Handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                    const char* version, const char* data, size_t* size, void** context);
  static void OnConnection(void* self, MHD_Connection* connection, bool begins);
  static int Send(MHD_Connection* connection, const Answer& answer, bool closes);
  Answer Respond(const Request& request);
  Answer Api(const Request& request, std::string_view path);
  Answer AskByAddress(const Request& request, std::string_view path);
  Answer AskByBody(const Request& request, std::string_view path);
  Answer Ask(const Request& request, std::string_view path, const Parameters& parameters);
  Answer LogIn(const Request& request);
  Answer TellMetrics(const Request& request);
  bool IsAskedByItsName(const Request& request) const;

  Sessions sessions_;
  Console console_;
  Past past_;
  Doors doors_;
  const std::string prefix_;          // begins with a slash and does not end with one, or is empty
  std::unique_ptr<Metrics> metrics_;  // null: none are served
  std::set<std::string> names_;       // that may stand in Host, without a port, in lower case
  uint16_t port_{0};
  MHD_Daemon* daemon_{nullptr};
  std::mutex mutex_;
  std::condition_variable wakes_sweeper_;
  bool ends_{false};
  std::thread sweeper_;  // of doors_
};

}  // namespace cellar::web
