// PartCalls: what a command asks several sets about their parts of a feed, beside each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/session/host.h"
#include "commands/session/session.h"

namespace cellar {

// f@n.
std::string PartName(std::string_view feed, uint64_t set);

class PartCalls {
 public:
  PartCalls(Host& host, Session& session) : host_(host), session_(session) {}
  PartCalls(const PartCalls&) = delete;
  PartCalls& operator=(const PartCalls&) = delete;
  ~PartCalls() { Forget(); }

  bool begun() const { return begun_; }
  // Begins, and asks nobody yet.
  void Begin() { begun_ = true; }
  void Ask(uint64_t set, const std::vector<std::string_view>& words) { Ask(set, set, words); }
  // `key`: by which the reply is asked for, in place of the set.
  void Ask(uint64_t key, uint64_t set, const std::vector<std::string_view>& words);
  // True: all have answered. An error: that of one of them, and all are forgotten.
  Result<bool> Take();
  // Likewise, but what fails has no reply; one that refuses is an error all the same.
  Result<bool> TakeSome();
  // Null: it was not asked, or has none.
  const std::string* ReplyOf(uint64_t key) const;
  void Forget();
  size_t memory_bytes() const;

 private:
  enum class Failures : uint8_t { kEnd, kAreLeftOut };
  Result<bool> Take(Failures failures);

  struct Call {
    std::optional<uint64_t> ticket;  // none: it has been answered, or failed
    std::optional<std::string> reply;
  };
  Host& host_;
  Session& session_;
  bool begun_{false};
  std::map<uint64_t, Call> calls_;
};

}  // namespace cellar
