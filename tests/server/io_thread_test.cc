// An I/O thread against sockets of the test: what is read and sent keeps its order, slow readers
// and a slow server are waited for, and the end of every connection is told once.
#include "server/net/io_thread.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "server/net/io_socket.h"

namespace cellar {
namespace io_thread_test {

using Kind = InputBlock::Kind;

// The server's side, without a loop: it looks again and again.
class Owner {
 public:
  Owner() {
    (void)uv_loop_init(&loop_);
    bell_.Open(&loop_);
    thread_ = std::make_unique<IoThread>(1, bell_, buffers_);
  }
  ~Owner() {
    End();
    bell_.Close();
    (void)uv_run(&loop_, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop_);
  }

  // A connection is a number here; an I/O thread does not look behind it.
  static Connection* Name(uintptr_t number) {
    return reinterpret_cast<Connection*>(number);  // NOLINT: never used as one
  }
  IoSocket* Add(uintptr_t number, int* client) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    *client = ends[0];
    auto socket = std::make_unique<IoSocket>(*thread_, Name(number), SocketKind::kUnix, ends[1]);
    IoSocket* const raw = socket.release();
    sockets_[number] = raw;
    thread_->Add(raw, OutputBlock::Kind::kAdopt);
    thread_->Add(raw, OutputBlock::Kind::kRead);
    thread_->Post();
    return raw;
  }
  void Do(IoSocket* socket, OutputBlock::Kind kind) {
    thread_->Add(socket, kind);
    thread_->Post();
  }
  void Send(IoSocket* socket, std::string_view bytes) {
    OutputBuffer buffer;
    buffer.Append(bytes);
    thread_->AddSend(socket, &buffer, bytes.size());
    CHECK(buffer.empty());
    thread_->Post();
  }
  // Takes blocks until `done` says so.
  template <typename Done>
  void Take(Done done) {
    while (!done()) {
      InputBlock* const block = thread_->TakeInput();
      if (block == nullptr) {
        std::this_thread::yield();
        continue;
      }
      for (const InputBlock::Entry& entry : block->entries) {
        const auto number = reinterpret_cast<uintptr_t>(entry.connection);  // NOLINT: see Name
        CHECK(closed[number] == 0);
        if (entry.kind == Kind::kBytes) received[number].append(entry.bytes);
        if (entry.kind == Kind::kStopped) {
          ++long_reads;
          Do(sockets_.at(number), OutputBlock::Kind::kRead);
        }
        if (entry.kind == Kind::kEnd) ++ended[number];
        if (entry.kind == Kind::kBroken) ++broken[number];
        if (entry.kind == Kind::kSent) ++sent[number];
        if (entry.kind == Kind::kClosed) ++closed[number];
      }
      thread_->GiveBack(block);
    }
  }
  std::vector<Connection*> End() {
    std::vector<Connection*> left;
    if (thread_ == nullptr) return left;
    thread_->End(&left);
    for (InputBlock* block = thread_->TakeInput(); block != nullptr; block = thread_->TakeInput()) {
      for (const InputBlock::Entry& entry : block->entries) {
        if (entry.kind == Kind::kClosed) left.push_back(entry.connection);
      }
      thread_->GiveBack(block);
    }
    thread_.reset();
    return left;
  }
  IoThread& thread() { return *thread_; }

  std::map<uintptr_t, std::string> received;
  std::map<uintptr_t, int> ended;
  std::map<uintptr_t, int> broken;
  std::map<uintptr_t, int> sent;
  std::map<uintptr_t, int> closed;
  int long_reads{0};

