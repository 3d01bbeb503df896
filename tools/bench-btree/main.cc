// bench-btree: what a cell costs in the B-tree, beside std::map and absl::btree_map.
//
//   bench-btree [--cells N] [--sets abc] [--orders rs] [--quick] [--only-tree] [--no-snapshots]
//
// Each container is filled in a process of its own (fork), so that its memory is the growth of that
// process; the figures come back through a pipe. A pointer chase over as much memory as the tree
// takes gives the machine's own floor. The last block writes to a tree while another thread writes
// it to a file.
//
// Before anything is timed, as much memory as the container will take is touched and given back: a
// virtual machine's host may need 10 ms for the first touch of 2 MiB, which is not the container's
// doing. What the first touch costs is printed for comparison.
#include <absl/container/btree_map.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/assert.h"
#include "base/random.h"
#include "bench-btree/data_set.h"
#include "btree/btree.h"
#include "btree/nodes/arena.h"
#include "command_line.h"

namespace bench_btree {
namespace {

using cellar::BTree;
using cellar::BTreeBulkLoader;
using cellar::BTreeCursor;
using cellar::BTreeImageReader;
using cellar::BTreeSnapshot;
using cellar::NodeArena;
using cellar::Random;

// CPU time of this thread: what a busy machine takes away does not count. For averages over many
// calls.
uint64_t CpuNs() {
  timespec time{};
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

uint64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long long size = 0, resident = 0;
  if (file == nullptr || std::fscanf(file, "%llu %llu", &size, &resident) != 2) return 0;
  (void)std::fclose(file);
  return resident * static_cast<uint64_t>(getpagesize());
}

// The figures of one container, in ns unless said otherwise.
enum Figure : size_t {
  kResidentPerCell,  // bytes
  kLivePerCell,      // bytes
  kArenaSlackPercent,
  kInsert,
  kGet,
  kGetGroup,
  kGetCached,
  kLatest,
  kOverwrite,
  kSeek100,
  kScan,  // M cells/s
  kDelete,
  kSave,  // M cells/s
  kLoad,  // M cells/s
  kLoadedPerCell,
  kSnapshot,
  kFloor,
  kFirstTouch,
  kFigures
};
constexpr std::array<const char*, kFigures> kFigureNames{"RSS B/cell",
                                                         "live B/cell",
                                                         "arena slack %",
                                                         "insert ns",
                                                         "get ns",
                                                         "get ns, groups of 16",
                                                         "get ns, in cache",
                                                         "latest version ns",
                                                         "overwrite ns",
                                                         "seek + 100 ns",
                                                         "scan M/s",
                                                         "delete ns",
                                                         "save M/s",
                                                         "load M/s",
                                                         "RSS B/cell after load",
                                                         "take snapshot ns",
                                                         "pointer chase ns",
                                                         "first touch ns per KiB"};
using Figures = std::array<double, kFigures>;

// One face for the three containers.
class TreeStore {
 public:
  void Put(const std::string& key, const std::string& value) { tree_.Put(key, value); }
  size_t Get(const std::string& key) const {
    const auto value = tree_.Get(key);
    return value.has_value() ? value->size() : 0;
  }
  void Delete(const std::string& key) { tree_.Delete(key); }
  // Bytes of the first `n` cells at or behind `key`.
  size_t Scan(std::string_view key, uint64_t n) {
    size_t bytes = 0;
    cursor_.Seek(key);
    for (; n > 0 && cursor_.valid(); --n, cursor_.Next())
      bytes += cursor_.key().size() + cursor_.value().size();
    return bytes;
  }
  uint64_t live_bytes() const { return tree_.memory_bytes(); }
  BTree& tree() { return tree_; }

