// See set_directory.h.
#include "cluster/set_directory.h"

#include <algorithm>
#include <utility>

#include "base/coding.h"
#include "replica/greeting.h"

namespace cellar {
namespace {

constexpr uint64_t kMembersMax{1024};

// A word that is kept and shown: no more of it than that.
constexpr size_t kWordBytesMax{64};

}  // namespace

bool GetShortWord(std::string_view* from, std::string* word) {
  std::string_view bytes;
  if (!GetLengthPrefixed(from, &bytes) || bytes.size() > kWordBytesMax) return false;
  word->assign(bytes);
  return true;
}

namespace {

// It is dialled, and stands in lines of errors.
bool GetHost(std::string_view* from, std::string* host) {
  std::string_view bytes;
  if (!GetLengthPrefixed(from, &bytes) || !IsPlainHost(bytes)) return false;
  host->assign(bytes);
  return true;
}

void EncodeMember(const ClusterMember& member, std::string* to) {
  PutFixed64(to, member.node);
  PutLengthPrefixed(to, member.host);
  PutVarint64(to, member.port);
  PutLengthPrefixed(to, member.kind);
  PutLengthPrefixed(to, member.state);
  PutLengthPrefixed(to, member.version);
}

bool DecodeMember(std::string_view* from, ClusterMember* member) {
  uint64_t port = 0;
  if (!GetFixed64(from, &member->node) || !GetHost(from, &member->host) ||
      !GetVarint64(from, &port) || port > UINT16_MAX || !GetShortWord(from, &member->kind) ||
      !GetShortWord(from, &member->state) || !GetShortWord(from, &member->version))
    return false;
  member->port = static_cast<uint16_t>(port);
  return true;
}

}  // namespace

const ClusterMember* ClusterSet::Find(uint64_t node) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [node](const auto& member) { return member.node == node; });
  return found == members.end() ? nullptr : &*found;
}

const ClusterSet* SetDirectory::Find(uint64_t number) const {
  const auto found = sets_.find(number);
  return found == sets_.end() ? nullptr : &found->second;
}

const ClusterSet* SetDirectory::FindId(uint64_t id) const {
  const auto found = std::find_if(sets_.begin(), sets_.end(),
                                  [id](const auto& set) { return set.second.id == id; });
  return found == sets_.end() ? nullptr : &found->second;
}

bool SetDirectory::Put(ClusterSet set) {
  ClusterSet& known = sets_[set.number];
  if (known == set) return false;
  known = std::move(set);
  return true;
}

void EncodeClusterSet(const ClusterSet& set, std::string* to) {
  PutVarint64(to, set.number);
  PutFixed64(to, set.id);
  PutFixed64(to, set.leader);
  PutVarint64(to, set.catalog);
  PutVarint64(to, set.tablets);
  PutVarint64(to, set.bytes);
  PutVarint64(to, set.maxmemory);
  PutVarint64(to, set.draining ? 1 : 0);
  PutVarint64(to, set.members.size());
  for (const ClusterMember& member : set.members) EncodeMember(member, to);
}

bool DecodeClusterSet(std::string_view* from, ClusterSet* set) {
  uint64_t draining = 0;
  uint64_t members = 0;
  if (!GetVarint64(from, &set->number) || !GetFixed64(from, &set->id) ||
      !GetFixed64(from, &set->leader) || !GetVarint64(from, &set->catalog) ||
      !GetVarint64(from, &set->tablets) || !GetVarint64(from, &set->bytes) ||
      !GetVarint64(from, &set->maxmemory) || !GetVarint64(from, &draining) || draining > 1 ||
      !GetVarint64(from, &members) || members > kMembersMax)
    return false;
  set->draining = draining == 1;
  set->members.clear();
  for (uint64_t i = 0; i < members; ++i)
    if (!DecodeMember(from, &set->members.emplace_back())) return false;
  return true;
}

void SetDirectory::Encode(std::string* to) const {
  PutVarint64(to, sets_.size());
  for (const auto& [number, set] : sets_) EncodeClusterSet(set, to);
  for (const auto& [number, set] : sets_) {
    PutVarint64(to, set.load);
    PutVarint64(to, set.jobs);
    for (const ClusterMember& member : set.members) {
      PutLengthPrefixed(to, member.zone);
      PutLengthPrefixed(to, member.machine);
    }
  }
}

bool SetDirectory::Decode(std::string_view from) {
  uint64_t count = 0;
  if (!GetVarint64(&from, &count)) return false;
  std::map<uint64_t, ClusterSet> sets;
  for (uint64_t i = 0; i < count; ++i) {
    ClusterSet set;
    if (!DecodeClusterSet(&from, &set)) return false;
    const uint64_t number = set.number;
    if (!sets.emplace(number, std::move(set)).second) return false;
  }
  if (!from.empty()) {
    for (auto& [number, set] : sets) {
      if (!GetVarint64(&from, &set.load) || !GetVarint64(&from, &set.jobs)) return false;
      for (ClusterMember& member : set.members)
        if (!GetShortWord(&from, &member.zone) || !GetShortWord(&from, &member.machine))
          return false;
    }
  }
  if (!from.empty()) return false;
  sets_ = std::move(sets);
  return true;
}

}  // namespace cellar
