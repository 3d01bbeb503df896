// See moment.h.
#include "cellar-export/moment.h"

#include <array>
#include <random>

#include "base/text/ascii.h"

namespace cellar::exporter {
namespace {

constexpr const char* kLifetime{"1d"};

// "keyspace/" in front of a table's name, which a snapshot's has too; or nothing.
std::string KeyspaceOf(const std::string& table) {
  const size_t slash = table.find('/');
  return slash == std::string::npos ? std::string() : table.substr(0, slash + 1);
}

// The user, the server's role or its limits forbid it; the table can be read all the same.
bool IsRefusal(std::string_view error) {
  constexpr std::array<std::string_view, 5> kCodes{"NOPERM", "READONLY", "TOOLARGE", "OOM",
                                                   "MISCONF"};
  for (const std::string_view code : kCodes) {
    if (error.starts_with(code)) return true;
  }
  return false;
}

std::string NewName() {
  std::random_device random;
  std::string name = "export.";
  for (int i = 0; i < 8; ++i) AppendHex(static_cast<char>(random() & 0xff), &name);
  return name;
}

}  // namespace

std::string TableAt(const std::string& table, std::string_view snapshot) {
  return snapshot.empty() ? table : table + "@" + std::string(snapshot);
}

Result<std::string> MakeSnapshot(client::Connection* connection, const std::string& table,
                                 std::string* refusal) {
  const std::string keyspace = KeyspaceOf(table);
  std::string name = NewName();
  ASSIGN_OR_RETURN(const client::Reply reply,
                   connection->Call({"SNAPSHOT", "CREATE", keyspace + name, "TABLE", "1",
                                     table.substr(keyspace.size()), "TTL", kLifetime}));
  const std::string_view error = client::ErrorText(*reply);
  if (error.empty()) return name;
  if (!IsRefusal(error)) return Status::Error(ErrorCode::kErr, std::string(error));
  *refusal = error;
  return std::string();
}

void DropSnapshot(client::Connection* connection, const std::string& table,
                  const std::string& snapshot) {
  (void)connection->Call({"SNAPSHOT", "DROP", KeyspaceOf(table) + snapshot});
}

}  // namespace cellar::exporter
