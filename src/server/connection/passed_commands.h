// PassedCommands: of a connection, what other nodes carry out for it (server/passed_client.h), as
// the connection itself sees it.
#pragma once

#include <cstddef>

#include "cellar/lsn.h"

namespace cellar {

class PassedCommands {
 public:
  virtual ~PassedCommands() = default;
  // Not all of it has been answered.
  virtual bool under_way() const = 0;
  // What is may wait for others, for ever.
  virtual bool MayWaitForEver() const = 0;
  // The client sends no more: has the reply begin, if it can, which tells whether anybody is there.
  // REQUIRES: under_way().
  virtual void BeginReply() = 0;
  virtual size_t memory_bytes() const = 0;
  // The newest record of this node that replies depend on which wait for those of others; Lsn{}:
  // there is none.
  virtual Lsn kept_gate() const = 0;
};

}  // namespace cellar