 private:
  std::map<uintptr_t, IoSocket*> sockets_;
  uv_loop_t loop_{};
  Doorbell bell_;
  BufferPool buffers_;
  std::unique_ptr<IoThread> thread_;
};

void WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

std::string ReadBytes(int fd, size_t bytes) {
  std::string all;
  char piece[4096];
  while (all.size() < bytes) {
    const ssize_t got = ::recv(fd, piece, std::min(sizeof(piece), bytes - all.size()), 0);
    if (got <= 0) break;
    all.append(piece, static_cast<size_t>(got));
  }
  return all;
}

std::string Pattern(size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(bytes, ' ');
  for (char& c : text) c = static_cast<char>('a' + random() % 26);
  return text;
}

TEST_CASE("An I/O thread brings what clients send and takes what they get", "[io]") {
  Owner owner;
  int one = -1;
  int other = -1;
  IoSocket* const first = owner.Add(1, &one);
  IoSocket* const second = owner.Add(2, &other);
  WriteAll(one, "hello");
  WriteAll(other, "good day");
  owner.Take([&] { return owner.received[1].size() == 5 && owner.received[2].size() == 8; });
  CHECK(owner.received[1] == "hello");
  CHECK(owner.received[2] == "good day");
  owner.Send(first, "to one");
  owner.Send(second, "to the other");
  owner.Send(first, ", and more");
  CHECK(ReadBytes(one, 16) == "to one, and more");
  CHECK(ReadBytes(other, 12) == "to the other");

  ::shutdown(one, SHUT_WR);
  owner.Take([&] { return owner.ended[1] == 1; });
  owner.Send(first, "bye");
  owner.Do(first, OutputBlock::Kind::kClose);
  owner.Take([&] { return owner.closed[1] == 1; });
  CHECK(ReadBytes(one, 100) == "bye");
  CHECK(owner.thread().sockets() == 1);
  ::close(one);
  ::close(other);
  owner.Take([&] { return owner.ended[2] + owner.broken[2] > 0; });
  owner.Do(second, OutputBlock::Kind::kClose);
  owner.Take([&] { return owner.closed[2] == 1; });
}

TEST_CASE("A client that reads slowly gets everything in order, and the end of it is told",
          "[io]") {
  Owner owner;
  int client = -1;
  IoSocket* const socket = owner.Add(1, &client);
  std::string expected;
  for (unsigned i = 0; i < 40; ++i) {
    const std::string piece = Pattern(i % 3 == 0 ? 300'000 : 20 + i * 400, i);
    expected += piece;
    owner.Send(socket, piece);
  }
  socket->TellWhenSent();
  CHECK(socket->sent_bytes() < expected.size());
  std::string got;
  std::thread reader([&] { got = ReadBytes(client, expected.size()); });
  owner.Take([&] { return owner.sent[1] == 1 || socket->sent_bytes() == expected.size(); });
  reader.join();
  CHECK(got == expected);
  CHECK(socket->sent_bytes() == expected.size());
  CHECK(owner.broken[1] == 0);
  owner.Do(socket, OutputBlock::Kind::kClose);
  owner.Take([&] { return owner.closed[1] == 1; });
  ::close(client);
}

TEST_CASE("A server that takes nothing is waited for, and nothing is lost", "[io]") {
  Owner owner;
  constexpr size_t kClients{4};
  std::vector<int> clients(kClients);
  std::vector<IoSocket*> sockets(kClients);
  for (size_t i = 0; i < kClients; ++i) sockets[i] = owner.Add(i + 1, &clients[i]);
  constexpr size_t kBytes{3'000'000};
  std::vector<std::thread> writers;
  for (size_t i = 0; i < kClients; ++i) {
    writers.emplace_back(
        [&, i] { WriteAll(clients[i], Pattern(kBytes, static_cast<unsigned>(i))); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  owner.Take([&] {
    for (size_t i = 0; i < kClients; ++i) {
      if (owner.received[i + 1].size() < kBytes) return false;
    }
    return true;
  });
  CHECK(owner.long_reads > 0);
  for (size_t i = 0; i < kClients; ++i) {
    writers[i].join();
    CHECK((owner.received[i + 1] == Pattern(kBytes, static_cast<unsigned>(i))));
    owner.Do(sockets[i], OutputBlock::Kind::kClose);
    ::close(clients[i]);
  }
  owner.Take([&] { return owner.closed.size() >= kClients && owner.closed[kClients] == 1; });
}

TEST_CASE("What is sent to a client that has gone is dropped, and told once", "[io]") {
  Owner owner;
  int client = -1;
  IoSocket* const socket = owner.Add(1, &client);
  ::close(client);
  for (int i = 0; i < 20; ++i) owner.Send(socket, Pattern(50'000, 1));
  owner.Take([&] { return owner.broken[1] == 1; });
  owner.Send(socket, "more");
  owner.Do(socket, OutputBlock::Kind::kClose);
  owner.Take([&] { return owner.closed[1] == 1; });
  CHECK(owner.broken[1] == 1);
}

TEST_CASE("The end of an I/O thread closes everything and names each connection once", "[io]") {
  for (unsigned round = 0; round < 20; ++round) {
    std::mt19937 random(round);
    Owner owner;
    constexpr uintptr_t kClients{30};
    std::vector<int> clients(kClients);
    std::vector<IoSocket*> sockets(kClients);
    for (uintptr_t i = 0; i < kClients; ++i) sockets[i] = owner.Add(i + 1, &clients[i]);
    for (uintptr_t i = 0; i < kClients; ++i) {
      if (random() % 2 == 0) WriteAll(clients[i], "something");
      if (random() % 3 == 0) owner.Send(sockets[i], "an answer");
    }
    const size_t early = random() % kClients;
    for (uintptr_t i = 0; i < kClients; ++i) {
      owner.thread().Add(sockets[i], OutputBlock::Kind::kClose);
      if (i == early) owner.thread().Post();
    }
    std::vector<Connection*> left = owner.End();
    CHECK(left.size() == kClients);
    std::sort(left.begin(), left.end());
    CHECK(std::unique(left.begin(), left.end()) == left.end());
    for (const int client : clients) ::close(client);
  }
}

}  // namespace io_thread_test
}  // namespace cellar
