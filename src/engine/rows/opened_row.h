// OpenedRow: a row of which single columns are read, one after the other (CGET, CMGET, CEXISTS).
//
//   key_   | row key | family id, qualifier of the column at hand |
//
// The row's key is checked and encoded once. The rest is put behind it for each column, from
// whatever the table knows of its name. Columns that stand side by side are mostly found in the
// leaf where the last one was (ReadView::ReadColumn).
//
// Inlined, since for most commands this is all there is to do.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/assert.h"
#include "base/inline.h"
#include "cellar/status.h"
#include "engine/keys/timestamp.h"
#include "engine/request/family_access.h"
#include "engine/schema/column_set.h"
#include "engine/table/read_view.h"
#include "engine/table/table.h"

namespace cellar {

class OpenedRow {
 public:
  OpenedRow() = default;  // of no table; Open it
  OpenedRow(const OpenedRow&) = delete;
  OpenedRow& operator=(const OpenedRow&) = delete;

  // Becomes that row of `table` as it is at `now_micros`. Naming a family that `access` does not
  // let read is NOPERM; null allows everything. Both outlive the reads, and the table does not
  // change meanwhile. BADKEY, TOOLARGE; TRYAGAIN: another set owns it.
  CELLAR_INLINE Status Open(const Table& table, std::string_view row, const FamilyAccess* access,
                            int64_t now_micros);

  // The newest live cell of column `name` at or before `at_micros`, null if there is none. It and
  // what it borrows die with the next read. NOPERM, NOFAMILY, TOOLARGE, BADKEY; ERR unless
  // IsColumn(name). REQUIRES: opened.
  CELLAR_INLINE Result<const CellRead*> Get(std::string_view name,
                                            int64_t at_micros = kTimestampMax);
  // Is there a live cell in the row, of those that may be read? REQUIRES: opened.
  bool IsLive();

 private:
  // NOPERM unless the column's family may be read.
  [[gnu::cold, gnu::noinline]] Status CheckMayRead(std::string_view name) const;

  const Table* table_{nullptr};
  const FamilyAccess* access_{nullptr};
  ReadView view_;
  // There is room for the longest key, so that nobody asks.
  const std::unique_ptr<char[]> key_{std::make_unique_for_overwrite<char[]>(kColumnKeyBytesMax)};
  size_t row_bytes_{0};
  CellRead cell_;
};

Status OpenedRow::Open(const Table& table, std::string_view row, const FamilyAccess* access,
                       int64_t now_micros) {
  char* end = key_.get();
  RETURN_IF_ERROR(EncodeRowKey(table.schema(), row, &end));
  row_bytes_ = static_cast<size_t>(end - key_.get());
  if (table.clamp() != nullptr) [[unlikely]]
    RETURN_IF_ERROR(table.CheckOwned({key_.get(), row_bytes_}));
  table_ = &table;
  access_ = access;
  view_.Bind(table, now_micros);
  return Status::Ok();
}

Result<const CellRead*> OpenedRow::Get(std::string_view name, int64_t at_micros) {
  CELLAR_DEBUG_ASSERT(table_ != nullptr);
  if (access_ != nullptr) [[unlikely]]
    RETURN_IF_ERROR(CheckMayRead(name));
  const FamilySchema* family = nullptr;
  char* end = key_.get() + row_bytes_;
  if (Status encoded = table_->EncodeColumn(name, &family, &end); !encoded.ok()) [[unlikely]]
    return InTable(std::move(encoded), *table_);
  const std::string_view column(key_.get(), static_cast<size_t>(end - key_.get()));
  const bool is_there = view_.ReadColumn(column, *family, at_micros, &cell_);
  return is_there ? &cell_ : nullptr;
}

}  // namespace cellar
