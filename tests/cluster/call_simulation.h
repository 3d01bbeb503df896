// A deterministic simulation of command links: three nodes, one of which leads; clients at all of
// them that pipeline reads and writes, some of which wait for others and are unblocked, some of
// which are told of what others write (CLIENT TRACKING NOLOOP), and some of which may have left and
// are sent the beginning of a reply to find out; links that close at any moment with
// all that is on its way, and are reordered against each other; leaders that die, are deposed
// without knowing it, or hand over. What is under test is src/cluster and PassedWrites as they are;
// the log, the sockets and the sessions around them are toys of a few lines each, and a run replays
// from its seed.
//
// Checked all the time: each reply is that of the command whose turn it is, made for the user who
// sent it; no write is done twice, none that was acknowledged is lost, none that was refused is
// there; a connection's reads never miss an earlier write of its own, nor go back; what the leader
// answers misses nothing that anybody had been told of when the read was sent; who is said to wait
// no more has its reply, and nobody else is unblocked; what the owner tells of a client's writes is
// committed and that client's, and the client hears of all that others write and of nothing else;
// for a client that has left nothing goes on at an owner.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cluster/entry_link.h"
#include "cluster/owner_link.h"
#include "cluster/unblockings.h"
#include "commands/session/tracking.h"

namespace call_simulation {

using cellar::CallClient;
using cellar::CallIdentity;
using cellar::CallServant;
using cellar::EntryLink;
using cellar::Frame;
using cellar::FrameKind;
using cellar::Lsn;
using cellar::OwnerLink;
using cellar::PassedWrites;
using cellar::Random;
using cellar::UnblockHow;
using cellar::Unblockings;
using cellar::WrittenSteps;

// What is done wrong on purpose.
enum class Fault : uint8_t {
  kNone,
  kResentWrite,         // a write whose fate is unknown is asked again
  kReorderedRetry,      // what is asked again goes behind what came later
  kWrongSlot,           // two replies change places
  kReadBeforeOwnWrite,  // a local read does not wait for what the connection was told
  kOlderUser,           // the owner does not hear that the client is another user now
  kUnblocksAny,         // whatever waits is unblocked, though another call was meant
  kToldTooEarly,        // what a call has written is told before its record may be
  kWrittenUntold,       // what is told of a client's writes is lost on the way
};
inline constexpr Fault kFaults[] = {
    Fault::kResentWrite, Fault::kReorderedRetry, Fault::kWrongSlot,    Fault::kReadBeforeOwnWrite,
    Fault::kOlderUser,   Fault::kUnblocksAny,    Fault::kToldTooEarly, Fault::kWrittenUntold};

// kWait is a read that waits for others, until it is unblocked or by itself has something to tell.
enum class Kind : uint8_t { kRead, kWait, kWrite };

struct Command {
  uint64_t id;
  Kind kind;
  size_t key;
  std::string user;
  uint64_t
      told_index;  // the newest write of the key that anybody had been told of when it was sent
};

class World;
struct Link;

// What a session is elsewhere: executes at once, replies wait for their record.
class Servant final : public CallServant {
 public:
  Servant(World& world, size_t node, const CallIdentity& identity);
  ~Servant() override;
  void Become(const CallIdentity& identity) override { user_ = identity.user; }
  Readiness MayExecute(std::string_view text, uint8_t flags) override;
  bool Execute(std::string_view text, uint8_t flags) override;
  bool running() const override { return slow_ > 0 || waiting_id_ != 0; }
  bool EndIfWaiting() override;
  uint64_t made_bytes() const override { return made_; }
  std::string_view Released() override { return std::string_view(output_).substr(0, released_); }
  void Sent(size_t bytes) override;
  Lsn depends_on() const override { return {1, depends_}; }
  bool TakeWritten(int64_t* told_micros, std::vector<WrittenSteps>* steps) override;
  bool Unblock(UnblockHow how) override;
  void BeginReply() override;
  bool ended() const override { return false; }

  void Release(uint64_t committed);
  void Step();
  bool IsOf(const Link* link, uint64_t channel) const {
    return link_ == link && channel_ == channel;
  }
  uint64_t executed() const { return executed_; }

 private:
  struct Gate {
    size_t position;
    uint64_t index;
  };
  void Write(const std::string& reply, uint64_t index);
  std::string ReadReply(uint64_t id, size_t key, std::string_view how);
  void NoteWritten(int64_t step);
  uint64_t LogEnd() const;

