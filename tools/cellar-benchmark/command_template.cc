// See command_template.h.
#include "command_template.h"

#include <charconv>

namespace cellar::benchmark {
namespace {

// Writes the last `width` decimal digits of `number`.
void WriteDigits(char* to, uint32_t width, uint64_t number) {
  for (uint32_t i = width; i > 0; --i) {
    to[i - 1] = static_cast<char>('0' + number % 10);
    number /= 10;
  }
}

// Lower-case letters, eight from each random number: quick rather than evenly spread.
void WriteLetters(char* to, uint32_t width, Random& random) {
  for (uint32_t i = 0; i < width;) {
    uint64_t bits = random.Next();
    for (uint32_t j = 0; j < 8 && i < width; ++j, ++i, bits >>= 8) {
      to[i] = static_cast<char>('a' + ((bits & 0xff) * 26 >> 8));
    }
  }
}

uint32_t DigitsOf(uint64_t number) {
  uint32_t digits = 1;
  for (; number >= 10; number /= 10) ++digits;
  return digits;
}

bool ReadNumber(std::string_view text, uint64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<std::vector<std::string>> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word.push_back(c);
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == ' ' || c == '\t') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word.push_back(c);
      in_word = true;
    }
  }
  if (quote != 0) return Status::Error(ErrorCode::kErr, "open quote in: " + std::string(text));
  if (in_word) words.push_back(std::move(word));
  return words;
}

Result<CommandTemplate> CommandTemplate::Parse(std::string_view text,
                                               const TemplateOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> words, SplitWords(text));
  if (words.empty()) return Status::Error(ErrorCode::kErr, "an empty command");
  CommandTemplate result;
  result.bytes_ = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    std::string rendered;
    std::vector<Hole> holes;
    RETURN_IF_ERROR(FillHoles(word, options, &rendered, &holes));
    result.bytes_ += "$" + std::to_string(rendered.size()) + "\r\n";
    for (Hole& hole : holes) {
      hole.offset += static_cast<uint32_t>(result.bytes_.size());
      result.holes_.push_back(hole);
    }
    result.bytes_ += rendered + "\r\n";
  }
  return result;
}

Status CommandTemplate::FillHoles(std::string_view word, const TemplateOptions& options,
                                  std::string* rendered, std::vector<Hole>* holes) {
  while (true) {
    const size_t open = word.find("__");
    const size_t close = open == word.npos ? word.npos : word.find("__", open + 2);
    if (close == word.npos) break;
    rendered->append(word.substr(0, open));
    ASSIGN_OR_RETURN(Hole hole, ParseHole(word.substr(open + 2, close - open - 2), options));
    hole.offset = static_cast<uint32_t>(rendered->size());
    rendered->append(hole.width, '0');
    holes->push_back(hole);
    word.remove_prefix(close + 2);
  }
  rendered->append(word);
  return Status::Ok();
}

Result<CommandTemplate::Hole> CommandTemplate::ParseHole(std::string_view name,
                                                         const TemplateOptions& options) {
  uint64_t number = 0;
  if (name == "key") return Hole{HoleKind::kKey, 0, options.key_digits, 0, 0};
  if (name == "data") return Hole{HoleKind::kData, 0, options.data_bytes, 0, 0};
  if (name == "seq") return Hole{HoleKind::kSequence, 0, 10, 1000000000, 0};
  if (name == "now") return Hole{HoleKind::kNow, 0, 16, 0, 0};
  if (name.starts_with("now-") && ReadNumber(name.substr(4), &number)) {
    return Hole{HoleKind::kNow, 0, 16, number * 1000000, 0};
  }
  if (name.starts_with("data:") && ReadNumber(name.substr(5), &number) && number < (1U << 26)) {
    return Hole{HoleKind::kData, 0, static_cast<uint32_t>(number), 0, 0};
  }
  if (name.starts_with("rand:")) {
    const std::string_view bounds = name.substr(5);
    const size_t colon = bounds.find(':');
    uint64_t low = 0;
    uint64_t high = 0;
    if (colon != bounds.npos && ReadNumber(bounds.substr(0, colon), &low) &&
        ReadNumber(bounds.substr(colon + 1), &high) && low <= high && high < UINT64_MAX) {
      return Hole{HoleKind::kRand, 0, DigitsOf(high), low, high - low + 1};
    }
  }
  return Status::Error(ErrorCode::kErr, "unknown placeholder __" + std::string(name) + "__");
}

void CommandTemplate::Render(const RenderContext& context, std::string* out) const {
  const size_t begin = out->size();
  out->append(bytes_);
  char* const bytes = out->data() + begin;
  for (const Hole& hole : holes_) {
    char* const to = bytes + hole.offset;
    switch (hole.kind) {
      case HoleKind::kKey:
        WriteDigits(to, hole.width, context.key);
        break;
      case HoleKind::kData:
        WriteLetters(to, hole.width, *context.random);
        break;
      case HoleKind::kRand:
        WriteDigits(to, hole.width, hole.low + context.random->Below(hole.span));
        break;
      case HoleKind::kSequence:
        WriteDigits(to, hole.width, hole.low + context.sequence);
        break;
      case HoleKind::kNow:
        WriteDigits(to, hole.width, static_cast<uint64_t>(context.now_micros) - hole.low);
        break;
    }
  }
}

}  // namespace cellar::benchmark
