// HostilePair: a leader and a follower in one process, each with a store on a disk in memory, and
// between them links that a schedule bends: bytes come late and in pieces, links are cut, frames
// are lost, repeated, damaged, or forged with right checksums, snapshots and records too.
//
//   leader: Store, Replication  --- Pipe | Pipe ---  follower: Store, Replication
//                                     Mangler
//
// What must hold, whatever comes:
//
//   - neither ends, and neither's memory grows beyond its bounds;
//   - what a follower has written can be opened again, and is sound (ValidateStore);
//   - the leader's content is what its own writes made;
//   - as long as nothing was forged, both hold the same once they have been left alone.
//
// What fails throws, so that unit tests and fuzzers can use it.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/coding.h"
#include "base/random.h"
#include "replica/links/frame.h"
#include "replica/replication.h"
#include "store/log/log_stream.h"
#include "tests/store/faulty_file_system.h"
#include "tests/store/rich_store.h"

namespace cellar {

// Where a schedule comes from.
class Choices {
 public:
  virtual ~Choices() = default;
  virtual uint64_t Below(uint64_t bound) = 0;
  // Whether there are more; without, each is 0.
  virtual bool more() const = 0;
};

class RandomChoices final : public Choices {
 public:
  RandomChoices(uint64_t seed, uint64_t count) : random_(seed), left_(count) {}
  uint64_t Below(uint64_t bound) override {
    if (left_ > 0) --left_;
    return random_.Below(bound);
  }
  bool more() const override { return left_ > 0; }

 private:
  Random random_;
  uint64_t left_;
};

// Two bytes each.
class ByteChoices final : public Choices {
 public:
  explicit ByteChoices(std::string_view bytes) : bytes_(bytes) {}
  uint64_t Below(uint64_t bound) override {
    uint64_t value = 0;
    for (int i = 0; i < 2 && !bytes_.empty(); ++i) {
      value = value << 8 | static_cast<uint8_t>(bytes_.front());
      bytes_.remove_prefix(1);
    }
    return value % bound;
  }
  bool more() const override { return !bytes_.empty(); }

 private:
  std::string_view bytes_;
};

class HostilePair {
 public:
  // `forges`: frames are made up too, with right checksums.
  HostilePair(Choices* choices, bool forges)
      : choices_(choices), forges_(forges), leader_(this, "leader"), follower_(this, "follower") {}
  ~HostilePair() {
    follower_.Close();
    leader_.Close();
  }

  void Run() {
    leader_.Open(false);
    leader_.rich.MakeTables();
    for (uint64_t i = 0, rounds = choices_->Below(4); i < rounds; ++i) Write();
    if (choices_->Below(2) == 0) RichStore::Do(leader_.rich.store->journal().SaveNow());
    follower_.Open(true);
    follower_.FollowLeader();
    while (choices_->more()) Step();
    End();
  }
  uint64_t syncs() const { return syncs_; }

 private:
  static constexpr size_t kMemoryBytesMax{80 << 20};

  struct Node;
  // One end of a connection, with what it was given and the other end has not got yet.
  struct Pipe final : PeerLink {
    explicit Pipe(Node* node) : owner(node) {}
    void Write(std::string_view bytes) override { written.append(bytes); }
    size_t waiting_bytes() const override { return written.size(); }
    void SetReading(bool to) override { reading = to; }
    void Close() override {
      handler = nullptr;
      closes = true;
    }
    std::string peer_host() const override { return "10.0.0.7"; }

    Node* const owner;
    PeerHandler* handler{nullptr};
    std::string written;
    bool dialled{false};
    bool reading{true};
    bool closes{false};
    bool greeted{false};  // what it gave first has gone: frames follow
    std::string asked;    // of an end that was dialled to: what came before PEER was whole
  };
  struct Connection {
    std::unique_ptr<Pipe> dialler;
    std::unique_ptr<Pipe> acceptor;
  };

