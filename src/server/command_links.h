// CommandLinks: any node takes any command. What this node does not carry out itself is passed on
// to who does, and the reply put into the client's output: to who leads its own replica set where
// it does not, and in a cluster to who leads the set that has the rows
// (commands/cluster/command_route.h). What other nodes pass on to this one is carried out here.
//
//   client - Connection - PassedClient --> EntryEnd === link === OwnerEnd --> CommandServant
//                                          (entry)               (owner)      a session
//
// One connection for each pair of nodes, dialled by the entry when it has something to pass on, and
// filled once a turn. Commands of single rows of one client are under way at several sets at a time
// (passed_client.h); one for the own set that cannot be kept back then goes behind them by the link
// of this node to itself.
// A command that finds no link, no leader or nobody who has its rows waits: it stays in the
// client's input and is tried again, cluster-wait milliseconds long. So what has been sent on has
// been sent to a leader, and what becomes of it when that one is lost cluster/call_queue.h says.
// Who leads another set is a guess (cluster/set_targets.h), and so is who has the rows: the owner
// sends back what it has not.
//
// A connection sees its own writes: what a reply depended on is remembered, and a later read that
// this node would answer from an older state is passed on as well. What only this node can answer
// waits until it has come: reads of a client that tracks, which is told of changes as they are
// applied here; CSCAN, whose cursor may hold a state of this node; SELECT. Reads of feeds wait,
// too, until it is on this node's disk: who leads may have less on its own than others have. A read
// by an index that this node has not built yet is passed on, unless the client tracks or the scan
// has begun here.
//
// Commands of one row have a lane of their own (command_links_lane.cc). Where this node leads their
// set they are carried out at once, and their replies kept behind those that other nodes still owe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/entry_link.h"
#include "cluster/move_desk.h"
#include "cluster/set_targets.h"
#include "commands/cluster/command_route.h"
#include "commands/cluster/row_place.h"
#include "commands/dispatch/command_passing.h"
#include "commands/dispatch/row_prefetch.h"
#include "commands/session/host.h"
#include "commands/session/remote_calls.h"
#include "commands/session/transaction.h"
#include "replica/links/peer.h"
#include "replica/replication.h"
#include "server/cluster_links.h"
#include "server/command_servant.h"
#include "server/message_links.h"
#include "server/passed_client.h"
#include "server/reply_aside.h"

namespace cellar {

class RemoteAsks;
class TabletMover;
class FeedHomes;

class CommandLinks final : public CommandPassing, private CallServants, private CommandServantHost {
 public:
  struct Figures {
    uint64_t calls_out{0};
    uint64_t calls_in{0};
    uint64_t retried{0};
    uint64_t bounced{0};
    uint64_t closed{0};
  };

  // Both outlive it; `dialler` is the same server as `host`.
  CommandLinks(Host& host, ReplicationHost& dialler);
  ~CommandLinks() override;

  // --- CommandPassing
  bool Takes(const Session& session, const CommandEntry& command, Arguments args,
             Doing doing) const override;
  bool Scatters(const Session& session, const CommandEntry& command, Arguments args) const override;
  CommandHandler scatterer() const override;
  Outcome Pass(Session& session, const CommandEntry& command, Arguments args, Doing doing,
               std::string* error) override;
  // --- command_links_lane.cc
  Lane TakeLane(Session& session, const CommandEntry& command, Arguments args) override;
  void BeginBehind(Session& session) override;
  void EndBehind(Session& session) override;
  // ---
  bool HoldsBack(Session& session) override;
  bool Lags(Session& session, const CommandEntry& command, Doing doing,
            std::string* error) override;
  uint64_t AskToUnblock(Session& session, UnblockReason reason) override;
  Unblocked AnswerToUnblock(uint64_t ticket) const override;
  void ForgetUnblocking(uint64_t ticket) override { unblockings_.erase(ticket); }
  void Publish(bool shard, std::string_view channel, std::string_view message) override {
    messages_.Publish(shard, channel, message);
  }
  void OnRunsHere(Session& session, const CommandEntry& command) override;

  // --- the server
  MessageLinks& messages() { return messages_; }
  ClusterLinks& cluster() { return cluster_; }
  const ClusterLinks& cluster() const { return cluster_; }
  // PEER of another node, which will call: its id, or why it is refused. Nodes of other sets may,
  // if the cluster knows them.
  Result<uint64_t> CheckCaller(std::string_view version, std::string_view cluster,
                               std::string_view node) const;
  PeerHandler* Accept(PeerLink* link, uint64_t node);
  // Of commands that go over several sets.
  RemoteCalls& remote();
  TrackedSets& tracked_sets() { return *tracked_sets_; }
  MoveDesk& moves();
  // At the end of a turn, when replies may be told up to `released`.
  void OnTurn(Lsn released);
  void OnRoleChanged();
  // This node leads no more; what has been answered may be told up to there.
  void OnOwnerNoMore(Lsn released);
  void OnTick();
  // The process is about to end: nothing more is passed on (0: it is again), and until then what is
  // on its way is answered.
  void LeaveBy(int64_t micros);
  bool answers_first() const;
  // Every 10 ms while waits() says so: who waits is tried again.
  void OnPoll();
  bool waits() const;
  // Somebody waits for this node to apply what is committed.
  bool lags() const;
  // Sessions of other nodes' clients.
  void ForEachSession(const std::function<void(Session&)>& visit);
  Session* FindSession(uint64_t id) const;
  // A slice of each long command of theirs, as long as there is time. Whether there are any that
  // need no waking.
  void RunTasks(const TaskBudget& budget, bool woken);
  bool tasks_proceed() const;
  bool has_tasks() const;

