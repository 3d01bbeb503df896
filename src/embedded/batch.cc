// See batch.h.
#include "embedded/batch.h"

#include <fmt/format.h>

#include <memory>

namespace cellar::embedded {

Batch::Changes::Word Batch::Changes::AddWord(std::string_view text) {
  const Word word{bytes.size(), text.size()};
  bytes.append(text);
  return word;
}

void Batch::Changes::Add(CellOp::Kind kind, std::string_view table, std::string_view row,
                         std::string_view column, std::string_view value) {
  const Change* const before = list.empty() ? nullptr : &list.back();
  const bool same_table = before != nullptr && Text(before->table) == table;
  const bool same_row = same_table && Text(before->row) == row;
  Change change;
  change.kind = kind;
  change.table = same_table ? before->table : AddWord(table);
  change.row = same_row ? before->row : AddWord(row);
  change.column = AddWord(column);
  change.value = AddWord(value);
  list.push_back(change);
}

void Batch::Changes::AddOptions(const PutOptions& given) {
  Change& change = list.back();
  change.has_options = true;
  change.option = static_cast<uint32_t>(options.size());
  options.push_back({given, AddWord(given.type)});
  options.back().options.type = {};  // of the caller's memory
}

PutOptions Batch::Changes::OptionsOf(const Change& change) const {
  const Option& option = options[change.option];
  PutOptions result = option.options;
  result.type = Text(option.type);
  return result;
}

Batch::Batch() : changes_(std::make_unique<Changes>()) {}
Batch::~Batch() = default;
Batch::Batch(Batch&&) noexcept = default;
Batch& Batch::operator=(Batch&&) noexcept = default;

void Batch::Put(std::string_view table, std::string_view row, std::string_view column,
                std::string_view value, const PutOptions& options) {
  changes_->Add(CellOp::Kind::kPut, table, row, column, value);
  const bool has_options =
      !options.type.empty() || options.timestamp_micros || options.ttl_micros.has_value();
  if (has_options) changes_->AddOptions(options);
}

void Batch::Increment(std::string_view table, std::string_view row, std::string_view column,
                      int64_t delta) {
  changes_->Add(CellOp::Kind::kIncrement, table, row, column, std::to_string(delta));
}

void Batch::IncrementFloat(std::string_view table, std::string_view row, std::string_view column,
                           double delta) {
  changes_->Add(CellOp::Kind::kIncrementFloat, table, row, column, fmt::format("{}", delta));
}

void Batch::Append(std::string_view table, std::string_view row, std::string_view column,
                   std::string_view bytes) {
  changes_->Add(CellOp::Kind::kAppend, table, row, column, bytes);
}

void Batch::Add(std::string_view table, std::string_view row, std::string_view column,
                std::string_view input) {
  changes_->Add(CellOp::Kind::kAdd, table, row, column, input);
}

void Batch::Delete(std::string_view table, std::string_view row, std::string_view column) {
  changes_->Add(CellOp::Kind::kDelete, table, row, column, {});
}

void Batch::DeleteRow(std::string_view table, std::string_view row) {
  changes_->Add(CellOp::Kind::kDeleteRow, table, row, {}, {});
}

void Batch::Clear() {
  changes_->bytes.clear();
  changes_->list.clear();
  changes_->options.clear();
}

size_t Batch::size() const { return changes_->list.size(); }

}  // namespace cellar::embedded
