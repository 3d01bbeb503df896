// A queue between two threads: order, bounds, and that nothing stays unseen.
#include "server/net/spsc_queue.h"

#include <catch2/catch.hpp>
#include <thread>
#include <vector>

namespace cellar {
namespace spsc_queue_test {

TEST_CASE("A queue gives what was put in, in order, and takes no more than it has room for",
          "[io]") {
  SpscQueue<int, 4> queue;
  int numbers[6] = {0, 1, 2, 3, 4, 5};
  CHECK(queue.empty());
  CHECK(queue.Pop() == nullptr);
  for (int i = 0; i < 4; ++i) REQUIRE(queue.Push(&numbers[i]));
  CHECK_FALSE(queue.Push(&numbers[4]));
  CHECK(queue.Pop() == &numbers[0]);
  CHECK(queue.Push(&numbers[4]));
  CHECK_FALSE(queue.Push(&numbers[5]));
  for (int i = 1; i < 5; ++i) REQUIRE(queue.Pop() == &numbers[i]);
  CHECK(queue.Pop() == nullptr);
  CHECK(queue.empty());
}

TEST_CASE("What one thread puts into a queue another one gets, once and in order", "[io]") {
  constexpr size_t kItems{200'000};
  SpscQueue<size_t, 8> queue;
  std::vector<size_t> items(kItems);
  std::thread producer([&] {
    for (size_t i = 0; i < kItems; ++i) {
      items[i] = i;
      while (!queue.Push(&items[i])) std::this_thread::yield();
    }
  });
  size_t wrong = 0;
  for (size_t i = 0; i < kItems;) {
    const size_t* const item = queue.Pop();
    if (item == nullptr) {
      std::this_thread::yield();
      continue;
    }
    if (*item != i) ++wrong;
    ++i;
  }
  producer.join();
  CHECK(wrong == 0);
  CHECK(queue.empty());
}

}  // namespace spsc_queue_test
}  // namespace cellar
