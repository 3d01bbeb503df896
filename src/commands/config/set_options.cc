// See set_options.h.
#include "commands/config/set_options.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/ascii.h"
#include "base/text/number.h"
#include "commands/config/config_words.h"
#include "commands/config/invalid.h"
#include "replica/greeting.h"

namespace cellar {
Status CheckReplicaOf(std::string* text) {
  const std::vector<std::string_view> words = Words(*text);
  if (words.empty()) {
    text->clear();
    return Status::Ok();
  }
  int64_t port = 0;
  if (words.size() == 2 && EqualsIgnoreCase(words[0], "no") && EqualsIgnoreCase(words[1], "one")) {
    text->clear();
    return Status::Ok();
  }
  const bool whole = words.size() == 2 && ParseInt64(words[1], &port) == NumberError::kNone &&
                     port > 0 && port <= UINT16_MAX;
  if (!whole) return Invalid("replicaof takes a host and a port");
  *text = std::string(words[0]) + " " + std::to_string(port);
  return Status::Ok();
}

Status CheckSentinelName(std::string* text) {
  const bool plain = std::all_of(text->begin(), text->end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
  if (plain) return Status::Ok();
  return Invalid("sentinel-name takes letters, digits and any of .-_");
}

Status CheckPlaceName(std::string* text) {
  constexpr size_t kBytesMax{64};
  if (text->size() <= kBytesMax) return Status::Ok();
  return Invalid("a name of at most 64 bytes is needed");
}

Status CheckAnnouncedHost(std::string* text) {
  if (text->empty() || IsPlainHost(*text)) return Status::Ok();
  return Invalid("replica-announce-ip takes a host, of 255 bytes at most");
}

namespace {

Status CheckNodes(std::string_view option, std::string* text) {
  constexpr size_t kNodesMax{63};
  std::vector<std::string> nodes;
  for (const std::string_view word : Words(*text)) {
    const size_t colon = word.rfind(':');
    int64_t port = 0;
    const bool whole = colon != std::string_view::npos && colon > 0 &&
                       ParseInt64(word.substr(colon + 1), &port) == NumberError::kNone &&
                       port > 0 && port <= UINT16_MAX;
    if (!whole) return Invalid(std::string(option) + " takes words host:port");
    std::string_view host = word.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']')
      host = host.substr(1, host.size() - 2);
    if (!IsPlainHost(host)) return Invalid(std::string(option) + " takes words host:port");
    std::string node = std::string(host) + ":" + std::to_string(port);
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end())
      return Invalid(std::string(option) + " names an address twice");
    nodes.push_back(std::move(node));
  }
  if (nodes.size() > kNodesMax) return Invalid(std::string(option) + " names too many nodes");
  text->clear();
  for (const std::string& node : nodes) text->append(text->empty() ? "" : " ").append(node);
  return Status::Ok();
}

}  // namespace

Status CheckClusterNodes(std::string* text) { return CheckNodes("cluster-nodes", text); }

Status CheckClusterJoin(std::string* text) { return CheckNodes("cluster-join", text); }

}  // namespace cellar
