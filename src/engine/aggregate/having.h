// HAVING: conditions on the results of a group, which all have to hold. They compare as those of
// WHERE do: a result that is null, or not a number, is only NE, and the value of a cell is compared
// as its own type.
#pragma once

#include "engine/aggregate/aggregate_groups.h"
#include "engine/aggregate/aggregate_plan.h"

namespace cellar {

bool HavingHolds(const AggregatePlan& plan, const AggregateGroup& group);

}  // namespace cellar
