// The arguments of TABLE, FAMILY and KEYSPACE as plain data. Pure functions: names, orders, types
// and policies that cannot be read are plain ERR, before any table is looked for.
//
//   TABLE CREATE table [KEY order] [COLOCATE n] [WHOLE] [SPLIT AT n row ...]
//                      [FAMILY name [option ...]]...
//   TABLE ALTER table COLOCATE n|WHOLE|SPREAD
//   family options: TYPE type|NONE, COLUMN qualifier type, ORDER order, VERSIONS n|ALL,
//   TTL duration|NONE, GC policy, GROUP name; of FAMILY ALTER also NOCOLUMN qualifier, CONVERT
//   [SKIP], KEEP
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/arguments/arguments.h"
#include "engine/keys/order.h"
#include "engine/schema/schema.h"

namespace cellar {

// A table as it is named by a client: `table` in the client's keyspace, or `keyspace/table`.
struct TableName {
  std::string_view keyspace;
  std::string_view table;
};
TableName SplitTableName(std::string_view session_keyspace, std::string_view word);

// ERR naming `kind` ("table", "family", "keyspace") and the word, unless it is a name.
Status CheckName(std::string_view kind, std::string_view word);
// CheckName for a table that is to be created, with or without its keyspace in front.
Status CheckTableName(std::string_view word);

struct FamilyRequest {
  std::string_view name;
  FamilyOptions options;
};
struct TableRequest {
  Order key;
  Placement placement;
  std::vector<std::string_view> split_at;
  std::vector<FamilyRequest> families;
};

// Takes the family options that stand next, and stops before the first word that is none.
Status TakeFamilyOptions(ArgumentCursor* at, FamilyOptions* options);
// What follows the name in TABLE CREATE, up to the end.
Result<TableRequest> ParseTableCreate(ArgumentCursor at);

// What follows the table in TABLE ALTER: what becomes of `placement`. COLOCATE and WHOLE leave each
// other as they are, SPREAD takes both back.
Result<Placement> ParseTableAlter(ArgumentCursor at, Placement placement);

// What follows the table in FAMILY ADD and FAMILY ALTER: `name [option ...]`, up to the end.
enum class FamilyVerb : uint8_t { kAdd, kAlter };
Result<FamilyRequest> ParseFamily(FamilyVerb verb, ArgumentCursor at);

}  // namespace cellar
