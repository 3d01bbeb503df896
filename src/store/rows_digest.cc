// See rows_digest.h.
#include "store/rows_digest.h"

#include "base/assert.h"
#include "base/coding.h"
#include "engine/rows/scan.h"
#include "engine/scans/index_scan.h"
#include "engine/state/snapshot_set.h"
#include "engine/table/read_view.h"
#include "engine/table/tablets.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

// Of where a range begins or ends; null: behind all rows.
uint64_t HashOfEnd(const Table& table, const std::string* key) {
  std::string bytes;
  PutVarint64(&bytes, table.id());
  bytes.push_back(key == nullptr ? '\1' : '\0');
  if (key != nullptr) bytes += *key;
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t HashOfRange(const Table& table, const std::string& begin, const std::string& end) {
  return HashOfEnd(table, &begin) - HashOfEnd(table, end.empty() ? nullptr : &end);
}

}  // namespace

void RowsDigest::Part::Add(const Part& other) {
  CELLAR_ASSERT(other.schema == schema);
  rows.Add(other.rows);
  ends += other.ends;
}

std::string RowsDigest::Part::Text() const {
  DigestHash hash;
  for (const uint64_t half : {schema.high, schema.low, rows.high, rows.low})
    PutFixed64(&hash.bytes(), half);
  return hash.Take().Text();
}

std::string RowsDigest::Part::Encode() const {
  std::string bytes;
  for (const uint64_t number : {schema.high, schema.low, rows.high, rows.low, ends, whole})
    PutFixed64(&bytes, number);
  return bytes;
}

bool RowsDigest::Part::Decode(std::string_view from, Part* part) {
  for (uint64_t* const number : {&part->schema.high, &part->schema.low, &part->rows.high,
                                 &part->rows.low, &part->ends, &part->whole})
    if (!GetFixed64(&from, number)) return false;
  return from.empty();
}

RowsDigest::RowsDigest(Store& store, int64_t at_micros) {
  for (const std::string& keyspace : store.Keyspaces()) {
    if (!CheckKeyspaceOpen(store.engine(), keyspace).ok()) continue;
    for (const Table* const table : store.Tables(keyspace)) Add(*table, at_micros);
  }
  EndSchema();
}

RowsDigest::RowsDigest(const NamedSnapshot& snapshot) {
  for (const auto& [name, table] : snapshot.tables) Add(*table, snapshot.created_micros);
  EndSchema();
}

// Scans go before what they read.
RowsDigest::~RowsDigest() { scan_.reset(); }

void RowsDigest::EndSchema() {
  hash_.bytes() = std::move(schema_);
  part_.schema = hash_.Take();
}

void RowsDigest::Add(const Table& table, int64_t at_micros) {
  PutLengthPrefixed(&schema_, table.keyspace());
  PutLengthPrefixed(&schema_, table.name());
  DigestKey(table, &schema_);
  DigestFamilies(table, &schema_);
  const uint64_t all = HashOfRange(table, {}, {});
  part_.whole += all;
  if (table.tablets() == nullptr) {
    part_.ends += all;
  } else {
    for (const Tablet& tablet : table.tablets()->list())
      part_.ends += HashOfRange(table, tablet.begin, tablet.end);
    if (table.tablets()->list().empty()) return;
  }
  Waiting waiting{.prefix = {}, .view = std::make_unique<ReadView>(table, at_micros)};
  PutLengthPrefixed(&waiting.prefix, table.keyspace());
  PutLengthPrefixed(&waiting.prefix, table.name());
  waiting.view->Detach();
  tables_.push_back(std::move(waiting));
}

void RowsDigest::Open() {
  CellOptions all;
  all.versions_max = kUnlimited;
  all.expiries = true;
  Result<std::unique_ptr<Scan>> scan = OpenScan(tables_.back().view.get(), {}, all, nullptr, 0);
  CELLAR_ASSERT(scan.ok());  // it asks for everything
  scan_ = *std::move(scan);
}

void RowsDigest::EndRow() {
  if (in_row_) part_.rows.Add(hash_.Take());
  in_row_ = false;
}

bool RowsDigest::Step(uint64_t cells_max) {
  if (tables_.empty()) return true;
  if (scan_ == nullptr) Open();
  scan_->SetBudget(cells_max);
  for (;;) {
    switch (scan_->Next()) {
      case ScanStep::kPause:
        return false;
      case ScanStep::kRow:
        EndRow();
        in_row_ = true;
        hash_.bytes() = tables_.back().prefix;
        PutLengthPrefixed(&hash_.bytes(), scan_->row_text());
        break;
      case ScanStep::kCell:
        DigestCell(*scan_, &hash_.bytes());
        PutVarint64(&hash_.bytes(), static_cast<uint64_t>(scan_->expiry_micros()));
        hash_.FlushIfLong();
        break;
      case ScanStep::kEnd:
        EndRow();
        scan_.reset();
        tables_.pop_back();
        return tables_.empty();
    }
  }
}

const RowsDigest::Part& RowsDigest::part() const {
  CELLAR_ASSERT(tables_.empty());
  return part_;
}

}  // namespace cellar
