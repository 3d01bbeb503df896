// What the two ends of a command link say to each other besides calls and replies: what a call has
// written, the end of a wait, and how many channels there are.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/call_frames.h"
#include "cluster/entry_link.h"
#include "cluster/owner_link.h"
#include "cluster/unblockings.h"
#include "replica/links/frame.h"

namespace command_link_test {

using namespace cellar;

// A call that concerns another set.
constexpr uint8_t kElsewhere{1u << 7};

// Waits for others with each call until it is unblocked; then its reply is how. All replies begin
// with the same byte.
class WaitingServant final : public CallServant {
 public:
  explicit WaitingServant(size_t* living) : living_(living) { ++*living_; }
  ~WaitingServant() override { --*living_; }
  void Become(const CallIdentity&) override {}
  Readiness MayExecute(std::string_view, uint8_t flags) override {
    return (flags & kElsewhere) != 0 ? Readiness::kOtherSet : Readiness::kNow;
  }
  bool Execute(std::string_view, uint8_t flags) override {
    if ((flags & kCallTells) != 0) written_.push_back({++clock_, clock_});
    running_ = true;
    return true;
  }
  bool running() const override { return running_; }
  bool EndIfWaiting() override { return false; }
  uint64_t made_bytes() const override { return sent_ + output_.size(); }
  std::string_view Released() override { return output_; }
  void Sent(size_t bytes) override {
    sent_ += bytes;
    output_.erase(0, bytes);
  }
  Lsn depends_on() const override { return {1, 1}; }
  bool ended() const override { return false; }
  bool TakeWritten(int64_t* told_micros, std::vector<WrittenSteps>* steps) override {
    if (written_.empty()) return false;
    *told_micros = clock_;
    *steps = std::exchange(written_, {});
    return true;
  }
  bool Unblock(UnblockHow how) override {
    Finish(how == UnblockHow::kError ? "-UNBLOCKED" : "_");
    return true;
  }
  void BeginReply() override {
    if (!std::exchange(begun_, true)) output_ += kFirst;
  }
  void Finish(std::string_view reply) {
    output_ += std::exchange(begun_, false) ? reply.substr(1) : reply;
    running_ = false;
  }
  static constexpr char kFirst{'*'};

 private:
  size_t* living_;
  bool begun_{false};
  std::string output_;
  uint64_t sent_{0};
  bool running_{false};
  int64_t clock_{100};
  std::vector<WrittenSteps> written_;
};

class Client final : public CallClient {
 public:
  void OnReply(std::string_view bytes, size_t, Lsn) override { heard += bytes; }
  void OnOtherSet() override { heard += "elsewhere,"; }
  void OnMoved(std::string requests) override {
    heard += "moved " + std::to_string(std::count(requests.begin(), requests.end(), '*'));
  }
  void OnUnknown() override { heard += "unknown"; }
  bool TakesMore() const override { return true; }
  bool KeepsChannel() const override { return watches; }
  void OnWrote(int64_t told_micros, std::span<const WrittenSteps> steps) override {
    heard += "(wrote";
    for (const WrittenSteps& each : steps)
      heard += " " + std::to_string(each.first_micros) + "-" + std::to_string(each.last_micros);
    heard += " of " + std::to_string(told_micros) + ")";
  }
  void OnUnblocked(uint64_t number, bool done) override {
    heard += "(" + std::to_string(number) + (done ? " unblocked)" : " not)");
  }

  std::string heard;
  bool watches{false};
};

struct Pair final : CallServants {
  std::unique_ptr<CallServant> MakeServant(const CallIdentity&) override {
    auto made = std::make_unique<WaitingServant>(&servants);
    servant = made.get();
    return made;
  }
  void Ask(Client* client, uint8_t flags) {
    constexpr std::string_view kWords[] = {"XREAD", "BLOCK", "0"};
    std::string* const text = entry.Begin(client, {});
    PutCallCount(1, text);
    PutCallWords(kWords, text);
    entry.Pass(client, flags);
  }
  template <typename To>
  static void Deliver(const std::string& bytes, To* to) {
    FrameReader reader{FrameKind::kCall,   FrameKind::kReply,   FrameKind::kMore,
                       FrameKind::kMoved,  FrameKind::kChannel, FrameKind::kCancel,
                       FrameKind::kCredit, FrameKind::kWrote,   FrameKind::kUnblock,
                       FrameKind::kAlive,  FrameKind::kBegin};
    reader.Add(bytes);
    Frame frame;
    while (*reader.Next(&frame)) REQUIRE(to->OnFrame(frame).ok());
  }
  void ToOwner() {
    entry.OnTurn();
    Deliver(entry.frames().Take({}), &owner);
    owner.OnTurn();
  }
  std::string FromOwner() { return owner.frames().Take({}); }
  void Turn() {
    ToOwner();
    Deliver(FromOwner(), &entry);
  }

