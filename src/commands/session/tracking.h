// Client side caching: who has read what, and whom to tell when it changes (CLIENT TRACKING).
//
// What a client reads and what changes is named by one text, in the tracking table and in BCAST
// prefixes:
//
//   planes:747        the row 747 of the table planes, its key in canonical form
//   planes            all of planes: it was scanned, or its schema changed, or many rows at once
//   crew/planes:747   the same of a keyspace other than 0
//
// Which of them a message names is up to `tracking-names`:
//
//   table   planes         the key of the command (COMMAND GETKEYS): libraries with a cache file what
//                          they keep under it. Only those who read the row are told. The table is
//                          named as the client wrote it, with the keyspace or without
//   row     planes:747     the text above. A name without `:` stands for everything read of the
//                          table: a cache drops what it keeps under that name and under all names
//                          that begin with it and a colon. Table names hold no colon, so the first
//                          one splits
//   both    planes planes:747
//
// Null in place of the names: everything (FLUSHALL, KEYSPACE DROP).
//
//   default mode   a command that reads a row or table is remembered for its client; the first
//                  change is told to it once, then forgotten
//   BCAST          nothing is remembered; every change whose name begins with a prefix is told, and
//                  a whole table that a prefix lies in; what one EXEC changes in one message
//                  for each prefix
//
// The table of what was read is bounded by tracking-table-max-keys: beyond it names are forgotten
// in turn, and told as if they had changed. Changes inside EXEC are told when all of it stands. A
// message waits, like a reply, for the record that it tells of. Cells that a retention policy drops
// are told of when they are reclaimed, which may be a while after they are seen no more.
//
// In a cluster a node is told by its own set's log what that changes, and asks the other sets
// (tracked_sets.h) for what they do. What is changed here is kept for those who ask (news).
//
// Idea and rules are those of Redis' tracking; clients are kept by id and looked up when there is
// something to say, so that one that leaves costs nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cellar/lsn.h"
#include "cellar/status.h"
#include "cluster/written_steps.h"
#include "commands/arguments/arguments.h"
#include "commands/session/change_news.h"

namespace cellar {

class Host;
class Table;
struct CommandEntry;
struct Session;

// The name that a row has in invalidations, "table:row" with the key's canonical text and the
// keyspace in front unless that is 0; of the table without a row. Empty if that is no key of it.
std::string TrackedName(const Table& table, const std::string_view* row);
// Of a table, by its own names.
std::string TrackedTableName(std::string_view keyspace, std::string_view table);

// What a client with NOLOOP has written by commands that were passed on to another node, as far as
// that has told, by the commit times of the steps of the log: when this node applies them, it knows
// them by that. Plain data.
class PassedWrites {
 public:
  enum class Answer : uint8_t { kNo, kYes, kUnknown };

  // A command has been passed on that writes; all that was has been answered, or nobody shall wait
  // for the answer.
  void Begin();
  void End() { under_way_ = false; }
  // What was answered up to now has written these, ascending, and nothing else up to `told_micros`;
  // what has not been answered writes behind that.
  void Add(int64_t told_micros, std::span<const WrittenSteps> steps);
  Answer HasWritten(int64_t step_micros) const;

 private:
  // Of older ones it is told as of what others write.
  static constexpr size_t kStepsMax{4096};
  bool under_way_{false};
  int64_t told_micros_{0};
  std::vector<WrittenSteps> steps_;
};

// One client's tracking, while it is on. Plain data.
struct TrackingState {
  using Names = std::set<std::string>;
  // An invalidation of a step that the client may have written itself.
  struct Held {
    int64_t step_micros;
    Names names;
  };
  static constexpr size_t kHeldBytesMax{64 << 10};

  bool bcast{false};
  bool optin{false};
  bool optout{false};
  bool noloop{false};
  bool caching{false};          // CLIENT CACHING was said: for the next command
  bool broken_redirect{false};  // the client that messages go to has left
  uint64_t redirect{0};         // id of the client that gets the messages; 0: this one
  std::set<std::string, std::less<>> prefixes;
  size_t prefix_bytes{0};  // their memory, here and in the table
  PassedWrites passed;     // with NOLOOP
  std::vector<Held> held;  // ascending
  size_t held_bytes{0};
};

class Tracking {
 public:
  // Who has made a change: NOLOOP keeps it from that client.
  struct Writer {
    uint64_t id{0};          // a client of this node; 0: none that is known
    int64_t step_micros{0};  // then: the commit time of the step that another node has written,
                             // perhaps for a client of this one (PassedWrites); 0: for none
    friend bool operator==(const Writer&, const Writer&) = default;
  };
  enum class Extent : uint8_t { kRow, kTable, kAll };
  struct Change {
    Extent extent;
    std::string name;  // TrackedName's, of kAll none
    Writer writer;
  };

  // Switches it on, or on again with other options (prefixes add up). REQUIRES: the options fit
  // together and to what is on.
  void Enable(Session& session, const TrackingState& options);
  // Nothing happens if it is off.
  void Disable(Session& session);

