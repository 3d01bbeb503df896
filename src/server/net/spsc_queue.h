// SpscQueue: a queue of pointers between two threads, one that puts in and one that takes out,
// without a lock.
//
//   slots   | . | . | c | d | e | . |        head: the next to be taken, the consumer's
//                     ^head       ^tail      tail: the next to be filled, the producer's
//
// Each side reads the other's end only when its own copy of it says that there is nothing to take,
// or no room, so the two cache lines travel once a batch rather than once a pointer (the idea is
// that of Rigtorp's SPSCQueue). Push and empty() are sequentially consistent, so that a doorbell
// can be built on them (doorbell.h); what was written before Push is seen behind Pop.
//
// The queue owns nothing.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>

namespace cellar {

template <typename T, size_t kSlots>
class SpscQueue {
  static_assert(std::has_single_bit(kSlots));

 public:
  // Producer. False: it is full.
  [[nodiscard]] bool Push(T* item) {
    const size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - known_head_ == kSlots) {
      known_head_ = head_.load(std::memory_order_acquire);
      if (tail - known_head_ == kSlots) return false;
    }
    slots_[tail % kSlots] = item;
    tail_.store(tail + 1, std::memory_order_seq_cst);
    return true;
  }

  // Consumer. Null: it is empty.
  T* Pop() {
    const size_t head = head_.load(std::memory_order_relaxed);
    if (head == known_tail_) {
      known_tail_ = tail_.load(std::memory_order_acquire);
      if (head == known_tail_) return nullptr;
    }
    T* const item = slots_[head % kSlots];
    head_.store(head + 1, std::memory_order_release);
    return item;
  }

  // Consumer. False: Pop will give something.
  bool empty() const {
    return head_.load(std::memory_order_relaxed) == tail_.load(std::memory_order_seq_cst);
  }

 private:
  static constexpr size_t kCacheLine{64};

  alignas(kCacheLine) std::atomic<size_t> head_{0};
  size_t known_tail_{0};  // the consumer's copy
  alignas(kCacheLine) std::atomic<size_t> tail_{0};
  size_t known_head_{0};  // the producer's copy
  alignas(kCacheLine) std::array<T*, kSlots> slots_{};
};

}  // namespace cellar