  struct Node final : ReplicationHost {
    Node(HostilePair* its_pair, const char* its_name)
        : pair(its_pair), name(its_name), rich(&disk) {
      rich.options.journal.retry_delay_micros = 500;
      rich.options.journal.segment_bytes_max = 64 << 10;
    }
    void Open(bool following) {
      rich.options.following = following;
      RichStore::Do(rich.Open());
      replication = std::make_unique<Replication>(*this, disk, rich.clock);
      ReplicationOptions options;
      options.announce_port = 1;
      options.timeout_micros = 5'000'000;
      options.tail_bytes = 64 << 10;
      options.backlog_bytes = 1 << 20;
      options.seed = pair->choices_->Below(1000) + (following ? 5000u : 7u);
      replication->SetOptions(std::move(options));
      RichStore::Do(replication->Attach(rich.store.get(), "db"));
    }
    void Close() {
      dials.clear();
      // Who has asked a worker hears of its end, also if nobody waits for it any more.
      while (replication != nullptr && !later.empty())
        for (const auto& done : std::exchange(later, {})) done();
      if (replication != nullptr && rich.store != nullptr) replication->Detach();
      later.clear();
      replication.reset();
      rich.store.reset();
    }
    // Their clocks are not the same, and what is due goes by the log.
    std::string Digest() { return rich.store->Digest(Store::DigestTime::kNewestStamp); }
    void FollowLeader() { RichStore::Do(replication->Follow({"leader", 1})); }
    void Turn() {
      std::vector<std::function<void()>> now;
      now.swap(later);
      for (const auto& done : now) done();
      rich.store->SetTurnTime();
      rich.store->journal().Poll();
      if (!replication->is_leader())
        (void)replication->ApplySlice(rich.clock.MonotonicMicros() + 1'000'000);
      rich.store->Flush();
      if (replication->active()) replication->OnFlushed();
      if (replication->active()) replication->OnTick();
      (void)rich.store->journal().MaybeStartSnapshot();
      if (replication->waiting_bytes() > kMemoryBytesMax)
        throw std::runtime_error(std::string(name) + " holds too much");
    }

    // --- ReplicationHost
    void Dial(const std::string&, uint16_t, PeerHandler* handler) override {
      dials.push_back(handler);
    }
    void DialSocket(const std::string&, PeerHandler* handler) override { dials.push_back(handler); }
    void CancelDial(PeerHandler* handler) override { std::erase(dials, handler); }
    void RunInBackground(std::function<void()> work, std::function<void()> done) override {
      work();
      later.push_back(std::move(done));
    }
    void WakeSoon() override {}
    void WakeTasks() override {}
    void WakeReads() override {}
    void OnRoleChanged() override {}
    void DisconnectClients() override {}
    void DropClients() override {}
    void EndProcess(const std::string& why) override { throw std::runtime_error(why); }
    void HoldWrites(bool) override {}
    Status ReplaceStore(const std::function<Status(Status* status)>& replace) override {
      Status status;
      RichStore::Do(replace(&status));
      return status;
    }

    HostilePair* const pair;
    const char* const name;
    FaultyFileSystem disk;
    RichStore rich;
    std::unique_ptr<Replication> replication;
    std::vector<PeerHandler*> dials;
    std::vector<std::function<void()>> later;
  };

  void Write() { leader_.rich.WriteRound(static_cast<int>(choices_->Below(40))); }

  // --- the links

  void Connect() {
    for (PeerHandler* handler : std::exchange(follower_.dials, {})) {
      if (choices_->Below(8) == 1 && !healed_) {
        handler->OnClosed("refused");
        continue;
      }
      Connection connection{std::make_unique<Pipe>(&follower_), std::make_unique<Pipe>(&leader_)};
      connection.dialler->handler = handler;
      connection.dialler->dialled = true;
      Pipe* const link = connection.dialler.get();
      pipes_.push_back(std::move(connection));
      handler->OnConnected(link);
    }
  }

