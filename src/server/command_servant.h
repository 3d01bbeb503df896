// CommandServant: carries out the calls of one channel of a command link (cluster/owner_link.h) in
// a session of its own, which has no connection: what it is answered goes back on the link.
//
// The session is one of those that ForEachSession visits, so that rights that are lost are lost
// here too. It counts as nobody's client otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/owner_link.h"
#include "commands/cluster/call_piece.h"
#include "commands/session/host.h"
#include "commands/session/task.h"
#include "server/connection/connection.h"

namespace cellar {

class CommandServant;
class RowPrefetch;

// Who calls.
struct CallingNode {
  uint64_t id{0};
  std::string address{};  // "h:p"
};

// Where servants are kept while they live.
class CommandServantHost {
 public:
  virtual ~CommandServantHost() = default;
  virtual void AddServant(CommandServant* servant) = 0;
  virtual void RemoveServant(CommandServant* servant) = 0;
  // Up to which record replies may be told.
  virtual Lsn released() const = 0;
  // Of the log, for who has waited since then for what feeds tell.
  virtual void AskForSync(int64_t since_micros) = 0;
};

class CommandServant final : public CallServant {
 public:
  CommandServant(Host& host, CommandServantHost& keeper, uint64_t id, const CallingNode& from,
                 const CallIdentity& identity);
  ~CommandServant() override;

  // --- CallServant
  void Become(const CallIdentity& identity) override;
  Readiness MayExecute(std::string_view text, uint8_t flags) override;
  bool Execute(std::string_view text, uint8_t flags) override;
  bool running() const override { return session_.task != nullptr; }
  bool EndIfWaiting() override;
  uint64_t made_bytes() const override { return sent_bytes_ - head_ + session_.output.size(); }
  std::string_view Released() override;
  void Sent(size_t bytes) override;
  Lsn depends_on() const override { return depends_on_; }
  bool TakeWritten(int64_t* told_micros, std::vector<WrittenSteps>* steps) override;
  bool Unblock(UnblockHow how) override;
  void BeginReply() override { host_.dispatcher().BeginReplyAhead(session_); }
  std::string_view keyspace() const override;
  // One whose user is gone still says what became of what it has carried out.
  bool ended() const override {
    return session_.ended() ||
           (session_.ending() && session_.task == nullptr && session_.output.size() == head_);
  }

  // That call may be carried out next: its row is added. The text must stay.
  void LookAhead(std::string_view text, RowPrefetch* prefetch) const;
  Session& session() { return session_; }
  size_t memory_bytes() const { return sizeof(*this) + session_.memory_bytes(); }
  // A slice of what runs.
  void Step(const TaskBudget& budget);

 private:
  // Whether the call is one command of one row, and the own set has that: then it has been taken
  // apart for Execute, which comes next. False: LookAt tells more.
  bool HasRow(std::string_view text);
  // One command; false: it must wait, and nothing was done.
  bool Run(std::span<const std::string_view> words);
  // Likewise, what has been taken apart.
  bool RunParsed();
  // Of a piece of a table alone; if the set does not own it nothing is done.
  bool RunUnjudged(std::span<const std::string_view> words);
  bool RunPiece(const CallPiece& piece, std::span<const std::string_view> words);
  const CommandEntry* CommandOf(std::span<const std::string_view> words) const;
  struct Look {
    bool is_owners{true};      // its own set has all that the call concerns
    bool schema_waits{false};  // it changes the schema, and a tablet is between two sets
  };
  Look LookAt(std::string_view text) const;
  // As long as at the client's own node; then the store refuses it.
  bool WaitsForSchema(bool schema_waits);
  bool IsOfOthersUsers(const CommandEntry* command) const;
  // It reads feeds, and they do not show yet what its client was told of.
  bool FeedsLag(std::string_view text) const;
  bool WaitsTooLong();
  void NoteDependence();
  // What the log has got since `before_micros`, the commit time of its last step then.
  int64_t LastStep() const;
  void NoteWritten(int64_t before_micros);

  Host& host_;
  CommandServantHost& keeper_;
  const std::string from_;
  ConnectedSession session_;
  bool unknown_user_{false};
  bool has_row_{false};  // what HasRow has taken apart last is to be carried out
  uint64_t sent_bytes_{0};
  size_t head_{0};  // of the output: what is sent
  Lsn depends_on_{};
  int64_t lags_since_micros_{0};  // a read of feeds has waited since (monotonic); 0: none waits
  // Of calls with kCallTells; the entry is told of the older ones, which are still to be released,
  // as of what others write.
  int64_t schema_since_micros_{0};  // a change of the schema has waited since (monotonic)
  struct Written {
    WrittenSteps steps;
    Lsn last;
  };
  static constexpr size_t kWrittenMax{64};
  bool tells_{false};       // what is carried out now is one of them
  bool is_to_tell_{false};  // there was one
  std::deque<Written> written_;
};

}  // namespace cellar
