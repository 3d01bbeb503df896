// See command_syntax.h. A recursive descent over a list of symbols; the texts are our own and
// short.
#include "commands/catalog/command_syntax.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr std::string_view kWideBar = " | ";  // separates alternatives; a tight one is "|"

// Words, brackets, bars and dots, in order.
std::vector<std::string_view> Symbols(std::string_view text) {
  std::vector<std::string_view> symbols;
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    if (text.substr(i).starts_with("...")) {
      symbols.push_back(text.substr(i, 3));
      i += 3;
    } else if (text.substr(i).starts_with(kWideBar)) {
      symbols.push_back(kWideBar);
      i += kWideBar.size();
    } else if (c == ' ') {
      ++i;
    } else if (c == '[' || c == ']' || c == '(' || c == ')' || c == '|') {
      symbols.push_back(text.substr(i++, 1));
    } else {
      const size_t begin = i;
      while (i < text.size() &&
             std::string_view(" []()|").find(text[i]) == std::string_view::npos &&
             !text.substr(i).starts_with("...")) {
        ++i;
      }
      symbols.push_back(text.substr(begin, i - begin));
    }
  }
  return symbols;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return lower;
}

bool IsToken(std::string_view word) {
  return std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

class Parser {
 public:
  explicit Parser(std::vector<std::string_view> symbols) : symbols_(std::move(symbols)) {}

  bool done() const { return next_ == symbols_.size(); }

  // What stands up to a closing bracket, a wide bar or the end.
  std::vector<SyntaxNode> Sequence() {
    std::vector<SyntaxNode> nodes;
    while (!done() && symbols_[next_] != "]" && symbols_[next_] != ")" &&
           symbols_[next_] != kWideBar) {
      SyntaxNode node = Item();
      if (!done() && symbols_[next_] == "...") {
        ++next_;
        node.multiple = true;
        node.multiple_token = !node.token.empty() && node.kind != SyntaxNode::Kind::kToken;
      }
      nodes.push_back(std::move(node));
    }
    return nodes;
  }

 private:
  SyntaxNode Item() {
    const std::string_view symbol = symbols_[next_++];
    if (symbol == "[" || symbol == "(") {
      SyntaxNode node = Alternatives();
      CELLAR_ASSERT(!done() && symbols_[next_] == (symbol == "[" ? "]" : ")"));
      ++next_;
      node.optional = node.optional || symbol == "[";
      return node;
    }
    SyntaxNode first = Word(symbol);
    if (done() || symbols_[next_] != "|") return first;
    std::vector<SyntaxNode> choices;
    choices.push_back(std::move(first));
    while (!done() && symbols_[next_] == "|") {
      next_ += 2;
      choices.push_back(Word(symbols_[next_ - 1]));
    }
    return OneOf(std::move(choices));
  }

  // The inside of a bracket.
  SyntaxNode Alternatives() {
    std::vector<SyntaxNode> choices;
    choices.push_back(Group(Sequence()));
    while (!done() && symbols_[next_] == kWideBar) {
      ++next_;
      choices.push_back(Group(Sequence()));
    }
    if (choices.size() == 1) return std::move(choices[0]);
    return OneOf(std::move(choices));
  }

  static SyntaxNode Word(std::string_view word) {
    SyntaxNode node;
    node.name = Lower(word);
    if (IsToken(word)) {
      node.kind = SyntaxNode::Kind::kToken;
      node.token = word;
    }
    return node;
  }
  static SyntaxNode OneOf(std::vector<SyntaxNode> choices) {
    SyntaxNode node;
    node.kind = SyntaxNode::Kind::kOneOf;
    for (const SyntaxNode& choice : choices)
      node.name += (node.name.empty() ? "" : "-") + choice.name;
    node.children = std::move(choices);
    return node;
  }
  // One node for a sequence: itself, an argument with its token, or a block.
  static SyntaxNode Group(std::vector<SyntaxNode> nodes) {
    CELLAR_ASSERT(!nodes.empty());
    if (nodes.size() == 1) return std::move(nodes[0]);
    std::string token;
    if (nodes[0].kind == SyntaxNode::Kind::kToken && !nodes[0].multiple) {
      token = nodes[0].token;
      nodes.erase(nodes.begin());
      if (nodes.size() == 1 && nodes[0].token.empty() && !nodes[0].optional) {
        nodes[0].token = token;
        return std::move(nodes[0]);
      }
    }
    SyntaxNode block;
    block.kind = SyntaxNode::Kind::kBlock;
    block.name = token.empty() ? nodes[0].name : Lower(token);
    block.token = std::move(token);
    block.children = std::move(nodes);
    return block;
  }

  std::vector<std::string_view> symbols_;
  size_t next_{0};
};

struct ArgumentType {
  std::string_view name;
  std::string_view word;
  std::string_view command{};  // the one where it is so; empty: all
};

// The first that fits holds; what is not here is a string.
constexpr ArgumentType kArgumentTypes[] = {
    {"delta", "integer", "cincrby"},
    {"delta", "double"},
    {"seconds", "integer", "client|kill"},
    {"seconds", "double"},
    {"probability", "double"},
    {"cursor", "integer", "scan"},  // that of CSCAN is opaque
    {"key", "string", "cluster|keyslot"},
    {"key", "key"},
    {"table", "string", "feed|create"},  // which names tables that may come later too
    {"table", "key"},
    {"feed", "key"},
    {"new-table", "key"},
    {"pattern", "pattern"},
    {"bits", "integer"},
    {"client-id", "integer"},
    {"cluster-bus-port", "integer"},
    {"config-epoch", "integer"},
    {"count", "integer"},
    {"end-slot", "integer"},
    {"id", "string", "xread"},
    {"id", "string", "xadd"},
    {"id", "string", "xdel"},
    {"id", "string", "xreadgroup"},
    {"id", "string", "xack"},
    {"id", "string", "xclaim"},
    {"id", "string", "xgroup|create"},
    {"id", "string", "xgroup|setid"},
    {"id", "integer"},
    {"micros", "integer"},
    {"milliseconds", "integer"},
    {"numkeys", "integer"},
    {"numlocal", "integer"},
    {"numreplicas", "integer"},
    {"offset", "integer"},
    {"parts", "integer"},
    {"port", "integer"},
    {"protover", "integer"},
    {"slot", "integer"},
    {"start-slot", "integer"},
    {"timeout", "integer"},
    {"version", "integer"},
};

}  // namespace

std::vector<SyntaxNode> ParseSyntax(std::string_view text) {
  Parser parser(Symbols(text));
  std::vector<SyntaxNode> nodes = parser.Sequence();
  CELLAR_ASSERT(parser.done());
  return nodes;
}

std::string_view SyntaxTypeWord(std::string_view command, const SyntaxNode& node) {
  switch (node.kind) {
    case SyntaxNode::Kind::kToken:
      return "pure-token";
    case SyntaxNode::Kind::kOneOf:
      return "oneof";
    case SyntaxNode::Kind::kBlock:
      return "block";
    case SyntaxNode::Kind::kArgument:
      break;
  }
  for (const ArgumentType& type : kArgumentTypes) {
    if (node.name == type.name && (type.command.empty() || command == type.command)) {
      return type.word;
    }
  }
  return "string";
}

}  // namespace cellar
