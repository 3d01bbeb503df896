// Impatience: the ObjectWatcher of a program that somebody waits for. It says why nothing happens,
// from a few seconds on: a server that is not there is asked for minutes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>

#include "base/os/object_store.h"
#include "cellar/clock.h"

namespace cellar {

class Impatience final : public ObjectWatcher {
 public:
  // Says it as `program`. `stopped` may become true at any time, and ends attempts; null: never.
  explicit Impatience(std::string program, const volatile bool* stopped = nullptr)
      : program_(std::move(program)), stopped_(stopped) {}

  bool GoesOn(uint32_t attempts) override {
    if (attempts == 0) since_micros_ = Clock::System().MonotonicMicros();
    return stopped_ == nullptr || !*stopped_;
  }
  void Failed(const Status& status) override {
    constexpr int64_t kPatienceMicros{2'500'000};
    if (Clock::System().MonotonicMicros() - since_micros_ < kPatienceMicros) return;
    (void)std::cout.flush();
    (void)std::fprintf(stderr, "%s: %s\n", program_.c_str(), status.text().c_str());
  }

 private:
  const std::string program_;
  const volatile bool* const stopped_;
  int64_t since_micros_{0};
};

}  // namespace cellar
