// See metrics.h.
#include "cellar-web/metrics.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <set>
#include <utility>

namespace cellar::web {
namespace {

constexpr std::chrono::seconds kPauseUnreachable{5};
constexpr std::chrono::seconds kPauseBetweenRounds{5};
constexpr std::chrono::milliseconds kRestMin{2};

std::string_view TextOf(const redisReply& reply) { return {reply.str, reply.len}; }

std::string NumberOf(const redisReply& reply) {
  return reply.type == REDIS_REPLY_INTEGER ? std::to_string(reply.integer) : std::string("0");
}

// A field of a map that is a flat array; null if it is not there.
const redisReply* Field(const redisReply& map, std::string_view name) {
  for (size_t i = 0; i + 1 < map.elements; i += 2) {
    if (TextOf(*map.element[i]) == name) return map.element[i + 1];
  }
  return nullptr;
}

void AddFieldOf(const redisReply& map, std::string_view field, std::string_view name,
                std::string_view help, std::initializer_list<Label> labels, Exposition* out) {
  const redisReply* const value = Field(map, field);
  if (value != nullptr && value->type == REDIS_REPLY_INTEGER) {
    out->Add(name, MetricKind::kGauge, help, labels, NumberOf(*value));
  }
}

// The seconds in a feed's id, "ms-n".
std::string SecondsOfId(std::string_view id) {
  const size_t dash = id.find('-');
  const std::string ms(id.substr(0, dash));
  if (ms.size() <= 3 || ms.size() > 17) return "0";
  return ms.substr(0, ms.size() - 3) + "." + ms.substr(ms.size() - 3);
}

}  // namespace

Metrics::Metrics(client::ConnectionOptions server, std::string token)
    : server_(std::move(server)), expected_("Bearer " + token) {
  thread_ = std::thread([this] { GatherForEver(); });
}

Metrics::~Metrics() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool Metrics::Allows(std::string_view authorization) const {
  return authorization.size() == expected_.size() &&
         CRYPTO_memcmp(authorization.data(), expected_.data(), expected_.size()) == 0;
}

std::string Metrics::Scrape() {
  const std::lock_guard scraping(scrape_mutex_);
  Exposition out;
  bool is_up = false;
  std::string trouble;
  for (int attempt = 0; attempt < 2 && !is_up; ++attempt) {  // the connection may be an old one
    if (!scraping_) {
      Result<client::Connection> opened = client::Connection::Open(server_);
      if (!opened.ok()) {
        trouble = opened.status().text();
        break;
      }
      scraping_ = std::move(*opened);
    }
    const Result<client::Reply> latencies = scraping_->Call({"LATENCY", "HISTOGRAM"});
    const Result<client::Reply> info =
        latencies.ok() ? scraping_->Call({"INFO", "everything"}) : latencies.status();
    if (!info.ok()) {
      trouble = info.status().text();
      scraping_.reset();
      continue;
    }
    trouble = client::ErrorText(**info);
    is_up = trouble.empty();
    if (!is_up) continue;
    AddInfo(TextOf(**info), &out, nullptr);
    if ((*latencies)->type == REDIS_REPLY_ARRAY) AddLatencies(**latencies, TextOf(**info), &out);
  }
  out.Add("cellar_up", MetricKind::kGauge, "Whether the server answers, and lets the user in.", {},
          is_up ? "1" : "0");
  if (!is_up) {
    std::replace(trouble.begin(), trouble.end(), '\n', ' ');
    return "# " + trouble + "\n" + out.Text();  // a comment, for who looks why
  }
  const std::lock_guard lock(mutex_);
  if (!model_time_) return out.Text();
  const auto age = std::chrono::steady_clock::now() - *model_time_;
  out.Add("cellar_model_age_seconds", MetricKind::kGauge,
          "How old the figures of indexes, feeds, snapshots and families are.", {},
          fmt::format("{:.1f}", std::chrono::duration<double>(age).count()));
  return out.Text() + model_;
}

void Metrics::GatherForEver() {
  std::chrono::nanoseconds pause{0};
  while (Rest(pause)) {
    if (!gathering_) {
      Result<client::Connection> opened = client::Connection::Open(server_);
      if (!opened.ok()) {
        pause = kPauseUnreachable;
        continue;
      }
      gathering_ = std::move(*opened);
    }
    std::optional<std::string> model = Gather();
    pause = model ? kPauseBetweenRounds : kPauseUnreachable;
    if (!model) continue;
    const std::lock_guard lock(mutex_);
    model_ = std::move(*model);
    model_time_ = std::chrono::steady_clock::now();
  }
}

std::optional<std::string> Metrics::Gather() {
  Exposition out;
  std::vector<ToldTable> tables;
  std::set<std::string> keyspaces{"0"};
  {
    const client::Reply info = Ask({"INFO", "everything"});
    if (info == nullptr || !client::ErrorText(*info).empty()) return std::nullopt;
    Exposition none;
    AddInfo(TextOf(*info), &none, &tables);
  }
  for (const ToldTable& table : tables) {
    keyspaces.insert(std::string(DivideName(table.name).first));
    if (table.has_indexes && !GatherIndexes(table, &out)) return std::nullopt;
    if (!GatherFamilies(table, &out)) return std::nullopt;
  }
  for (const std::string& keyspace : keyspaces) {
    const client::Reply selected = Ask({"SELECT", keyspace});
    if (selected == nullptr) return std::nullopt;
    if (!client::ErrorText(*selected).empty()) continue;
    if (!GatherFeeds(keyspace, &out) || !GatherSnapshots(keyspace, &out)) return std::nullopt;
  }
  return out.Text();
}

bool Metrics::GatherIndexes(const ToldTable& table, Exposition* out) {
  const auto [keyspace, name] = DivideName(table.name);
  const client::Reply list = Ask({"INDEX", "LIST", table.name});
  if (list == nullptr) return false;
  for (size_t i = 0; list->type == REDIS_REPLY_ARRAY && i < list->elements; ++i) {
    const std::string_view index = TextOf(*list->element[i]);
    const client::Reply info = Ask({"INDEX", "INFO", table.name, index});
    if (info == nullptr) return false;
    if (info->type != REDIS_REPLY_ARRAY) continue;  // dropped meanwhile
    const std::initializer_list<Label> labels{
        {"keyspace", keyspace}, {"table", name}, {"index", index}};
    AddFieldOf(*info, "entries", "cellar_index_entries", "Entries of an index.", labels, out);
    AddFieldOf(*info, "bytes", "cellar_index_bytes", "Memory of an index.", labels, out);
    AddFieldOf(*info, "left_out", "cellar_index_left_out",
               "Rows that an index lacks, for a cell's type or size.", labels, out);
    const redisReply* const state = Field(*info, "state");
    if (state == nullptr) continue;
    out->Add("cellar_index_ready", MetricKind::kGauge, "Whether an index is built.", labels,
             TextOf(*state) == "ready" ? "1" : "0");
  }
  return true;
}

bool Metrics::GatherFamilies(const ToldTable& table, Exposition* out) {
  const auto [keyspace, name] = DivideName(table.name);
  const client::Reply info = Ask({"TABLE", "INFO", table.name});
  if (info == nullptr) return false;
  const redisReply* const families =
      info->type == REDIS_REPLY_ARRAY ? Field(*info, "families") : nullptr;
  for (size_t i = 0; families != nullptr && i < families->elements; ++i) {
    const std::string_view family = TextOf(*families->element[i]);
    const client::Reply told = Ask({"FAMILY", "INFO", table.name, family});
    if (told == nullptr) return false;
    if (told->type != REDIS_REPLY_ARRAY) continue;
    const std::initializer_list<Label> labels{
        {"keyspace", keyspace}, {"table", name}, {"family", family}};
    AddFieldOf(*told, "cells", "cellar_family_cells", "Cells of a family.", labels, out);
    AddFieldOf(*told, "memory", "cellar_family_memory_bytes", "Memory of a family.", labels, out);
    AddFieldOf(*told, "disk", "cellar_family_disk_bytes",
               "A family's part of the newest snapshot file.", labels, out);
    AddFieldOf(*told, "log_bytes", "cellar_family_log_bytes",
               "Changes of a family since that snapshot, in the log.", labels, out);
  }
  return true;
}

bool Metrics::GatherFeeds(const std::string& keyspace, Exposition* out) {
  const client::Reply list = Ask({"FEED", "LIST"});
  if (list == nullptr) return false;
  for (size_t i = 0; list->type == REDIS_REPLY_ARRAY && i < list->elements; ++i) {
    const std::string_view feed = TextOf(*list->element[i]);
    const client::Reply info = Ask({"FEED", "INFO", feed});
    const client::Reply groups = info == nullptr ? nullptr : Ask({"XINFO", "GROUPS", feed});
    if (groups == nullptr) return false;
    if (info->type != REDIS_REPLY_ARRAY) continue;
    const std::initializer_list<Label> labels{{"keyspace", keyspace}, {"feed", feed}};
    AddFieldOf(*info, "bytes", "cellar_feed_log_bytes", "Log that a feed keeps.", labels, out);
    if (const redisReply* const first = Field(*info, "first");
        first != nullptr && first->type == REDIS_REPLY_STRING) {
      out->Add("cellar_feed_oldest_timestamp_seconds", MetricKind::kGauge,
               "When the oldest entry of a feed was committed.", labels,
               SecondsOfId(TextOf(*first)));
    }
    for (size_t g = 0; groups->type == REDIS_REPLY_ARRAY && g < groups->elements; ++g) {
      const redisReply* const name = Field(*groups->element[g], "name");
      if (name == nullptr) continue;
      const std::initializer_list<Label> of{
          {"keyspace", keyspace}, {"feed", feed}, {"group", TextOf(*name)}};
      AddFieldOf(*groups->element[g], "lag", "cellar_feed_group_lag",
                 "Entries that a group has not read.", of, out);
      AddFieldOf(*groups->element[g], "pending", "cellar_feed_group_pending",
                 "Entries that consumers of a group have not acknowledged.", of, out);
      AddFieldOf(*groups->element[g], "consumers", "cellar_feed_group_consumers",
                 "Consumers of a group.", of, out);
    }
  }
  return true;
}

bool Metrics::GatherSnapshots(const std::string& keyspace, Exposition* out) {
  const client::Reply list = Ask({"SNAPSHOT", "LIST"});
  if (list == nullptr) return false;
  for (size_t i = 0; list->type == REDIS_REPLY_ARRAY && i < list->elements; ++i) {
    const redisReply& each = *list->element[i];
    const std::string_view snapshot =
        each.type == REDIS_REPLY_STRING ? TextOf(each) : std::string_view();
    if (snapshot.empty()) continue;
    const client::Reply info = Ask({"SNAPSHOT", "INFO", snapshot});
    if (info == nullptr) return false;
    if (info->type != REDIS_REPLY_ARRAY) continue;
    const std::initializer_list<Label> labels{{"keyspace", keyspace}, {"snapshot", snapshot}};
    AddFieldOf(*info, "held", "cellar_snapshot_held_bytes",
               "Memory that only a named snapshot keeps.", labels, out);
    if (const redisReply* const created = Field(*info, "created");
        created != nullptr && created->type == REDIS_REPLY_INTEGER) {
      out->Add("cellar_snapshot_created_timestamp_seconds", MetricKind::kGauge,
               "When a named snapshot was made.", labels,
               fmt::format("{}.{:06}", created->integer / 1'000'000, created->integer % 1'000'000));
    }
  }
  return true;
}

client::Reply Metrics::Ask(std::initializer_list<std::string_view> words) {
  if (!gathering_) return nullptr;
  const auto begin = std::chrono::steady_clock::now();
  Result<client::Reply> reply = gathering_->Call(words);
  const auto took = std::chrono::steady_clock::now() - begin;
  if (!reply.ok()) {
    gathering_.reset();
    return nullptr;
  }
  if (!Rest(std::max<std::chrono::nanoseconds>(kRestFactor * took, kRestMin))) return nullptr;
  return std::move(*reply);
}

bool Metrics::Rest(std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, time, [this] { return ends_; });
}

}  // namespace cellar::web
