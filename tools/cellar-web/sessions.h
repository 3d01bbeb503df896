// Sessions: who has logged in, each with connections to the server of their own, as the user that
// they are there: so everybody sees what the server's ACL lets them see.
//
// A session asks several questions at once, each on its own connection, so that a long one keeps
// no other waiting; what somebody has typed goes on one that is closed afterwards, since it may
// have changed what the connection is.
//
// A session is found by a name that nobody can guess (128 bits from the kernel). It ends when it
// has not been used for half an hour, or when another one needs its place. User and password stay
// in memory while it lasts, since the server may be started anew.
//
// Any thread may call.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar-web/json_reply.h"
#include "cellar-web/question.h"
#include "cellar/status.h"
#include "client/connection.h"

namespace cellar::web {

class Sessions {
 public:
  explicit Sessions(client::ConnectionOptions server) : server_(std::move(server)) {}

  // The name of a new session. kIo: no server; others: its no. TRYAGAIN: from this address
  // (Doors::NameOf) there have been too many wrong passwords in the last minute.
  Result<std::string> Begin(const std::string& address, const std::string& user,
                            const std::string& password);
  void End(const std::string& name);
  bool IsThere(const std::string& name);

  // Appends the answer as JSON. An error of the server's is one; kIo: it cannot be reached.
  // NOAUTH: there is no such session. TOOLARGE: the answer has more than a page may have.
  Status Ask(const std::string& name, const Question& question, std::string* json);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kSessionsMax{64};
  static constexpr std::chrono::minutes kIdleMax{30};
  static constexpr size_t kFailuresMax{10};  // in a minute, of an address
  static constexpr size_t kAddressesMax{4096};

  static constexpr size_t kLinksMax{4};  // of a session

  struct Link {
    client::Connection connection;
    std::string keyspace;  // that it has selected
  };
  struct Session {
    client::ConnectionOptions options;
    std::mutex mutex;  // guards what follows
    std::condition_variable is_free;
    std::vector<Link> idle;
    size_t busy{0};
    Clock::time_point used;  // guarded by Sessions::mutex_
  };

  struct Failures {
    Clock::time_point since;
    size_t count{0};
  };

  // Counts an attempt before its outcome is known, or many at once would all be the first.
  bool MayTry(const std::string& address);
  void TakeBack(const std::string& address);
  // A connection of the session's, alive as far as can be seen. kIo: there is no server.
  static Result<Link> Take(Session* session, bool fresh);
  static JsonReply SendOn(Link* link, const Question& question, std::string* json);
  std::shared_ptr<Session> Find(const std::string& name);
  void DropOld();

  const client::ConnectionOptions server_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Session>> sessions_;
  std::map<std::string, Failures> failures_;  // of each address
};

}  // namespace cellar::web
