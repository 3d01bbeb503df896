// See range_file.h.
#include "store/range_file.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"

namespace cellar {
namespace {

// Of what comes of each text: file systems take names of 255 bytes.
constexpr size_t kPartBytesMax{60};

void AppendSafe(std::string_view text, std::string* to) {
  std::string part;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '.';
    part += is_plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
    if (part.size() >= kPartBytesMax) break;
  }
  *to += part.substr(0, kPartBytesMax);
}

}  // namespace

RangeFile::RangeFile(FileSystem& files, SnapshotTask task, Table& table, const Tablet& range)
    : files_(files), task_(std::move(task)), copy_(table, range) {
  // Indexes would be made of the rows anew.
  TableSchema schema = table.schema();
  schema.indexes.clear();
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  if (!IsBuiltInKeyspace(table.keyspace())) mutation_.CreateKeyspace(table.keyspace());
  mutation_.CreateTable(table.keyspace(), table.name(), table.id(), bytes);
}

Result<bool> RangeFile::Copy(size_t bytes_max) {
  CELLAR_ASSERT(!state_);
  const bool more = copy_.Next(bytes_max, &mutation_);
  if (!mutation_.empty()) RETURN_IF_ERROR(engine_.Apply(mutation_.payload()));
  mutation_.Reset();
  if (!more) state_ = engine_.TakeSnapshot();
  return more;
}

WorkerPool::Progress RangeFile::Run(WorkerPool::Turn&) {
  status_ = WriteSnapshot(files_, task_, *state_, &progress_).status();
  return WorkerPool::Progress::kDone;
}

std::string RangeFileName(std::string_view keyspace, std::string_view table,
                          std::string_view start) {
  std::string name = "cellar-orphan-";
  if (!IsBuiltInKeyspace(keyspace)) {
    AppendSafe(keyspace, &name);
    name += '.';
  }
  AppendSafe(table, &name);
  name += '-';
  AppendSafe(start.empty() ? std::string_view("first") : start, &name);
  return name + ".snapshot";
}

}  // namespace cellar
