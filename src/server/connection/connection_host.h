// ConnectionHost: what a Connection asks of the server that it belongs to, and ConnectionServices:
// what all connections of a server work with. A connection knows nothing else of its server.
//
//   Server  --owns-->  Connection  --asks-->  ConnectionHost (the Server)
//
// Threads: the loop's alone.
#pragma once

#include <span>

#include "cellar/lsn.h"
#include "commands/config/config.h"
#include "commands/dispatch/dispatch.h"
#include "commands/session/host.h"
#include "commands/session/server_stats.h"
#include "server/connection/command_batch.h"
#include "server/connection/command_reader.h"
#include "server/connection/large_intake.h"
#include "server/net/buffer_pool.h"

namespace cellar {

class Connection;

class ConnectionHost {
 public:
  ConnectionHost() = default;
  ConnectionHost(const ConnectionHost&) = delete;
  ConnectionHost& operator=(const ConnectionHost&) = delete;
  virtual ~ConnectionHost() = default;

  // Reads from its own socket until that is stopped; what comes goes to Receive.
  virtual void StartReading(Connection* connection) = 0;
  // Its session has a task, which is given time from now on. REQUIRES: it is not in the list.
  virtual void AddTask(Connection* connection) = 0;
  // Part of its output waits for a log record: Flush is due when one is released. REQUIRES: as
  // AddTask.
  virtual void AddGated(Connection* connection) = 0;
  // Counts what it holds now. True if that is more than at rest. O(its buffers).
  virtual bool Recount(Connection* connection) = 0;
  // Whether it does not read and has too much waiting (client-output-buffer-limit); then that has
  // been counted and logged.
  virtual bool OutputExceeded(Connection& connection) = 0;
  // It is being closed: nothing may point to it any more.
  virtual void Forget(Connection* connection) = 0;
};

// Borrowed; all of it outlives the connections.
struct ConnectionServices {
  ConnectionHost& host;
  Host& commands_host;  // what commands know of the server; outputs are scheduled there
  Dispatcher& dispatcher;
  const Config& config;
  ServerStats& stats;
  BufferPool& buffers;  // memory of outputs
  const CommandReader::Context& reader;
  // Room for the commands of one connection; what TurnInput reads ahead has its own.
  std::span<ParsedCommand> commands_ahead;
  // Where TLS connections decrypt to; one for all, as nothing of it is kept. Empty without TLS.
  std::span<char> tls_plaintext{};
  LargeIntake large_intake{};
  // How far the log has got for the outputs that are being sent.
  Lsn released{};
};

}  // namespace cellar
