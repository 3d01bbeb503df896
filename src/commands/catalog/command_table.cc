// See command_table.h.
#include "commands/catalog/command_table.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "commands/arguments/arguments.h"

namespace cellar {
namespace {

uint32_t ImpliedCategories(const Command& row) {
  uint32_t categories = row.categories;
  if ((row.flags & kWrite) != 0) categories |= kCategoryWrite;
  if ((row.flags & kReadonly) != 0) categories |= kCategoryRead;
  if ((row.flags & kAdmin) != 0) categories |= kCategoryAdmin | kCategoryDangerous;
  if ((row.flags & kPubsub) != 0) categories |= kCategoryPubsub;
  if ((row.flags & kBlocking) != 0) categories |= kCategoryBlocking;
  return categories | ((row.flags & kFast) != 0 ? kCategoryFast : kCategorySlow);
}

}  // namespace

double LatencyHistogram::PercentileMicros(double percentile) const {
  CELLAR_ASSERT(percentile >= 0);
  CELLAR_ASSERT(percentile <= 100);
  uint64_t total = 0;
  for (const uint64_t count : counts) total += count;
  if (total == 0) return 0;
  const double wanted = percentile / 100 * static_cast<double>(total);
  uint64_t seen = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts[bucket];
    if (seen > 0 && static_cast<double>(seen) >= wanted) return UpperMicros(bucket);
  }
  return UpperMicros(kBuckets - 1);
}

uint64_t CommandTable::HashName(const char* lower, size_t bytes) {
  // Two overlapping words hold most of any name; the length tells the rest apart.
  uint64_t a = 0;
  uint64_t b = 0;
  if (bytes >= 8) {
    std::memcpy(&a, lower, 8);
    std::memcpy(&b, lower + bytes - 8, 8);
  } else {
    std::memcpy(&a, lower, bytes);
  }
  uint64_t hash = (a ^ (b * 0x9e3779b97f4a7c15ULL)) + bytes;
  hash *= 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 32);
}

bool CommandTable::LowerName(std::string_view name, char* to) {
  if (name.empty() || name.size() > kNameBytesMax) return false;
  for (size_t i = 0; i < name.size(); ++i) to[i] = LowerChar(name[i]);
  return true;
}

void CommandTable::Add(std::span<const Command> rows) {
  for (const Command& row : rows) {
    CELLAR_ASSERT(Find(row.name) == nullptr);
    CELLAR_ASSERT(row.name.size() <= kNameBytesMax);
    CELLAR_ASSERT(row.handler != nullptr || !row.subcommands.empty());
    CommandEntry* const command = AddEntry(row, std::string(row.name));
    commands_.push_back(command);
    for (const Command& sub_row : row.subcommands) {
      CELLAR_ASSERT(sub_row.handler != nullptr);
      CommandEntry* const sub =
          AddEntry(sub_row, std::string(row.name) + "|" + std::string(sub_row.name));
      sub->parent = command;
      command->subcommands.push_back(sub);
    }
    // At most half full: a search for a name that is not there soon meets an empty slot.
    CELLAR_ASSERT(commands_.size() * 2 < kSlots);
    size_t slot = HashName(row.name.data(), row.name.size()) % kSlots;
    while (slots_[slot] != nullptr) slot = (slot + 1) % kSlots;
    slots_[slot] = command;
  }
}

CommandEntry* CommandTable::AddEntry(const Command& row, std::string full_name) {
  CELLAR_ASSERT(row.arity != 0);
  CELLAR_ASSERT(entries_.size() < std::numeric_limits<uint16_t>::max());
  auto entry = std::make_unique<CommandEntry>();
  entry->row = &row;
  entry->full_name = std::move(full_name);
  entry->categories = ImpliedCategories(row);
  entry->role = RoleOf(row, entry->full_name);
  entry->reach = ReachOf(row, entry->full_name);
  entry->id = static_cast<uint16_t>(entries_.size());
  entry->words_min = static_cast<size_t>(std::abs(row.arity));
  entry->words_max = row.arity >= 0 ? entry->words_min : std::numeric_limits<size_t>::max();
  entries_.push_back(std::move(entry));
  return entries_.back().get();
}

