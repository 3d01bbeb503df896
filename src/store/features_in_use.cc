// See features_in_use.h.
#include "store/features_in_use.h"

#include "store/requests.h"

namespace cellar {
namespace {

void AddFeaturesOf(const Table& table, std::set<Feature>* features) {
  if (table.schema().placement.any()) features->insert(Feature::kPlacement);
  for (const FamilySchema& family : table.schema().families) {
    // Also of a family that packs no more: its cells may be packed still.
    if (family.compression != Compression::kNever) features->insert(Feature::kCompression);
    if (!family.columns.empty()) features->insert(Feature::kColumnTypes);
    if (family.next_policy) features->insert(Feature::kCuts);
  }
}

}  // namespace

std::set<Feature> FeaturesInUse(const Engine& engine) {
  std::set<Feature> features;
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1))
    AddFeaturesOf(*table, &features);
  if (!engine.snapshots().empty()) features.insert(Feature::kSnapshots);
  for (const Table* const table : engine.snapshots().Tables()) AddFeaturesOf(*table, &features);
  for (const Feed* const feed : engine.feeds().All()) {
    if (feed->by_row) features.insert(Feature::kRowEntries);
    const bool is_whole = feed->home != FeedHome{} ||
                          engine.feeds().groups().Of(WholeFeedGroups(feed->id)) != nullptr;
    if (is_whole) features.insert(Feature::kWholeGroups);
  }
  if (engine.cluster().active()) features.insert(Feature::kTablets);
  if (!engine.cluster().moves.empty()) features.insert(Feature::kMoves);
  if (engine.cluster().has_standing()) features.insert(Feature::kCuts);
  return features;
}

}  // namespace cellar
