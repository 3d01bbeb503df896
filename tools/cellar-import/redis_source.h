// The keys of a Redis, as rows: what `--from-redis` imports.
//
//   hash     user:7 {name: Ada, age: 36}   row user:7, family:name, family:age
//   string   motd "hello"                  row motd, family:value
//
// A key's time to live becomes the expiry of its cells, a field's own that of its cell. Other types
// are refused, key by key.
//
// The keys come by SCAN, so this is no picture of one moment: a key that is changed meanwhile comes
// as it was found, and one may come twice. What is read ahead is bounded: a batch of keys, and of
// hashes with many fields a piece at a time, which becomes a row of its own with the same key.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "cellar-import/row_mapper.h"
#include "cellar/status.h"
#include "client/connection.h"

namespace cellar::importer {

struct RedisOptions {
  client::ConnectionOptions server;
  std::string match;          // SCAN's pattern, or empty
  std::string key_delimiter;  // becomes # in row keys; empty: keys are as they are
};

// What became of a key. A hash with many fields is several records.
struct RedisRecord {
  std::string key;
  std::string error;        // why it cannot be a row, or empty
  std::string cursor;       // not empty: SCAN goes on here when this record is done
  std::vector<Cell> cells;  // of no family yet: the qualifier is the field
};

class RedisSource {
 public:
  explicit RedisSource(RedisOptions options) : options_(std::move(options)) {}

  // The cursor behind the last key.
  static constexpr const char* kEndCursor{"end"};
  // Connects; begins at `cursor`, "0" is the beginning. How many keys there are.
  Result<uint64_t> Open(const std::string& cursor);
  // False at the end. kIo: the connection is lost.
  Result<bool> Next(RedisRecord* record);

 private:
  struct Key {
    std::string name;
    std::string type;
    uint64_t fields{0};
    int64_t expires_micros{0};  // 0: never
  };

  Status ReadBatch();
  Status Describe(const std::vector<std::string>& names, std::vector<Key>* keys);
  Status ReadKeys(const std::vector<Key>& keys);
  Status ReadPiecewise(const Key& key);
  Status ReadFieldExpiries(size_t first);
  Result<client::Reply> Call(const std::vector<std::string_view>& words);
  void AddCells(const Key& key, const redisReply& pairs, RedisRecord* record) const;

  RedisOptions options_;
  std::unique_ptr<client::Connection> connection_;
  bool absolute_expiries_{false};  // PEXPIRETIME is there (Redis 7)
  bool field_expiries_{false};     // HPEXPIRETIME is there (Redis 7.4)
  bool ended_{false};
  std::string cursor_;
  std::deque<RedisRecord> ready_;
  // Of the hash that comes piece by piece.
  Key wide_;
  std::string wide_cursor_;   // empty: there is none
  std::vector<Key> waiting_;  // behind it, the next one last
  std::string batch_cursor_;  // of the record that ends the batch
};

}  // namespace cellar::importer
