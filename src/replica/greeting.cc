// See greeting.h.
#include "replica/greeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>

#include "replica/links/frame.h"
#include "replica/replication.h"
#include "replica/set/refused.h"

namespace cellar {
namespace {

constexpr size_t kRepliesBytesMax{16 * 1024};

// A command in RESP.
std::string Request(std::initializer_list<std::string_view> words) {
  std::string text = fmt::format("*{}\r\n", words.size());
  for (const std::string_view word : words) text += fmt::format("${}\r\n{}\r\n", word.size(), word);
  return text;
}

// The word of the line that is `from_end` words before its end, 1 the last one; 0: it is none.
uint64_t HexWord(std::string_view line, int from_end) {
  for (; from_end > 1; --from_end) line = line.substr(0, line.rfind(' '));
  const std::string_view word = line.substr(line.rfind(' ') + 1);
  uint64_t number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number, 16);
  return read.ec == std::errc{} ? number : 0;
}

}  // namespace

bool IsPlainHost(std::string_view text) {
  constexpr size_t kHostBytesMax{255};
  return !text.empty() && text.size() <= kHostBytesMax &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c <= '~' && c != '"' && c != '\''; });
}

std::string PeerGreeting::Begin(const ReplicationOptions& options, const Identity& identity,
                                std::string_view purpose, uint64_t features) {
  replies_.clear();
  awaited_ = 1;
  std::string text;
  if (!options.password.empty()) {
    ++awaited_;
    text = options.user.empty() ? Request({"AUTH", options.password})
                                : Request({"AUTH", options.user, options.password});
  }
  return text +
         Request({"PEER", fmt::format("{}", kPeerVersion), fmt::format("{:016x}", identity.cluster),
                  fmt::format("{:016x}", identity.node), purpose, fmt::format("{:x}", features)});
}

// One line each: the last one is PEER's.
Result<bool> PeerGreeting::Take(std::string_view bytes, std::string* rest) {
  replies_ += bytes;
  while (true) {
    const size_t end = replies_.find("\r\n");
    if (end == std::string::npos) {
      if (replies_.size() > kRepliesBytesMax) return Refused("its reply is no line");
      return false;
    }
    const std::string line = replies_.substr(0, end);
    replies_.erase(0, end + 2);
    if (line.empty() || line[0] != '+')
      return Refused("it refuses: " + (line.empty() ? "(nothing)" : line.substr(1)));
    const bool greets = line.starts_with("+PEER ");
    if (!greets && --awaited_ > 0) continue;  // AUTH's
    if (!greets) return Refused("it is no Cellar that can be followed: " + line);
    // +PEER version cluster [features] node
    node_ = HexWord(line, 1);
    features_ = std::count(line.begin(), line.end(), ' ') == 4 ? HexWord(line, 2) : 0;
    *rest = std::exchange(replies_, {});
    return true;
  }
}

}  // namespace cellar
