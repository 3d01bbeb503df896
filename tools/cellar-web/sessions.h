// Sessions: who has logged in, each with a connection to the server of their own, as the user that
// they are there: so everybody sees what the server's ACL lets them see.
//
// A session is found by a name that nobody can guess (128 bits from the kernel). It ends when it
// has not been used for half an hour, or when another one needs its place. User and password stay
// in memory while it lasts, since the server may be started anew.
//
// Any thread may call.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "cellar-web/question.h"
#include "cellar/status.h"
#include "client/connection.h"

namespace cellar::web {

class Sessions {
 public:
  explicit Sessions(client::ConnectionOptions server) : server_(std::move(server)) {}

  // The name of a new session. kIo: no server; others: its no. TRYAGAIN: there have been too many
  // wrong passwords in the last minute.
  Result<std::string> Begin(const std::string& user, const std::string& password);
  void End(const std::string& name);
  bool IsThere(const std::string& name);

  // Appends the answer as JSON. An error of the server's is one; kIo: it cannot be reached.
  // NOAUTH: there is no such session.
  Status Ask(const std::string& name, const Question& question, std::string* json);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kSessionsMax{64};
  static constexpr std::chrono::minutes kIdleMax{30};
  static constexpr size_t kFailuresMax{10};  // in a minute

  struct Session {
    std::mutex mutex;  // one command at a time
    client::ConnectionOptions options;
    std::optional<client::Connection> connection;
    std::string keyspace;    // that it has selected
    Clock::time_point used;  // guarded by Sessions::mutex_
  };

  // kIo: the connection is lost.
  static Result<client::Reply> Send(Session* session, const Question& question);
  std::shared_ptr<Session> Find(const std::string& name);
  void DropOld();

  const client::ConnectionOptions server_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Session>> sessions_;
  Clock::time_point failures_since_{};
  size_t failures_{0};
};

}  // namespace cellar::web
