// See redis_source.h.
#include "cellar-import/redis_source.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cellar/clock.h"
#include "client/command_words.h"

namespace cellar::importer {
namespace {

constexpr const char* kKeysPerScan{"500"};
constexpr uint64_t kFieldsWhole{2000};    // a hash with more comes in pieces
constexpr uint64_t kFieldsAhead{20'000};  // asked for at a time
constexpr const char* kFieldsPerPiece{"2000"};

std::string_view View(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view() : std::string_view(reply.str, reply.len);
}

Status RedisError(std::string_view text) {
  return Status::Error(ErrorCode::kErr, "Redis: " + std::string(text));
}

bool IsUnknownCommand(std::string_view error) {
  return error.find("unknown command") != std::string_view::npos;
}

}  // namespace

Result<client::Reply> RedisSource::Call(const std::vector<std::string_view>& words) {
  std::string bytes;
  client::AppendCommand(words, &bytes);
  RETURN_IF_ERROR(connection_->Append(bytes));
  return connection_->Read();
}

Result<uint64_t> RedisSource::Open(const std::string& cursor) {
  Result<client::Connection> connection = client::Connection::Open(options_.server);
  if (!connection.ok()) {
    return Status::Error(connection.status().code(), "Redis: " + connection.status().text());
  }
  connection_ = std::make_unique<client::Connection>(*std::move(connection));
  cursor_ = cursor;
  for (const auto& [command, there] :
       {std::pair{"PEXPIRETIME", &absolute_expiries_}, {"HPEXPIRETIME", &field_expiries_}}) {
    const bool of_field = command[0] == 'H';
    std::vector<std::string_view> words{command, "cellar-import: is this command there?"};
    if (of_field) words.insert(words.end(), {"FIELDS", "1", "f"});
    ASSIGN_OR_RETURN(const client::Reply reply, Call(words));
    const std::string_view error = client::ErrorText(*reply);
    if (!error.empty() && !IsUnknownCommand(error)) return RedisError(error);
    *there = error.empty();
  }
  ASSIGN_OR_RETURN(const client::Reply size, Call({"DBSIZE"}));
  return size->type == REDIS_REPLY_INTEGER ? static_cast<uint64_t>(size->integer) : 0;
}

Result<bool> RedisSource::Next(RedisRecord* record) {
  while (ready_.empty()) {
    if (!wide_cursor_.empty()) {
      RETURN_IF_ERROR(ReadPiecewise(wide_));
    } else if (!waiting_.empty()) {
      std::vector<Key> keys = std::exchange(waiting_, {});
      RETURN_IF_ERROR(ReadKeys(keys));
    } else if (!ended_) {
      RETURN_IF_ERROR(ReadBatch());
    } else {
      return false;
    }
    // The last record of a batch says where SCAN goes on.
    const bool batch_ends = wide_cursor_.empty() && waiting_.empty() && !batch_cursor_.empty();
    if (batch_ends && !ready_.empty()) ready_.back().cursor = std::exchange(batch_cursor_, {});
  }
  *record = std::move(ready_.front());
  ready_.pop_front();
  return true;
}

Status RedisSource::ReadBatch() {
  std::vector<std::string_view> words{"SCAN", cursor_};
  if (!options_.match.empty()) words.insert(words.end(), {"MATCH", options_.match});
  words.insert(words.end(), {"COUNT", kKeysPerScan});
  ASSIGN_OR_RETURN(const client::Reply reply, Call(words));
  if (const std::string_view error = client::ErrorText(*reply); !error.empty()) {
    return RedisError(error);
  }
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
    return RedisError("SCAN's answer makes no sense");
  }
  cursor_ = View(*reply->element[0]);
  ended_ = cursor_ == "0";
  batch_cursor_ = ended_ ? kEndCursor : cursor_;
  std::vector<std::string> names;
  const redisReply& found = *reply->element[1];
  for (size_t i = 0; i < found.elements; ++i) names.emplace_back(View(*found.element[i]));
  if (names.empty()) return Status::Ok();
  std::vector<Key> keys;
  RETURN_IF_ERROR(Describe(names, &keys));
  return ReadKeys(keys);
}

// Types, sizes and expiries, in one round trip.
Status RedisSource::Describe(const std::vector<std::string>& names, std::vector<Key>* keys) {
  std::string bytes;
  for (const std::string& name : names) {
    client::AppendCommand(std::vector<std::string_view>{"TYPE", name}, &bytes);
    client::AppendCommand(
        std::vector<std::string_view>{absolute_expiries_ ? "PEXPIRETIME" : "PTTL", name}, &bytes);
    client::AppendCommand(std::vector<std::string_view>{"HLEN", name}, &bytes);
  }
  RETURN_IF_ERROR(connection_->Append(bytes));
  const int64_t now_ms = Clock::System().WallMicros() / 1000;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const client::Reply type, connection_->Read());
    ASSIGN_OR_RETURN(const client::Reply expiry, connection_->Read());
    ASSIGN_OR_RETURN(const client::Reply fields, connection_->Read());
    if (const std::string_view error = client::ErrorText(*type); !error.empty()) {
      return RedisError(error);
    }
    Key key{name, std::string(View(*type))};
    if (key.type == "none") continue;  // it has gone
    if (expiry->type == REDIS_REPLY_INTEGER && expiry->integer >= 0) {
      key.expires_micros = (expiry->integer + (absolute_expiries_ ? 0 : now_ms)) * 1000;
    }
    if (fields->type == REDIS_REPLY_INTEGER) key.fields = static_cast<uint64_t>(fields->integer);
    keys->push_back(std::move(key));
  }
  return Status::Ok();
}