 private:
  BTree tree_;
  BTreeCursor cursor_{tree_};
};

template <typename Map>
class MapStore {
 public:
  void Put(const std::string& key, const std::string& value) { map_[key] = value; }
  size_t Get(const std::string& key) const {
    const auto it = map_.find(key);
    return it == map_.end() ? 0 : it->second.size();
  }
  void Delete(const std::string& key) { map_.erase(key); }
  size_t Scan(std::string_view key, uint64_t n) {
    size_t bytes = 0;
    for (auto it = map_.lower_bound(std::string(key)); n > 0 && it != map_.end(); --n, ++it)
      bytes += it->first.size() + it->second.size();
    return bytes;
  }
  uint64_t live_bytes() const { return 0; }

 private:
  Map map_;
};
using StdStore = MapStore<std::map<std::string, std::string>>;
using AbslStore = MapStore<absl::btree_map<std::string, std::string>>;

volatile size_t sink;

struct Job {
  const DataSet* set;
  uint64_t cells;
  bool is_random;
};

// Times `n` calls of work(cell) for cells drawn at random.
template <typename Work>
double TimePerCell(const Job& job, uint64_t n, Work work) {
  Random random(n);
  std::string key;
  uint64_t making = 0;
  // The cost of making the keys is measured apart and taken away.
  for (int pass = 0; pass < 2; ++pass) {
    const uint64_t begin = CpuNs();
    for (uint64_t i = 0; i < n; ++i) {
      const uint64_t cell = random.Below(job.cells);
      job.set->Key(cell, &key);
      sink = key.size();
      if (pass == 1) work(cell, key);
    }
    if (pass == 0)
      making = CpuNs() - begin;
    else
      return std::max(0.0, static_cast<double>(CpuNs() - begin) - static_cast<double>(making)) /
             static_cast<double>(n);
  }
  return 0;
}

// Makes the host back `bytes` of memory, and gives them back to the kernel. Returns the cost in ns
// per KiB.
double WarmMemory(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  const uint64_t begin = CpuNs();
  for (uint64_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
  const double ns = static_cast<double>(CpuNs() - begin) * 1024 / static_cast<double>(bytes);
  munmap(memory, bytes);
  return ns;
}

// The cells in their order of arrival. Mapped, so that its memory goes back at once.
class Order {
 public:
  explicit Order(const Job& job) : cells_(job.cells) {
    void* memory = mmap(nullptr, cells_ * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CELLAR_ASSERT(memory != MAP_FAILED);
    order_ = static_cast<uint32_t*>(memory);
    for (uint64_t i = 0; i < cells_; ++i) order_[i] = static_cast<uint32_t>(i);
    Random random(1);
    if (job.is_random)
      for (uint64_t i = cells_; i > 1; --i) std::swap(order_[i - 1], order_[random.Below(i)]);
  }
  ~Order() { munmap(order_, cells_ * sizeof(uint32_t)); }
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;
  const uint32_t* begin() const { return order_; }
  const uint32_t* end() const { return order_ + cells_; }

 private:
  uint64_t cells_;
  uint32_t* order_;
};

template <typename Store>
double Fill(const Job& job, Store* store) {
  const Order order(job);
  std::string key, value;
  uint64_t making = CpuNs();
  for (const uint32_t cell : order) {
    job.set->Key(cell, &key);
    DataSet::Value(cell, 0, &value);
    sink = key.size() + value.size();
  }
  making = CpuNs() - making;
  const uint64_t begin = CpuNs();
  for (const uint32_t cell : order) {
    job.set->Key(cell, &key);
    DataSet::Value(cell, 0, &value);
    store->Put(key, value);
  }
  return (static_cast<double>(CpuNs() - begin) - static_cast<double>(making)) /
         static_cast<double>(job.cells);
}

// ns per dependent load over `bytes` of memory in huge pages.
double PointerChase(uint64_t bytes) {
  const uint64_t n = bytes / 64;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  auto* lines = static_cast<uint64_t*>(memory);
  std::vector<uint32_t> order(n);
  for (uint64_t i = 0; i < n; ++i) order[i] = static_cast<uint32_t>(i);
  Random random(2);
  for (uint64_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  for (uint64_t i = 0; i < n; ++i) lines[order[i] * 8ull] = order[(i + 1) % n] * 8ull;
  constexpr uint64_t kHops{2'000'000};
  const uint64_t begin = CpuNs();
  uint64_t at = 0;
  for (uint64_t i = 0; i < kHops; ++i) at = lines[at];
  sink = at;
  const double ns = static_cast<double>(CpuNs() - begin) / kHops;
  munmap(memory, bytes);
  return ns;
}

template <typename Store>
void RunCommon(const Job& job, Store* store, Figures* figures) {
  Figures& f = *figures;
  const uint64_t samples = std::min<uint64_t>(job.cells, 1'000'000);
  std::string value;
  f[kGet] =
      TimePerCell(job, samples, [&](uint64_t, const std::string& key) { sink = store->Get(key); });
  f[kLatest] = TimePerCell(job, samples, [&](uint64_t, const std::string& key) {
    sink = store->Scan(DataSet::Column(key), 1);
  });
  f[kOverwrite] = TimePerCell(job, samples, [&](uint64_t cell, const std::string& key) {
    DataSet::Value(cell, 1, &value);
    store->Put(key, value);
  });
  f[kSeek100] = TimePerCell(
      job, samples / 10, [&](uint64_t, const std::string& key) { sink = store->Scan(key, 100); });
  uint64_t begin = CpuNs();
  sink = store->Scan("", job.cells);
  f[kScan] = static_cast<double>(job.cells) * 1e3 / static_cast<double>(CpuNs() - begin);
}

// What a look-up of one key in a group of 16 takes.
double TimeGroups(const Job& job, BTree* tree) {
  Random random(3);
  std::vector<std::string> keys(16);
  std::array<std::string_view, 16> views;
  std::array<std::optional<std::string_view>, 16> values;
  const uint64_t groups = 1 + std::min<uint64_t>(job.cells, 1'000'000) / 16;
  std::array<uint64_t, 2> spent{};
  for (size_t pass = 0; pass < 2; ++pass) {  // the first one only makes the keys
    const uint64_t begin = CpuNs();
    for (uint64_t i = 0; i < groups; ++i) {
      for (size_t k = 0; k < 16; ++k) {
        job.set->Key(random.Below(job.cells), &keys[k]);
        views[k] = keys[k];
      }
      if (pass == 1) tree->MultiGet(views, values);
    }
    spent[pass] = CpuNs() - begin;
  }
  CELLAR_ASSERT(values[15].has_value());
  return static_cast<double>(spent[1] - spent[0]) / static_cast<double>(groups * 16);
}

void RunTreeOnly(const Job& job, TreeStore* store, Figures* figures) {
  Figures& f = *figures;
  BTree& tree = store->tree();
  f[kLivePerCell] = static_cast<double>(tree.memory_bytes()) / static_cast<double>(job.cells);
  const NodeArena::Stats stats = NodeArena::Global().stats();
  f[kArenaSlackPercent] = 100.0 * static_cast<double>(stats.mapped_bytes - stats.used_bytes) /
                          static_cast<double>(stats.used_bytes);
  f[kGetGroup] = TimeGroups(job, &tree);
  {  // 1,000 neighbouring cells over and over
    const Job few{job.set, std::min<uint64_t>(job.cells, 1'000), false};
    f[kGetCached] = TimePerCell(few, 1'000'000,
                                [&](uint64_t, const std::string& key) { sink = store->Get(key); });
  }
  {
    const uint64_t begin = CpuNs();
    for (int i = 0; i < 1000; ++i) const BTreeSnapshot snapshot = tree.TakeSnapshot();
    f[kSnapshot] = static_cast<double>(CpuNs() - begin) / 1000;
  }
}

// Saves to memory and loads again, in blocks of about 64 KiB as a snapshot file has them.
void RunImages(const Job& job, TreeStore* store, Figures* figures) {
  Figures& f = *figures;
  BTree& tree = store->tree();
  std::vector<std::string> blocks;
  std::vector<std::vector<uint32_t>> ends;
  {
    const BTreeSnapshot snapshot = tree.TakeSnapshotForImages();
    BTreeImageReader reader(snapshot);
    std::string image;
    uint64_t spent = 0;
    for (bool more = true; more;) {
      const uint64_t begin = CpuNs();
      std::vector<uint32_t> in_block;
      image.clear();
      image.reserve(80 * 1024);
      while (image.size() < 64 * 1024 && (more = reader.Next(&image)))
        in_block.push_back(static_cast<uint32_t>(image.size()));
      spent += CpuNs() - begin;
      blocks.push_back(image);
      ends.push_back(in_block);
    }
    f[kSave] = static_cast<double>(job.cells) * 1e3 / static_cast<double>(spent);
  }
  (void)WarmMemory(job.cells * 48);
  const uint64_t resident = ResidentBytes();
  BTree loaded;
  BTreeBulkLoader loader(&loaded);
  const uint64_t begin = CpuNs();
  for (size_t b = 0; b < blocks.size(); ++b) {
    size_t at = 0;
    for (const uint32_t end : ends[b]) {
      const auto status = loader.AddImage(std::string_view(blocks[b]).substr(at, end - at));
      CELLAR_ASSERT(status.ok());
      at = end;
    }
  }
  CELLAR_ASSERT(loader.Finish().ok());
  f[kLoad] = static_cast<double>(job.cells) * 1e3 / static_cast<double>(CpuNs() - begin);
  CELLAR_ASSERT(loaded.entries() == job.cells);
  f[kLoadedPerCell] =
      static_cast<double>(ResidentBytes() - resident) / static_cast<double>(job.cells);
}

template <typename Store>
void Run(const Job& job, Figures* figures) {
  constexpr bool kIsTree{std::is_same_v<Store, TreeStore>};
  constexpr uint64_t kBytesPerCell{kIsTree ? 64 : 176};
  Figures& f = *figures;
  f[kFirstTouch] = WarmMemory(job.cells * kBytesPerCell);
  const uint64_t resident = ResidentBytes();
  Store store;
  f[kInsert] = Fill(job, &store);
  f[kResidentPerCell] =
      static_cast<double>(ResidentBytes() - resident) / static_cast<double>(job.cells);
  RunCommon(job, &store, figures);
  if constexpr (kIsTree) {
    RunTreeOnly(job, &store, figures);
    RunImages(job, &store, figures);
    f[kFloor] = PointerChase(store.live_bytes());
  }
  const uint64_t samples = std::min<uint64_t>(job.cells, 1'000'000);
  f[kDelete] =
      TimePerCell(job, samples, [&](uint64_t, const std::string& key) { store.Delete(key); });
}

// Runs in a child, so that memory starts from nothing.
template <typename Work>
bool InChild(Work work, Figures* figures) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  (void)std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    work(figures);
    const bool written = write(ends[1], figures->data(), sizeof(Figures)) == sizeof(Figures);
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  const bool received = read(ends[0], figures->data(), sizeof(Figures)) == sizeof(Figures);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return received && status == 0;
}

void RunSet(const DataSet& set, uint64_t cells, bool is_random, bool has_others) {
  const Job job{&set, cells, is_random};
  fmt::print("\n({}) {}; {:L} cells, {} arrival\n", set.name, set.what, cells,
             is_random ? "random" : "sequential");
  Figures tree{}, std_map{}, absl_map{};
  if (!InChild([&](Figures* f) { Run<TreeStore>(job, f); }, &tree)) fmt::print("  tree failed\n");
  if (has_others && !InChild([&](Figures* f) { Run<StdStore>(job, f); }, &std_map))
    fmt::print("  map failed\n");
  if (has_others && !InChild([&](Figures* f) { Run<AbslStore>(job, f); }, &absl_map))
    fmt::print("  absl failed\n");
  fmt::print("  {:<24}{:>10}{:>10}{:>10}{:>12}{:>12}\n", "", "BTree", "std::map", "absl",
             "of std::map", "of a chase");
  for (size_t i = 0; i < kFigures; ++i) {
    const bool is_time = std::string_view(kFigureNames[i]).find("ns") != std::string_view::npos;
    auto cell = [](double x) { return x == 0 ? std::string("-") : fmt::format("{:.1f}", x); };
    fmt::print("  {:<24}{:>10}{:>10}{:>10}{:>12}{:>12}\n", kFigureNames[i], cell(tree[i]),
               cell(std_map[i]), cell(absl_map[i]),
               std_map[i] == 0 ? "-" : fmt::format("{:.2f}", tree[i] / std_map[i]),
               is_time && tree[kFloor] > 0 ? fmt::format("{:.1f}", tree[i] / tree[kFloor]) : "-");
  }
}

// ---- writes while another thread serialises ----

// Counts durations in buckets of 1/8 of a power of two.
class Histogram {
 public:
  void Add(uint64_t ns) {
    ns = std::max<uint64_t>(ns, 8);
    const int power = 63 - __builtin_clzll(ns);
    ++counts_[static_cast<size_t>(power) * 8 + (ns >> (power - 3) & 7)];
    ++total_;
    max_ = std::max(max_, ns);
  }
  uint64_t Quantile(double q) const {
    auto left = static_cast<uint64_t>(q * static_cast<double>(total_));
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] > left) return (8 + i % 8) << (i / 8 - 3);
      left -= counts_[i];
    }
    return max_;
  }
  uint64_t max() const { return max_; }
  uint64_t total() const { return total_; }

 private:
  std::array<uint64_t, 64 * 8> counts_{};
  uint64_t total_{0};
  uint64_t max_{0};
};

struct WriteRun {
  Histogram histogram;
  uint64_t ns{0};
  uint64_t memory_peak{0};
};

// Overwrites cells at random until `stop` or for `ns_max`.
void WriteUntil(const Job& job, BTree* tree, const std::atomic<bool>* stop, uint64_t ns_max,
                WriteRun* run) {
  Random random(NowNs());
  std::string key, value;
  const uint64_t begin = NowNs();
  const uint64_t cpu_begin = CpuNs();
  uint64_t now = begin;
  while (now - begin < ns_max && !stop->load(std::memory_order_relaxed)) {
    const uint64_t cell = random.Below(job.cells);
    job.set->Key(cell, &key);
    DataSet::Value(cell, now, &value);
    const uint64_t before = NowNs();
    tree->Put(key, value);
    now = NowNs();
    run->histogram.Add(now - before);
    run->memory_peak = std::max(run->memory_peak, tree->memory_bytes());
  }
  run->ns += CpuNs() - cpu_begin;
}

void PrintRun(const char* name, const WriteRun& run) {
  fmt::print("  {:<38}{:>12.0f}{:>8}{:>8}{:>8}{:>10}\n", name,
             static_cast<double>(run.histogram.total()) * 1e9 / static_cast<double>(run.ns),
             run.histogram.Quantile(0.5), run.histogram.Quantile(0.99),
             run.histogram.Quantile(0.999), run.histogram.max());
}

// As the snapshot thread does it: images in blocks, each with its hash, to a file.
void SerialiseToFile(const BTreeSnapshot& snapshot) {
  const int file = open(".", O_TMPFILE | O_RDWR, 0600);
  CELLAR_ASSERT(file >= 0);
  BTreeImageReader reader(snapshot);
  std::string block;
  for (bool more = true; more;) {
    more = reader.Next(&block);
    if (more && block.size() < 64 * 1024) continue;
    sink = XXH3_64bits(block.data(), block.size());
    CELLAR_ASSERT(write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size()));
    block.clear();
  }
  CELLAR_ASSERT(fdatasync(file) == 0);
  close(file);
}

void FillRandomly(const Job& job, BTree* tree) {
  const Order order(job);
  std::string key, value;
  for (const uint32_t cell : order) {
    job.set->Key(cell, &key);
    DataSet::Value(cell, 0, &value);
    tree->Put(key, value);
  }
}

// Overwrites cells of *tree while another thread writes `serialised` to a file, several times in a
// row: one alone is over in a fraction of a second. Returns cells serialised per second.
double WriteBeside(const Job& job, BTree* tree, BTree* serialised, WriteRun* run) {
  uint64_t images_ns = 0, snapshots = 0;
  for (; run->ns < 2'000'000'000 && snapshots < 20; ++snapshots) {
    BTreeSnapshot snapshot = serialised->TakeSnapshotForImages();
    std::atomic<bool> stop{false};
    std::thread serialiser([&] {
      const uint64_t begin = NowNs();
      SerialiseToFile(snapshot);
      images_ns += NowNs() - begin;
      stop = true;
    });
    WriteUntil(job, tree, &stop, 60'000'000'000, run);
    serialiser.join();
  }
  return static_cast<double>(job.cells * snapshots) * 1e9 / static_cast<double>(images_ns);
}

// What a snapshot costs those who write meanwhile, beside what the machine takes for itself: two
// cores that share memory and its channel slow each other down even if one of them serialises
// another tree.
void RunSnapshots(uint64_t cells) {
  // Copies of the tree's leaves, and the file in the page cache.
  constexpr uint64_t kBytesPerCell{64};
  const Job job{&kDataSets[0], cells, true};
  BTree tree, other;
  FillRandomly(job, &tree);
  FillRandomly(job, &other);
  fmt::print("\nOverwrites of random cells of (a), {:L} cells\n", cells);
  fmt::print("  {:<38}{:>12}{:>8}{:>8}{:>8}{:>10}\n", "", "writes/CPU s", "p50 ns", "p99", "p99.9",
             "max");
  const uint64_t live = tree.memory_bytes();
  WriteRun without, beside_other, with;
  const std::atomic<bool> stop{false};
  WriteUntil(job, &tree, &stop, 2'000'000'000, &without);
  PrintRun("alone", without);
  (void)WarmMemory(cells * kBytesPerCell);
  WriteBeside(job, &tree, &other, &beside_other);
  PrintRun("another tree is written to a file", beside_other);
  (void)WarmMemory(cells * kBytesPerCell);
  const double cells_per_second = WriteBeside(job, &tree, &tree, &with);
  PrintRun("this tree is written to a file", with);
  fmt::print("  extra memory at the peak: {:.2f} of live; serialised {:.1f} M cells/s\n",
             static_cast<double>(with.memory_peak - live) / static_cast<double>(live),
             cells_per_second / 1e6);
}

}  // namespace
}  // namespace bench_btree

int main(int argc, char** argv) {
  uint64_t cells = 10'000'000;
  std::string sets = "abc", orders = "rs";
  bool is_quick = false;
  bool no_snapshots = false;
  bool only_tree = false;
  CLI::App app{"Times the B-tree beside std::map and absl::btree_map.", "bench-btree"};
  cellar::AddCommonFlags(&app);
  app.add_option("--cells", cells, "(10,000,000)")->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--sets", sets, "which sets of data (abc)");
  app.add_option("--orders", orders, "r: random, s: sorted (rs)");
  app.add_flag("--quick", is_quick, "a million cells");
  app.add_flag("--no-snapshots", no_snapshots, "leave out the snapshots");
  app.add_flag("--only-tree", only_tree, "leave out what stands beside it");
  int status = 0;
  if (!cellar::ReadCommandLine(&app, argc, argv, &status)) return status;
  if (is_quick) cells = 1'000'000;
  const bool has_snapshots = !no_snapshots;
  const bool has_others = !only_tree;
  for (const bench_btree::DataSet& set : bench_btree::kDataSets) {
    if (sets.find(set.name) == std::string::npos) continue;
    for (const char order : orders) bench_btree::RunSet(set, cells, order == 'r', has_others);
  }
  if (has_snapshots) {
    bench_btree::Figures unused{};
    bench_btree::InChild(
        [&](bench_btree::Figures*) {
          bench_btree::RunSnapshots(cells);
          (void)std::fflush(stdout);
        },
        &unused);
  }
  return 0;
}
