// See exposition.h.
#include "cellar-web/exposition.h"

#include "base/text/utf8.h"

namespace cellar::web {
namespace {

constexpr std::string_view kKinds[]{"gauge", "counter", "histogram"};

void AppendLabelValue(std::string_view value, std::string* out) {
  const bool plain = IsValidUtf8(value);
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == '"') {
      out->append(1, '\\').append(1, c);
    } else if (c == '\n') {
      out->append("\\n");
    } else if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !plain)) {
      constexpr char kDigits[]{"0123456789abcdef"};
      out->append("\\\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    } else {
      out->push_back(c);
    }
  }
}

}  // namespace

void Exposition::Add(std::string_view name, MetricKind kind, std::string_view help,
                     std::initializer_list<Label> labels, std::string_view value,
                     std::string_view suffix) {
  const auto [found, is_new] = by_name_.try_emplace(std::string(name), families_.size());
  if (is_new) {
    std::string head{"# HELP "};
    head.append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
    head.append(kKinds[static_cast<size_t>(kind)]).append("\n");
    families_.push_back({.head = std::move(head), .samples = {}});
  }
  std::string& out = families_[found->second].samples;
  out.append(name).append(suffix);
  char before = '{';
  for (const auto& [label, text] : labels) {
    out.append(1, before).append(label).append("=\"");
    AppendLabelValue(text, &out);
    out.push_back('"');
    before = ',';
  }
  if (before == ',') out.push_back('}');
  out.append(" ").append(value).append("\n");
}

std::string Exposition::Text() const {
  std::string text;
  for (const Family& family : families_) text.append(family.head).append(family.samples);
  return text;
}

}  // namespace cellar::web