  // A name that a command reads, and how its client wrote the name of the table.
  struct ReadName {
    std::string name;
    uint8_t spellings;
  };

  // Whether any client tracks, here or at other sets' nodes: only then the rest needs to be called.
  bool active() const { return clients_ > 0 || news_.wanted(); }
  ChangeNews& news() { return news_; }
  // Whose command runs: NOLOOP keeps its changes from it.
  void SetWriter(const Session& session);

  // `session` has begun to run the command: what it reads is remembered. Not called for commands
  // that were refused.
  void Remember(Host& host, Session& session, const CommandEntry& command, Arguments args);
  // The names of what the command reads, as far as its client wants to be told of changes of it.
  static std::vector<ReadName> NamesOf(Host& host, const Session& session,
                                       const CommandEntry& command, Arguments args);
  // REQUIRES: those of a session that is not in BCAST mode.
  void RememberNames(Host& host, const Session& session, const std::vector<ReadName>& names);
  // Whether the session has not been told of a change of it since it was remembered.
  bool Remembers(const Session& session, std::string_view name) const;
  // CLIENT CACHING holds for one command.
  static void EndCaching(Session& session, const CommandEntry& command);

  // A row, or a whole table, has changed. `row` is as the client wrote it; a text that is no key of
  // the table changes nothing. Inside a transaction they are told by Publish.
  void RowChanged(Host& host, const Table& table, std::string_view row);
  void TableChanged(Host& host, std::string_view keyspace, std::string_view table);
  // Cells of a row have been reclaimed. `row_key` is encoded.
  void RowReclaimed(Host& host, const Table& table, std::string_view row_key);
  void AllChanged(Host& host);
  // What has changed in this order, by one command or one EXEC: at once, also inside a transaction.
  void Tell(Host& host, std::span<const Change> changes);
  // To one that tracks: these may have changed.
  void TellNames(Host& host, Session& session, const std::vector<ReadName>& names);
  // To one that tracks: everything may have changed.
  void TellEverything(Host& host, const Session& session);
  // What has been held back for a client with NOLOOP until it is known whether it has written that
  // itself, as far as that is known now.
  void TellHeld(Host& host, Session& session);
  // After a commit; after a rollback.
  void Publish(Host& host);
  void Forget() { waiting_.clear(); }

  // Forgets what is beyond the limit; when the limit has been lowered.
  void Shrink(Host& host, size_t keys_max);

  size_t clients() const { return clients_; }
  size_t keys() const { return keys_.size(); }
  size_t items() const { return items_; }
  size_t prefixes() const { return prefixes_.size(); }
  // Of the names that were read, and who did.
  size_t memory_bytes() const {
    return name_bytes_ + keys_.size() * kNameBytes + items_ * sizeof(Reader) + news_.memory_bytes();
  }

 private:
  using Ids = std::vector<uint64_t>;  // ascending
  // A client that has read something, and how it wrote the name of the table: bits.
  enum Spelling : uint8_t { kPlain = 1, kWithKeyspace = 2, kAnySpelling = 3 };
  struct Reader {
    uint64_t id;
    uint8_t spellings;
  };
  using Readers = std::vector<Reader>;  // ascending by id
  using Names = TrackingState::Names;
  static constexpr size_t kNameBytes{128};  // of a node of keys_, about

  void Changed(Host& host, Change change);
  // Tell of what this node has changed.
  void TellOwn(Host& host, std::span<const Change> changes);
  // For each prefix and client in BCAST mode the names to tell it, in one message.
  struct Broadcast {
    Writer writer{};
    Names names{};
  };
  using Broadcasts = std::map<std::pair<std::string_view, uint64_t>, Broadcast>;

  void TellAll(Host& host, Writer writer);
  void TellReaders(Host& host, std::string_view name, const Change& change);
  void TellReadersBelow(Host& host, const Change& change);
  // Adds what a message about `name` says by tracking-names.
  static void AddNames(const Host& host, std::string_view name, uint8_t spellings, Names* names);
  static void AddReader(Readers* readers, Reader reader);
  void CollectBroadcasts(Host& host, const Change& change, Broadcasts* broadcasts) const;
  void SendBroadcasts(Host& host, Broadcasts* broadcasts);
  void RememberName(Host& host, std::string name, Reader reader);
  // No names: everything.
  void Send(Host& host, uint64_t id, const Names& names, Writer writer);
  void SendNow(Host& host, Session& session, const Names& names);

  size_t clients_{0};
  size_t items_{0};
  size_t name_bytes_{0};
  uint64_t writer_{0};  // whose command runs
  std::map<std::string, Readers, std::less<>> keys_;
  std::map<std::string, Ids, std::less<>> prefixes_;
  std::string last_forgotten_;  // the limit takes names in turn, from here on
  std::vector<Change> waiting_;
  ChangeNews news_;
};

}  // namespace cellar
