// Console: which commands may be typed on the page. None but what reads, which this program does
// not judge by itself: a user of the server's, that has the rights to read and no others, stands
// for it. ACL DRYRUN asks the server whether that user might run the command; only then it is sent,
// as whoever has logged in, so that nobody sees more than their own rights let them see, nor does
// more than both may.
//
// Any thread may call.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cellar/status.h"
#include "client/connection.h"

namespace cellar::web {

class Console {
 public:
  // As the user in `server`, which needs ACL DRYRUN besides. Without a name nothing may be typed.
  explicit Console(client::ConnectionOptions server) : server_(std::move(server)) {}

  // REQUIRES: there are words. The server's no; kIo if it cannot be asked.
  Status Check(const std::vector<std::string>& words);

 private:
  Result<client::Reply> Ask(const std::vector<std::string_view>& words);

  const client::ConnectionOptions server_;
  std::mutex mutex_;
  std::optional<client::Connection> connection_;
};

}  // namespace cellar::web
