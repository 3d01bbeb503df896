// PassedClient: a client of this node some of whose commands are passed on (command_links.h): a
// channel to each set that has carried some of them out, and what they have in common.
//
// Commands are under way on one of its channels at a time: so their order holds over all sets. What
// a channel's session knows stays with it meanwhile: watches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/entry_link.h"
#include "cluster/unblockings.h"
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
  void OnReply(std::string_view bytes, bool whole, Lsn lsn) override;
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
  bool under_way() const override { return current_ != nullptr && !current_->calls().empty(); }
  bool MayWaitForEver() const override { return connection_.session.switches.waits_elsewhere; }
  size_t memory_bytes() const override;

  Connection& connection() { return connection_; }
  // Made if there is none. It stays where it is.
  PassedChannel& ChannelTo(uint64_t set);
  const std::vector<std::unique_ptr<PassedChannel>>& channels() const { return channels_; }
  // The one that commands are under way on, or were last; null: none was.
  PassedChannel* current() const { return current_; }
  // What is passed on next goes by this one. REQUIRES: nothing is under way on another one.
  void SetCurrent(PassedChannel* channel);
  // Some owner keeps watches for it.
  bool watches() const;
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
  Unblockings unblockings;

 private:
  friend class PassedChannel;
  void OnReply(PassedChannel& channel, std::string_view bytes, bool whole, Lsn lsn);
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
};

}  // namespace cellar