CommandEntry* CommandTable::FindAnew(std::string_view name) const {
  CommandEntry* const found = FindInSlots(name);
  // Clients mostly send the same command again: the last one found is tried first.
  if (found != nullptr) {
    last_name_.Assign(name);
    last_found_ = found;
  }
  return found;
}

CommandEntry* CommandTable::FindInSlots(std::string_view name) const {
  char lower[kNameBytesMax];
  if (!LowerName(name, lower)) return nullptr;
  size_t slot = HashName(lower, name.size()) % kSlots;
  while (slots_[slot] != nullptr) {
    const std::string_view found = slots_[slot]->row->name;
    if (found.size() == name.size() && std::memcmp(found.data(), lower, found.size()) == 0) {
      return slots_[slot];
    }
    slot = (slot + 1) % kSlots;
  }
  return nullptr;
}

CommandEntry* CommandTable::FindSubcommand(const CommandEntry& container, std::string_view name) {
  for (CommandEntry* sub : container.subcommands) {
    if (EqualsIgnoreCase(name, sub->row->name)) return sub;
  }
  return nullptr;
}

CommandEntry* CommandTable::FindByFullName(std::string_view name) const {
  const size_t bar = name.find('|');
  if (bar == std::string_view::npos) return Find(name);
  const CommandEntry* container = Find(name.substr(0, bar));
  return container == nullptr ? nullptr : FindSubcommand(*container, name.substr(bar + 1));
}

void CommandTable::ResetStats() {
  for (const auto& entry : entries_) entry->stats = CommandStats{};
}

std::span<const NamedBit> CommandFlagNames() {
  static constexpr NamedBit kNames[] = {
      {kWrite, "write"},
      {kReadonly, "readonly"},
      {kDenyOom, "denyoom"},
      {kAdmin, "admin"},
      {kPubsub, "pubsub"},
      {kNoScript, "noscript"},
      {kBlocking, "blocking"},
      {kLoading, "loading"},
      {kStale, "stale"},
      {kSkipMonitor, "skip_monitor"},
      {kSkipSlowlog, "skip_slowlog"},
      {kFast, "fast"},
      {kNoAuth, "no_auth"},
      {kMovableKeys, "movablekeys"},
      {kAllowBusy, "allow_busy"},
      {kNoMulti, "no_multi"},
      {kMayReplicate, "may_replicate"},
      {kNoMandatoryKeys, "no_mandatory_keys"},
  };
  return kNames;
}

std::span<const NamedBit> CategoryNames() {
  static constexpr NamedBit kNames[] = {
      {kCategoryKeyspace, "keyspace"},
      {kCategoryRead, "read"},
      {kCategoryWrite, "write"},
      {kCategoryCell, "cell"},
      {kCategorySchema, "schema"},
      {kCategoryPubsub, "pubsub"},
      {kCategoryAdmin, "admin"},
      {kCategoryFast, "fast"},
      {kCategorySlow, "slow"},
      {kCategoryBlocking, "blocking"},
      {kCategoryDangerous, "dangerous"},
      {kCategoryConnection, "connection"},
      {kCategoryTransaction, "transaction"},
      {kCategoryScripting, "scripting"},
      {kCategoryReplication, "replication"},
      {kCategoryBitmap, "bitmap"},
      {kCategoryGeo, "geo"},
      {kCategoryHash, "hash"},
      {kCategoryHyperLogLog, "hyperloglog"},
      {kCategoryList, "list"},
      {kCategorySet, "set"},
      {kCategorySortedSet, "sortedset"},
      {kCategoryStream, "stream"},
      {kCategoryString, "string"},
  };
  return kNames;
}

}  // namespace cellar