  // A command of the greeting, which has five words behind its name.
  static std::optional<std::vector<std::string>> TakeCommand(std::string* bytes) {
    std::vector<std::string> words;
    size_t at = bytes->find("\r\n");
    if (at == std::string::npos || bytes->at(0) != '*') return std::nullopt;
    const auto count = static_cast<size_t>(std::stoul(bytes->substr(1, at - 1)));
    at += 2;
    while (words.size() < count) {
      const size_t end = bytes->find("\r\n", at);
      if (end == std::string::npos) return std::nullopt;
      const auto size = static_cast<size_t>(std::stoul(bytes->substr(at + 1, end - at - 1)));
      if (bytes->size() < end + 2 + size + 2) return std::nullopt;
      words.push_back(bytes->substr(end + 2, size));
      at = end + 2 + size + 2;
    }
    bytes->erase(0, at);
    return words;
  }

  void Greet(Pipe* pipe) {
    const auto words = TakeCommand(&pipe->asked);
    if (!words) return;
    Replication& to = *pipe->owner->replication;
    auto accepted =
        to.Accept(pipe, words->at(1), words->at(2), words->at(3), words->at(4), words->at(5));
    if (!accepted.ok()) {
      pipe->written += "-ERR " + accepted.status().text() + "\r\n";
      pipe->closes = true;
      return;
    }
    pipe->handler = *accepted;
    pipe->written += "+PEER 1 " + to.cluster_text() + " 0\r\n";
    if (!pipe->asked.empty()) pipe->handler->OnBytes(std::exchange(pipe->asked, {}));
  }

  void Give(Pipe* to, const std::string& bytes) {
    if (to->handler != nullptr) {
      to->handler->OnBytes(bytes);
    } else if (!to->dialled && !to->closes) {
      to->asked += bytes;
      Greet(to);
    }
  }

  // Some of what waits in `from` goes to the other end.
  void Deliver(Pipe* from, Pipe* to) {
    if (from->written.empty() || (!to->reading && to->handler != nullptr)) return;
    std::string bytes = std::exchange(from->written, {});
    if (!healed_ && from->greeted) {
      Mangle(&bytes);
    } else if (!healed_ && choices_->Below(4) == 0 && bytes.size() > 1) {
      from->written = bytes.substr(bytes.size() / 2);
      bytes.resize(bytes.size() / 2);
    }
    if (from->written.empty()) from->greeted = true;
    Give(to, bytes);
    if (from->handler != nullptr && from->written.empty()) from->handler->OnDrained();
  }

  void Cut(Connection* connection) {
    for (Pipe* pipe : {connection->dialler.get(), connection->acceptor.get()}) {
      pipe->closes = true;
      if (pipe->handler != nullptr) std::exchange(pipe->handler, nullptr)->OnClosed("cut");
    }
  }

  void MoveBytes() {
    for (size_t i = 0; i < pipes_.size(); ++i) {
      Pipe* const one = pipes_[i].dialler.get();
      Pipe* const other = pipes_[i].acceptor.get();
      if (healed_ || choices_->Below(4) != 3) Deliver(one, other);
      if (healed_ || choices_->Below(4) != 3) Deliver(other, one);
      if (one->closes || other->closes) Cut(&pipes_[i]);
    }
    std::erase_if(pipes_, [](const Connection& c) { return c.dialler->closes; });
  }

  // --- what happens to frames

  void Mangle(std::string* bytes) {
    switch (choices_->Below(forges_ ? 16 : 12)) {
      case 0:
        return Flip(bytes);
      case 1:  // lost, as no link loses it: what follows does not fit
        bytes->erase(0, FrameSize(*bytes));
        return;
      case 2: {
        const std::string first = bytes->substr(0, FrameSize(*bytes));
        bytes->insert(0, first);
        return;
      }
      case 12:
      case 13:
        return Forge(bytes);
      case 14: {
        const std::string made = MakeUp();
        bytes->insert(choices_->Below(2) == 0 ? 0 : FrameSize(*bytes), made);
        return;
      }
      default:
        return;
    }
  }

