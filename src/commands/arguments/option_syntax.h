// The options of a command out of its syntax line, at compile time:
//
//   "table [ROWS count row...]... [INDEX index [EQ count value...]] (PREFIX prefix | ALL)"
//   -> ROWS "count row ..." many, INDEX "index", EQ "count value ...", PREFIX "prefix", ALL ""
//
// An option is a token that begins a bracket or an alternative between wide bars. Tokens between
// tight bars are words that may follow one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cellar {

struct SyntaxOption {
  std::string_view word;      // empty: there is none
  std::array<char, 40> form;  // the words that follow, as errors show them: "count row ..."
  uint8_t form_size;
  uint8_t words_min;  // that follow; 0 for a predicate, whose parser says itself what it lacks
  bool many;          // its bracket may be repeated

  constexpr std::string_view words() const { return {form.data(), form_size}; }
};

namespace option_syntax {

constexpr bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }

// The end of the token at the start of `text`, 0 if none stands there, or one of tight bars.
constexpr size_t TokenSize(std::string_view text) {
  size_t size = 0;
  while (size < text.size() && IsCapital(text[size])) ++size;
  if (size < 2) return 0;
  return size == text.size() || text[size] == ' ' || text[size] == ']' || text[size] == ')' ? size
                                                                                            : 0;
}

// Whether an option may stand at `at`.
constexpr bool Begins(std::string_view syntax, size_t at) {
  return at > 0 && (syntax[at - 1] == '[' || syntax[at - 1] == '(' ||
                    (at > 2 && syntax.substr(at - 3, 3) == " | "));
}

// Notes the words behind the option's token, `rest`, up to what ends them.
constexpr void TakeForm(std::string_view rest, SyntaxOption* option) {
  int depth = 0;
  size_t at = 0;
  for (; at < rest.size(); ++at) {
    const char c = rest[at];
    if (c == '[' || c == ']' || rest.substr(at).starts_with(" | ")) break;
    if (c == '(') ++depth;
    if (c == ')' && --depth < 0) break;
    if (c == '(' || c == ')' || (c == ' ' && option->form_size == 0)) continue;
    if (rest.substr(at).starts_with("...") && option->form[option->form_size - 1] != ' ')
      option->form[option->form_size++] = ' ';
    option->form[option->form_size++] = c;
    if (rest.substr(at).starts_with("...")) {
      option->form[option->form_size++] = '.';
      option->form[option->form_size++] = '.';
      at += 2;
    }
  }
  while (option->form_size > 0 && option->form[option->form_size - 1] == ' ') --option->form_size;
  option->many = rest.substr(at).starts_with("]...");
}

constexpr uint8_t CountWords(std::string_view words) {
  if (words.empty() || words == "predicate") return 0;
  uint8_t count = 1;
  for (size_t at = 0; at < words.size(); ++at) {
    if (words[at] == ' ' && words[at + 1] != '.') ++count;
  }
  return count;
}

}  // namespace option_syntax

// Finds the next option at or behind *at, and moves *at behind its token.
constexpr SyntaxOption NextOption(std::string_view syntax, size_t* at) {
  SyntaxOption option{};
  for (; *at < syntax.size(); ++*at) {
    const size_t size =
        option_syntax::Begins(syntax, *at) ? option_syntax::TokenSize(syntax.substr(*at)) : 0;
    if (size == 0) continue;
    option.word = syntax.substr(*at, size);
    *at += size;
    option_syntax::TakeForm(syntax.substr(*at), &option);
    option.words_min = option_syntax::CountWords(option.words());
    break;
  }
  return option;
}

// The option of this name; its word is empty if there is none.
constexpr SyntaxOption FindOptionIn(std::string_view syntax, std::string_view word) {
  size_t at = 0;
  for (;;) {
    const SyntaxOption option = NextOption(syntax, &at);
    if (option.word.empty() || option.word == word) return option;
  }
}

}  // namespace cellar
