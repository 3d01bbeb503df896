// A time that is noticed late is acted on only when the sockets have been read since it came.
#include "server/set_timer.h"

#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

namespace cellar {
namespace set_timer_test {

// A loop as the server's: a socket that is read, the set's timer, and turns that end before and
// behind the poll.
class Loop {
 public:
  Loop() {
    (void)uv_loop_init(&loop_);
    loop_.data = this;
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0);
    (void)uv_poll_init(&loop_, &socket_, ends_[0]);
    (void)uv_poll_start(&socket_, UV_READABLE,
                        [](uv_poll_t* h, int, int) noexcept { Of(h->loop)->Read(); });
    (void)uv_prepare_init(&loop_, &prepare_);
    (void)uv_prepare_start(&prepare_, [](uv_prepare_t* h) noexcept {
      Of(h->loop)->EndTurn();
      Of(h->loop)->timer_.BeforePoll();
    });
    (void)uv_check_init(&loop_, &check_);
    (void)uv_check_start(&check_, [](uv_check_t* h) noexcept { Of(h->loop)->EndTurn(); });
    timer_.Open(&loop_);
  }
  ~Loop() {
    for (auto* handle : {reinterpret_cast<uv_handle_t*>(&socket_),   // NOLINT: libuv's inheritance
                         reinterpret_cast<uv_handle_t*>(&prepare_),  // NOLINT
                         reinterpret_cast<uv_handle_t*>(&check_),    // NOLINT
                         reinterpret_cast<uv_handle_t*>(&timer_.handle())})  // NOLINT
      uv_close(handle, nullptr);
    (void)uv_run(&loop_, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop_);
    (void)close(ends_[0]);
    (void)close(ends_[1]);
  }
  static Loop* Of(uv_loop_t* loop) { return static_cast<Loop*>(loop->data); }

  void Send() { REQUIRE(write(ends_[1], "x", 1) == 1); }
  void DueIn(int64_t micros) { due_micros_ = Clock::System().MonotonicMicros() + micros; }
  // Until the time has been acted on.
  void Run() {
    while (told_.empty() || told_.back() != "due") (void)uv_run(&loop_, UV_RUN_ONCE);
  }
  // What is read is a turn that takes longer than the time that is left.
  void BeBusyWith(std::function<void()> turn) { turn_ = std::move(turn); }
  const std::vector<std::string>& told() const { return told_; }
  int64_t due_micros() const { return due_micros_; }
  bool waits() const { return timer_.waits(); }

 private:
  void Read() {
    char byte = 0;
    REQUIRE(read(ends_[0], &byte, 1) == 1);
    told_.emplace_back("read");
    if (const auto turn = std::exchange(turn_, nullptr)) turn();
  }
  void EndTurn() { timer_.Update(due_micros_); }
  void OnDue() {
    told_.emplace_back("due");
    due_micros_ = INT64_MAX;
  }

  uv_loop_t loop_{};
  uv_poll_t socket_{};
  uv_prepare_t prepare_{};
  uv_check_t check_{};
  int ends_[2]{};
  int64_t due_micros_{INT64_MAX};
  std::vector<std::string> told_;
  std::function<void()> turn_;
  SetTimer timer_{Clock::System(), [this] { OnDue(); }};
};

TEST_CASE("a set's time that came in a long turn waits until the sockets have been read",
          "[set_timer]") {
  Loop loop;
  loop.DueIn(300'000);
  loop.BeBusyWith([&loop] {
    while (Clock::System().MonotonicMicros() < loop.due_micros() + 20'000) (void)usleep(1000);
    loop.Send();  // comes before the turn ends
  });
  loop.Send();
  loop.Run();
  CHECK(loop.told() == std::vector<std::string>{"read", "read", "due"});
  CHECK_FALSE(loop.waits());
}

TEST_CASE("what was read puts off a set's time that waited", "[set_timer]") {
  Loop loop;
  loop.DueIn(300'000);
  int64_t later = 0;
  loop.BeBusyWith([&] {
    while (Clock::System().MonotonicMicros() < loop.due_micros() + 20'000) (void)usleep(1000);
    loop.BeBusyWith([&] {
      loop.DueIn(300'000);  // the leader lives
      later = loop.due_micros();
      loop.BeBusyWith([&] { CHECK_FALSE(loop.waits()); });
      loop.Send();
    });
    loop.Send();
  });
  loop.Send();
  loop.Run();
  CHECK(loop.told() == std::vector<std::string>{"read", "read", "read", "due"});
  CHECK(later != 0);
  CHECK(Clock::System().MonotonicMicros() >= later);
}

TEST_CASE("a set's time comes where nothing else does", "[set_timer]") {
  Loop loop;
  loop.DueIn(1000);
  loop.Run();
  CHECK(loop.told() == std::vector<std::string>{"due"});
}

}  // namespace set_timer_test
}  // namespace cellar
