// See turn_input.h.
#include "server/connection/turn_input.h"

#include "base/assert.h"
#include "server/connection/connection.h"

namespace cellar {

void TurnInput::Add(Connection* connection, size_t bytes) {
  CELLAR_ASSERT(used_bytes_ + bytes <= kBufferBytes);
  AddBorrowed(connection, {buffer_.get() + used_bytes_, bytes});
  used_bytes_ += bytes;
}

void TurnInput::AddBorrowed(Connection* connection, std::string_view bytes) {
  CELLAR_ASSERT(!connection->input_waits);
  connection->input_waits = true;
  entries_.push_back({connection, bytes, {}});
}

void TurnInput::Process() {
  for (size_t done = 0; done < entries_.size();) done = ProcessGroup(done);
  entries_.clear();
  used_bytes_ = 0;
}

// Commands of several connections are parsed first, so that their rows come into the cache side by
// side, and then executed connection by connection.
size_t TurnInput::ProcessGroup(size_t begin) {
  size_t parsed = 0;
  size_t end = begin;
  for (; end < entries_.size() && parsed < commands_.size(); ++end) {
    Entry& entry = entries_[end];
    if (entry.connection == nullptr) continue;
    entry.batch = entry.connection->ReadAhead(entry.bytes, std::span(commands_).subspan(parsed));
    prefetch_.Begin(entry.connection->session);
    for (const ParsedCommand& command : entry.batch.commands) {
      prefetch_.Add(command.entry, command.args);
    }
    parsed += entry.batch.commands.size();
  }
  prefetch_.Flush();
  for (size_t i = begin; i < end; ++i) {
    const Entry& entry = entries_[i];
    if (entry.connection == nullptr) continue;  // a command before it has closed it
    entry.connection->input_waits = false;
    entry.connection->Receive(entry.bytes, entry.batch);
  }
  return end;
}

void TurnInput::Forget(Connection* connection) {
  if (!connection->input_waits) return;
  connection->input_waits = false;
  for (Entry& entry : entries_) {
    if (entry.connection == connection) entry.connection = nullptr;
  }
}

}  // namespace cellar