  WaitingServant* servant{nullptr};
  size_t servants{0};  // that live
  OwnerLink owner{*this};
  EntryLink entry;
};

TEST_CASE("What a call has written is told ahead of its reply, and only if that was asked for",
          "[command_link]") {
  Pair pair;
  Client client;
  pair.Ask(&client, kCallWrites);
  pair.Turn();
  pair.servant->Finish("+1");
  pair.Turn();
  CHECK(client.heard == "+1");
  pair.Ask(&client, kCallWrites | kCallTells);
  pair.Turn();
  pair.servant->Finish("+2");
  pair.Turn();
  CHECK(client.heard == "+1(wrote 101-101 of 101)+2");
}

TEST_CASE("An owner that is silent while calls wait is asked, and given up", "[command_link]") {
  constexpr int64_t kQuiet{EntryLink::kQuietMicros};
  constexpr int64_t kSilent{EntryLink::kSilentMicros};
  Pair pair;
  Client client;
  int64_t now = 5 * kSilent;
  const auto lives = [&](int64_t later, bool asks = true) {
    now += later;
    return pair.entry.OwnerLives(now, asks);
  };
  // Somebody waits from before the first tick on.
  pair.Ask(&client, 0);
  REQUIRE(lives(0));
  pair.Turn();
  pair.servant->Finish("+0");
  pair.Turn();
  // Nobody waits.
  REQUIRE(lives(0));
  REQUIRE(lives(2 * kSilent));
  REQUIRE(pair.entry.frames().empty());
  pair.Ask(&client, 0);
  pair.Turn();
  REQUIRE(lives(100));
  REQUIRE(lives(kQuiet - 101));
  REQUIRE(pair.entry.frames().empty());
  // It answers, as often as it is asked, though no call ends.
  for (int i = 0; i < 20; ++i) {
    REQUIRE(lives(kQuiet));
    REQUIRE_FALSE(pair.entry.frames().empty());
    pair.Turn();
    REQUIRE(lives(1));
  }
  // It does not: it is asked once.
  REQUIRE(lives(kQuiet));
  REQUIRE_FALSE(pair.entry.frames().Take({}).empty());
  REQUIRE(lives(kQuiet));
  REQUIRE(pair.entry.frames().empty());
  REQUIRE(lives(kSilent - 2 * kQuiet - 1));
  REQUIRE_FALSE(lives(1));
  // This node has stood still, or the other one knows nothing of this.
  REQUIRE(lives(kSilent, false));
  REQUIRE(lives(kSilent - 1));
  REQUIRE(pair.entry.call_bytes() > 0);
  pair.Turn();
  pair.servant->Finish("+1");
  pair.Turn();
  REQUIRE(lives(kSilent));
  REQUIRE(client.heard == "+0+1");
  // Who asks for more than that is no entry.
  pair.entry.frames().Body(FrameKind::kAlive).append("x");
  FrameReader reader{FrameKind::kAlive};
  reader.Add(pair.entry.frames().Take({}));
  Frame frame;
  REQUIRE(*reader.Next(&frame));
  REQUIRE_FALSE(pair.owner.OnFrame(frame).ok());
}

std::string TextOf(const std::vector<Unblockings::Told>& told) {
  std::string text;
  for (const Unblockings::Told& each : told)
    text += std::to_string(each.ticket) + (each.done ? "+" : "-");
  return text;
}

TEST_CASE("What another set has is sent back once all before it is answered", "[command_link]") {
  Pair pair;
  Client client;
  pair.Ask(&client, kCallWrites);
  pair.Ask(&client, kCallWrites | kElsewhere);
  pair.Ask(&client, kCallWrites);
  pair.Turn();
  pair.Turn();
  REQUIRE(client.heard.empty());
  pair.servant->Finish("+1");
  pair.Turn();
  REQUIRE(client.heard == "+1elsewhere,moved 2");
  REQUIRE(pair.entry.bounced() == 2);
  REQUIRE(pair.entry.refusals() == 0);
  // On a channel of its own.
  pair.Ask(&client, kElsewhere);
  pair.Turn();
  REQUIRE(client.heard == "+1elsewhere,moved 2elsewhere,moved 1");
  pair.Ask(&client, 0);
  pair.Turn();
  pair.owner.OnOwnerNoMore();
  pair.Turn();
  REQUIRE(client.heard == "+1elsewhere,moved 2elsewhere,moved 1moved 1");
  REQUIRE(pair.entry.refusals() == 1);
}

TEST_CASE("Who asks that a client waits no more is told once its reply is here", "[command_link]") {
  Unblockings asked;
  asked.Ask(3, 1);
  asked.Ask(3, 2);
  asked.Ask(4, 3);
  // It did not wait yet; then it did.
  CHECK(TextOf(asked.Answered(3, false)) == "1-");
  CHECK(TextOf(asked.Answered(3, true)) == "");
  CHECK(TextOf(asked.Answered(3, false)) == "");
  CHECK(TextOf(asked.Replied(3)) == "");
  CHECK(TextOf(asked.Replied(4)) == "2+");
  // A reply that has crossed the question ends it; what is lost waits anew.
  CHECK(TextOf(asked.Replied(5)) == "3-");
  asked.Ask(5, 4);
  CHECK(TextOf(asked.Answered(5, true)) == "");
  CHECK(TextOf(asked.Lost()) == "4-");
  CHECK(TextOf(asked.Replied(6)) == "");
}

TEST_CASE("A wait at the owner ends as it is told, and the answer comes ahead of the reply",
          "[command_link]") {
  Pair pair;
  Client client;
  for (const UnblockHow how : {UnblockHow::kTimeout, UnblockHow::kError}) {
    pair.Ask(&client, 0);
    pair.Turn();
    pair.entry.Unblock(&client, how);
    pair.Turn();
  }
  CHECK(client.heard == "(1 unblocked)_(2 unblocked)-UNBLOCKED");
}

TEST_CASE("A reply that has crossed the end of its wait is not taken back, nor is the next call's",
          "[command_link]") {
  Pair pair;
  Client client;
  pair.Ask(&client, 0);
  pair.Ask(&client, 0);
  pair.ToOwner();
  pair.servant->Finish("+entries");
  pair.ToOwner();
  const std::string on_its_way = pair.FromOwner();
  pair.entry.Unblock(&client, UnblockHow::kTimeout);
  Pair::Deliver(on_its_way, &pair.entry);
  CHECK(client.heard == "+entries");
  // The second call waits now, and goes on waiting.
  pair.Turn();
  CHECK(client.heard == "+entries(1 not)");
  pair.servant->Finish("+more");
  pair.Turn();
  CHECK(client.heard == "+entries(1 not)+more");
}

TEST_CASE("A reply begins ahead for a client that may have left, once, and only of that call",
          "[command_link]") {
  Pair pair;
  Client client;
  pair.Ask(&client, 0);
  pair.Ask(&client, 0);
  pair.Turn();
  CHECK(client.heard.empty());
  for (int i = 0; i < 3; ++i) {
    pair.entry.BeginReply(&client);
    pair.Turn();
    CHECK(client.heard == "*");
    CHECK(client.calls().begun());
  }
  pair.servant->Finish("*1");
  pair.ToOwner();
  const std::string on_its_way = pair.FromOwner();
  pair.entry.BeginReply(&client);
  Pair::Deliver(on_its_way, &pair.entry);
  CHECK(client.heard == "*1");
  // It was for the first call; the second one runs now.
  pair.Turn();
  pair.Turn();
  CHECK(client.heard == "*1");
  CHECK_FALSE(client.calls().begun());
  pair.entry.BeginReply(&client);
  pair.Turn();
  CHECK(client.heard == "*1*");
  // Nobody else may answer it any more.
  pair.entry.OnLost();
  CHECK(client.heard == "*1*unknown");
}

TEST_CASE("As much may be said in one turn as there are clients", "[command_link]") {
  constexpr size_t kClients{EntryLink::kChannelsMax};
  Pair pair;
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < kClients; ++i) {
    clients.push_back(std::make_unique<Client>());
    pair.Ask(clients.back().get(), kCallTells);
  }
  pair.Turn();
  for (const auto& client : clients) pair.entry.BeginReply(client.get());
  pair.Turn();
  for (const auto& client : clients) REQUIRE(client->heard == "*");
  for (const auto& client : clients) pair.entry.Unblock(client.get(), UnblockHow::kTimeout);
  pair.Turn();
  pair.Turn();
  for (const auto& client : clients)
    REQUIRE(client->heard == "*(1 unblocked)(wrote 101-101 of 101)");
  for (const auto& client : clients) pair.entry.Leave(client.get());
  pair.Turn();
  CHECK(pair.owner.channels() == 0);
  CHECK(pair.servants == 0);
}

