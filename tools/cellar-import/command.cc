// See command.h.
#include "cellar-import/command.h"

#include <algorithm>
#include <memory>

#include "base/assert.h"
#include "base/text/quote.h"
#include "resp/reply_writer.h"

namespace cellar::importer {
namespace {

// Tells `sink` the words of the command that writes cells [begin, end) of `row`.
template <typename Sink>
void TellWords(const CommandOptions& options, const Row& row, size_t begin, size_t end,
               Sink& sink) {
  sink.Word(options.aggregates ? "CADD" : "CPUT");
  sink.Word(options.table);
  sink.Word(row.key);
  for (size_t index{begin}; index < end; ++index) {
    const Cell& cell = row.cells[index];
    sink.Column(cell);
    sink.Word(cell.Value());
    // What an aggregate family holds, it says itself; its states are of no type that AS names.
    const std::string_view type = cell.Type();
    if (!type.empty() && !options.aggregates && type != "hll") sink.Type(cell);
    if (cell.timestamp_micros || row.timestamp_micros) {
      sink.Word("TS");
      sink.Number(cell.timestamp_micros ? *cell.timestamp_micros : *row.timestamp_micros);
    }
    if (cell.expires_micros) {
      sink.Word("EXPIREAT");
      sink.Number(*cell.expires_micros);
    }
    if (!options.ttl.empty()) {
      sink.Word("TTL");
      sink.Word(options.ttl);
    }
  }
}

// How many words, and bytes at most.
struct WordCounter {
  void Word(std::string_view text) { Add(1, ReplyWriter::BulkBytesMax(text.size())); }
  void Column(const Cell& cell) {
    Add(1, ReplyWriter::BulkBytesMax(cell.FamilyName().size() + 1 + cell.Qualifier().size()));
  }
  void Type(const Cell& cell) { Add(2, 2 * ReplyWriter::BulkBytesMax(2 + cell.Type().size())); }
  void Number(int64_t) { Add(1, ReplyWriter::BulkBytesMax(kDecimalBytesMax)); }
  void Add(size_t more, size_t bytes_more) {
    words += more;
    bytes += bytes_more;
  }

  size_t words{0};
  size_t bytes{kDecimalBytesMax + 3};  // the header
};

// Writes them as RESP into memory that is large enough. A command's words are bulk strings as those
// of a reply are.
struct WordEncoder {
  void Word(std::string_view text) { to = ReplyWriter::EncodeBulk(to, text); }
  void Column(const Cell& cell) {
    if (cell.header != nullptr) {
      to = ReplyWriter::EncodeBulkPart(to, cell.header->name_words);
      return;
    }
    to = ReplyWriter::EncodeBulkHeader(to, cell.family.size() + 1 + cell.qualifier.size());
    to = ReplyWriter::EncodeBulkPart(to, cell.family);
    *to++ = ':';
    to = ReplyWriter::EncodeBulkPart(to, cell.qualifier);
    to = ReplyWriter::EncodeBulkEnd(to);
  }
  void Type(const Cell& cell) {
    if (cell.header != nullptr) {
      to = ReplyWriter::EncodeBulkPart(to, cell.header->type_words);
      return;
    }
    Word("AS");
    Word(cell.type);
  }
  void Number(int64_t number) {
    char digits[kDecimalBytesMax];
    Word({digits, static_cast<size_t>(EncodeDecimal(digits, number) - digits)});
  }

  char* to;
};

// Writes them as one types them.
struct WordQuoter {
  void Word(std::string_view text) {
    if (!line->empty() && line->back() != '\n') *line += ' ';
    *line += QuoteWord(text);
  }
  void Column(const Cell& cell) { Word(cell.FamilyName() + ":" + cell.Qualifier()); }
  void Type(const Cell& cell) {
    Word("AS");
    Word(cell.Type());
  }
  void Number(int64_t number) { Word(std::to_string(number)); }

  std::string* line;
};

// Calls `each(begin, end)` for the cells of each command.
template <typename Each>
uint32_t ForEachCommand(const CommandOptions& options, const Row& row, const Each& each) {
  CELLAR_ASSERT(!row.cells.empty());
  CELLAR_ASSERT(options.cells_per_command > 0);
  uint32_t commands{0};
  for (size_t begin{0}; begin < row.cells.size(); begin += options.cells_per_command) {
    each(begin, std::min(row.cells.size(), begin + options.cells_per_command));
    ++commands;
  }
  return commands;
}

}  // namespace

uint32_t AppendRow(const CommandOptions& options, const Row& row, std::string* out) {
  return ForEachCommand(options, row, [&](size_t begin, size_t end) {
    WordCounter counter;
    TellWords(options, row, begin, end, counter);
    const auto bytes = std::make_unique_for_overwrite<char[]>(counter.bytes);
    WordEncoder encoder{bytes.get()};
    *encoder.to++ = '*';
    encoder.to = EncodeDecimal(encoder.to, uint64_t{counter.words});
    encoder.to = ReplyWriter::EncodeBulkEnd(encoder.to);
    TellWords(options, row, begin, end, encoder);
    const auto size = static_cast<size_t>(encoder.to - bytes.get());
    CELLAR_ASSERT(size <= counter.bytes);
    out->append(bytes.get(), size);
  });
}

std::string DescribeRow(const CommandOptions& options, const Row& row) {
  std::string text;
  ForEachCommand(options, row, [&](size_t begin, size_t end) {
    WordQuoter quoter{&text};
    TellWords(options, row, begin, end, quoter);
    text += '\n';
  });
  return text;
}

}  // namespace cellar::importer
