// See explain_arguments.h.
#include "commands/arguments/explain_arguments.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/text/ascii.h"
#include "base/text/quote.h"
#include "base/text/time_text.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/scan_cursor.h"
#include "commands/arguments/write_arguments.h"
#include "engine/request/row_update.h"
#include "engine/rows/time_unit.h"

namespace cellar {
namespace {
Status AddColumn(std::string_view word, Explained* read) {
  ColumnSelector& column = read->request.cells.columns.emplace_back();
  column.kind = ColumnSelector::Kind::kColumn;
  return ParseColumn(word, &column.family, &column.first);
}

void ReadRow(std::string_view row, Explained* read) {
  read->request.rows.rows.push_back({RowSelector::Kind::kRow, row, {}});
}

Status ReadCGet(Arguments words, Explained* read) {
  ReadRow(words[2], read);
  RETURN_IF_ERROR(AddColumn(words[3], read));
  ASSIGN_OR_RETURN(const GetOptions options, ParseGetOptions(ArgumentCursor(words, 4)));
  read->request.cells.time.max_micros = options.at_micros;
  return Status::Ok();
}

Status ReadCMGet(Arguments words, Explained* read) {
  ReadRow(words[2], read);
  for (const std::string_view word : words.subspan(3)) RETURN_IF_ERROR(AddColumn(word, read));
  return Status::Ok();
}

Status ReadCExists(Arguments words, Explained* read) {
  ReadRow(words[2], read);
  if (words.size() > 4) return SyntaxErrorBecause("CEXISTS takes one column");
  if (words.size() == 4) RETURN_IF_ERROR(AddColumn(words[3], read));
  read->request.rows.cells_wanted = false;
  return Status::Ok();
}

Status ReadCRow(Arguments words, Explained* read) {
  RETURN_IF_ERROR(ParseReadOptions(ReadCommand::kRow, ArgumentCursor(words, 3), &read->request));
  ReadRow(words[2], read);
  return Status::Ok();
}

Status ReadCRows(Arguments words, Explained* read) {
  ArgumentCursor at(words, 2);
  ASSIGN_OR_RETURN(const uint64_t count,
                   ParseWordCount("CROWS table", "count row ...", at.Take(), 1));
  if (count > at.left()) return TooFewWords("CROWS table", count, at.left());
  const size_t rest = at.position() + count;
  RETURN_IF_ERROR(
      ParseReadOptions(ReadCommand::kRows, ArgumentCursor(words, rest), &read->request));
  for (const std::string_view row : words.subspan(3, count)) ReadRow(row, read);
  return Status::Ok();
}

Status ReadCScan(Arguments words, Explained* read) {
  RETURN_IF_ERROR(CheckCursorForm(words[2]));
  RETURN_IF_ERROR(ParseReadOptions(ReadCommand::kScan, ArgumentCursor(words, 3), &read->request));
  ReadRequest& request = read->request;
  request.rows.cells_wanted = !request.keys_only;
  request.cells.timestamps = request.format.arrays();
  read->cursor = words[2];
  read->rows_max = request.rows_max;
  read->cells_max = request.cells_max;
  return Status::Ok();
}

Status ReadCCount(Arguments words, Explained* read) {
  RETURN_IF_ERROR(ParseReadOptions(ReadCommand::kCount, ArgumentCursor(words, 2), &read->request));
  read->request.rows.cells_wanted = read->request.by != CountBy::kRows;
  read->request.rows.reordered_max = kUnlimited;
  read->request.cells.timestamps = false;
  return Status::Ok();
}

Status ReadCAgg(Arguments words, Explained* read) {
  return ParseAggregate(ArgumentCursor(words, 2), &read->request, &read->aggregate.emplace());
}

// The ops are checked, and done to nothing.
Status ReadCUpdate(Arguments words, Explained* read) {
  ArgumentCursor at(words, 2);
  RETURN_IF_ERROR(ParseUpdateOptions(&at, &read->request));
  RowWrite& write = read->update.emplace();
  RETURN_IF_ERROR(ParseUpdateOps(at, &write));
  for (const CellOp& op : write.ops) {
    if (!op.timestamp_micros) continue;
    std::string note = LargerUnitNote("TS", *op.timestamp_micros, NowOfTexts());
    if (!note.empty()) read->notes.push_back(std::move(note));
  }
  read->request.rows.cells_wanted = false;
  read->request.rows.reordered_max = kUpdateRowsSortedMax;
  read->request.cells.timestamps = false;
  read->rows_max = read->request.changes_max;
  return Status::Ok();
}

struct Reader {
  std::string_view name;
  size_t words_min;
  Status (*read)(Arguments words, Explained* read);
};
constexpr Reader kReaders[] = {
    {"cagg", 5, ReadCAgg},   {"ccount", 2, ReadCCount}, {"cexists", 3, ReadCExists},
    {"cget", 4, ReadCGet},   {"cmget", 4, ReadCMGet},   {"crow", 3, ReadCRow},
    {"crows", 4, ReadCRows}, {"cscan", 3, ReadCScan},   {"cupdate", 4, ReadCUpdate},
};

// `words` begin with the name of the command.
Status ReadCommandWords(Arguments words, Explained* read) {
  const auto* const reader =
      std::find_if(std::begin(kReaders), std::end(kReaders),
                   [&](const Reader& row) { return EqualsIgnoreCase(words[0], row.name); });
  if (reader == std::end(kReaders)) {
    return Status::Error(
        ErrorCode::kErr,
        "CEXPLAIN takes CAGG, CCOUNT, CEXISTS, CGET, CMGET, CROW, CROWS, CSCAN or CUPDATE, not " +
            Quote(words[0]));
  }
  *read = Explained();
  read->name = reader->name;
  if (words.size() < reader->words_min) {
    return Status::Error(ErrorCode::kErr, "wrong number of arguments for '" +
                                              std::string(reader->name) + "' command");
  }
  read->table = words[1];
  return reader->read(words, read);
}

}  // namespace

Result<bool> ReadExplained(Arguments words, Explained* read) {
  // ANALYZE may be the read's own last word, a row's key for instance: so all words are tried as
  // the read first.
  Status status = ReadCommandWords(words, read);
  if (status.ok()) return false;
  if (words.size() < 2 || !EqualsIgnoreCase(words.back(), "ANALYZE")) return status;
  RETURN_IF_ERROR(ReadCommandWords(words.first(words.size() - 1), read));
  return true;
}

}  // namespace cellar
