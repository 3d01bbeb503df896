// See greeting.h.
#include "replica/greeting.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <utility>
#include <vector>

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

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// 0: it is none.
uint64_t HexWord(std::string_view word) {
  uint64_t number = 0;
  const auto read = std::from_chars(word.data(), word.data() + word.size(), number, 16);
  return read.ec == std::errc{} ? number : 0;
}

// The path that hexadecimal digits spell; empty: that is none of a socket.
std::string SocketPath(std::string_view digits) {
  std::string path;
  for (size_t at = 0; at + 1 < digits.size(); at += 2)
    path.push_back(static_cast<char>(HexWord(digits.substr(at, 2))));
  const bool is_path = path.starts_with('/') && path.size() < sizeof(sockaddr_un::sun_path) &&
                       path.find('\0') == std::string::npos;
  return is_path ? path : std::string();
}

}  // namespace

bool IsPlainHost(std::string_view text) {
  constexpr size_t kHostBytesMax{255};
  return !text.empty() && text.size() <= kHostBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c > ' ' && c <= '~' && c != '"' && c != '\'' && c != '/';
         });
}

std::string AcceptanceText(std::string_view cluster, uint64_t node, uint64_t features,
                           const Neighbour& neighbour) {
  std::string text = fmt::format("PEER {} {} ", kPeerVersion, cluster);
  if (features != 0) text += fmt::format("{:x} ", features);
  if (features != 0 && !neighbour.socket.empty()) {
    text += fmt::format("{:016x} ", neighbour.machine);
    for (const char c : neighbour.socket) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
    text += ' ';
  }
  return text + fmt::format("{:016x}", node);
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
    // +PEER version cluster [features [machine socket]] node
    const std::vector<std::string_view> words = WordsOf(line);
    node_ = HexWord(words.back());
    cluster_ = words.size() > 2 ? HexWord(words[2].substr(0, 16)) : 0;
    features_ = words.size() > 4 ? HexWord(words[3]) : 0;
    neighbour_ = {};
    if (words.size() == 7) neighbour_ = {HexWord(words[4]), SocketPath(words[5])};
    *rest = std::exchange(replies_, {});
    return true;
  }
}

}  // namespace cellar
