// See table_copy.h.
#include "engine/state/table_copy.h"

#include "base/assert.h"
#include "base/coding.h"
#include "engine/table/table.h"

namespace cellar {

std::string EncodeCopyDefinition(const CopyDefinition& definition) {
  std::string bytes;
  PutVarint64(&bytes, definition.source_id);
  PutVarint64(&bytes, definition.tree_id_first);
  PutLengthPrefixed(&bytes, definition.source_keyspace);
  PutLengthPrefixed(&bytes, definition.source);
  PutFixed64(&bytes, static_cast<uint64_t>(definition.as_at_micros));
  bytes += definition.schema;
  return bytes;
}

bool DecodeCopyDefinition(std::string_view from, CopyDefinition* definition) {
  std::string_view keyspace;
  std::string_view source;
  uint64_t micros = 0;
  if (!GetVarint64(&from, &definition->source_id) ||
      !GetVarint64(&from, &definition->tree_id_first) || !GetLengthPrefixed(&from, &keyspace) ||
      !GetLengthPrefixed(&from, &source) || !GetFixed64(&from, &micros)) {
    return false;
  }
  definition->source_keyspace = keyspace;
  definition->source = source;
  definition->as_at_micros = static_cast<int64_t>(micros);
  definition->schema = from;
  return true;
}

TableCopy::TableCopy(Table& source) : source_id_(source.id()) {
  CELLAR_ASSERT(source.frozen());
  for (BTreeSnapshot& from : source.TakeSnapshots())
    parts_.push_back({0, std::move(from), std::make_unique<BTree>()});
  for (const IndexSchema& schema : source.schema().indexes) {
    Index* index = source.indexes()->Find(schema.id);
    if (index == nullptr || !index->built()) continue;
    parts_.push_back(
        {schema.id, index->mutable_entries()->TakeSnapshot(), std::make_unique<BTree>()});
  }
}

TableCopy::~TableCopy() = default;

bool TableCopy::Step(uint64_t bytes_max) {
  for (; part_ < parts_.size(); ++part_) {
    Part& part = parts_[part_];
    if (copier_ == nullptr) copier_ = std::make_unique<BTreeCopier>(part.from, part.to.get());
    if (!copier_->Step(bytes_max)) return false;
    copier_.reset();
    CELLAR_ASSERT(part.to->entries() == part.from.entries());
  }
  return true;
}

uint64_t TableCopy::memory_bytes() const {
  uint64_t bytes = 0;
  for (const Part& part : parts_) {
    if (part.to != nullptr) bytes += part.to->memory_bytes();
  }
  return bytes;
}

void TableCopy::FinishTo(const Table& source, Table* table) {
  CELLAR_ASSERT(part_ == parts_.size());
  CELLAR_ASSERT(source.id() == source_id_);
  TableCounters counters = source.counters();
  for (FamilyCounters& family : counters.families) family.logged_bytes = 0;
  table->SetCounters(std::move(counters));
  size_t group = 0;
  for (Part& part : parts_) {
    if (part.index_id == 0) {
      table->SetTree(group++, std::move(part.to));
      continue;
    }
    const Index* from = source.indexes()->Find(part.index_id);
    Index* to = table->indexes()->Find(part.index_id);
    // What was built may have to be built again behind a reload.
    if (from != nullptr && from->built() && to != nullptr) to->SetCopy(*from, std::move(part.to));
  }
}

std::vector<std::unique_ptr<BTree>> TableCopy::GiveUp() {
  // A tree that is laid half can be freed in slices only when it is one.
  if (copier_ != nullptr) copier_->Finish();
  copier_.reset();
  std::vector<std::unique_ptr<BTree>> trees;
  for (Part& part : parts_) {
    if (part.to != nullptr) trees.push_back(std::move(part.to));
  }
  parts_.clear();
  return trees;
}

}  // namespace cellar
