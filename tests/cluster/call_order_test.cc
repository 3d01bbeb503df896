// The order of one client's calls while a range goes to and fro between two sets: no later call
// overtakes an earlier one, none is done twice or not at all. Calls carry no number of the
// ownership: an owner that has bounced a call carries out nothing more of its channel, also when it
// has the range again, and an entry has calls of a client for one row under way at one owner at a
// time (at several for several rows: beside_calls_test.cc). What is under test is src/cluster as it
// is; sets, sockets and sessions are toys, and a run replays from its seed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cluster/entry_link.h"
#include "cluster/owner_link.h"
#include "tests/cluster/toy_links.h"

namespace call_order_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

enum class Fault : uint8_t {
  kNone,
  kForgetsBounce,    // an owner that has the range again goes on behind what it has bounced
  kPassesMeanwhile,  // later calls go to the new owner while earlier ones are under way
};
constexpr Fault kFaults[]{Fault::kForgetsBounce, Fault::kPassesMeanwhile};
constexpr size_t kSets{2};
constexpr uint64_t kCallsEach{60};

class World;

// A client's session at an owner: a call is its number.
class Servant final : public CallServant {
 public:
  Servant(World& world, size_t set, uint64_t client) : world_(world), set_(set), client_(client) {}
  void Become(const CallIdentity&) override {}
  Readiness MayExecute(std::string_view text, uint8_t flags) override;
  bool Execute(std::string_view text, uint8_t flags) override;
  bool running() const override { return false; }
  bool EndIfWaiting() override { return false; }
  uint64_t made_bytes() const override { return made_; }
  std::string_view Released() override;
  void Sent(size_t bytes) override { output_.erase(0, bytes); }
  Lsn depends_on() const override { return {}; }
  bool ended() const override { return false; }

 private:
  World& world_;
  const size_t set_;
  const uint64_t client_;
  std::string output_;
  uint64_t made_{0};
};

uint64_t NumberIn(std::string_view text) {
  uint64_t number = 0;
  const Status read = VisitCall(text, [&](std::span<const std::string_view> words, bool) {
    number = std::stoull(std::string(words[0]));
  });
  CHECK(read.ok());
  return number;
}

// What a client has under way, one of it for each set.
class Client final : public CallClient {
 public:
  explicit Client(World& world) : world_(world) {}
  void OnReply(std::string_view bytes, size_t calls, Lsn lsn) override;
  void OnMoved(std::string requests) override;
  void OnUnknown() override;
  bool TakesMore() const override { return true; }

  std::deque<uint64_t> to_send;
  uint64_t answered{0};

 private:
  World& world_;
};

class World {
 public:
  World(uint64_t seed, Fault fault) : random(seed), fault_(fault) {
    for (size_t set = 0; set < kSets; ++set) sets_[set] = std::make_unique<Set>(*this, set);
    client_ = std::make_unique<Client>(*this);
    for (uint64_t number = 1; number <= kCallsEach; ++number) client_->to_send.push_back(number);
  }

  std::string Run() {
    for (int turn = 0; turn < 20'000 && failure.empty(); ++turn) {
      if (client_->answered == kCallsEach) break;
      if (random.OneIn(6)) owner = owner == 0 ? 1 : 0;
      if (random.OneIn(4)) guess_ = owner;
      for (int i = 0; i < 2; ++i) Pass();
      for (const auto& set : sets_) Step(set.get());
    }
    if (failure.empty() && client_->answered != kCallsEach)
      failure = fmt::format("only {} calls were answered", client_->answered);
    client_.reset();
    return failure;
  }

  void Done(uint64_t number) {
    if (number != done + 1) failure = fmt::format("{} was done behind {}", number, done);
    done = number;
  }

  Random random;
  size_t owner{0};  // of the range
  uint64_t done{0};
  std::string failure;

 private:
  struct Set final : public CallServants {
    Set(World& of, size_t number) : world(of), set(number), owner_end(*this) {}
    std::unique_ptr<CallServant> MakeServant(const CallIdentity&) override {
      return std::make_unique<Servant>(world, set, 0);
    }
    World& world;
    const size_t set;
    EntryLink entry;
    OwnerLink owner_end;
    std::deque<std::string> to_owner;
    std::deque<std::string> to_entry;
    FrameReader at_owner{toy_links::AtOwner()};
    FrameReader at_entry{toy_links::AtEntry()};
    std::map<uint64_t, uint64_t> bounced;  // by channel, of the fault: from which call on
  };

