// FAMILY ALTER of types where rows of the table lie on other sets: what the one that directs it
// does, and in which order. What each set does of it is store/type_part.h.
//
//   look      all sets that have rows, beside each other: do their cells fit? What one server would
//             refuse is refused, with its words, and nothing has changed. SKIP does not ask that
//   alter     as with KEEP: one change of the schema, which all sets have before anybody is told
//   wait      until all go by what is kept from now on (alter_wait.h)
//   convert   all sets with rows rewrite what is of another type; without CONVERT they look once
//             more
//
// Rows that move are asked of whoever has them then, until each has been asked of a set that had it
// from then on to the end: what has been converted stays so, wherever it goes.
//
// Between the look and the alteration clients may write cells of the old type. Those that fit are
// converted; of others the reply tells how many there are, and they stay as KEEP would have left
// them, as does all that is not converted yet where this node ends, or a set is away for too long:
// the same command goes on with it. A set whose leader changes is asked again.
#pragma once

#include <memory>

#include "cellar/status.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/session/task.h"

namespace cellar {

class Table;
struct CommandContext;

// The task that a FAMILY ALTER goes on as. Null: it asks nothing of other sets. The errors of
// Store::AlterFamily that come before a look; CLUSTERDOWN: rows are lost; TRYAGAIN: not all sets
// know of this.
Result<std::unique_ptr<Task>> AlterTypesOfSets(CommandContext& ctx, Table& table,
                                               const FamilyRequest& family);

}  // namespace cellar
