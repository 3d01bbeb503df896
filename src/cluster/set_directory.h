// SetDirectory: the sets of a cluster and where they are, as a node knows them.
//
//   set number -> id, members with their addresses, who leads it
//
// The director has it of what the leaders of the sets report; every other node has it of the
// director. It may be older than what is so: who leads is a guess, which costs a hop more when it
// is wrong.
//
// Pure data: neither store nor sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cellar {

// A node, as its set's leader tells of it.
struct ClusterMember {
  uint64_t node{0};
  std::string host{};
  uint16_t port{0};
  std::string kind{};  // as MemberFigures has them
  std::string state{};
  std::string version{};
  std::string zone{};     // cluster-zone; empty: not said
  std::string machine{};  // cluster-machine, or its host's name
  friend bool operator==(const ClusterMember&, const ClusterMember&) = default;
};

struct ClusterSet {
  uint64_t number{0};
  uint64_t id{0};      // of the replica set
  uint64_t leader{0};  // its node; 0: nobody is known to lead
  std::vector<ClusterMember> members{};
  uint64_t catalog{0};  // number of its schema
  uint64_t tablets{0};
  uint64_t bytes{0};      // memory of the data, at its leader
  uint64_t maxmemory{0};  // of its leader; 0: no limit
  bool draining{false};   // what it has goes to the others
  uint64_t load{0};       // percent of a core that its leader's loop takes
  uint64_t jobs{0};       // tablets on their way from it or to it
  friend bool operator==(const ClusterSet&, const ClusterSet&) = default;

  // Null: it is no member.
  const ClusterMember* Find(uint64_t node) const;
};

class SetDirectory {
 public:
  const std::map<uint64_t, ClusterSet>& sets() const { return sets_; }
  bool empty() const { return sets_.empty(); }
  // Null if there is none of that number.
  const ClusterSet* Find(uint64_t number) const;
  // Of that replica set's id; null.
  const ClusterSet* FindId(uint64_t id) const;

  // Takes the place of what was known of the set. False: that was the same.
  bool Put(ClusterSet set);
  void Remove(uint64_t number) { sets_.erase(number); }
  void Clear() { sets_.clear(); }

  // v count { v number, id u64, leader u64, v catalog, v tablets, v bytes, v maxmemory, v draining,
  // v members { node u64, b host, v port, b kind, b state, b version } }
  // and behind all of them, which versions before this one lack:
  // { v load, v jobs, { b zone, b machine } of each member }
  void Encode(std::string* to) const;
  // False if these are not the bytes of one; then it is as before.
  [[nodiscard]] bool Decode(std::string_view from);

 private:
  std::map<uint64_t, ClusterSet> sets_;
};

// A word that is kept and shown, of 64 bytes at most. False: there is none.
[[nodiscard]] bool GetShortWord(std::string_view* from, std::string* word);
void EncodeClusterSet(const ClusterSet& set, std::string* to);
[[nodiscard]] bool DecodeClusterSet(std::string_view* from, ClusterSet* set);

}  // namespace cellar
