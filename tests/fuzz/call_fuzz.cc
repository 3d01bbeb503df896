// What the two ends of a command link may be told: bodies of any bytes, whose frames have right
// checksums, while calls of their own are under way.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "cluster/entry_link.h"
#include "cluster/owner_link.h"

namespace {

using namespace cellar;

// Answers each call at once, with as many bytes as its words have.
class EchoServant final : public CallServant {
 public:
  void Become(const CallIdentity&) override {}
  Readiness MayExecute(uint8_t flags) override {
    return (flags & 0xf0) == 0xf0 ? Readiness::kNever : Readiness::kNow;
  }
  bool Execute(std::string_view text, uint8_t) override {
    const Status read = VisitCall(text, [this](auto words, bool) {
      for (const std::string_view word : words) output_ += word;
    });
    CELLAR_ASSERT(read.ok());
    return true;
  }
  bool running() const override { return false; }
  bool EndIfWaiting() override { return false; }
  uint64_t made_bytes() const override { return sent_ + output_.size(); }
  std::string_view Released() override { return output_; }
  void Sent(size_t bytes) override {
    sent_ += bytes;
    output_.erase(0, bytes);
  }
  Lsn depends_on() const override { return {}; }
  bool ended() const override { return false; }

 private:
  std::string output_;
  uint64_t sent_{0};
};

class Servants final : public CallServants {
  std::unique_ptr<CallServant> MakeServant(const CallIdentity&) override {
    return std::make_unique<EchoServant>();
  }
};

class AnyClient final : public CallClient {
 public:
  void OnReply(std::string_view bytes, bool, Lsn) override { bytes_ += bytes.size(); }
  void OnMoved(std::string requests) override { bytes_ += requests.size(); }
  void OnUnknown() override { ++bytes_; }
  bool TakesMore() const override { return true; }

 private:
  size_t bytes_{0};
};

void Ask(EntryLink* link, AnyClient* client, bool writes) {
  if (!link->MayPass(*client)) return;
  constexpr std::string_view kWords[] = {"CGET", "t", "row", "f:x"};
  std::string* const text = link->Begin(client, {});
  PutCallCount(1, text);
  PutCallWords(kWords, text);
  link->Pass(client, static_cast<uint8_t>(writes ? kCallWrites : 0));
}

}  // namespace

// Each piece of the input: kind u8, length u8, the body.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  Servants servants;
  OwnerLink owner(servants);
  EntryLink entry;
  AnyClient clients[2];
  bool owner_up = true;
  bool entry_up = true;
  while (input.size() >= 2 && (owner_up || entry_up)) {
    const auto kind = static_cast<uint8_t>(input[0]);
    const size_t bytes = std::min<size_t>(static_cast<uint8_t>(input[1]), input.size() - 2);
    const std::string body(input.substr(2, bytes));
    input.remove_prefix(2 + bytes);
    Ask(&entry, &clients[kind & 1], (kind & 2) != 0);
    Frame frame;
    const int place = (kind >> 2) % 9;
    frame.kind = static_cast<FrameKind>(place < 7 ? 32 + place : 61 + place - 7);
    frame.body = body;
    if (owner_up) owner_up = owner.OnFrame(frame).ok();
    if (entry_up && !entry.OnFrame(frame).ok()) {
      entry_up = false;
      entry.OnLost();
    }
    owner.OnTurn();
    entry.OnTurn();
    (void)owner.frames().Take({});
    (void)entry.frames().Take({});
    if (kind == 0xff) owner.OnOwnerNoMore();
  }
  return 0;
}
