// What the two ends of a command link may be told: frames of any bytes, with right checksums and
// with others, in between of what they say to each other, while calls are under way; and the links
// that come after one that was closed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "cluster/entry_link.h"
#include "cluster/owner_link.h"
#include "cluster/unblockings.h"
#include "replica/links/frame.h"

namespace {

using namespace cellar;

constexpr size_t kClients{3};

// Forged frames, of all runs; CELLAR_FUZZ_COUNT=1 shows it at the end.
struct Count {
  ~Count() {
    if (std::getenv("CELLAR_FUZZ_COUNT") != nullptr)
      std::fprintf(stderr, "forged frames: %llu\n", static_cast<unsigned long long>(frames));
  }
  uint64_t frames{0};
};
Count counted;

// Answers each call at once, with as many bytes as its words have; but for those that begin with
// "WAIT", which wait until they are told not to.
class EchoServant final : public CallServant {
 public:
  void Become(const CallIdentity&) override {}
  Readiness MayExecute(std::string_view, uint8_t flags) override {
    if ((flags & 0xf0) == 0xd0) return Readiness::kOtherSet;
    if ((flags & 0xf0) == 0xe0) return Readiness::kLater;
    return (flags & 0xf0) == 0xf0 ? Readiness::kNever : Readiness::kNow;
  }
  bool Execute(std::string_view text, uint8_t flags) override {
    const Status read = VisitCall(text, [this](auto words, bool) {
      waits_ = words.front() == "WAIT";
      for (const std::string_view word : words) output_ += word;
    });
    CELLAR_ASSERT(read.ok());
    if (waits_) output_.resize(0);
    if ((flags & kCallTells) != 0) written_.push_back({++clock_, clock_});
    return true;
  }
  bool running() const override { return waits_; }
  bool EndIfWaiting() override { return output_.empty() && std::exchange(waits_, false); }
  uint64_t made_bytes() const override { return sent_ + output_.size(); }
  std::string_view Released() override { return output_; }
  void Sent(size_t bytes) override {
    sent_ += bytes;
    output_.erase(0, bytes);
  }
  Lsn depends_on() const override { return {1, sent_}; }
  bool TakeWritten(int64_t* told_micros, std::vector<WrittenSteps>* steps) override {
    if (written_.empty()) return false;
    *told_micros = clock_;
    *steps = std::exchange(written_, {});
    return true;
  }
  bool Unblock(UnblockHow how) override {
    if (!std::exchange(waits_, false)) return false;
    output_ += how == UnblockHow::kError ? "-" : "_";
    return true;
  }
  void BeginReply() override {
    if (waits_ && output_.empty()) output_ += '*';
  }
  bool ended() const override { return false; }

 private:
  std::string output_;
  uint64_t sent_{0};
  bool waits_{false};
  int64_t clock_{0};
  std::vector<WrittenSteps> written_;
};

class AnyClient final : public CallClient {
 public:
  void OnReply(std::string_view bytes, size_t, Lsn) override {
    bytes_ += bytes.size();
    Told(unblockings_.Replied(calls().first()));
  }
  void OnMoved(std::string requests) override {
    bytes_ += requests.size();
    Told(unblockings_.Lost());
    CELLAR_ASSERT(asked_ == 0);
  }
  void OnUnknown() override {
    Told(unblockings_.Lost());
    CELLAR_ASSERT(asked_ == 0);
  }
  void OnWrote(int64_t told_micros, std::span<const WrittenSteps> steps) override {
    CELLAR_ASSERT(told_micros >= 0);
    for (const WrittenSteps& each : steps) CELLAR_ASSERT(each.first_micros <= each.last_micros);
  }
  void OnUnblocked(uint64_t number, bool done) override {
    Told(unblockings_.Answered(number, done));
  }
  bool TakesMore() const override { return bytes_ % 2 == 0; }

