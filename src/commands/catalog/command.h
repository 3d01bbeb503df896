// Command: one row of the command table, from which dispatch, COMMAND DOCS, redis-cli's hints,
// access control, cellar-commands(7) and the README's table come.
//
// To add commands: write a file `<group>_commands.cc` in commands/data or admin with handlers and a
// constexpr array `k<Group>Commands` of rows, declare `std::span<const Command> <Group>Commands();`
// in data_commands.h or admin_commands.h, and add it to the list in all_commands.cc. That is all.
//
//   void CmdCGet(CommandContext& ctx) { ... parse ctx.args, call ctx.store(), write ctx.reply ... }
//
//   constexpr Command kCellCommands[] = {
//       {.name = "cget",
//        .arity = -4,
//        .flags = kReadonly | kFast,
//        .categories = kCategoryCell,
//        .keys = {.first = 1, .access = KeyAccess::kRead},
//        .group = "cell",
//        .summary = "Returns the newest value of a column.",
//        .complexity = "O(log n)",
//        .syntax = "table row column [AT micros] [WITHTS]",
//        .handler = CmdCGet},
//   };
//
// `syntax` is the one description of the arguments, in the notation that people read: lower-case
// words are arguments, upper-case ones are tokens, `[ ]` optional, `|` one of, `( )` a group, `...`
// what stands before it may be repeated. COMMAND DOCS gets its argument tree from it
// (command_syntax.h). An argument named `table` is a key.
//
// A container command (CLIENT, TABLE ...) has `subcommands` and usually no handler of its own; its
// HELP is made from the rows.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cellar {

struct CommandContext;
using CommandHandler = void (*)(CommandContext& context);

// What a command is and where it may run; the words are Redis' (COMMAND INFO shows them).
enum CommandFlags : uint32_t {
  kWrite = 1u << 0,     // changes data: refused when the disk or a read-only role forbids it
  kReadonly = 1u << 1,  // reads data
  kDenyOom = 1u << 2,   // refused when maxmemory is reached
  kAdmin = 1u << 3,     // for operators
  kPubsub = 1u << 4,    // publish and subscribe
  kNoScript = 1u << 5,  // kept for clients that look at it; there is no scripting
  kBlocking = 1u << 6,  // may wait for something that others do
  kLoading = 1u << 7,   // allowed while data is loaded
  kStale = 1u << 8,     // allowed on a replica without its master
  kSkipMonitor = 1u << 9,
  kSkipSlowlog = 1u << 10,
  kNoAuth = 1u << 11,   // allowed before authentication
  kFast = 1u << 12,     // O(1) or O(log n)
  kNoMulti = 1u << 13,  // not inside MULTI
  kMovableKeys = 1u << 14,
  kAllowBusy = 1u << 15,
  kMayReplicate = 1u << 17,     // is sent to others: waits while writes are paused
  kNoMandatoryKeys = 1u << 18,  // names keys only if it likes
  kDebugging = 1u << 19,        // refused unless enable-debug-command allows it; not shown
  kImmediate = 1u << 16,  // executed at once inside MULTI (EXEC, DISCARD, WATCH ...); not shown
};

// Access control categories. Those that follow from the flags (@write, @read, @admin, @dangerous,
// @pubsub, @fast, @slow, @blocking) are added by the table; a row names the others.
enum CommandCategories : uint32_t {
  kCategoryKeyspace = 1u << 0,
  kCategoryRead = 1u << 1,
  kCategoryWrite = 1u << 2,
  kCategoryCell = 1u << 3,
  kCategorySchema = 1u << 4,
  kCategoryPubsub = 1u << 5,
  kCategoryAdmin = 1u << 6,
  kCategoryFast = 1u << 7,
  kCategorySlow = 1u << 8,
  kCategoryBlocking = 1u << 9,
  kCategoryDangerous = 1u << 10,
  kCategoryConnection = 1u << 11,
  kCategoryTransaction = 1u << 12,
  kCategoryScripting = 1u << 13,
  // Of Redis' data types: no command is in them, but rules made for Redis name them.
  kCategoryBitmap = 1u << 14,
  kCategoryGeo = 1u << 15,
  kCategoryHash = 1u << 16,
  kCategoryHyperLogLog = 1u << 17,
  kCategoryList = 1u << 18,
  kCategorySet = 1u << 19,
  kCategorySortedSet = 1u << 20,
  kCategoryStream = 1u << 21,
  kCategoryString = 1u << 22,
  kCategoryReplication = 1u << 23,
};

// What a command does with the key it names (COMMAND INFO, ACL's %R~ and %W~).
enum class KeyAccess : uint8_t { kNone, kRead, kWrite, kReadWrite };

// How much of its tables a command concerns: what access control demands before it runs. The
// engine, or the handler, asks for each family besides.
enum class KeyScope : uint8_t {
  kFamilies,    // families of the table: there must be some that may be read (or written)
  kName,        // that there is such a table: any right for a family of it will do
  kTable,       // the table as a whole: all families that it has or may get
  kEverything,  // all tables of the server, whether or not the command names any
};

// Which arguments are keys (table names). Positions count from the command's first word, 0; with
// subcommands the subcommand's word counts too (`TABLE INFO t`: first = 2).
struct KeySpec {
  int16_t first{0};  // 0: no keys
  int16_t last{0};   // 0: the same as first; -1: the last argument
  int16_t step{1};
  KeyAccess access{KeyAccess::kNone};
  // Where the row key stands, 0 if the command names none (`CWATCH table row`).
  int16_t row{0};
  // The word behind which they stand, and as many other words behind them (`XREAD ... STREAMS feed
  // ... id ...`); it may come from position `first` on.
  std::string_view keyword{};
  // Where the number of keys stands, which follow it (`EVAL script numkeys key ...`); 0: nowhere.
  // `first` and `last` are 0 then.
  int16_t count{0};
  // There are keys only where the number of words is odd: what follows them are pairs of words, and
  // the key may be left out (`TABLET LIST [table] [COUNT n]`).
  bool if_odd{false};
  KeyScope scope{KeyScope::kFamilies};

  bool none() const { return first == 0 && count == 0; }
};

// Which arguments are channels.
struct ChannelSpec {
  int16_t first{0};      // 0: none
  int16_t last{0};       // 0: the same as first; -1: the last argument
  bool patterns{false};  // they are patterns of channels
};

struct Command {
  std::string_view name;  // lower case; of a subcommand its own word only ("list")
  // Words in all, counting the name (of a subcommand: both words); -n: at least n.
  int16_t arity{0};
  uint32_t flags{0};
  uint32_t categories{0};
  KeySpec keys{};
  // Where names of feeds stand: keys for whoever asks COMMAND, and none for access control, where
  // the families count that they tell of. Of `keys` and `feeds` one is none.
  KeySpec feeds{};
  ChannelSpec channels{};
  std::string_view group{};  // of COMMAND DOCS: "cell", "schema", "connection", "server" ...
  std::string_view since{"1.0.0"};
  // What COMMAND tells as keys.
  const KeySpec& shown_keys() const { return keys.none() ? feeds : keys; }
  std::string_view summary{};
  std::string_view complexity{};
  std::string_view syntax{};  // the arguments after the name(s)
  std::span<const Command> subcommands{};
  CommandHandler handler{nullptr};  // null: a container that is nothing without a subcommand
};

}  // namespace cellar
