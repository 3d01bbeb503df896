// What TABLET LIST tells of tablets besides where they end: how much they have, and whether they
// are moving. The director knows that of all of them, as their owners have told within some
// seconds; another node of the tablets of its own set, and of those that are on their way to it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/map_cache.h"
#include "store/tablet_sizes.h"

namespace cellar {

class Host;

struct TabletReport {
  std::string_view state{"owned"};  // or moving, given, staged
  std::optional<uint64_t> job{};
  std::optional<uint64_t> to{};  // the set
  std::string progress{};        // of the job, as the director or the donor's leader knows it
  std::optional<uint64_t> bytes{};
  std::optional<uint64_t> rows{};
  std::optional<uint64_t> load{};  // percent of a core
};

class TabletReports {
 public:
  // For the command at hand.
  explicit TabletReports(Host& host) : host_(host) {}
  TabletReport Of(uint64_t table_id, const MapEntry& entry);

 private:
  void SayState(uint64_t table_id, const MapEntry& entry, TabletReport* report) const;
  void SaySize(uint64_t table_id, const MapEntry& entry, TabletReport* report);

  const TabletSize* OwnSize(uint64_t table_id, std::string_view begin);

  Host& host_;
  // Of the own tablets, by table and begin; nothing: not asked for yet.
  std::optional<std::vector<TabletSize>> own_sizes_;
};

}  // namespace cellar
