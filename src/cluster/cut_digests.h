// CutDigests: what the leader of a set has taken hold of at cuts, for DEBUG DIGEST CLUSTER, until
// somebody has asked for it, and a while longer: who has not heard the answer asks again.
//
// No clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

namespace cellar {

class RowsDigest;
class Store;

class CutDigests {
 public:
  CutDigests();
  ~CutDigests();
  CutDigests(const CutDigests&) = delete;
  CutDigests& operator=(const CutDigests&) = delete;

  struct Cut {
    uint64_t number{0};
    uint32_t term{0};  // in which this node leads its set
  };
  // It has just been logged, and has that time.
  void Take(Store& store, Cut cut, int64_t at_micros, int64_t now_micros);
  // Null: this node has not led its set since then, so that its state may have been another one;
  // or nobody has asked for too long. Good for the turn.
  RowsDigest* Use(const Store& store, Cut cut, int64_t now_micros);
  void Sweep(int64_t now_micros);
  // The store is about to go.
  void Clear();

 private:
  static constexpr size_t kKeptMax{16};
  static constexpr int64_t kIdleMicros{60'000'000};
  struct Kept {
    std::unique_ptr<RowsDigest> digest;
    uint32_t term{0};
    uint64_t lineage{0};  // of the store
    int64_t used_micros{0};
  };
  std::map<uint64_t, Kept> kept_;  // by the number of the cut
};

}  // namespace cellar
