// See outcome.h.
#include "commands/session/outcome.h"

#include "base/assert.h"

namespace cellar {

const std::string& Outcome::error() const {
  CELLAR_ASSERT(failed());
  return *error_;
}

void Outcome::Fail(ReplyWriter& reply, const Status& status) {
  CELLAR_ASSERT(!status.ok());
  Fail(reply, status.ToString());
}

void Outcome::Fail(ReplyWriter& reply, std::string_view line) {
  CELLAR_ASSERT(!failed());
  CELLAR_ASSERT(!line.empty());
  reply.Error(line);
  error_ = std::make_unique<const std::string>(line);
}

std::string_view ErrorWordOf(std::string_view line) {
  return line.substr(0, line.find_first_of(" \r\n"));
}

}  // namespace cellar
