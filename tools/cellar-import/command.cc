// See command.h.
#include "cellar-import/command.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/assert.h"

namespace cellar::importer {
namespace {

void AppendLength(char mark, size_t length, std::string* out) {
  std::array<char, 24> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), length);
  CELLAR_ASSERT(error == std::errc());
  out->push_back(mark);
  out->append(digits.data(), end);
  out->append("\r\n");
}

void AppendBulk(std::string_view bytes, std::string* out) {
  AppendLength('$', bytes.size(), out);
  out->append(bytes);
  out->append("\r\n");
}

// The words of the commands that write `row`, one vector a command. The views are of `row`,
// `options` and *scratch.
std::vector<std::vector<std::string_view>> RowWords(const CommandOptions& options, const Row& row,
                                                    std::vector<std::string>* scratch) {
  CELLAR_ASSERT(!row.cells.empty());
  CELLAR_ASSERT(options.cells_per_command > 0);
  scratch->clear();
  scratch->reserve(row.cells.size() + 1);  // no word may move
  std::string_view timestamp;
  if (row.timestamp_micros) {
    timestamp = scratch->emplace_back(std::to_string(*row.timestamp_micros));
  }
  std::vector<std::vector<std::string_view>> commands;
  for (size_t begin{0}; begin < row.cells.size(); begin += options.cells_per_command) {
    const size_t end{std::min(row.cells.size(), begin + options.cells_per_command)};
    std::vector<std::string_view>& words = commands.emplace_back();
    words.reserve(3 + (end - begin) * 8);
    words.insert(words.end(), {"CPUT", options.table, row.key});
    for (size_t index{begin}; index < end; ++index) {
      const Cell& cell = row.cells[index];
      words.push_back(scratch->emplace_back(cell.family + ":" + cell.qualifier));
      words.push_back(cell.value);
      if (!cell.type.empty()) words.insert(words.end(), {"AS", cell.type});
      if (!timestamp.empty()) words.insert(words.end(), {"TS", timestamp});
      if (!options.ttl.empty()) words.insert(words.end(), {"TTL", options.ttl});
    }
  }
  return commands;
}

// `word` as redis-cli reads it.
std::string Quoted(std::string_view word) {
  const bool is_plain{!word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '\\';
  })};
  if (is_plain) return std::string(word);
  constexpr std::string_view kDigits{"0123456789abcdef"};
  std::string text{"\""};
  for (const char c : word) {
    const auto byte = static_cast<uint8_t>(c);
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (byte < 0x20 || byte >= 0x7f) {
      text += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      text += c;
    }
  }
  return text + "\"";
}

}  // namespace

void AppendCommand(std::span<const std::string_view> words, std::string* out) {
  AppendLength('*', words.size(), out);
  for (const std::string_view word : words) AppendBulk(word, out);
}

void AppendCommand(std::initializer_list<std::string_view> words, std::string* out) {
  AppendCommand(std::span<const std::string_view>(words.begin(), words.size()), out);
}

uint32_t AppendRow(const CommandOptions& options, const Row& row, std::string* out) {
  std::vector<std::string> scratch;
  const auto commands = RowWords(options, row, &scratch);
  for (const auto& words : commands) AppendCommand(words, out);
  return static_cast<uint32_t>(commands.size());
}

std::string DescribeRow(const CommandOptions& options, const Row& row) {
  std::vector<std::string> scratch;
  std::string text;
  for (const auto& words : RowWords(options, row, &scratch)) {
    for (const std::string_view word : words) {
      if (!text.empty() && text.back() != '\n') text += ' ';
      text += Quoted(word);
    }
    text += '\n';
  }
  return text;
}

}  // namespace cellar::importer