  // One of a few commands, by a byte.
  void Ask(EntryLink* link, uint8_t choice) {
    if (!link->MayPass(*this) || !link->MakeRoom(*this)) return;
    constexpr std::string_view kWords[] = {"CGET", "t", "row", "f:x"};
    constexpr std::string_view kWait[] = {"WAIT", "1", "0"};
    const CallIdentity identity{.user = calls().empty() && (choice & 1) != 0 ? "u" : "default"};
    if (!calls().empty() && identity.user != user_) return;
    user_ = identity.user;
    std::string* const text = link->Begin(this, identity.view());
    PutCallCount(1, text);
    PutCallWords((choice & 6) == 6 ? std::span<const std::string_view>(kWait) : kWords, text);
    link->Pass(this, static_cast<uint8_t>(((choice & 8) != 0 ? kCallWrites | kCallTells : 0) |
                                          ((choice & 0x70) == 0x70 ? 0xe0 : 0)));
  }
  void BeginReply() {
    if (!calls().empty() && !calls().moved()) link()->BeginReply(this);
  }
  void Unblock() {
    if (calls().empty()) return;
    link()->Unblock(this, UnblockHow::kError);
    unblockings_.Ask(calls().first(), ++ticket_);
    ++asked_;
  }

 private:
  void Told(const std::vector<Unblockings::Told>& told) {
    CELLAR_ASSERT(told.size() <= asked_);
    asked_ -= told.size();
  }

  size_t bytes_{0};
  std::string user_;
  Unblockings unblockings_;
  uint64_t ticket_{0};
  size_t asked_{0};
};

class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}
  bool empty() const { return rest_.empty(); }
  uint8_t Byte() {
    const std::string_view one = Bytes(1);
    return one.empty() ? 0 : static_cast<uint8_t>(one[0]);
  }
  std::string_view Bytes(size_t count) {
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

 private:
  std::string_view rest_;
};

// A body as the other end might make it, of numbers near those that are in use.
std::string PlausibleBody(FrameKind kind, bool to_owner, Input* input) {
  const uint64_t channel = input->Byte() % 8;
  const uint64_t number = input->Byte();
  const uint8_t flags = input->Byte();
  const std::string_view bytes = input->Bytes(flags % 16);
  std::string body;
  std::string text;
  const WrittenSteps steps[] = {{.first_micros = flags, .last_micros = 2 * flags},
                                {.first_micros = 1000, .last_micros = 1000 + flags}};
  switch (kind) {
    case FrameKind::kCall: {
      const std::string_view words[] = {(flags & 1) != 0 ? "WAIT" : "CGET", bytes};
      PutCallCount(1, &text);
      PutCallWords(words, &text);
      PutCall({.channel = channel, .number = number, .flags = flags, .text = text}, &body);
      break;
    }
    case FrameKind::kReply:
      PutReply({.channel = channel,
                .first = number,
                .count = 1u + flags % 3u,
                .lsn = {1, number},
                .bytes = bytes},
               &body);
      break;
    case FrameKind::kMore:
      PutMore(channel, number, bytes, &body);
      break;
    case FrameKind::kChannel:
      if (to_owner) {
        PutChannel(channel, {.user = std::string(bytes)}, &body);
      } else {
        PutKeyspace(channel, bytes, &body);
      }
      break;
    case FrameKind::kMoved:
      PutMoved(channel, number, static_cast<MovedHow>(flags % 3), &body);
      break;
    case FrameKind::kCancel:
      PutCancel(channel, &body);
      break;
    case FrameKind::kCredit:
      PutCredit(channel, number, &body);
      break;
    case FrameKind::kWrote:
      PutWrote(channel, flags, std::span(steps).first(flags % 3), &body);
      break;
    case FrameKind::kBegin:
      PutBegin(channel, number, &body);
      break;
    default:
      PutUnblocked(channel, number, (flags & 1) != 0, &body);
      break;
  }
  return body;
}

class Pair final : public CallServants {
 public:
  std::unique_ptr<CallServant> MakeServant(const CallIdentity&) override {
    return std::make_unique<EchoServant>();
  }
  EntryLink& entry() { return *entry_; }
  OwnerLink& owner() { return *owner_; }
  // To one end, through its reader; what cannot be taken closes the link, and the next one comes.
  void ToOwner(std::string_view bytes) {
    owner_reader_->Add(bytes);
    Frame frame;
    while (true) {
      const Result<bool> next = owner_reader_->Next(&frame);
      if (next.ok() && !*next) return;
      if (!next.ok() || !owner_->OnFrame(frame).ok()) return Begin();
    }
  }
  void ToEntry(std::string_view bytes) {
    entry_reader_->Add(bytes);
    Frame frame;
    while (true) {
      const Result<bool> next = entry_reader_->Next(&frame);
      if (next.ok() && !*next) return;
      if (!next.ok() || !entry_->OnFrame(frame).ok()) return Begin();
    }
  }
  void Turn(bool delivers) {
    entry_->OnTurn();
    owner_->OnTurn();
    const std::string calls = entry_->frames().Take({});
    const std::string replies = owner_->frames().Take({});
    if (!delivers) return;
    ToOwner(calls);
    ToEntry(replies);
  }

