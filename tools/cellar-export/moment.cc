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

}  // namespace

std::string TableAt(const std::string& table, std::string_view snapshot) {
  return snapshot.empty() ? table : table + "@" + std::string(snapshot);
}

std::string NewSnapshotName() {
  std::random_device random;
  std::string name = "export.";
  for (int i = 0; i < 8; ++i) AppendHex(static_cast<char>(random() & 0xff), &name);
  return name;
}

Result<bool> MakeSnapshot(client::Connection* connection, const std::string& table,
                          const std::string& name, std::string* refusal) {
  const std::string keyspace = KeyspaceOf(table);
  ASSIGN_OR_RETURN(const client::Reply reply,
                   connection->Call({"SNAPSHOT", "CREATE", keyspace + name, "TABLE", "1",
                                     table.substr(keyspace.size()), "TTL", kLifetime}));
  const std::string_view error = client::ErrorText(*reply);
  if (error.empty()) {
    // A node that has passed that on may not have it yet: a scan by the same connection waits for
    // it, and so those by others find it.
    RETURN_IF_ERROR(
        connection->Call({"CSCAN", TableAt(table, name), "0", "COUNT", "1", "KEYSONLY"}).status());
    return true;
  }
  if (!IsRefusal(error)) return Status::Error(ErrorCode::kErr, std::string(error));
  *refusal = error;
  return false;
}

Status DropSnapshot(client::Connection* connection, const std::string& table,
                    const std::string& snapshot) {
  ASSIGN_OR_RETURN(const client::Reply reply,
                   connection->Call({"SNAPSHOT", "DROP", KeyspaceOf(table) + snapshot}));
  const std::string_view error = client::ErrorText(*reply);
  if (error.empty() || error.starts_with("NOSNAPSHOT")) return Status::Ok();
  return Status::Error(ErrorCode::kErr, std::string(error));
}

}  // namespace cellar::exporter
