// ChunkKeeper: gets the arena's chunks from the operating system and gives them back, in a thread.
//
// The kernel clears a huge page when it is first touched: 0.2 ms, and 5 to 10 ms where a virtual
// machine's host has to find the memory first. To unmap one takes about as long. A thread that
// serves clients should do neither.
//
//   ready     chunks that are mapped and touched, at most kReadyMax       keeper ---> Take()
//   returned  chunks that nobody uses any more, with their pages          Return() ---> keeper
//
// As many are made ready as KeepReady() asks for. After a while in which none was taken only one
// stays: the growth is over. A returned chunk is the next that is ready, if one is wanted, and
// unmapped otherwise.
//
// The thread begins with the first KeepReady() that wants something, and ends with the keeper. That
// of the global arena, which is never destroyed, ends with the process, at whatever point it is: it
// uses nothing but the keeper, malloc and memory that nobody else knows.
//
// What both sides share are atomic pointers: the caller never waits, not even where the keeper's
// thread was interrupted at a bad moment. Its pages are touched one by one, not by
// MADV_POPULATE_WRITE, which holds the lock of all mappings for as long as it takes.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <semaphore>
#include <thread>

namespace cellar {

class ChunkKeeper {
 public:
  static constexpr size_t kChunkBytes{2 * 1024 * 1024};
  static constexpr size_t kReadyMax{4};

  explicit ChunkKeeper(bool huge_pages) : huge_pages_(huge_pages) {}
  ~ChunkKeeper();  // unmaps what it has
  ChunkKeeper(const ChunkKeeper&) = delete;
  ChunkKeeper& operator=(const ChunkKeeper&) = delete;

  // A chunk, aligned to its size, that nobody has touched yet; null without memory. For any thread.
  void* Map() const;
  static void Touch(void* chunk);
  static void Unmap(void* chunk);

  // A chunk that is ready; null if there is none. Its pages are there; it is all zero, or what it
  // was when it was returned. Never waits.
  void* Take();
  // The chunk belongs to the keeper from now on. Never waits.
  void Return(void* chunk);
  // How many chunks are to be ready. Never waits; the first call that asks for any starts the
  // thread. For one thread at a time.
  void KeepReady(size_t chunks);

  // Frees what came from malloc, in the thread where there is one: the kernel takes 10 ms to unmap
  // 100 MB. Never waits. REQUIRES: room for a pointer.
  void Free(void* memory);

  // What it holds of chunks, ready ones and returned ones.
  uint64_t held_bytes() const { return held_.load(std::memory_order_relaxed) * kChunkBytes; }
  bool running() const { return running_.load(std::memory_order_acquire); }

 private:
  static constexpr std::chrono::milliseconds kGrowthPause{1000};
  static constexpr size_t kReadyAfterGrowth{1};

  // What is given away, linked through its own memory.
  struct Given {
    Given* next;
  };
  static void Push(std::atomic<Given*>* stack, void* memory);

  void Run();
  void FillReady();
  void EmptyReady(size_t kept);
  bool DisposeOfOne();
  void* PopReturned();
  size_t ready_chunks() const;
  void Wake();

  const bool huge_pages_;
  std::array<std::atomic<void*>, kReadyMax> ready_{};
  std::atomic<Given*> returned_{nullptr};  // chunks; pushed by anybody, popped by the thread
  std::atomic<Given*> freed_{nullptr};     // from malloc
  std::atomic<size_t> held_{0};            // chunks
  std::atomic<size_t> wanted_{0};
  std::atomic<uint64_t> taken_{0};
  std::atomic<bool> running_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> woken_{false};
  std::counting_semaphore<> wake_{0};
  std::thread thread_;
};

}  // namespace cellar