 private:
  void Begin() {
    entry_->OnLost();
    CELLAR_ASSERT(entry_->channels() == 0);
    CELLAR_ASSERT(entry_->call_bytes() == 0);
    entry_ = std::make_unique<EntryLink>();
    owner_ = std::make_unique<OwnerLink>(*this);
    entry_reader_ = EntryReader();
    owner_reader_ = OwnerReader();
  }
  static std::unique_ptr<FrameReader> EntryReader() {
    return std::unique_ptr<FrameReader>(
        new FrameReader{FrameKind::kReply, FrameKind::kMore, FrameKind::kMoved, FrameKind::kChannel,
                        FrameKind::kWrote, FrameKind::kUnblock, FrameKind::kAlive});
  }
  static std::unique_ptr<FrameReader> OwnerReader() {
    return std::unique_ptr<FrameReader>(new FrameReader{
        FrameKind::kCall, FrameKind::kChannel, FrameKind::kCancel, FrameKind::kCredit,
        FrameKind::kUnblock, FrameKind::kAlive, FrameKind::kBegin});
  }

  std::unique_ptr<EntryLink> entry_{std::make_unique<EntryLink>()};
  std::unique_ptr<OwnerLink> owner_{std::make_unique<OwnerLink>(*this)};
  std::unique_ptr<FrameReader> entry_reader_{EntryReader()};
  std::unique_ptr<FrameReader> owner_reader_{OwnerReader()};
};

enum class Form : uint8_t { kPlausible, kAnyBody, kSpoilt, kAnyBytes };

void Forge(Pair* pair, Input* input) {
  const uint8_t choice = input->Byte();
  constexpr FrameKind kKinds[] = {FrameKind::kCall,    FrameKind::kReply, FrameKind::kMore,
                                  FrameKind::kChannel, FrameKind::kMoved, FrameKind::kCancel,
                                  FrameKind::kCredit,  FrameKind::kWrote, FrameKind::kUnblock,
                                  FrameKind::kBegin};
  const FrameKind kind = kKinds[choice % std::size(kKinds)];
  const bool both = kind == FrameKind::kChannel || kind == FrameKind::kUnblock;
  const bool of_entry = kind == FrameKind::kCall || kind == FrameKind::kCancel ||
                        kind == FrameKind::kCredit || kind == FrameKind::kBegin;
  const uint8_t how = input->Byte();
  // Now and then what the end does not take.
  const bool to_owner = (how & 0x3c) == 0x3c ? !of_entry : both ? (how & 0x40) != 0 : of_entry;
  const auto form = static_cast<Form>(how & 3);
  std::string bytes;
  if (form == Form::kAnyBytes) {
    bytes = input->Bytes(input->Byte());
  } else {
    const std::string body = form == Form::kAnyBody ? std::string(input->Bytes(input->Byte()))
                                                    : PlausibleBody(kind, to_owner, input);
    bytes = EncodeFrame({.kind = kind}, body);
    if (form == Form::kSpoilt) bytes[input->Byte() % bytes.size()] ^= 1;
  }
  ++counted.frames;
  if (to_owner) {
    pair->ToOwner(bytes);
  } else {
    pair->ToEntry(bytes);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > 4096) return 0;
  Input input(std::string_view(reinterpret_cast<const char*>(data), size));
  Pair pair;
  AnyClient clients[kClients];
  while (!input.empty()) {
    const uint8_t step = input.Byte();
    AnyClient& client = clients[(step >> 4) % kClients];
    switch (step % 8) {
      case 0:
        client.Ask(&pair.entry(), input.Byte());
        break;
      case 1:
        client.Unblock();
        break;
      case 2:
        pair.Turn(true);
        break;
      case 3:
        if (step == 3) pair.owner().OnOwnerNoMore();
        if (step == 19) pair.entry().Leave(&client);
        if (step == 35) pair.entry().CloseIdle();
        if (step == 51) pair.Turn(false);
        if (step == 67) client.BeginReply();
        break;
      default:
        Forge(&pair, &input);
        pair.Turn(true);
        break;
    }
  }
  return 0;
}
