// SetMembers: who belongs to a replica set, as a kMembers record of the log names them: its nodes,
// and its users (commands/clients/set_users.h). From that record on they are these, committed or
// not (Raft's rule for changes of one at a time).
//
// The payload, little-endian:
//
//   version u8 = 1; feature level u32; index u64: the record's own seq; count u32; then each
//   id u64; kind u8; port u16; host (length-prefixed)
//   version 2 has behind them: users (length-prefixed), the lines of an aclfile
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cellar {

// What a record may name that not every version knows has a level. A set stays at the one that its
// newest such record says until something of a higher one is asked for, which needs members that
// all know it; so nodes can be upgraded one by one, and back again.
//
//   1  kJoining, kVoter
//   2  kStandby; named snapshots, and copies of tables
//   3  kWitness
//   4  COMPRESS of families
//   5  users
//   6  COLUMN of families, and cells that CONVERT has rewritten; ENTRIES ROW of feeds
//   7  tablets
//   8  COLOCATE and WHOLE of tables
//   9  tablets that move
//  10  one moment over the sets of a cluster: cuts, and snapshots of several sets; sets say as which
//      replica set they serve
//  11  groups of consumers of feeds of several sets, at their home
inline constexpr uint32_t kFeatureLevel{11};
inline constexpr uint32_t kStandbyLevel{2};
inline constexpr uint32_t kSnapshotLevel{2};
inline constexpr uint32_t kWitnessLevel{3};
inline constexpr uint32_t kCompressionLevel{4};
inline constexpr uint32_t kUsersLevel{5};
inline constexpr uint32_t kColumnTypesLevel{6};
inline constexpr uint32_t kRowEntriesLevel{6};
inline constexpr uint32_t kTabletsLevel{7};
inline constexpr uint32_t kPlacementLevel{8};
inline constexpr uint32_t kMovesLevel{9};
inline constexpr uint32_t kCutsLevel{10};
inline constexpr uint32_t kWholeGroupsLevel{11};

enum class MemberKind : uint8_t {
  kJoining =
      0,  // has a copy, or gets one, and does not vote; becomes a voter once it has caught up
  kVoter = 1,
  kWitness = 2,  // votes and keeps the log, holds no state
  kStandby = 3,  // has a copy, does not vote
};

struct SetMember {
  uint64_t id{0};
  MemberKind kind{MemberKind::kVoter};
  std::string host;
  uint16_t port{0};

  bool votes() const { return kind == MemberKind::kVoter || kind == MemberKind::kWitness; }
  friend bool operator==(const SetMember&, const SetMember&) = default;
};

inline constexpr size_t kSetMembersMax{64};
inline constexpr size_t kSetUsersBytesMax{1 << 20};

struct SetMembers {
  uint64_t index{0};
  uint32_t feature_level{1};
  std::vector<SetMember> list;
  std::string users{};  // empty: the set has none of its own

  const SetMember* Find(uint64_t id) const;
  // Voters with data and witnesses. Of the latter there are to be fewer: what a majority has, one
  // of the former has then.
  struct Voters {
    size_t with_data{0};
    size_t witnesses{0};
    bool fit() const { return witnesses < with_data || witnesses == 0; }
  };
  Voters CountVoters() const;
  friend bool operator==(const SetMembers&, const SetMembers&) = default;
};

// What is told of voters that do not fit.
std::string UnfitVoters(const SetMembers::Voters& voters);

std::string EncodeMembers(const SetMembers& members);
// False: that is no payload of a kMembers record.
[[nodiscard]] bool DecodeMembers(std::string_view payload, SetMembers* members);

}  // namespace cellar
