// See command.h.
#include "cellar-import/command.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/quote.h"
#include "client/command_words.h"

namespace cellar::importer {
namespace {

// The words of the commands that write `row`, one vector a command. The views are of `row`,
// `options` and *scratch.
std::vector<std::vector<std::string_view>> RowWords(const CommandOptions& options, const Row& row,
                                                    std::vector<std::string>* scratch) {
  CELLAR_ASSERT(!row.cells.empty());
  CELLAR_ASSERT(options.cells_per_command > 0);
  scratch->clear();
  scratch->reserve(3 * row.cells.size() + 1);  // no word may move
  std::string_view timestamp;
  if (row.timestamp_micros) {
    timestamp = scratch->emplace_back(std::to_string(*row.timestamp_micros));
  }
  std::vector<std::vector<std::string_view>> commands;
  for (size_t begin{0}; begin < row.cells.size(); begin += options.cells_per_command) {
    const size_t end{std::min(row.cells.size(), begin + options.cells_per_command)};
    std::vector<std::string_view>& words = commands.emplace_back();
    words.reserve(3 + (end - begin) * 10);
    words.insert(words.end(), {options.aggregates ? "CADD" : "CPUT", options.table, row.key});
    for (size_t index{begin}; index < end; ++index) {
      const Cell& cell = row.cells[index];
      std::string& column = scratch->emplace_back();
      column.reserve(cell.family.size() + 1 + cell.qualifier.size());
      column.append(cell.family).append(1, ':').append(cell.qualifier);
      words.push_back(column);
      words.push_back(cell.value);
      // What an aggregate family holds, it says itself; its states are of no type that AS names.
      if (!cell.type.empty() && !options.aggregates && cell.type != "hll")
        words.insert(words.end(), {"AS", cell.type});
      if (cell.timestamp_micros) {
        words.push_back("TS");
        words.push_back(scratch->emplace_back(std::to_string(*cell.timestamp_micros)));
      } else if (!timestamp.empty()) {
        words.insert(words.end(), {"TS", timestamp});
      }
      if (cell.expires_micros) {
        words.push_back("EXPIREAT");
        words.push_back(scratch->emplace_back(std::to_string(*cell.expires_micros)));
      }
      if (!options.ttl.empty()) words.insert(words.end(), {"TTL", options.ttl});
    }
  }
  return commands;
}

}  // namespace

uint32_t AppendRow(const CommandOptions& options, const Row& row, std::string* out) {
  std::vector<std::string> scratch;
  const auto commands = RowWords(options, row, &scratch);
  for (const auto& words : commands) client::AppendCommand(words, out);
  return static_cast<uint32_t>(commands.size());
}

std::string DescribeRow(const CommandOptions& options, const Row& row) {
  std::vector<std::string> scratch;
  std::string text;
  for (const auto& words : RowWords(options, row, &scratch)) {
    for (const std::string_view word : words) {
      if (!text.empty() && text.back() != '\n') text += ' ';
      text += QuoteWord(word);
    }
    text += '\n';
  }
  return text;
}

}  // namespace cellar::importer
