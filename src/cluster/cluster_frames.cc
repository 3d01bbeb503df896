// See cluster_frames.h.
#include "cluster/cluster_frames.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "engine/state/cluster_state.h"

namespace cellar {
namespace {

// Of what a set has, so that it cannot be admitted: it is kept as long as the link stands.
constexpr size_t kRefusalBytesMax{4096};

bool TakeByte(std::string_view* from, uint8_t* byte) {
  if (from->empty()) return false;
  *byte = static_cast<uint8_t>(from->front());
  from->remove_prefix(1);
  return true;
}

bool TakeFlag(std::string_view* from, bool* flag) {
  uint8_t byte = 0;
  if (!TakeByte(from, &byte) || byte > 1) return false;
  *flag = byte == 1;
  return true;
}

bool TakeText(std::string_view* from, std::string* text) {
  std::string_view bytes;
  if (!GetLengthPrefixed(from, &bytes)) return false;
  *text = bytes;
  return true;
}

bool IsNewSince(const MapTable& table, uint64_t version) {
  return std::any_of(table.tablets.begin(), table.tablets.end(),
                     [version](const MapEntry& entry) { return entry.version > version; });
}

void EncodeTable(uint64_t id, const MapTable& table, std::string* to) {
  PutVarint64(to, id);
  PutLengthPrefixed(to, table.name);
  PutVarint64(to, table.tablets.size());
  for (const MapEntry& entry : table.tablets) {
    PutLengthPrefixed(to, entry.begin);
    PutLengthPrefixed(to, entry.end);
    PutVarint64(to, entry.set);
    PutVarint64(to, entry.epoch);
    PutVarint64(to, entry.version);
  }
}

bool TakeTable(std::string_view* from, uint64_t* id, MapTable* table) {
  uint64_t count = 0;
  if (!GetVarint64(from, id) || !TakeText(from, &table->name) || !GetVarint64(from, &count))
    return false;
  for (uint64_t i = 0; i < count; ++i) {
    MapEntry entry;
    if (!TakeText(from, &entry.begin) || !TakeText(from, &entry.end) ||
        !GetVarint64(from, &entry.set) || !GetVarint64(from, &entry.epoch) ||
        !GetVarint64(from, &entry.version))
      return false;
    if (!table->tablets.empty() && entry.begin <= table->tablets.back().begin) return false;
    table->tablets.push_back(std::move(entry));
  }
  return true;
}

}  // namespace

void EncodeReport(const NodeReport& report, std::string* to) {
  PutFixed64(to, report.cluster_id);
  to->push_back(report.leads ? '\1' : '\0');
  PutLengthPrefixed(to, report.refusal);
  EncodeClusterSet(report.set, to);
  to->push_back(report.tells_tablets ? '\1' : '\0');
  PutLengthPrefixed(to, report.tablets);
  PutFixed64(to, report.users);
  PutLengthPrefixed(to, report.zone);
  PutLengthPrefixed(to, report.machine);
  PutVarint64(to, report.set.load);
  PutVarint64(to, report.set.jobs);
}

static bool DecodeReportTail(std::string_view from, NodeReport* report) {
  return GetFixed64(&from, &report->users) && GetShortWord(&from, &report->zone) &&
         GetShortWord(&from, &report->machine) && GetVarint64(&from, &report->set.load) &&
         GetVarint64(&from, &report->set.jobs) && from.empty();
}

bool DecodeReport(std::string_view from, NodeReport* report) {
  return GetFixed64(&from, &report->cluster_id) && TakeFlag(&from, &report->leads) &&
         TakeText(&from, &report->refusal) && DecodeClusterSet(&from, &report->set) &&
         TakeFlag(&from, &report->tells_tablets) && TakeText(&from, &report->tablets) &&
         (from.empty() || DecodeReportTail(from, report)) &&
         report->refusal.size() <= kRefusalBytesMax;
}

void EncodeMapNews(const MapCache& map, uint64_t version, std::string* to) {
  const bool all = version < map.floor() || version > map.version() || version == 0;
  PutVarint64(to, map.version());
  PutVarint64(to, map.floor());
  to->push_back(all ? '\1' : '\0');
  const auto is_told = [&](const MapTable& table) { return all || IsNewSince(table, version); };
  PutVarint64(to, static_cast<uint64_t>(
                      std::count_if(map.tables().begin(), map.tables().end(),
                                    [&](const auto& each) { return is_told(each.second); })));
  for (const auto& [id, table] : map.tables())
    if (is_told(table)) EncodeTable(id, table, to);
}

bool TakeMapNews(std::string_view from, MapCache* map) {
  uint64_t version = 0;
  uint64_t floor = 0;
  bool all = false;
  uint64_t count = 0;
  if (!GetVarint64(&from, &version) || !GetVarint64(&from, &floor) || !TakeFlag(&from, &all) ||
      !GetVarint64(&from, &count))
    return false;
  std::map<uint64_t, MapTable> tables;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t id = 0;
    MapTable table;
    if (!TakeTable(&from, &id, &table)) return false;
    tables[id] = std::move(table);
  }
  if (!from.empty()) return false;
  if (!all) {
    for (const auto& [id, table] : map->tables()) tables.try_emplace(id, table);
  }
  map->Begin(version, floor, 1);
  for (auto& [id, table] : tables)
    for (MapEntry& entry : table.tablets) map->Add(id, table.name, std::move(entry));
  map->Sort();
  return true;
}

void EncodeCutAnswer(const CutAnswer& answer, std::string* to) {
  PutVarint64(to, answer.number);
  if (!answer.confirms) return;
  to->push_back(answer.in_time ? '\1' : '\0');
  PutVarint64(to, static_cast<uint64_t>(answer.commit_micros));
  PutVarint64(to, static_cast<uint64_t>(answer.clock_micros));
}

bool DecodeCutAnswer(std::string_view from, CutAnswer* answer) {
  if (!GetVarint64(&from, &answer->number)) return false;
  answer->confirms = !from.empty();
  if (!answer->confirms) return true;
  if (!TakeFlag(&from, &answer->in_time)) return false;
  for (int64_t* const micros : {&answer->commit_micros, &answer->clock_micros}) {
    uint64_t read = 0;
    if (!GetVarint64(&from, &read) || read > static_cast<uint64_t>(INT64_MAX)) return false;
    *micros = static_cast<int64_t>(read);
  }
  return from.empty();
}

void EncodeSchemaOrder(const SchemaOrder& order, std::string* to) {
  PutFixed64(to, order.cluster_id);
  PutVarint64(to, order.set);
  to->push_back(order.whole ? '\1' : '\0');
  to->append(order.change);
}

bool DecodeSchemaOrder(std::string_view from, SchemaOrder* order) {
  if (!GetFixed64(&from, &order->cluster_id) || order->cluster_id == 0 ||
      !GetVarint64(&from, &order->set) || order->set == 0 || order->set >= kClusterSetsMax ||
      !TakeFlag(&from, &order->whole))
    return false;
  order->change = from;
  return true;
}

}  // namespace cellar
