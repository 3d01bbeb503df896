// See xml.h.
#include "s3/xml.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace cellar {
namespace {

constexpr size_t kReferenceBytesMax{12};  // "&#1114111;" and some zeros in front

// Where an element begins and ends, its tags not counted; begin is npos if there is none.
std::pair<size_t, size_t> Find(std::string_view text, std::string_view name, size_t from) {
  constexpr std::pair<size_t, size_t> kNone{std::string_view::npos, std::string_view::npos};
  for (size_t at = text.find('<', from); at != std::string_view::npos;
       at = text.find('<', at + 1)) {
    const std::string_view rest = text.substr(at + 1);
    if (!rest.starts_with(name) || rest.size() == name.size()) continue;
    const char behind = rest[name.size()];
    if (behind != '>' && behind != ' ' && behind != '/') continue;
    const size_t close = text.find('>', at);
    if (close == std::string_view::npos) return kNone;
    if (text[close - 1] == '/') return {close + 1, close + 1};  // <name/>
    const std::string end = "</" + std::string(name) + ">";
    const size_t end_at = text.find(end, close);
    return end_at == std::string_view::npos ? kNone : std::pair{close + 1, end_at};
  }
  return kNone;
}

}  // namespace

std::string_view XmlElement(std::string_view text, std::string_view name) {
  const auto [begin, end] = Find(text, name, 0);
  return begin == std::string_view::npos ? std::string_view{} : text.substr(begin, end - begin);
}

std::vector<std::string_view> XmlElements(std::string_view text, std::string_view name) {
  std::vector<std::string_view> found;
  for (size_t at = 0;;) {
    const auto [begin, end] = Find(text, name, at);
    if (begin == std::string_view::npos) return found;
    found.push_back(text.substr(begin, end - begin));
    at = end;
  }
}

// Numeric references become characters only below 128, as names and keys here are ASCII; whatever
// is not understood stays as it stands.
std::string XmlText(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities{
      {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}}};
  std::string plain;
  while (!text.empty()) {
    const auto entity = std::find_if(kEntities.begin(), kEntities.end(), [text](const auto& known) {
      return text.starts_with(known.first);
    });
    if (entity != kEntities.end()) {
      plain += entity->second;
      text.remove_prefix(entity->first.size());
      continue;
    }
    if (text.starts_with("&#")) {
      // No further: a server that lies may send a megabyte of them.
      const std::string_view reference = text.substr(0, kReferenceBytesMax);
      const size_t end = std::min(reference.find(';'), reference.size());
      const size_t begin = reference.starts_with("&#x") ? 3 : 2;
      const char* const last = reference.data() + end;
      uint32_t code = 0;
      const auto [rest, error] = std::from_chars(reference.data() + std::min(begin, end), last,
                                                 code, begin == 3 ? 16 : 10);
      if (end < reference.size() && error == std::errc{} && rest == last && code < 128) {
        plain += static_cast<char>(code);
        text.remove_prefix(end + 1);
        continue;
      }
    }
    plain += text.front();
    text.remove_prefix(1);
  }
  return plain;
}

}  // namespace cellar
