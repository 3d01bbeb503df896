// What a user may do with one command: asked before it runs (CheckCommand), and while it runs, by
// the handlers and through them by the engine (CommandRights).
//
//   before   the command itself · tables: could a family of theirs be allowed; as a whole where
//            the command concerns the whole table (KeyScope) · channels
//   while    each family that is named: NOPERM before it is said whether there is such a family.
//            What names none means those that may be read. Tables without an allowed family are as
//            good as absent for the commands that list tables or ask for their names.
//
// Of several selectors those count that allow all of the first part; what they allow adds up.
// Nobody is asked for a user that may do everything: see Session::restricted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "commands/acl/acl_log.h"
#include "commands/acl/acl_user.h"
#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"
#include "engine/request/family_access.h"

namespace cellar {

class Table;

struct AclVerdict {
  Denied denied{Denied::kNothing};
  size_t argument{0};     // which one is refused, of kKey and kChannel
  uint64_t selectors{0};  // bits: those that allow it
};

// `keyspace` is that of the client. REQUIRES: the arity fits.
AclVerdict CheckCommand(const User& user, const CommandEntry& command, Arguments args,
                        std::string_view keyspace);

// Redis' error line for a refusal: "NOPERM this user has no permissions ...". REQUIRES: it is one.
std::string DeniedText(Denied denied, const CommandEntry& command);
// Redis' error line for a command of EXEC that was allowed when it was queued.
std::string DeniedInExecText(Denied denied);

// The rights of a restricted user while one command runs.
class CommandRights final : public FamilyAccess {
 public:
  CommandRights(const User& user, uint64_t selectors) : user_(user), selectors_(selectors) {}

  // The table that the questions below are about: `word` as the client wrote it.
  void SetTable(std::string_view keyspace, std::string_view word);

  bool MayRead(std::string_view family) const override;
  bool MayWrite(std::string_view family) const override;
  bool MayWriteAll() const override;
  bool MayReadAll() const;
  // Whether a family of the table may be read or written, or all that it may ever have.
  bool Sees(const Table& table) const;
  // Whether everything may be read (written).
  bool MayReadEverything() const;
  bool MayWriteEverything() const;
  // Questions about any table: as a whole, and one family of it.
  bool MayReadTable(std::string_view keyspace, std::string_view table) const;
  bool MayWriteTable(std::string_view keyspace, std::string_view table) const;
  bool MayReadFamily(std::string_view keyspace, std::string_view table,
                     std::string_view family) const;

  // `table:family` that was asked for last and is not allowed: what ACL LOG names.
  const std::string& refused() const { return refused_; }

 private:
  bool May(std::string_view family, uint8_t rights) const;
  // Whether `question` is answered with yes by one of the selectors.
  template <typename Question>
  bool Any(const Question& question) const;

  const User& user_;
  uint64_t selectors_;
  std::string keyspace_;
  std::string table_;
  mutable std::string refused_;
};

// Whether the user may read all of a table, whatever commands it may run: only then is it told of
// changes there.
bool MayReadWholeTable(const User& user, std::string_view keyspace, std::string_view table);

}  // namespace cellar
