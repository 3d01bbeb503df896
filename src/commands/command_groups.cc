// The list of groups: a new file of commands is one line here and one in the header.
#include "commands/command_groups.h"

namespace cellar {

void AddAllCommands(CommandTable* table) {
  table->Add(ConnectionCommands());
  table->Add(CommandCommands());
  table->Add(CellReadCommands());
  table->Add(CellWriteCommands());
  table->Add(TableCommands());
  table->Add(FamilyCommands());
  table->Add(TableKeyCommands());
}

}  // namespace cellar
