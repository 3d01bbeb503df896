// Spread: mean and squared distances from it, of numbers by blocks, or of two parts at once (Chan,
// Golub and LeVeque: Algorithms for Computing the Sample Variance, 1983). What is added up are
// distances from the first number, so that large numbers that are near each other keep all their
// digits, and `long double` holds the squares of all doubles.
//
// Within a block they are distances from the mean before it, summed up together with their squares:
// a division for each block and not for each number. A block that lies far from that mean loses
// digits of its own spread, but then the distance itself is most of the spread of all: at worst 5
// of 64 bits are lost, the logarithm of a block's length.
//
// The last digit of a result may depend on the order, and so on threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/aggregate/aggregate_value.h"

namespace cellar {

class Spread {
 public:
  void Add(const Number& number);
  void Add(const Spread& other);
  uint64_t count() const { return folded_ + waiting_; }
  // Of the sample; NaN where an infinity has been added. REQUIRES: count() >= 2.
  double Variance() const;
  double Deviation() const;
  // For another node, which takes it for the same.
  void Encode(std::string* to) const;
  // REQUIRES: nothing has been added. False: these are not the bytes of one.
  [[nodiscard]] bool Decode(std::string_view* from);

 private:
  // From origin_.
  long double DistanceOf(const Number& number) const;
  long double SampleVariance() const;
  // Adds numbers with that mean, as a distance, and those squared distances from it.
  void Merge(uint64_t count, long double mean, long double squares);
  // Adds the block.
  void Fold();

  static constexpr uint64_t kBlock{32};

  uint64_t folded_{0};   // numbers in mean_ and squares_
  uint64_t waiting_{0};  // in the block
  bool infinite_{false};
  Number origin_;                 // the first number
  long double mean_{0};           // of the distances
  long double squares_{0};        // of the distances from the mean
  long double block_sum_{0};      // of distances from mean_
  long double block_squares_{0};  // of the same
};

}  // namespace cellar
