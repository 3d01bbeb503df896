// A connection to the server, over hiredis: authentication, keyspace, calls and pipelined bytes.
#pragma once

#include <hiredis/hiredis.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "cellar/status.h"

namespace cellar::client {

struct ConnectionOptions {
  std::string host{"127.0.0.1"};
  int port{6479};
  std::string socket;  // a unix socket's path; takes the place of host and port
  std::string user;
  std::string password;
  std::string keyspace;  // empty: as the server has it
  int connect_seconds{10};
  int reply_seconds{0};  // a reply that takes longer is a lost connection; 0: it may take any time
};

struct ReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyDeleter>;

// What a server may answer at most, whoever it is: a client's memory is not the server's to fill. A
// value has 16 MiB at most here, and 512 MiB in a Redis.
inline constexpr size_t kReplyBytesMax{size_t{1} << 30};
inline constexpr size_t kReplyElementsMax{4 << 20};  // of all its arrays together

// The text of an error reply; empty if it is none.
std::string_view ErrorText(const redisReply& reply);

class Connection {
 public:
  // Connects, authenticates, selects the keyspace. kIo: nobody there; any other code: the server's
  // no.
  static Result<Connection> Open(const ConnectionOptions& options);

  // Sends one command and waits for its reply, which may be an error reply. REQUIRES: no reply is
  // outstanding.
  Result<Reply> Call(std::initializer_list<std::string_view> words);

  // Queues the bytes of commands. They leave with the next Read() or Flush().
  Status Append(std::string_view bytes);
  // Sends what is queued.
  Status Flush();
  // Sends bytes of commands without a queue between. REQUIRES: nothing is queued. kIo if the
  // connection is lost; it is then of no more use.
  Status Send(std::string_view bytes);
  // To read replies from in another way (reply_stream.h).
  int descriptor() const { return context_->fd; }
  // The next outstanding reply. kIo if the connection is lost, or the reply larger than may be; it
  // is then of no more use.
  Result<Reply> Read();

 private:
  struct ContextDeleter {
    void operator()(redisContext* context) const { redisFree(context); }
  };
  explicit Connection(redisContext* context);

  // Elements that the arrays of the reply that is being read may still have. hiredis makes room for
  // what an array's head claims.
  std::unique_ptr<size_t> elements_left_;
  std::unique_ptr<redisContext, ContextDeleter> context_;
};

}  // namespace cellar::client