void RedisSource::AddCells(const Key& key, const redisReply& pairs, RedisRecord* record) const {
  for (size_t i = 0; i + 1 < pairs.elements; i += 2) {
    Cell& cell = record->cells.emplace_back();
    cell.qualifier = View(*pairs.element[i]);
    cell.value = View(*pairs.element[i + 1]);
    if (key.expires_micros > 0) cell.expires_micros = key.expires_micros;
  }
}

// As many as may be asked for at a time; those behind a wide hash wait until it is done.
Status RedisSource::ReadKeys(const std::vector<Key>& keys) {
  std::string bytes;
  std::vector<const Key*> asked;
  uint64_t fields = 0;
  size_t at = 0;
  for (; at < keys.size() && fields < kFieldsAhead; ++at) {
    const Key& key = keys[at];
    if (key.type == "hash" && key.fields > kFieldsWhole) {
      wide_ = key;
      wide_cursor_ = "0";
      ++at;
      break;
    }
    asked.push_back(&key);
    if (key.type == "hash") {
      client::AppendCommand(std::vector<std::string_view>{"HGETALL", key.name}, &bytes);
      fields += key.fields;
    } else if (key.type == "string") {
      client::AppendCommand(std::vector<std::string_view>{"GET", key.name}, &bytes);
      ++fields;
    }
  }
  waiting_.assign(keys.begin() + static_cast<std::ptrdiff_t>(at), keys.end());
  const size_t first = ready_.size();
  RETURN_IF_ERROR(connection_->Append(bytes));
  for (const Key* key : asked) {
    RedisRecord record;
    record.key = key->name;
    if (key->type != "hash" && key->type != "string") {
      record.error = "is a " + key->type + ": only hashes and strings can be rows";
      ready_.push_back(std::move(record));
      continue;
    }
    ASSIGN_OR_RETURN(const client::Reply reply, connection_->Read());
    record.error = client::ErrorText(*reply);
    if (key->type == "hash" && record.error.empty()) {
      AddCells(*key, *reply, &record);
    } else if (reply->type == REDIS_REPLY_STRING) {
      Cell& cell = record.cells.emplace_back();
      cell.qualifier = "value";
      cell.value = View(*reply);
      if (key->expires_micros > 0) cell.expires_micros = key->expires_micros;
    }
    // Without cells it has gone since.
    if (!record.cells.empty() || !record.error.empty()) ready_.push_back(std::move(record));
  }
  return ReadFieldExpiries(first);
}

Status RedisSource::ReadPiecewise(const Key& key) {
  ASSIGN_OR_RETURN(const client::Reply reply,
                   Call({"HSCAN", key.name, wide_cursor_, "COUNT", kFieldsPerPiece}));
  RedisRecord record;
  record.key = key.name;
  record.error = client::ErrorText(*reply);
  if (record.error.empty() && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
    wide_cursor_ = View(*reply->element[0]);
    if (wide_cursor_ == "0") wide_cursor_.clear();
    AddCells(key, *reply->element[1], &record);
  } else {
    wide_cursor_.clear();
  }
  const size_t first = ready_.size();
  if (!record.cells.empty() || !record.error.empty()) ready_.push_back(std::move(record));
  return ReadFieldExpiries(first);
}

// Of the hashes from `first` on in ready_: a field's own expiry, if it comes sooner than the key's.
Status RedisSource::ReadFieldExpiries(size_t first) {
  if (!field_expiries_) return Status::Ok();
  std::string bytes;
  std::vector<RedisRecord*> asked;
  for (size_t i = first; i < ready_.size(); ++i) {
    RedisRecord& record = ready_[i];
    if (record.cells.empty()) continue;
    const std::string count = std::to_string(record.cells.size());
    std::vector<std::string_view> words{"HPEXPIRETIME", record.key, "FIELDS", count};
    for (const Cell& cell : record.cells) words.push_back(cell.qualifier);
    client::AppendCommand(words, &bytes);
    asked.push_back(&record);
  }
  RETURN_IF_ERROR(connection_->Append(bytes));
  for (RedisRecord* record : asked) {
    ASSIGN_OR_RETURN(const client::Reply reply, connection_->Read());
    // Of a string it is an error: it has no fields.
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != record->cells.size()) continue;
    for (size_t i = 0; i < reply->elements; ++i) {
      const int64_t expires_ms = reply->element[i]->integer;
      if (reply->element[i]->type != REDIS_REPLY_INTEGER || expires_ms < 0) continue;
      Cell& cell = record->cells[i];
      cell.expires_micros = std::min(cell.expires_micros.value_or(INT64_MAX), expires_ms * 1000);
    }
  }
  return Status::Ok();
}

}  // namespace cellar::importer