TEST_CASE("What runs at the owner ends when its client leaves", "[command_link]") {
  Pair pair;
  Client other;
  pair.Ask(&other, 0);
  {
    Client client;
    pair.Ask(&client, 0);
    pair.Ask(&client, 0);
    pair.Turn();
    pair.entry.BeginReply(&client);
    pair.Turn();
    CHECK(pair.servants == 2);
  }
  pair.Turn();
  CHECK(pair.servants == 1);
  CHECK(pair.owner.channels() == 1);
  CHECK(other.heard.empty());
}

TEST_CASE("Bodies of what was written are refused when they are damaged", "[command_link]") {
  std::string body;
  constexpr WrittenSteps kTold[] = {{5, 7}, {9, 9}};
  PutWrote(3, 12, kTold, &body);
  uint64_t channel = 0;
  int64_t told_micros = 0;
  std::vector<WrittenSteps> steps;
  CallBodyReader whole(body);
  REQUIRE(whole.NextWrote(&channel, &told_micros, &steps));
  CHECK(channel == 3);
  CHECK(told_micros == 12);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].first_micros == 5);
  CHECK(steps[0].last_micros == 7);
  CHECK(steps[1].last_micros == 9);
  CHECK_FALSE(whole.NextWrote(&channel, &told_micros, &steps));
  CHECK(whole.ok());
  for (size_t bytes = 1; bytes < body.size(); ++bytes) {
    CallBodyReader cut(std::string_view(body).substr(0, bytes));
    CHECK_FALSE(cut.NextWrote(&channel, &told_micros, &steps));
    CHECK_FALSE(cut.ok());
  }
  // A range that ends before it begins.
  CallBodyReader turned(std::string_view("\x03\x0c\x01\x07\x05", 5));
  CHECK_FALSE(turned.NextWrote(&channel, &told_micros, &steps));
  CHECK_FALSE(turned.ok());
}