  void Flip(std::string* bytes) {
    const size_t at = (choices_->Below(1 << 16) | choices_->Below(1 << 8) << 16) % bytes->size();
    (*bytes)[at] = static_cast<char>((*bytes)[at] ^ (1 << choices_->Below(8)));
  }
  static size_t FrameSize(std::string_view bytes) {
    if (bytes.size() < kFrameHashEnd) return bytes.size();
    return std::min<size_t>(bytes.size(), kFrameHashEnd + size_t{DecodeFixed32(bytes.data())});
  }

  // A number as an attacker would choose it.
  uint64_t Number() {
    constexpr uint64_t kNumbers[]{0, 1, 0xff, 0x7fff'ffff, 0xffff'ffff, INT64_MAX, UINT64_MAX};
    const uint64_t choice = choices_->Below(std::size(kNumbers) + 2);
    return choice < std::size(kNumbers) ? kNumbers[choice] : choices_->Below(5000);
  }

  void Bend(std::string* body) {
    if (body->empty()) return;
    const size_t at = choices_->Below(1 << 16) % body->size();
    switch (choices_->Below(4)) {
      case 0:
        (*body)[at] = static_cast<char>((*body)[at] ^ (1 << choices_->Below(8)));
        return;
      case 1: {
        const uint64_t number = Number();
        for (size_t i = 0; i < 8 && at + i < body->size(); ++i)
          (*body)[at + i] = static_cast<char>(number >> 8 * i);
        return;
      }
      case 2:
        body->resize(at);
        return;
      default:
        body->insert(at, choices_->Below(20), static_cast<char>(choices_->Below(256)));
    }
  }

  // Of records in wire form one gets another payload or head, with a right checksum.
  std::string BendRecords(std::string_view wire) {
    std::string bent;
    for (bool first = true; !wire.empty(); first = false) {
      LogRecord record;
      const auto size = NextWireRecord(wire, &record);
      if (!size || *size == 0) break;
      std::string payload(record.payload);
      record.claim = {};
      if (first || choices_->Below(3) == 0) {
        const uint64_t what = choices_->Below(4);
        if (what == 0) record.lsn.seq += choices_->Below(3);
        if (what == 1) record.lsn.epoch += static_cast<uint32_t>(Number());
        if (what == 2) record.commit_micros += static_cast<int64_t>(choices_->Below(1 << 20));
        if (what == 3) Bend(&payload);
      }
      const size_t at = bent.size();
      bent.resize(at + kRecordHeaderBytes + payload.size());
      LayOutRecord(&bent[at], 0, record, payload);
      (void)SealRecord(&bent[at]);
      wire.remove_prefix(*size);
    }
    return bent;
  }

  static FrameReader AnyFrames() {
    return {FrameKind::kFollow,  FrameKind::kFrom, FrameKind::kFull, FrameKind::kChunk,
            FrameKind::kRecords, FrameKind::kBeat, FrameKind::kAck,  FrameKind::kLead,
            FrameKind::kError,   FrameKind::kReady};
  }

  // The first frame again, with other content.
  void Forge(std::string* bytes) {
    FrameReader reader = AnyFrames();
    const size_t size = FrameSize(*bytes);
    reader.Add(std::string_view(*bytes).substr(0, size));
    Frame frame;
    const Result<bool> next = reader.Next(&frame);
    if (!next.ok() || !*next) return;
    std::string body(frame.body);
    FrameHead head = frame;
    if (choices_->Below(8) == 0) head.term = static_cast<uint32_t>(Number());
    if (choices_->Below(8) == 0) head.sent_micros = static_cast<int64_t>(Number());
    if (choices_->Below(8) == 0) head.echo_micros = static_cast<int64_t>(Number());
    if (head.kind == FrameKind::kRecords && choices_->Below(2) == 0) {
      body = body.substr(0, kRecordsHeadBytes) +
             BendRecords(std::string_view(body).substr(std::min(body.size(), kRecordsHeadBytes)));
    } else {
      Bend(&body);
    }
    bytes->replace(0, size, EncodeFrame(head, body));
  }

