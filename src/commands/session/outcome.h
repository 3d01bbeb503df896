// Outcome: whether a command has failed, and with which error.
//
// Every error that is the reply of a command goes through Fail, which writes and keeps it. Who has
// to know what became of the command (statistics, ACL LOG, MULTI ATOMIC) asks here and does not
// look into the reply, which may be gone by then (CLIENT REPLY OFF).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cellar/status.h"
#include "resp/reply_writer.h"

namespace cellar {

class Outcome {
 public:
  bool failed() const { return error_ != nullptr; }
  // The line of the error: "NOTABLE no table 'planes' in keyspace '0'". REQUIRES: failed().
  const std::string& error() const;

  // Replies the error. REQUIRES: it has not failed before; !status.ok(), and `line` begins with the
  // code.
  void Fail(ReplyWriter& reply, const Status& status);
  void Fail(ReplyWriter& reply, std::string_view line);

 private:
  std::unique_ptr<const std::string> error_;  // null: it has not failed
};

// The first word of an error line.
std::string_view ErrorWordOf(std::string_view line);

}  // namespace cellar