TEST_CASE("A link that is full of channels lets idle ones go, and nobody else in without",
          "[command_link]") {
  Pair pair;
  std::vector<std::unique_ptr<Client>> clients;
  for (size_t i = 0; i < EntryLink::kChannelsMax; ++i) {
    clients.push_back(std::make_unique<Client>());
    REQUIRE(pair.entry.MakeRoom(*clients.back()));
    pair.Ask(clients.back().get(), 0);
  }
  Client late;
  CHECK_FALSE(pair.entry.MakeRoom(late));
  CHECK(pair.entry.MakeRoom(*clients.front()));  // it has one
  pair.Turn();
  CHECK(pair.owner.channels() == EntryLink::kChannelsMax);
  CHECK_FALSE(pair.entry.MakeRoom(late));
  // One whose channel keeps something for it keeps that.
  clients.back()->watches = true;
  pair.servant->Finish("+x");
  pair.Turn();
  CHECK(clients.back()->heard == "+x");
  CHECK_FALSE(pair.entry.MakeRoom(late));
  clients.back()->watches = false;
  pair.Ask(clients.back().get(), 0);
  pair.Turn();
  pair.servant->Finish("+y");
  pair.Turn();
  CHECK(pair.entry.MakeRoom(late));
  CHECK(pair.entry.channels() == EntryLink::kChannelsMax - 1);
  pair.Ask(&late, 0);
  pair.Turn();
  CHECK(pair.owner.channels() == EntryLink::kChannelsMax);
}

}  // namespace command_link_test
