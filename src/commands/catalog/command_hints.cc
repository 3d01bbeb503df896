// See command_hints.h.
#include "commands/catalog/command_hints.h"

#include "base/text/ascii.h"
#include "base/text/near_word.h"
#include "commands/arguments/arguments.h"

namespace cellar {
namespace {

// What others call it, and what to write here.
struct ForeignWord {
  std::string_view word;
  std::string_view instead;
};

constexpr std::string_view kPut = "CPUT table row column value";
constexpr std::string_view kGet = "CGET table row column, or CROW table row";
constexpr std::string_view kRow = "CROW table row";
constexpr std::string_view kDelete = "CDEL table row [column ...]";
constexpr std::string_view kIncrement = "CINCRBY table row column delta";
constexpr std::string_view kIncrementFloat = "CINCRBYFLOAT table row column delta";
constexpr std::string_view kExists = "CEXISTS table row column";
constexpr std::string_view kRowLength = "CCOUNT table ROWS 1 row BY COLUMNS";
constexpr std::string_view kRowRange = "CROW table row COLRANGE family min max";
constexpr std::string_view kNumbered = "CPUT table * column value, of a table with KEY recno";
constexpr std::string_view kScan = "CSCAN table 0 [RANGE min max]";
constexpr std::string_view kExpire =
    "CPUT table row column value TTL duration, or FAMILY ALTER table family TTL duration";
constexpr std::string_view kEstimate =
    "CADD table row column input, of a family with AGGREGATE hll; CGET gives the estimate";
constexpr std::string_view kSeries =
    "CPUT table row column value TS micros; CADD, of a family with AGGREGATE and BUCKET, adds up";
constexpr std::string_view kSeriesRange =
    "CROW table row COLUMNS 1 column VERSIONS ALL TIME min max; CAGG ... BY TIME duration adds up";
constexpr std::string_view kDocument =
    "CPUT table row family:path value [AS type] ..., a column for each field";
constexpr std::string_view kPlace =
    "CPUT table row column value, with a geohash in front of the row key";
constexpr std::string_view kNearby = "CSCAN table 0 PREFIX geohash";
constexpr std::string_view kCreate = "TABLE CREATE table FAMILY family";
constexpr std::string_view kShow = "TABLE SHOW table";
constexpr std::string_view kList = "TABLE LIST";
constexpr std::string_view kAlter = "FAMILY ADD|ALTER|DROP table family";
constexpr std::string_view kUsers = "ACL SETUSER user [rule ...]";

constexpr ForeignWord kCommandWords[] = {
    // Redis: strings and keys
    {"set", kPut},
    {"mset", kPut},
    {"getset", kPut},
    {"setnx", "CPUT table row NX column value"},
    {"msetnx", "CPUT table row NX column value"},
    {"setex", "CPUT table row column value TTL duration"},
    {"psetex", "CPUT table row column value TTL duration"},
    {"get", kGet},
    {"getex", kGet},
    {"mget", "CMGET table row column ..."},
    {"getdel", kDelete},
    {"incr", kIncrement},
    {"incrby", kIncrement},
    {"decr", kIncrement},
    {"decrby", kIncrement},
    {"incrbyfloat", kIncrementFloat},
    {"append", "CAPPEND table row column bytes"},
    {"expire", kExpire},
    {"pexpire", kExpire},
    {"expireat", kExpire},
    {"pexpireat", kExpire},
    // hashes
    {"hset", kPut},
    {"hmset", kPut},
    {"hsetnx", "CPUT table row NX column value"},
    {"hget", kGet},
    {"hmget", "CMGET table row column ..."},
    {"hgetall", kRow},
    {"hkeys", kRow},
    {"hvals", kRow},
    {"hscan", "CSCAN table cursor ROWS 1 row CELLS count"},
    {"hdel", kDelete},
    {"hexists", kExists},
    {"hlen", kRowLength},
    {"hincrby", kIncrement},
    {"hincrbyfloat", kIncrementFloat},
    // sets and sorted sets: the qualifiers of a row are one
    {"sadd", kPut},
    {"srem", kDelete},
    {"smembers", kRow},
    {"sismember", kExists},
    {"scard", kRowLength},
    {"zadd", kPut},
    {"zrem", kDelete},
    {"zscore", kGet},
    {"zcard", kRowLength},
    {"zincrby", kIncrementFloat},
    {"zrange", kRowRange},
    {"zrangebylex", kRowRange},
    {"zrangebyscore", kRowRange},
    {"zrevrange", "CROW table row COLRANGE family min max COLREVERSE"},
    // HyperLogLogs, time series, documents, places
    {"pfadd", kEstimate},
    {"pfcount", kGet},
    {"pfmerge", "CMUTATE table row MERGE column state"},
    {"ts.add", kSeries},
    {"ts.madd", kSeries},
    {"ts.incrby", kSeries},
    {"ts.create", kCreate},
    {"ts.get", kGet},
    {"ts.range", kSeriesRange},
    {"ts.revrange", kSeriesRange},
    {"ts.mrange", kSeriesRange},
    {"json.set", kDocument},
    {"json.mset", kDocument},
    {"json.get", kRow},
    {"json.mget", "CROWS table count row ..."},
    {"json.del", kDelete},
    {"json.numincrby", kIncrement},
    {"geoadd", kPlace},
    {"geosearch", kNearby},
    {"georadius", kNearby},
    // lists
    {"lpush", kNumbered},
    {"rpush", kNumbered},
    {"lrange", kScan},
    {"llen", "CCOUNT table"},
    // SQL and CQL
    {"insert", kPut},
    {"update", "CUPDATE table ALL|PREFIX prefix [WHERE condition] PUT column value"},
    {"upsert", kPut},
    {"replace", kPut},
    {"delete", kDelete},
    {"create", kCreate},
    {"drop", "TABLE DROP table"},
    {"alter", kAlter},
    {"truncate", "TABLE TRUNCATE table"},
    {"describe", kShow},
    {"desc", kShow},
    {"show", kList},
    {"use", "SELECT keyspace"},
    {"begin", "MULTI [ATOMIC]"},
    {"commit", "EXEC"},
    {"rollback", "DISCARD"},
    {"explain", "CEXPLAIN CSCAN table 0 [option ...]"},
    {"grant", kUsers},
    {"revoke", kUsers},
    // cbt
    {"createtable", kCreate},
    {"deletetable", "TABLE DROP table"},
    {"createfamily", "FAMILY ADD table family"},
    {"deletefamily", "FAMILY DROP table family"},
    {"setgcpolicy", "FAMILY ALTER table family GC policy"},
    {"ls", kList},
    {"read", "CSCAN table 0 [PREFIX prefix]"},
    {"lookup", kRow},
    {"count", "CCOUNT table"},
    {"addtocell", kIncrement},
    {"deleterow", kDelete},
    {"deletecolumn", kDelete},
    {"deleteallrows", "CDELRANGE table ALL"},
    // HBase's shell, WiredTiger's cursors
    {"put", kPut},
    {"list", kList},
    {"deleteall", kDelete},
    {"get_counter", kGet},
    {"search", kGet},
    {"search_near", "CNEAR table row"},
    // other guesses
    {"add", kPut},
    {"write", kPut},
    {"getall", kRow},
    {"getrow", kRow},
    {"row", kRow},
    {"remove", kDelete},
    {"rem", kDelete},
    {"range", kScan},
    {"len", "CCOUNT table"},
    {"tables", kList},
    {"families", kShow},
    {"help", "COMMAND DOCS, or TABLE HELP"},
};

struct ForeignSubcommand {
  std::string_view container;
  std::string_view word;
  std::string_view instead;
};
constexpr ForeignSubcommand kSubcommandWords[] = {
    {"table", "add", "TABLE CREATE"},
    {"table", "new", "TABLE CREATE"},
    {"table", "delete", "TABLE DROP"},
    {"table", "remove", "TABLE DROP"},
    {"table", "describe", "TABLE SHOW"},
    {"table", "schema", "TABLE SHOW"},
    {"table", "alter", kAlter},
    {"table", "exists", "EXISTS table"},
    {"table", "count", "CCOUNT table"},
    {"table", "clear", "TABLE TRUNCATE"},
    {"family", "create", "FAMILY ADD"},
    {"family", "new", "FAMILY ADD"},
    {"family", "delete", "FAMILY DROP"},
    {"family", "remove", "FAMILY DROP"},
    {"family", "change", "FAMILY ALTER"},
    {"family", "set", "FAMILY ALTER"},
    {"family", "list", "TABLE INFO"},
    {"family", "show", "FAMILY INFO"},
    {"family", "describe", "FAMILY INFO"},
    {"index", "add", "INDEX CREATE"},
    {"index", "new", "INDEX CREATE"},
    {"index", "delete", "INDEX DROP"},
    {"index", "remove", "INDEX DROP"},
    {"index", "show", "INDEX INFO"},
    {"index", "describe", "INDEX INFO"},
    {"keyspace", "add", "KEYSPACE CREATE"},
    {"keyspace", "use", "SELECT keyspace"},
    {"keyspace", "delete", "KEYSPACE DROP"},
};

std::string_view FindForeign(std::string_view word) {
  for (const ForeignWord& foreign : kCommandWords) {
    if (EqualsIgnoreCase(word, foreign.word)) return foreign.instead;
  }
  return {};
}

template <typename Entries>
const CommandEntry* FindNearest(const Entries& entries, std::string_view word) {
  const auto found =
      FindNearWord(entries, word, [](const CommandEntry* entry) { return entry->row->name; });
  return found == entries.end() ? nullptr : *found;
}

}  // namespace

std::string CommandHint(const CommandTable& commands, std::string_view word) {
  std::string_view instead = FindForeign(word);
  // CSET, CGETALL: guessed after the commands that there are.
  if (instead.empty() && !word.empty() && LowerChar(word[0]) == 'c') {
    instead = FindForeign(word.substr(1));
  }
  if (!instead.empty()) return std::string("-- try ").append(instead);
  const CommandEntry* nearest = FindNearest(commands.commands(), word);
  if (nearest == nullptr) return {};
  return "-- did you mean " + UpperText(nearest->row->name) + "?";
}

std::string SubcommandHint(const CommandEntry& container, std::string_view word) {
  const std::string name = UpperText(container.row->name);
  for (const ForeignSubcommand& foreign : kSubcommandWords) {
    if (foreign.container == container.row->name && EqualsIgnoreCase(word, foreign.word)) {
      return std::string(" Did you mean ").append(foreign.instead).append("?");
    }
  }
  if (const CommandEntry* nearest = FindNearest(container.subcommands, word)) {
    return " Did you mean " + name + " " + UpperText(nearest->row->name) + "?";
  }
  // Redis' own containers keep its text; their HELP is known.
  if (container.row->group != "schema") return {};
  std::string list;
  for (const CommandEntry* sub : container.subcommands) {
    if (sub->row->name == "help") continue;
    list.append(list.empty() ? " There are " : ", ").append(UpperText(sub->row->name));
  }
  return list.append(".");
}

}  // namespace cellar
