// What a node of a cluster and its director say to each other (`PEER ... cluster`): the bodies of
// the frames. The node has dialled; the director is the leader of set 0.
//
//   kind       from      body
//   kReport    node      what its set is, as it knows it (NodeReport): first of all, when that has
//                        changed, and every few seconds
//   kMapAsk    node      version v: 0, for all of the map. The director tells it, and what is new
//                        from then on
//   kCutAnswer node      number v: up to there changes of the schema are committed in its set; or
//                        number v, in time u8, time v: told that all sets have a cut, whether its
//                        hold has lasted until then, and a commit time of its set (Unix micros)
//   kMap       director  what u8, then
//                        kSets       all sets (set_directory.h)
//                        kTablets    the map, or what is new in it (MapNews)
//                        kElsewhere  host b, port v: this node directs nothing, that one may
//                        kUsers      the users of the cluster, as lines of an aclfile
//                        kReplaced   nothing: another replica set is by now what this one was, with
//                                    what was recovered of it (returning_sets.h)
//   kCut       director  cluster u64, set v, whole u8, a change of the schema (catalog_changes.h)
//   kRelease   director  number v: all sets have these changes; 0: that the director is there, every
//                        second, and behind it version v of its map for those who take that
//
// v: Varint64, b: length-prefixed. A set says what it has, and logs what it is told; who owns what
// is decided by neither (engine/table/tablets.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/map_cache.h"
#include "cluster/set_directory.h"

namespace cellar {

// From which version on nodes can be part of a cluster of several sets.
inline constexpr uint64_t kClusterLinkVersion{1};
// ... and know cuts, as their leader says when it dials.
inline constexpr uint64_t kClusterLinkCuts{2};
// ... and homes of feeds.
inline constexpr uint64_t kClusterLinkHomes{3};
// ... and sets that are lost, and rows with them.
inline constexpr uint64_t kClusterLinkLost{4};
// ... and what a set that has come back is told to have.
inline constexpr uint64_t kClusterLinkSettle{5};
// ... and which version of the map the director has.
inline constexpr uint64_t kClusterLinkMapVersion{6};
// ... and what each set does of a change of types (store/type_part.h).
inline constexpr uint64_t kClusterLinkTypes{7};

struct NodeReport {
  uint64_t cluster_id{0};  // 0: the set is part of none yet
  bool leads{false};
  std::string refusal{};      // what it has, so that it cannot be admitted; empty: it can
  ClusterSet set{};           // what its leader knows of it; of another node number and id alone
  bool tells_tablets{false};  // then `tablets` is EncodeClusterState of what the set owns
  std::string tablets{};
  // Behind all that, which versions before this one lack.
  uint64_t users{0};      // hash of the users of its set that the node goes by; 0: by its own
  std::string zone{};     // of the node, and
  std::string machine{};  // where it is
};

enum class MapPart : uint8_t {
  kSets = 0,
  kTablets = 1,
  kElsewhere = 2,
  kUsers = 3,
  kReplaced = 4,
  kSettle = 5
};

struct SchemaOrder {
  uint64_t cluster_id{0};
  uint64_t set{0};
  bool whole{false};
  std::string change{};  // EncodeCatalogChange
};

void EncodeReport(const NodeReport& report, std::string* to);
[[nodiscard]] bool DecodeReport(std::string_view from, NodeReport* report);

// What is new in `map` since `version`, behind the byte of kTablets: version v, floor v, all u8,
// count v of tables { id v, name b, count v { begin b, end b, set v, epoch v, version v } }. Tables
// are whole. If `all` is 1, there are no others.
void EncodeMapNews(const MapCache& map, uint64_t version, std::string* to);
// Makes `map` so. False: these are not the bytes of one; then it is as before.
[[nodiscard]] bool TakeMapNews(std::string_view from, MapCache* map);

struct CutAnswer {
  uint64_t number{0};
  bool confirms{false};  // then the others say something
  bool in_time{false};
  int64_t commit_micros{0};  // of the last record
  int64_t clock_micros{0};   // the wall clock then
};
void EncodeCutAnswer(const CutAnswer& answer, std::string* to);
[[nodiscard]] bool DecodeCutAnswer(std::string_view from, CutAnswer* answer);

void EncodeSchemaOrder(const SchemaOrder& order, std::string* to);
[[nodiscard]] bool DecodeSchemaOrder(std::string_view from, SchemaOrder* order);

}  // namespace cellar