  World& world_;
  const size_t node_;
  const Link* const link_;
  const uint64_t channel_;
  const uint64_t client_;
  std::string user_;
  uint64_t executed_{0};
  std::string output_;
  size_t released_{0};
  uint64_t made_{0};
  uint64_t depends_{0};
  std::deque<Gate> gates_;
  int slow_{0};
  std::string late_;
  bool late_begun_{false};
  uint64_t late_index_{0};
  uint64_t waiting_id_{0};  // of the call that waits for others
  size_t waiting_key_{0};
  // Of calls with kCallTells. A record's index is its commit time.
  bool is_to_tell_{false};
  std::deque<WrittenSteps> written_;
  uint64_t committed_seen_{0};
};

class Client final : public CallClient {
 public:
  Client(World& world, size_t node, uint64_t number);
  void OnReply(std::string_view bytes, size_t calls, Lsn lsn) override;
  void OnMoved(std::string requests) override;
  void OnUnknown() override;
  void OnWrote(int64_t told_micros, std::span<const WrittenSteps> steps) override;
  void OnUnblocked(uint64_t number, bool done) override;
  bool TakesMore() const override { return takes_; }

  void Step();
  bool closed() const { return closed_; }
  size_t node() const { return node_; }
  bool done() const { return to_send_ == 0 && waiting_.empty(); }
  void Close() { closed_ = true; }
  // Its node has applied that record.
  void OnApplied(uint64_t index);

 private:
  friend class World;
  // Of a call that waited: how it was to be unblocked, and whether who asked was told that it is.
  struct Asked {
    uint64_t id;
    std::string how;
    bool done;
  };
  bool PassFront();
  void AskToUnblock();
  void TellAskers(const std::vector<Unblockings::Told>& told);
  void TellHeld();
  void EndHolding();
  void ReadHere(const Command& command);
  void Check(std::string_view reply, bool from_leader);
  void CheckUnblocked(uint64_t id, const std::string& how);

  World& world_;
  const size_t node_;
  const uint64_t number_;
  bool closed_{false};
  bool takes_{true};
  int to_send_{12};
  std::string user_{"u0"};
  std::deque<Command> input_;    // not carried out yet, in the order in which it was sent
  std::deque<Command> waiting_;  // passed on, or in input_
  std::string replies_;
  uint64_t seen_{0};
  std::map<size_t, uint64_t> last_;  // by key: the newest index that it has seen or written
  Unblockings unblockings_;
  std::map<uint64_t, Asked> asked_;          // by ticket; not told, or told and not yet checked
  std::map<uint64_t, std::string> replied_;  // how those ended that had been asked about
  bool tells_{false};                        // tracks with NOLOOP; does not wait for others
  PassedWrites passed_;
  std::deque<uint64_t> held_;  // records that it may have written itself
};

// One end to the other, bytes in order; both ends hear of the loss when they hear of anything.
struct Link {
  size_t entry;
  size_t owner;
  std::unique_ptr<EntryLink> caller;
  std::unique_ptr<OwnerLink> answerer;
  std::deque<std::string> to_owner;
  std::deque<std::string> to_entry;
  bool up{true};
  uint64_t channels_told{0};  // the newest channel that the owner was told of
};

class World final {
 public:
  static constexpr size_t kNodes{3};
  static constexpr size_t kKeys{3};
  World(uint64_t seed, Fault fault);
  // What went wrong; empty: nothing.
  std::string Run();

 private:
  friend class Servant;
  friend class Client;
  struct Entry {
    size_t key;
    uint64_t id;
    std::string user;
    uint64_t client;
  };
  struct Node final : public cellar::CallServants {
    World* world{nullptr};
    size_t number{0};
    bool alive{true};
    bool leads{false};  // by its own belief
    bool hands_over{false};
    uint64_t applied{0};  // of `committed`
    std::vector<Entry> tail;
    std::set<Servant*> servants;
    std::unique_ptr<CallServant> MakeServant(const CallIdentity& identity) override {
      return std::make_unique<Servant>(*world, number, identity);
    }
  };

  void Fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
  }
  void StepWorld();
  void Lead(size_t node);
  void Depose(Node* node);
  void Kill(size_t node);
  void Commit(size_t most);
  void Apply(Node* node, uint64_t upto);
  void Deliver(Link* link);
  cellar::Status Take(Link* link, bool to_owner, Frame frame);
  static void SwapReplies(std::string* body);
  void Misdirect(const Link& link, std::string* body) const;
  void Flush(Link* link);
  void Break(Link* link);
  Link* LinkFrom(size_t entry);
  // The newest entry of the key that the node has: its index (1 is the first), 0: none.
  std::pair<uint64_t, uint64_t> Newest(const Node& node, size_t key, uint64_t applied) const;
  void CheckEnd();

  Random random_;
  const Fault fault_;
  std::string failure_;
  std::array<Node, kNodes> nodes_;
  size_t leader_{0};  // in truth
  std::vector<Entry> committed_;
  std::vector<std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Client>> clients_;
  uint64_t next_id_{1};
  uint64_t client_number_{0};
  uint64_t ticket_last_{0};
  const Link* making_link_{nullptr};  // whose channel a servant is made for
  uint64_t making_channel_{0};
  std::map<size_t, uint64_t> told_;  // by key: the newest write that anybody was told of
  std::set<uint64_t> acknowledged_;  // writes
};

std::string RunSchedule(uint64_t seed, Fault fault);

}  // namespace call_simulation
