// Calls of one client that several sets carry out beside one another (reply_order.h), while rows
// move between sets, what the entry knows of that comes late, owners send calls back, and links are
// lost: no call for a row overtakes an earlier one for it, none is done twice or not at all, and
// replies come in the order of the calls, whole and those in parts. What is under test is
// src/cluster as it is; how the entry goes about it is server/command_links_beside.cc in small, and
// sets, sockets and sessions are toys. A run replays from its seed.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "cluster/entry_link.h"
#include "cluster/owner_link.h"
#include "cluster/reply_order.h"
#include "resp/reply_scanner.h"
#include "tests/cluster/toy_links.h"

namespace beside_calls_test {

using namespace cellar;  // NOLINT(google-build-using-namespace)

enum class Fault : uint8_t {
  kNone,
  kNoWindow,       // calls go beside others though routes have changed since
  kAsksMeanwhile,  // what was sent back is asked again while others are under way
  kSkipsAhead,     // ... and what cannot be asked yet is left for later
  kOvertakes,      // the own set carries out a command while it has others of the client before it
};
constexpr Fault kFaults[]{Fault::kNoWindow, Fault::kAsksMeanwhile, Fault::kSkipsAhead,
                          Fault::kOvertakes};
constexpr size_t kSets{3};
constexpr size_t kRows{5};
constexpr uint64_t kCalls{150};

class World;

uint64_t NumberIn(std::string_view text) {
  uint64_t number = 0;
  const Status read = VisitCall(text, [&](std::span<const std::string_view> words, bool) {
    number = std::stoull(std::string(words[0]));
  });
  CHECK(read.ok());
  return number;
}

// The reply to a call: its number, and what makes some of them long.
std::string ReplyTo(uint64_t number) {
  const std::string text =
      std::to_string(number) + std::string(number % 17 == 3 ? 150'000 : number % 7, '.');
  if (number % 5 == 0) return fmt::format("*2\r\n:{}\r\n${}\r\n{}\r\n", number, text.size(), text);
  if (number % 11 == 0) return fmt::format("-ERR {}\r\n", number);
  return fmt::format("${}\r\n{}\r\n", text.size(), text);
}

class Servant final : public CallServant {
 public:
  Servant(World& world, size_t set);
  ~Servant() override;
  void Become(const CallIdentity&) override {}
  Readiness MayExecute(std::string_view text, uint8_t flags) override;
  bool Execute(std::string_view text, uint8_t flags) override;
  bool running() const override { return !rest_.empty(); }
  bool EndIfWaiting() override { return false; }
  uint64_t made_bytes() const override { return made_; }
  std::string_view Released() override;
  void Sent(size_t bytes) override { output_.erase(0, bytes); }
  Lsn depends_on() const override { return {}; }
  bool ended() const override { return false; }
  // A long reply goes on.
  void Step();

 private:
  void Make(std::string_view bytes) {
    output_ += bytes;
    made_ += bytes.size();
  }
  World& world_;
  const size_t set_;
  std::string output_;
  std::string rest_;
  uint64_t made_{0};
};

class Client;

class Channel final : public CallClient {
 public:
  Channel(Client& client, size_t set) : client_(client), set_(set) {}
  size_t set() const { return set_; }
  void OnReply(std::string_view bytes, size_t calls, Lsn lsn) override;
  void OnMoved(std::string requests) override;
  void OnUnknown() override;
  bool TakesMore() const override { return true; }

 private:
  Client& client_;
  const size_t set_;
};

// As PassedClient and CommandLinks go about it.
class Client {
 public:
  explicit Client(World& world);
  void Step();
  bool under_way() const {
    return !lost && (!order.empty() || (current_ != nullptr && !current_->calls().empty()));
  }
  void OnReply(Channel& channel, std::string_view bytes, size_t calls);
  void OnMoved(Channel& channel, const std::string& requests);
  bool done() const { return lost || (to_send.empty() && !under_way()); }

  std::deque<uint64_t> to_send;
  std::string heard;
  bool lost{false};
  std::set<uint64_t> kept;  // that have not left
  ReplyOrder order;

 private:
  void PassNext();
  // What the own set has is carried out at once; its reply waits for those before it.
  bool RunsBehind(const Channel& channel);
  void Hear(std::string_view bytes, Lsn gate);
  void AskAgain();
  void Send(Channel* channel, uint64_t number);
  bool Note();
  ReplyOrder::Emit Emit() {
    return [this](std::string_view bytes, bool, Lsn gate) { Hear(bytes, gate); };
  }

  World& world_;
  std::array<std::unique_ptr<Channel>, kSets> channels_;
  Channel* current_{nullptr};
  bool takes_beside_{false};
  std::optional<std::pair<uint64_t, uint64_t>> window_;
};

class World final {
 public:
  World(uint64_t seed, Fault planted) : random(seed), fault(planted) {
    for (size_t set = 0; set < kSets; ++set) sets.push_back(std::make_unique<Set>(*this, set));
    for (size_t row = 0; row < kRows; ++row) owners[row] = map[row] = random.Below(kSets);
    client = std::make_unique<Client>(*this);
    for (uint64_t number = 1; number <= kCalls; ++number) {
      client->to_send.push_back(number);
      rows[number] = random.Below(kRows);
      writes[number] = random.OneIn(2);
      alone[number] = random.OneIn(12);
    }
  }

  struct Set final : public CallServants {
    Set(World& of, size_t number) : world(of), set(number) { Begin(); }
    std::unique_ptr<CallServant> MakeServant(const CallIdentity&) override {
      return std::make_unique<Servant>(world, set);
    }
    void Begin() {
      owner_end = std::make_unique<OwnerLink>(*this);
      to_owner.clear();
      to_entry.clear();
      at_owner = toy_links::AtOwner();
      at_entry = toy_links::AtEntry();
    }
    World& world;
    const size_t set;
    EntryLink entry;
    std::vector<Servant*> servants;
    std::unique_ptr<OwnerLink> owner_end;
    std::deque<std::string> to_owner;
    std::deque<std::string> to_entry;
    FrameReader at_owner{toy_links::AtOwner()};
    FrameReader at_entry{toy_links::AtEntry()};
  };

  // What went wrong; empty: nothing.
  std::string Run() {
    const bool loses = random.OneIn(3);
    for (size_t step = 0; step < 400'000 && failure.empty() && !client->done(); ++step) {
      if (random.OneIn(15)) Move();
      if (random.OneIn(10)) Hear();
      if (loses && random.OneIn(2'000)) Lose(sets[random.Below(kSets)].get());
      client->Step();
      Step(sets[random.Below(kSets)].get());
    }
    if (failure.empty() && !client->done()) failure = "it does not come to an end";
    if (failure.empty()) CheckReplies();
    client.reset();
    return failure;
  }
  void Done(size_t set, uint64_t number) {
    if (owners[rows[number]] != set) failure = fmt::format("{} is done elsewhere", number);
    if (writes[number] && ++done[number] > 1) failure = fmt::format("{} is done twice", number);
    uint64_t& last = last_of_row[rows[number]];
    // What was only read may be read once more.
    if (number < last && (writes[number] || writes[last]))
      failure = fmt::format("{} is done behind {}", number, last);
    last = std::max(last, number);
  }
  // Where the entry, which belongs to set 0 and leads it, takes a row to be.
  std::optional<size_t> RouteOf(uint64_t number) const {
    const size_t row = rows.at(number);
    if (owners[row] == 0) return 0;
    return map[row] == 0 ? std::nullopt : std::optional<size_t>(map[row]);
  }

  Random random;
  const Fault fault;
  std::vector<std::unique_ptr<Set>> sets;
  std::unique_ptr<Client> client;
  std::array<size_t, kRows> owners{};
  std::array<size_t, kRows> map{};  // of the entry
  uint64_t map_version{1};
  uint64_t own_version{1};  // of what set 0 owns
  std::map<uint64_t, size_t> rows;
  std::map<uint64_t, bool> writes;
  std::map<uint64_t, bool> alone;
  std::map<uint64_t, size_t> done;
  std::array<uint64_t, kRows> last_of_row{};
  std::string failure;

 private:
  void Move() {
    const size_t row = random.Below(kRows);
    const size_t to = random.Below(kSets);
    if (owners[row] == 0 || to == 0) ++own_version;
    owners[row] = to;
    news_.emplace_back(row, to);
  }
  void Hear() {
    if (news_.empty()) return;
    map[news_.front().first] = news_.front().second;
    news_.pop_front();
    ++map_version;
  }
  void Lose(Set* set) {
    set->Begin();
    set->entry.OnLost();
  }
  void Step(Set* set) {
    if (random.OneIn(2) && !set->entry.frames().empty())
      set->to_owner.push_back(set->entry.frames().Take(toy_links::Head()));
    if (random.OneIn(2))
      Deliver(&set->to_owner, &set->at_owner,
              [&](const Frame& frame) { return set->owner_end->OnFrame(frame); });
    for (Servant* servant : set->servants) servant->Step();
    if (random.OneIn(2)) set->owner_end->OnTurn();
    if (random.OneIn(2) && !set->owner_end->frames().empty())
      set->to_entry.push_back(set->owner_end->frames().Take(toy_links::Head()));
    if (random.OneIn(2))
      Deliver(&set->to_entry, &set->at_entry,
              [&](const Frame& frame) { return set->entry.OnFrame(frame); });
    set->entry.OnTurn();
  }
  template <typename Take>
  void Deliver(std::deque<std::string>* pieces, FrameReader* reader, const Take& take) {
    const std::string refused = toy_links::Deliver(pieces, reader, take);
    if (!refused.empty()) failure = refused;
  }
  // Of a client that was lost, as far as it was told.
  void CheckReplies() {
    std::string expected;
    for (uint64_t number = 1; number <= kCalls; ++number) expected += ReplyTo(number);
    const bool fits =
        client->lost ? expected.starts_with(client->heard) : expected == client->heard;
    if (!fits) failure = "replies are not those of the calls in their order";
    if (client->lost) return;
    if (!client->kept.empty()) failure = "a kept reply has not left";
    if (client->order.gate() != Lsn{}) failure = "a gate stays behind";
    for (const auto& [number, is_write] : writes)
      if (is_write && done[number] != 1) failure = fmt::format("{} was not done", number);
  }

  std::deque<std::pair<size_t, size_t>> news_;
};

Servant::Servant(World& world, size_t set) : world_(world), set_(set) {
  world_.sets[set_]->servants.push_back(this);
}

Servant::~Servant() { std::erase(world_.sets[set_]->servants, this); }

CallServant::Readiness Servant::MayExecute(std::string_view text, uint8_t) {
  if (world_.owners[world_.rows[NumberIn(text)]] != set_) return Readiness::kOtherSet;
  return world_.random.OneIn(5) ? Readiness::kLater : Readiness::kNow;
}

bool Servant::Execute(std::string_view text, uint8_t) {
  const uint64_t number = NumberIn(text);
  world_.Done(set_, number);
  const std::string reply = ReplyTo(number);
  const size_t now =
      reply.size() > 100'000 ? 1 + world_.random.Below(reply.size() - 1) : reply.size();
  rest_ = reply.substr(now);
  Make(std::string_view(reply).substr(0, now));
  return true;
}

void Servant::Step() {
  if (!rest_.empty() && world_.random.OneIn(4)) Make(std::exchange(rest_, {}));
}

std::string_view Servant::Released() {
  return world_.random.OneIn(3) ? std::string_view() : std::string_view(output_);
}

void Channel::OnReply(std::string_view bytes, size_t calls, Lsn) {
  client_.OnReply(*this, bytes, calls);
}
void Channel::OnMoved(std::string requests) { client_.OnMoved(*this, requests); }
void Channel::OnUnknown() {
  client_.lost = true;
  client_.order.Clear();
}

Client::Client(World& world) : world_(world) {
  for (size_t set = 0; set < kSets; ++set) channels_[set] = std::make_unique<Channel>(*this, set);
}

void Client::OnReply(Channel& channel, std::string_view bytes, size_t calls) {
  if (lost) return;
  if (order.empty()) {
    if (&channel != current_) world_.failure = "a reply to nobody";
    heard += bytes;
  } else if (!order.Answer(&channel, bytes, calls, Emit())) {
    world_.failure = "these are no replies";
  }
}

void Client::OnMoved(Channel& channel, const std::string& requests) {
  if (lost) return;
  if (!order.empty()) {
    if (!order.GiveBack(&channel, requests)) world_.failure = "these are no requests";
    return;
  }
  std::vector<uint64_t> numbers;
  for (size_t at = 0; (at = requests.find('$', at)) != std::string::npos; ++at)
    numbers.push_back(std::stoull(requests.substr(requests.find("\r\n", at) + 2)));
  to_send.insert(to_send.begin(), numbers.begin(), numbers.end());
}

void Client::Step() {
  if (lost) return;
  AskAgain();
  PassNext();
}

bool Client::Note() {
  const std::pair<uint64_t, uint64_t> now{world_.map_version, world_.own_version};
  if (!window_) window_ = now;
  return *window_ == now || world_.fault == Fault::kNoWindow;
}

void Client::Send(Channel* channel, uint64_t number) {
  const std::string word = std::to_string(number);
  const std::string_view words[]{word};
  EntryLink& link = world_.sets[channel->set()]->entry;
  std::string* const text = link.Begin(channel, CallIdentityView{});
  PutCallCount(1, text);
  PutCallWords(words, text);
  link.Pass(channel, static_cast<uint8_t>(world_.writes[number] ? kCallWrites : 0));
}

void Client::PassNext() {
  if (to_send.empty()) return;
  const uint64_t number = to_send.front();
  const std::optional<size_t> set = world_.RouteOf(number);
  if (!set) return;
  Channel* const channel = channels_[*set].get();
  if (!under_way()) window_.reset();
  const bool beside = !world_.alone[number] && Note();
  const bool behind = order.empty() && current_ == channel;
  const bool joins = beside && takes_beside_ && !order.has_back() &&
                     (!order.empty() || current_ == nullptr || !current_->calls().begun());
  if (under_way() && !behind && !joins) return;
  if (joins && RunsBehind(*channel)) {
    if (order.empty()) order.Begin(current_, current_->calls().size());
    world_.Done(0, number);
    const Lsn gate{1, number};
    order.Keep(ReplyTo(number), gate);
    kept.insert(number);
    if (order.gate() != gate) world_.failure = "the newest gate is another one";
    to_send.pop_front();
    return;
  }
  if (!world_.sets[*set]->entry.MayPass(*channel)) return;
  if (!under_way()) {
    takes_beside_ = beside;
    current_ = channel;
  } else if (behind) {
    takes_beside_ = takes_beside_ && beside;
  } else {
    if (order.empty()) order.Begin(current_, current_->calls().size());
    order.Add(channel);
  }
  to_send.pop_front();
  Send(channel, number);
}

bool Client::RunsBehind(const Channel& channel) {
  if (channel.set() != 0 || !under_way() || !world_.random.OneIn(2)) return false;
  return channel.calls().empty() || world_.fault == Fault::kOvertakes;
}

// The gate of a kept reply stands before it, and nowhere else.
void Client::Hear(std::string_view bytes, Lsn gate) {
  heard += bytes;
  const bool fits = gate == Lsn{} || bytes == ReplyTo(gate.seq);
  if (!fits) world_.failure = fmt::format("the gate of {} is not before its reply", gate.seq);
  if (kept.erase(gate.seq) != (gate == Lsn{} ? 0 : 1)) world_.failure = "a gate of nothing";
}

void Client::AskAgain() {
  const bool waits = order.pending() && world_.fault != Fault::kAsksMeanwhile;
  if (!order.has_back() || waits) return;
  window_.reset();
  while (order.has_back()) {
    const std::string request(order.back());
    const uint64_t number =
        std::stoull(request.substr(request.rfind("\r\n", request.size() - 3) + 2));
    std::optional<size_t> set = world_.RouteOf(number);
    if (!set && world_.fault == Fault::kSkipsAhead) {
      // Its place is taken by a reply, and it is sent behind all others.
      order.Refuse(ReplyTo(number), Emit());
      to_send.push_back(number);
      continue;
    }
    if (!set) return;
    Channel* const channel = channels_[*set].get();
    if (!world_.sets[*set]->entry.MayPass(*channel)) return;
    // The order refuses what would come before others of that owner.
    if (world_.fault == Fault::kAsksMeanwhile && !channel->calls().empty()) return;
    (void)Note();
    Send(channel, number);
    order.AskedAgain(channel);
  }
}

TEST_CASE("Calls at several sets keep their order for each row, and replies theirs", "[cluster]") {
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    INFO("seed " << seed);
    REQUIRE(World(seed, Fault::kNone).Run() == "");
  }
}

TEST_CASE("Each planted fault of calls beside one another is found within 200 schedules",
          "[cluster]") {
  for (const Fault fault : kFaults) {
    std::string found;
    uint64_t seed = 0;
    while (found.empty() && seed < 200) found = World(++seed, fault).Run();
    INFO("fault " << static_cast<int>(fault) << ", seed " << seed);
    CHECK(found != "");
  }
}

// --- the pieces alone

TEST_CASE("The end of a reply is found wherever it is cut", "[cluster]") {
  const std::string replies[]{"+OK\r\n",
                              "-ERR what\r\n",
                              ":42\r\n",
                              "$-1\r\n",
                              "*-1\r\n",
                              "_\r\n",
                              "#t\r\n",
                              ",1.5\r\n",
                              "(12345678901234567890\r\n",
                              "$0\r\n\r\n",
                              "$5\r\na\r\nb*\r\n",
                              "*0\r\n",
                              "%0\r\n",
                              "~1\r\n:1\r\n",
                              "=7\r\ntxt:abc\r\n",
                              "*3\r\n$1\r\n*\r\n%1\r\n+a\r\n*1\r\n$-1\r\n:3\r\n",
                              "-ERR " + std::string(100, 'x') + "\r\n",
                              ">2\r\n+message\r\n$2\r\n\r\n\r\n"};
  for (const std::string& reply : replies) {
    for (size_t cut = 0; cut <= reply.size(); ++cut) {
      for (size_t second = cut; second <= reply.size(); ++second) {
        INFO(reply << " cut at " << cut << " and " << second);
        ReplyScanner scanner;
        const std::string_view text = reply;
        const std::string_view last[]{"+more\r\n"};
        CHECK(scanner.Take(text.substr(0, cut)) == cut);
        CHECK(scanner.done() == (cut == text.size()));
        CHECK(scanner.Take(text.substr(cut, second - cut)) == second - cut);
        CHECK(scanner.Take(std::string(text.substr(second)) + "+more\r\n") == text.size() - second);
        CHECK(scanner.done());
        CHECK(!scanner.failed());
        CHECK(scanner.Take(last[0]) == 0);
      }
    }
  }
  for (const std::string_view text :
       {"\r\n", "\n", "$x\r\n", "*-2\r\n", "$99999999999999999999\r\n", "$\r\n", "*4294967296\r\n",
        "% 1\r\n"}) {
    ReplyScanner scanner;
    (void)scanner.Take(text);
    INFO(text);
    CHECK(scanner.failed());
  }
}

TEST_CASE("Who answers something else than replies is told so", "[cluster]") {
  const auto none = [](std::string_view, bool, Lsn) {};
  class Nobody final : public CallClient {
   public:
    void OnReply(std::string_view, size_t, Lsn) override {}
    void OnMoved(std::string) override {}
    void OnUnknown() override {}
    bool TakesMore() const override { return true; }
  } a, b;
  const auto fresh = [&] {
    auto order = std::make_unique<ReplyOrder>();
    order->Begin(&a, 2);
    order->Add(&b);
    return order;
  };
  CHECK(fresh()->Answer(&a, "+1\r\n+2\r\n", 2, none));
  CHECK(!fresh()->Answer(&a, "+1\r\n", 2, none));
  CHECK(!fresh()->Answer(&a, "+1\r\n+2\r\n+3\r\n", 2, none));
  CHECK(!fresh()->Answer(&a, "+1\r\n+2\r\n+3\r\n", 3, none));
  CHECK(!fresh()->Answer(&b, "+1\r\n+2\r\n", 2, none));
  CHECK(!fresh()->Answer(&a, "nothing", 1, none));
  CHECK(!fresh()->Answer(&a, "*2\r\n:1\r\n", 1, none));
  CHECK(!fresh()->GiveBack(&a, "*1\r\n$1\r\na\r\n"));
  CHECK(!fresh()->GiveBack(&b, "*1\r\n$1\r\na\r\n*1\r\n$1\r\na\r\n"));
  CHECK(fresh()->GiveBack(&b, "*1\r\n$1\r\na\r\n"));
  std::string heard;
  const auto hear = [&](std::string_view bytes, bool, Lsn) { heard += bytes; };
  auto order = fresh();
  CHECK(order->Answer(&b, "$6\r\nbef", 0, hear));
  CHECK(order->Answer(&b, "ore\r\n", 1, hear));
  CHECK(heard.empty());
  CHECK(order->kept_bytes() == 12);
  CHECK(order->Answer(&a, "+1\r\n", 1, hear));
  CHECK(heard == "+1\r\n");
  CHECK(order->GiveBack(&a, "*1\r\n$1\r\na\r\n"));
  CHECK(order->has_back());
  CHECK(!order->pending());
  order->Refuse("-ERR no\r\n", hear);
  CHECK(heard == "+1\r\n-ERR no\r\n$6\r\nbefore\r\n");
  CHECK(order->empty());
  CHECK(order->kept_bytes() == 0);
}

}  // namespace beside_calls_test
