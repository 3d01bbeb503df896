// See cluster_state.h.
#include "client/cluster_state.h"

#include <algorithm>

#include "base/text/number.h"
#include "client/reply_fields.h"

namespace cellar::client {
namespace {

Status Unexpected() {
  return Status::Error(ErrorCode::kErr, "the server's reply is not of a server of Cellar");
}

// The reply to what was asked, a list; the server's no as an error.
Result<Reply> Ask(Connection* connection, std::initializer_list<std::string_view> words) {
  ASSIGN_OR_RETURN(Reply reply, connection->Call(words));
  if (const std::string_view error = ErrorText(*reply); !error.empty())
    return Status::Error(ErrorCode::kErr, std::string(error));
  if (!IsList(*reply)) return Unexpected();
  return reply;
}

uint64_t Unsigned(const redisReply& map, std::string_view name) {
  return static_cast<uint64_t>(std::max<int64_t>(0, NumberField(map, name)));
}

std::optional<uint64_t> Known(const redisReply& map, std::string_view name) {
  const redisReply* const field = FieldOf(map, name);
  if (field == nullptr || field->type != REDIS_REPLY_INTEGER) return std::nullopt;
  return static_cast<uint64_t>(std::max<int64_t>(0, field->integer));
}

SetMember MemberOf(const redisReply& map) {
  return {.id = TextField(map, "id"),
          .host = TextField(map, "ip"),
          .port = static_cast<int>(std::clamp<int64_t>(NumberField(map, "port"), 0, 65535)),
          .kind = TextField(map, "kind"),
          .state = TextField(map, "state"),
          .version = TextField(map, "version")};
}

SetState SetOf(const redisReply& map) {
  SetState set{.number = Known(map, "set"),
               .id = TextField(map, "id"),
               .state = TextField(map, "state"),
               .leader = TextField(map, "leader"),
               .members = {},
               .tablets = Unsigned(map, "tablets"),
               .bytes = Unsigned(map, "bytes"),
               .maxmemory = Unsigned(map, "maxmemory"),
               .catalog = Unsigned(map, "catalog")};
  const redisReply* const members = FieldOf(map, "members");
  for (size_t i = 0; members != nullptr && IsList(*members) && i < members->elements; ++i) {
    set.members.push_back(MemberOf(*members->element[i]));
  }
  return set;
}

TabletState TabletOf(const redisReply& map) {
  return {.table = TextField(map, "table"),
          .start = TextField(map, "start"),
          .end = TextField(map, "end"),
          .set = Unsigned(map, "set"),
          .epoch = Unsigned(map, "epoch"),
          .bytes = Known(map, "bytes"),
          .rows = Known(map, "rows"),
          .load = Known(map, "load"),
          .state = TextField(map, "state")};
}

}  // namespace

std::string SetState::Name() const {
  if (number) return "set " + std::to_string(*number);
  return "the set at " + (!leader.empty()   ? leader
                          : members.empty() ? id
                                            : members.front().Address());
}

std::optional<HostPort> ParseHostPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return std::nullopt;
  uint64_t port = 0;
  if (ParseUint64(text.substr(colon + 1), &port) != NumberError::kNone || port < 1 || port > 65535)
    return std::nullopt;
  return HostPort{std::string(text.substr(0, colon)), static_cast<int>(port)};
}

Result<std::vector<SetState>> ReadSets(Connection* connection) {
  ASSIGN_OR_RETURN(const Reply reply, Ask(connection, {"CLUSTER", "SETS"}));
  std::vector<SetState> sets;
  for (size_t i = 0; i < reply->elements; ++i) {
    if (FieldOf(*reply->element[i], "state") == nullptr) return Unexpected();
    sets.push_back(SetOf(*reply->element[i]));
  }
  return sets;
}

Result<TabletMap> ReadTablets(Connection* connection, std::string_view table, uint64_t count) {
  const std::string most = std::to_string(count);
  ASSIGN_OR_RETURN(const Reply reply,
                   table.empty() ? Ask(connection, {"TABLET", "LIST", "COUNT", most})
                                 : Ask(connection, {"TABLET", "LIST", table, "COUNT", most}));
  TabletMap map;
  if (reply->elements != 2 || !IsList(*reply->element[1])) return Unexpected();
  map.version = static_cast<uint64_t>(std::max<int64_t>(0, reply->element[0]->integer));
  const redisReply& list = *reply->element[1];
  for (size_t i = 0; i < list.elements; ++i) {
    if (FieldOf(*list.element[i], "table") == nullptr) return Unexpected();
    map.tablets.push_back(TabletOf(*list.element[i]));
  }
  return map;
}

