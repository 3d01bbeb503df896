// Sets that agree on a schema, in a simulation of their logs, leaders and links.
#include "cluster/catalog_agreement.h"

#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace catalog_agreement_test {
namespace {

using namespace cellar;

enum class Fault {
  kNone,
  kTellsUncommitted,
  kAnswersUncommitted,
  kNoHold,
  kForgetsHold,
  kForgetsHoldZero,
};

// What lies in the log of a set: changes by number, each with a name that no other one has.
struct SetLog {
  std::vector<int> changes;
  size_t committed{0};
  // An uncommitted end may be lost with its leader.
  void LoseTail(bool lost) {
    if (lost)
      changes.resize(committed);
    else
      committed = changes.size();
  }
};

struct Message {
  enum class Kind { kChange, kRelease, kAnswer } kind;
  uint64_t number;
  std::vector<int> changes;  // of kChange: those up to `number`, or that one
};

class World final : CatalogDirector::Teller {
 public:
  World(uint32_t seed, size_t sets, Fault fault, bool holds_expire)
      : random_(seed), fault_(fault), holds_expire_(holds_expire) {
    others_.resize(sets - 1);
    BeginDirector();
    for (Other& other : others_) other.member.Begin(0, kLongAgo, now_);
  }

  // What is wrong; empty: nothing.
  std::string Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      Step();
      if (std::string wrong = Check(); !wrong.empty()) return wrong;
    }
    return Finish();
  }

 private:
  static constexpr int64_t kLongAgo{-1'000'000'000};
  struct Other {
    SetLog log;
    CatalogMember member;
    bool linked{false};
    bool joined{false};
    std::deque<Message> down;
    std::deque<Message> up;
    size_t answered{0};
    int64_t changed_micros{kLongAgo};
  };

  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  size_t Pick(size_t count) { return random_() % count; }

  void BeginDirector() {
    const int64_t changed = fault_ == Fault::kForgetsHoldZero ? kLongAgo : changed_micros_;
    director_.Begin(zero_.changes.size(), changed, now_);
    for (size_t i = 0; i < others_.size(); ++i) director_.AddSet(i + 1);
    for (Other& other : others_) Unlink(&other);
    if (zero_.committed > 0) director_.OnCommitted(zero_.committed, 1);
  }
  void Unlink(Other* other) {
    other->linked = false;
    other->down.clear();
    other->up.clear();
  }
  void Link(size_t at) {
    Other& other = others_[at];
    Unlink(&other);
    other.linked = true;
    other.answered = other.log.committed;
    director_.OnReport(at + 1,
                       other.joined ? std::optional<uint64_t>(other.log.committed) : std::nullopt);
  }

  // --- CatalogDirector::Teller
  void TellChange(uint64_t set, uint64_t number) override {
    Other& other = others_[set - 1];
    Message message{Message::Kind::kChange, number == 0 ? director_.committed() : number, {}};
    if (number == 0)
      message.changes.assign(zero_.changes.begin(), zero_.changes.begin() + message.number);
    else
      message.changes = {zero_.changes[number - 1]};
    other.down.push_back(message);
  }
  void TellRelease(uint64_t set, uint64_t number) override {
    others_[set - 1].down.push_back({Message::Kind::kRelease, number, {}});
  }

  void Receive(Other* other) {
    const Message message = other->down.front();
    other->down.pop_front();
    if (message.kind == Message::Kind::kRelease) return other->member.OnRelease(message.number);
    SetLog& log = other->log;
    if (!other->joined) {
      log.changes = message.changes;
      if (message.number == 0) {
        other->joined = true;
        return;
      }
    } else if (other->member.Wants(message.number)) {
      log.changes.push_back(message.changes[0]);
    } else {
      return;
    }
    other->joined = true;
    other->changed_micros = now_;
    other->member.OnChanged(log.changes.size(), now_);
    if (fault_ == Fault::kNoHold) other->member.OnRelease(log.changes.size());
    if (fault_ == Fault::kAnswersUncommitted) Answer(other);
  }
  void Answer(Other* other) {
    const size_t has =
        fault_ == Fault::kAnswersUncommitted ? other->log.changes.size() : other->log.committed;
    if (!other->linked || other->answered == has) return;
    other->answered = has;
    other->up.push_back({Message::Kind::kAnswer, has, {}});
  }

  void Step() {
    now_ += holds_expire_ ? static_cast<int64_t>(random_() % 20'000) : 1;
    director_.OnTick(now_);
    for (Other& other : others_) other.member.OnTick(now_);
    Other& other = others_[Pick(others_.size())];
    const auto at = static_cast<size_t>(&other - others_.data());
    switch (Pick(12)) {
      case 0:  // a change, one at a time unless one is given up
        if (director_.held_from() == 0 && zero_.committed == zero_.changes.size() &&
            (holds_expire_ || director_.all_have() == zero_.changes.size())) {
          zero_.changes.push_back(++names_);
          changed_micros_ = now_;
          director_.OnChanged(zero_.changes.size(), now_);
          if (fault_ == Fault::kTellsUncommitted) director_.OnCommitted(zero_.changes.size(), 1);
        }
        break;
      case 1:
        if (zero_.committed < zero_.changes.size()) {
          zero_.committed = zero_.changes.size();
          director_.OnCommitted(zero_.committed, 1);
        }
        break;
      case 2:
      case 3:
        if (!other.down.empty()) Receive(&other);
        break;
      case 4:
        other.log.committed = other.log.changes.size();
        Answer(&other);
        break;
      case 5:
      case 6:
        if (!other.up.empty()) {
          director_.OnAnswer(at + 1, other.up.front().number);
          other.up.pop_front();
        }
        break;
      case 7:
      case 8:
        if (!other.linked) Link(at);
        break;
      case 9:
        if (Chance(10)) {
          director_.OnLost(at + 1);
          Unlink(&other);
        }
        break;
      case 10:  // the leader of another set dies
        if (Chance(15)) {
          director_.OnLost(at + 1);
          Unlink(&other);
          other.log.LoseTail(Chance(50));
          if (other.log.changes.empty()) other.joined = false;
          other.member.Begin(other.log.changes.size(),
                             fault_ == Fault::kForgetsHold ? kLongAgo : other.changed_micros, now_);
        }
        break;
      default:  // the director does
        if (Chance(8)) {
          director_.End();
          zero_.LoseTail(Chance(50));
          BeginDirector();
        }
        break;
    }
  }

  std::string Check() const {
    for (const Other& other : others_) {
      for (size_t i = 0; i < other.log.committed; ++i)
        if (i >= zero_.changes.size() || other.log.changes[i] != zero_.changes[i])
          return "sets have other changes of one number";
    }
    if (holds_expire_) return {};
    const size_t zero_shows =
        director_.held_from() == 0 ? zero_.changes.size() : director_.held_from() - 1;
    size_t shown = zero_shows;
    for (const Other& other : others_) {
      const uint64_t held = other.member.held_from();
      shown = std::max(shown, held == 0 ? other.log.changes.size() : held - 1);
    }
    for (const Other& other : others_)
      if (other.joined && other.log.changes.size() < shown)
        return "a set shows what another one has not";
    if (zero_.changes.size() < shown) return "a set shows what set 0 has not";
    return {};
  }

  // Without faults all is even in the end.
  std::string Finish() {
    for (int round = 0; round < 50; ++round) {
      if (zero_.committed < zero_.changes.size()) {
        zero_.committed = zero_.changes.size();
        director_.OnCommitted(zero_.committed, 1);
      }
      for (size_t at = 0; at < others_.size(); ++at) {
        Other& other = others_[at];
        if (!other.linked) Link(at);
        while (!other.down.empty()) Receive(&other);
        other.log.committed = other.log.changes.size();
        Answer(&other);
        while (!other.up.empty()) {
          director_.OnAnswer(at + 1, other.up.front().number);
          other.up.pop_front();
        }
      }
    }
    if (director_.held_from() != 0) return "set 0 holds for ever";
    if (director_.WhoLacks(zero_.changes.size()).has_value()) return "a set is behind for ever";
    for (const Other& other : others_) {
      if (other.log.changes != zero_.changes) return "a set lacks changes";
      if (other.member.held_from() != 0) return "a set holds for ever";
    }
    return {};
  }

  std::mt19937 random_;
  const Fault fault_;
  const bool holds_expire_;
  CatalogDirector director_{*this};
  SetLog zero_;
  std::vector<Other> others_;
  int names_{0};
  int64_t now_{0};
  int64_t changed_micros_{kLongAgo};
};

// The first schedule that finds something; none of so many.
std::optional<uint32_t> FirstFound(Fault fault, uint32_t schedules, std::string* what) {
  for (uint32_t seed = 1; seed <= schedules; ++seed) {
    for (const bool expire : {false, true}) {
      const size_t sets = 2 + seed % 4;
      *what = World(seed, sets, fault, expire).Run(400);
      if (!what->empty()) return seed;
    }
  }
  return std::nullopt;
}

TEST_CASE("Sets agree on a schema whatever dies and gets lost", "[cluster]") {
  std::string what;
  const auto seed = FirstFound(Fault::kNone, 3'000, &what);
  INFO("seed " << seed.value_or(0) << ": " << what);
  CHECK_FALSE(seed.has_value());
}

TEST_CASE("Each fault of the agreement on a schema is found", "[cluster]") {
  for (const Fault fault : {Fault::kTellsUncommitted, Fault::kAnswersUncommitted, Fault::kNoHold,
                            Fault::kForgetsHold, Fault::kForgetsHoldZero}) {
    std::string what;
    const auto seed = FirstFound(fault, 200, &what);
    INFO("fault " << static_cast<int>(fault));
    CHECK(seed.has_value());
  }
}

}  // namespace
}  // namespace catalog_agreement_test