  void Pass() {
    Set& to = *sets_[guess_];
    if (client_->to_send.empty()) return;
    const bool may = to.entry.MayPass(*client_);
    if (!may && fault_ == Fault::kPassesMeanwhile && !client_->calls().empty() && owner == guess_) {
      // It goes past what is under way.
      Done(client_->to_send.front());
      client_->to_send.pop_front();
      ++client_->answered;
      return;
    }
    if (!may) return;
    const uint64_t number = client_->to_send.front();
    client_->to_send.pop_front();
    const std::string word = fmt::format("{}", number);
    const std::string_view words[]{word};
    std::string* const text = to.entry.Begin(client_.get(), CallIdentityView{});
    PutCallCount(1, text);
    PutCallWords(words, text);
    to.entry.Pass(client_.get(), kCallWrites);
  }
  void Step(Set* set) {
    if (random.OneIn(2) && !set->entry.frames().empty())
      set->to_owner.push_back(set->entry.frames().Take(toy_links::Head()));
    if (random.OneIn(2))
      Deliver(&set->to_owner, &set->at_owner, [&](const Frame& frame) {
        if (fault_ == Fault::kForgetsBounce && frame.kind == FrameKind::kCall)
          GoOnBehind(set, frame.body);
        return set->owner_end.OnFrame(frame);
      });
    if (random.OneIn(2)) set->owner_end.OnTurn();
    if (random.OneIn(2) && !set->owner_end.frames().empty())
      set->to_entry.push_back(set->owner_end.frames().Take(toy_links::Head()));
    if (random.OneIn(2))
      Deliver(&set->to_entry, &set->at_entry, [&](const Frame& frame) {
        if (frame.kind == FrameKind::kMoved) NoteBounce(set, frame.body);
        return set->entry.OnFrame(frame);
      });
    set->entry.OnTurn();
  }
  template <typename Take>
  void Deliver(std::deque<std::string>* pieces, FrameReader* reader, const Take& take) {
    const std::string refused = toy_links::Deliver(pieces, reader, take);
    if (!refused.empty()) failure = refused;
  }
  void NoteBounce(Set* set, std::string_view body) {
    CallBodyReader reader(body);
    uint64_t channel = 0;
    uint64_t number = 0;
    MovedHow how{};
    while (reader.NextMoved(&channel, &number, &how)) set->bounced[channel] = number;
  }
  // Of the fault: the owner does not know any more that it has bounced something of the channel.
  void GoOnBehind(Set* set, std::string_view body) {
    CallBodyReader reader(body);
    Call call;
    while (reader.NextCall(&call)) {
      const auto found = set->bounced.find(call.channel);
      const bool is_behind = found != set->bounced.end() && call.number > found->second;
      if (is_behind && owner == set->set) Done(NumberIn(call.text));
    }
  }

  const Fault fault_;
  size_t guess_{0};  // of the entry: who has the range
  std::array<std::unique_ptr<Set>, kSets> sets_;
  std::unique_ptr<Client> client_;
};

CallServant::Readiness Servant::MayExecute(std::string_view, uint8_t) {
  if (world_.owner != set_) return Readiness::kOtherSet;
  return world_.random.OneIn(5) ? Readiness::kLater : Readiness::kNow;
}

bool Servant::Execute(std::string_view text, uint8_t) {
  const uint64_t number = NumberIn(text);
  world_.Done(number);
  output_ += fmt::format("{};", number);
  made_ += fmt::format("{};", number).size();
  return true;
}

std::string_view Servant::Released() {
  return world_.random.OneIn(3) ? std::string_view() : std::string_view(output_);
}

void Client::OnReply(std::string_view bytes, size_t, Lsn) {
  while (!bytes.empty()) {
    const size_t end = bytes.find(';');
    if (end == std::string_view::npos) break;
    const uint64_t number = std::stoull(std::string(bytes.substr(0, end)));
    if (number != answered + 1)
      world_.failure = fmt::format("{} was answered behind {}", number, answered);
    answered = number;
    bytes.remove_prefix(end + 1);
  }
}

// In front of what was not sent yet.
void Client::OnMoved(std::string requests) {
  std::vector<uint64_t> numbers;
  for (size_t at = 0; (at = requests.find('$', at)) != std::string::npos; ++at) {
    const size_t line = requests.find("\r\n", at) + 2;
    numbers.push_back(std::stoull(requests.substr(line)));
  }
  to_send.insert(to_send.begin(), numbers.begin(), numbers.end());
}

void Client::OnUnknown() { world_.failure = "a call's fate is unknown, and no link was lost"; }

TEST_CASE("No call overtakes another one while its rows go to and fro", "[cluster]") {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    INFO("seed " << seed);
    REQUIRE(World(seed, Fault::kNone).Run() == "");
  }
}

TEST_CASE("Each planted fault in the order of calls is found within 200 schedules", "[cluster]") {
  for (const Fault fault : kFaults) {
    std::string found;
    uint64_t seed = 0;
    while (found.empty() && seed < 200) found = World(++seed, fault).Run();
    INFO("fault " << static_cast<int>(fault));
    CHECK(found != "");
  }
}

}  // namespace call_order_test