  const Figures& figures() const { return figures_; }
  // Of other nodes' clients and the ends of links, as of the last tick. What this node's clients
  // have passed on counts as theirs, what waits for a socket as its connection's.
  uint64_t memory_bytes() const { return memory_bytes_; }
  // All that is held for passing commands on, both ways, now: with those.
  uint64_t held_bytes() const;
  size_t links() const { return entries_.size() + owners_.size(); }
  size_t channels() const { return servants_.size(); }
  size_t calls_waiting() const;
  size_t calls_held() const { return waiting_.size(); }

 private:
  friend class PassedClient;
  class EntryEnd;
  class OwnerEnd;
  class LocalEnd;
  static constexpr int64_t kRedialMicros{20'000};
  static constexpr int64_t kIdleMicros{10'000'000};
  static constexpr int64_t kRefusedMicros{1'000'000};
  // A tick that comes so much later says that this process has stood still.
  static constexpr int64_t kTickMicrosMax{1'500'000};
  // Of one client, sent and not answered: no more is passed on before.
  static constexpr size_t kClientBytesMax{256 << 10};
  // Of all, on one link: each client may have one call under way all the same, so that one that
  // does not read holds nobody else's back.
  static constexpr size_t kLinkBytesMax{8 << 20};

  // --- CallServants, CommandServantHost
  std::unique_ptr<CallServant> MakeServant(const CallIdentity& identity) override;
  void LookAhead(const CallServant& servant, std::string_view text) override;
  void LookedAhead() override { prefetch_.Flush(); }
  void AddServant(CommandServant* servant) override { servants_.push_back(servant); }
  void RemoveServant(CommandServant* servant) override { std::erase(servants_, servant); }
  Lsn released() const override { return released_; }
  void AskForSync(int64_t since_micros) override;

  SetNode* set() const { return host_.replication().set(); }
  int64_t now() const { return host_.clock().MonotonicMicros(); }
  FrameHead Head() const;
  uint64_t CountMemory() const;
  bool ReadsElsewhere(const Session& session, const CommandEntry& command, Arguments args) const;
  // What the client was told of is not here yet; or not told by the feeds here. Null: of nothing.
  bool HasSeenMore(const PassedClient* client, bool in_feeds) const;
  // Nor does it read here yet, for that, or for what others were told of.
  bool IsBehind(const PassedClient* client, bool in_feeds) const;
  // It must wait until what is under way for it has been answered.
  bool IsFull(const PassedClient& client, bool is_exec) const;
  void NoteReadAway(PassedClient* client, Session& session, const CommandEntry& command,
                    Arguments args);
  // The route that Takes has just found for that command; found now, if that was another one.
  CommandRoute TakeRoute(const Session& session, const CommandEntry& command, Arguments args);
  // Where the command goes to; of EXEC, with what its client watches.
  CommandRoute Route(const Session& session, const CommandEntry& command, Arguments args) const;
  // Whether that is not this set's to answer.
  bool IsAway(const CommandRoute& route) const;
  static bool IsScattered(const CommandRoute& route, const CommandEntry& command);
  uint64_t own_set() const { return host_.store().engine().cluster().set; }
  // What its EXEC was to depend on is not known to anybody any more.
  bool LostWatches(const Session& session, const PassedClient* client) const;
  Outcome EndWatches(PassedClient* client);
  // Rows are those of several sets, or no more.
  void UpdateRoutes();
  // --- command_links_beside.cc: several sets carry out commands of one client at a time
  // Whether it is such a command, of a session without anything that minds, as long as its client
  // watches nothing.
  static bool IsPlain(const Session& session, const CommandEntry& command);
  // Of a row of the own set, which this node leads: whether it goes behind what is under way
  // elsewhere, by the link to itself, instead of waiting for that.
  bool GoesBeside(const PassedClient& client, const Session& session, const CommandEntry& command,
                  const CommandRoute& route) const;
  // Whether it may be under way beside what is, and others beside it.
  bool MayGoBeside(PassedClient* client, const Session& session, const CommandEntry& command,
                   const CommandRoute& route);
  // --- command_links_lane.cc
  // Of a row of the own set, which this node leads; `client` may be null.
  Lane RunInLane(PassedClient* client, const CommandEntry& command);
  // Of a row of that set's, which may be kOwnSet.
  Lane PassInLane(Connection* connection, const CommandEntry& command, Arguments args,
                  uint64_t number);
  // ---
  void NoteBack(PassedClient* client);
  void NoteUnsent(PassedClient* client);
  // It leaves, or has nothing under way any more.
  void ForgetBeside(PassedClient* client);
  // Replies that others were to join leave.
  void SendUnsent();
  // What was sent back is asked again, once nothing else of its client is under way.
  void AskAllAgain();
  void AskAgain(PassedClient* client);
  // The oldest of it. False: not now.
  bool AskOneAgain(PassedClient* client);

  // The link to who leads the own set; null: there is none yet.
  EntryEnd* LeaderLink();
  // To who may lead that one; `set` may be kOwnSet.
  EntryEnd* LinkTo(uint64_t set);
  // For what may be asked of the own set, by its number, too: where this node leads it, of itself.
  EntryLink* AnyLinkTo(uint64_t set);
  // That what goes by the channel goes by: as what is under way there, if anything is. Null: none.
  EntryLink* LinkFor(const PassedChannel& channel);
  // To that node, which may lead nothing.
  EntryLink* LinkToNode(uint64_t node);
  // Who leads the set that the link is to; 0: nobody is known to.
  uint64_t LeaderFor(const EntryEnd& end) const;
  // Who is said to lead it; nothing: nobody knows.
  std::optional<NodeAddress> LeaderOf(uint64_t set) const;
  // Why a command that waits for that set is refused at last.
  std::string LateText(const PassedClient& client, uint64_t set, Doing doing) const;
  std::string LateText(uint64_t set) const;
  // The command in front waits, and is refused with `late` when it has done so for too long.
  Outcome Wait(PassedClient* client, const std::function<std::string()>& late, std::string* error);
  Outcome TryPass(PassedClient* client, const CommandEntry& command, Arguments args, Doing doing,
                  std::string* error);
  Outcome PassTo(const CommandRoute& route, Session& session, const CommandEntry& command,
                 Arguments args, Doing doing, std::string* error);
  static void PutCall(EntryLink* link, PassedChannel* channel, const Session& session,
                      const CommandEntry& command, Arguments args, Doing doing);
  static void PutTransaction(const TransactionState& transaction, std::string* text);
  void WakeLagging();
  // The command in front has waited for as long as it may.
  bool IsLate(const PassedClient& client) const;
  // Its session waits (the caller postpones it); does so no more; is tried again.
  void Hold(PassedClient* client);
  void LetGo(PassedClient* client);
  void Wake(PassedClient* client);
  void WakeAll();
  void AnswerUnblocking(uint64_t ticket, Unblocked answer);
  // The end that what is under way on the channel goes by; null: it is gone.
  EntryEnd* EndOf(const PassedChannel& channel) const;
  void BeginReply(PassedChannel* channel);
  // Null: nothing of it was passed on yet.
  static PassedClient* ClientOf(const Session& session);
  PassedClient* MakeClient(Connection* connection);

  Host& host_;
  ReplicationHost& dialler_;
  MessageLinks messages_;
  ClusterLinks cluster_;
  Lsn released_{};
  // When who lags was last looked at.
  Lsn applied_seen_{};
  Lsn shown_seen_{};
  std::vector<CommandServant*> servants_;
  std::vector<std::unique_ptr<EntryEnd>> entries_;
  std::vector<std::unique_ptr<OwnerEnd>> owners_;
  std::unique_ptr<LocalEnd> local_;
  std::unique_ptr<RemoteAsks> asks_;
  std::unique_ptr<TabletMover> mover_;
  std::unique_ptr<FeedHomes> homes_;
  ConnectedSession asker_;  // on whose behalf this node asks others
  std::unique_ptr<TrackedSets> tracked_sets_;
  SetTargets targets_;
  std::vector<PassedClient*> waiting_;
  std::vector<PassedClient*> sent_back_;  // clients some of whose calls have to be asked again
  std::vector<PassedClient*> unsent_;     // ... whose replies wait a moment for those behind them
  // Of the command that was looked at last.
  struct Routed {
    Arguments args;
    CommandRoute route;
  };
  mutable std::optional<Routed> routed_;
  std::map<uint64_t, Unblocked> unblockings_;  // by ticket
  uint64_t unblocking_last_{0};                // ticket
  RowPrefetch prefetch_;                       // of calls of other nodes
  RowPlace place_;                             // of the command that was looked at in the lane last
  ReplyAside aside_;
  CallingNode caller_;  // of the link that is making a servant
  uint64_t servant_id_{uint64_t{1} << 48};
  size_t next_servant_{0};
  uint64_t memory_bytes_{0};
  int64_t leave_by_micros_{0};  // 0: this node stays
  int64_t idle_micros_{0};
  int64_t redial_micros_{0};
  int64_t tick_micros_{0};
  uint64_t refused_node_{0};   // it takes no calls
  int64_t refused_micros_{0};  // until then it is not asked again
  Figures figures_;
};

}  // namespace cellar