Result<std::vector<JobState>> ReadJobs(Connection* connection) {
  ASSIGN_OR_RETURN(const Reply reply, Ask(connection, {"TABLET", "JOBS"}));
  std::vector<JobState> jobs;
  for (size_t i = 0; i < reply->elements; ++i) {
    const redisReply& job = *reply->element[i];
    if (FieldOf(job, "job") == nullptr) return Unexpected();
    jobs.push_back({.job = Unsigned(job, "job"),
                    .table = TextField(job, "table"),
                    .start = TextField(job, "start"),
                    .end = TextField(job, "end"),
                    .from = Unsigned(job, "from"),
                    .to = Unsigned(job, "to"),
                    .state = TextField(job, "state"),
                    .copied = Unsigned(job, "copied"),
                    .bytes = Known(job, "bytes"),
                    .started_ms = NumberField(job, "started"),
                    .error = TextField(job, "error")});
  }
  return jobs;
}

Result<std::vector<CutState>> ReadCuts(Connection* connection, uint64_t count) {
  ASSIGN_OR_RETURN(const Reply reply,
                   Ask(connection, {"CLUSTER", "CUTS", "COUNT", std::to_string(count)}));
  std::vector<CutState> cuts;
  for (size_t i = 0; i < reply->elements; ++i) {
    const redisReply& cut = *reply->element[i];
    if (FieldOf(cut, "cut") == nullptr) return Unexpected();
    cuts.push_back({.cut = Unsigned(cut, "cut"),
                    .unix_micros = NumberField(cut, "time"),
                    .purpose = TextField(cut, "purpose"),
                    .state = TextField(cut, "state")});
  }
  return cuts;
}

Result<uint64_t> ReadCutInterval(Connection* connection) {
  ASSIGN_OR_RETURN(const Reply reply,
                   Ask(connection, {"CLUSTER", "CONFIG", "GET", "cluster-cut-interval"}));
  uint64_t seconds = 0;
  const std::string text = TextField(*reply, "cluster-cut-interval");
  if (ParseUint64(text, &seconds) != NumberError::kNone) return Unexpected();
  return seconds;
}

Result<BackupState> ReadBackup(Connection* connection) {
  ASSIGN_OR_RETURN(const Reply reply, Ask(connection, {"BACKUP", "STATUS"}));
  BackupState backup{.state = TextField(*reply, "state"),
                     .error = TextField(*reply, "error"),
                     .start_unix_s = NumberField(*reply, "start_time"),
                     .end_unix_s = NumberField(*reply, "end_time"),
                     .cut = Unsigned(*reply, "cut"),
                     .of_set = {}};
  const redisReply* const sets = FieldOf(*reply, "sets");
  for (size_t i = 0; sets != nullptr && IsList(*sets) && i < sets->elements; ++i) {
    const redisReply& set = *sets->element[i];
    backup.of_set[Unsigned(set, "set")] = TextField(set, "state");
  }
  const Result<Reply> folder = Ask(connection, {"CONFIG", "GET", "backupdirname"});
  if (folder.ok()) backup.folder = TextField(**folder, "backupdirname");
  if (!folder.ok() && folder.status().code() == ErrorCode::kIo) return folder.status();
  return backup;
}

Result<std::vector<ClusterEvent>> ReadEvents(Connection* connection, uint64_t count) {
  ASSIGN_OR_RETURN(const Reply reply,
                   Ask(connection, {"CLUSTER", "EVENTS", "COUNT", std::to_string(count)}));
  std::vector<ClusterEvent> events;
  for (size_t i = 0; i < reply->elements; ++i) {
    const redisReply& event = *reply->element[i];
    if (!IsList(event) || event.elements < 3) return Unexpected();
    events.push_back({event.element[0]->integer, std::string(TextOf(*event.element[1])),
                      std::string(TextOf(*event.element[2]))});
  }
  return events;
}

Result<std::vector<std::string>> CheckMap(Connection* connection) {
  ASSIGN_OR_RETURN(const Reply reply, Ask(connection, {"CLUSTER", "MAP", "CHECK"}));
  std::vector<std::string> faults;
  for (size_t i = 0; i < reply->elements; ++i) faults.emplace_back(TextOf(*reply->element[i]));
  return faults;
}

}  // namespace cellar::client
