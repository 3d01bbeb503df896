// PassedClient: a client of this node some of whose commands are passed on (command_links.h): a
// channel to each set that has carried some of them out, and what they have in common.
//
// Commands of single rows are under way on several of its channels beside one another, as long as
// those for one row surely go the same way (route_window.h); their replies are put into order
// (reply_order.h). All others are on one channel at a time. What a channel's session knows stays
// with it meanwhile: watches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/entry_link.h"
#include "cluster/reply_order.h"
#include "cluster/unblockings.h"
#include "commands/cluster/route_window.h"
#include "commands/cluster/tracked_sets.h"
#include "commands/session/tracking.h"
#include "commands/session/transaction.h"
#include "server/connection/connection.h"
#include "server/connection/passed_commands.h"
#include "server/watched_words.h"

namespace cellar {

class CommandLinks;
class PassedClient;

// In place of a set's number: the own one, whether or not it is part of a cluster.
inline constexpr uint64_t kOwnSet{UINT64_MAX};

class PassedChannel final : public CallClient {
 public:
  PassedChannel(PassedClient& client, uint64_t set) : client_(client), set_(set) {}

  uint64_t set() const { return set_; }
  bool is_own() const { return set_ == kOwnSet; }
  bool watches{false};  // the owner keeps watches for it

  // --- CallClient
  void OnReply(std::string_view bytes, size_t calls, Lsn lsn) override;
  void OnOtherSet() override;
  void OnMoved(std::string requests) override;
  void OnUnknown() override;
  void OnKeyspace(std::string_view keyspace) override;
  void OnWrote(int64_t told_micros, std::span<const WrittenSteps> steps) override;
  void OnUnblocked(uint64_t number, bool done) override;
  bool TakesMore() const override;
  bool KeepsChannel() const override { return watches; }
  bool WaitsForOthers() const override;

 private:
  PassedClient& client_;
  const uint64_t set_;
};

class PassedClient final : public PassedCommands {
 public:
  PassedClient(CommandLinks& links, Connection& connection)
      : links_(links), connection_(connection) {}
  ~PassedClient() override;
  PassedClient(const PassedClient&) = delete;
  PassedClient& operator=(const PassedClient&) = delete;

  // --- PassedCommands
  bool under_way() const override {
    return !lost_ && (!order.empty() || (current_ != nullptr && !current_->calls().empty()));
  }
  bool MayWaitForEver() const override { return connection_.session.switches.waits_elsewhere; }
  void BeginReply() override;
  size_t memory_bytes() const override;
  Lsn kept_gate() const override { return order.gate(); }

  Connection& connection() { return connection_; }
  // Made if there is none. It stays where it is.
  PassedChannel& ChannelTo(uint64_t set);
  const std::vector<std::unique_ptr<PassedChannel>>& channels() const { return channels_; }
  // The one that commands are under way on, or were last, unless they are on several (order);
  // null: none was.
  PassedChannel* current() const { return current_; }
  // Whether a command may go by that channel now. `beside`: it may be under way beside others.
  bool MayGo(const PassedChannel& channel, bool beside) const;
  // It is about to go, by that channel.
  void Goes(PassedChannel* channel, bool beside);
  // Whether a command that this node carries out may be, and its reply be kept behind those that
  // are under way. REQUIRES: under_way().
  bool MayKeep() const;
  void Keep(std::string_view reply, Lsn gate);
  // All that is under way is such that others may go beside it.
  bool takes_beside() const { return takes_beside_; }
  // Replies wait for those behind them, until the next poll at most, to leave with one write.
  bool unsent{false};
  // What of that is sent back is asked again since (monotonic); 0: nothing is.
  int64_t back_since_micros{0};
  // This is the reply to the oldest of it.
  void RefuseBack(std::string_view error);
  // Some owner keeps watches for it.
  bool watches() const;
  // Some owner does, or has until it was lost.
  bool has_watched() const { return watches_lost || watches(); }
  // That set's does.
  bool WatchesOn(uint64_t set) const;
  // Another set's than the own one.
  bool WatchesAway() const;
  // Owners keep none any more.
  void EndWatches();
  // Nothing of it is under way, or what is may wait for ever: no invalidation waits for its reply.
  void EndHolding();

  // What it was told so far this node may lack.
  Lsn seen{};
  int64_t since_micros{0};  // the command in front has been tried since (monotonic); 0: it is new
  bool waits{false};        // its session is postponed, on behalf of this
  bool watches_lost{false};
  WatchedWords watched;  // at the owners that keep watches
  bool skips{false};     // CLIENT REPLY SKIP is for what is under way
  // Of what is read of other sets on behalf of a client that tracks.
  std::vector<Tracking::ReadName> names_away;
  TrackedSets::Mark mark_away;
  bool misled{false};  // the command in front was sent to a set that it does not concern
  // Its command waits for this node: for its state, or for what its feeds tell.
  enum class Lags : uint8_t { kNo, kState, kFeeds };
  Lags lags{Lags::kNo};
  std::unique_ptr<TransactionState> transaction;  // of an EXEC that is under way
  ReplyOrder order;    // of what is under way on several channels; empty: on one
  RouteWindow window;  // of what goes beside others
  Unblockings unblockings;

 private:
  friend class PassedChannel;
  void OnReply(PassedChannel& channel, std::string_view bytes, size_t calls, Lsn lsn);
  static constexpr size_t kUnsentBytesMax{16 << 10};
  void Emit(std::string_view bytes, bool whole, Lsn gate = {});
  ReplyOrder::Emit Emitter() {
    return [this](std::string_view bytes, bool whole, Lsn gate) { Emit(bytes, whole, gate); };
  }
  void OnMoved(PassedChannel& channel, std::string requests);
  void OnUnknown();
  void OnAllAnswered(PassedChannel& channel);
  // What was read of other sets is kept, or told behind its replies; of what is not answered it is
  // told once too often.
  void EndReads();
  void OnWrote(int64_t told_micros, std::span<const WrittenSteps> steps);
  void TellAskers(const std::vector<Unblockings::Told>& told);

  CommandLinks& links_;
  Connection& connection_;
  std::vector<std::unique_ptr<PassedChannel>> channels_;
  PassedChannel* current_{nullptr};
  bool takes_beside_{false};
  bool lost_{false};  // nobody knows what becomes of a call: nothing is told any more
};

}  // namespace cellar