  std::string MakeUp() {
    FrameHead head;
    head.kind = static_cast<FrameKind>(1 + choices_->Below(10));
    head.term = static_cast<uint32_t>(Number());
    head.from = Number();
    std::string body(choices_->Below(70), '\0');
    for (size_t i = 0; i < body.size(); i += 4) {
      const uint64_t number = Number();
      for (size_t k = i; k < body.size() && k < i + 8; ++k)
        body[k] = static_cast<char>(number >> 8 * (k - i));
    }
    return EncodeFrame(head, body);
  }

  // --- the schedule

  void Pass(int64_t micros) {
    for (Node* node : {&leader_, &follower_}) node->rich.clock.now_micros += micros;
  }

  void Turns() {
    leader_.Turn();
    follower_.Turn();
    // A forged frame may have told it to lead.
    if (follower_.replication->is_leader()) follower_.FollowLeader();
    Connect();
    MoveBytes();
  }

  void Step() {
    switch (choices_->Below(20)) {
      case 0:
      case 1:
        Write();
        break;
      case 2:
        if (!pipes_.empty()) Cut(&pipes_[choices_->Below(pipes_.size())]);
        break;
      case 3:
        (void)leader_.rich.store->journal().StartSnapshot();
        break;
      case 4:
        if (choices_->Below(4) == 0) Restart();
        break;
      default:
        Pass(static_cast<int64_t>(choices_->Below(300'000)));
    }
    Turns();
  }

  void Restart() {
    for (Connection& connection : pipes_) Cut(&connection);
    pipes_.clear();
    follower_.Close();
    follower_.Open(true);
    RichStore::Do(ValidateStore(follower_.rich.store.get()));
    follower_.FollowLeader();
  }

  // The follower has what it thinks is all.
  bool IsUp() {
    const auto upstream = follower_.replication->upstream();
    return upstream && upstream->up;
  }
  void Fail(const std::string& what) {
    const auto upstream = follower_.replication->upstream();
    std::string text = what + ": leader " + FormatLsn(leader_.rich.store->journal().last_lsn()) +
                       " released " + FormatLsn(leader_.rich.store->journal().released_lsn()) +
                       ", follower " + FormatLsn(follower_.rich.store->journal().last_lsn()) +
                       " state " +
                       (upstream ? std::to_string(static_cast<int>(upstream->state)) : "leads") +
                       (upstream && upstream->up ? " up" : " down");
    for (const FollowerFigures& feed : leader_.replication->followers())
      text += ", feed " + std::string(feed.state) + " applied " + FormatLsn(feed.applied);
    throw std::runtime_error(text);
  }
  bool Same() {
    return leader_.Digest() == follower_.Digest() &&
           leader_.rich.store->journal().last_lsn() == follower_.rich.store->journal().last_lsn();
  }

  // Left alone, both hold the same; what was forged may have told the follower anything that can be
  // true.
  void End() {
    healed_ = true;
    for (Connection& connection : pipes_) Cut(&connection);
    pipes_.clear();
    Write();
    for (int i = 0; i < 100'000 && !(forges_ ? IsUp() : Same()); ++i) {
      Pass(20'000);
      Turns();
      // Threads write the logs.
      if (i > 100) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    if (!(forges_ ? IsUp() : Same())) Fail("they do not find to each other");
    syncs_ = leader_.replication->stats().full_syncs_served +
             leader_.replication->stats().partial_syncs_served;
    RichStore::Do(ValidateStore(leader_.rich.store.get()));
    RichStore::Do(ValidateStore(follower_.rich.store.get()));
    const std::string before = follower_.Digest();
    for (Connection& connection : pipes_) Cut(&connection);
    pipes_.clear();
    follower_.Close();
    follower_.Open(true);
    RichStore::Do(ValidateStore(follower_.rich.store.get()));
    follower_.FollowLeader();
    if (follower_.Digest() != before) Fail("the follower holds something else after a restart");
  }

  Choices* const choices_;
  const bool forges_;
  bool healed_{false};
  Node leader_;
  Node follower_;
  std::vector<Connection> pipes_;
  uint64_t syncs_{0};
};

}  // namespace cellar
