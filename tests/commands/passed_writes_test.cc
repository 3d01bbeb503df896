// What a client has written at another node, as far as its own node knows.
#include <catch2/catch.hpp>
#include <vector>

#include "commands/session/tracking.h"

namespace passed_writes_test {

using namespace cellar;
using Answer = PassedWrites::Answer;

TEST_CASE("A step is a client's own, another's, or not known before its writes are answered",
          "[tracking]") {
  PassedWrites writes;
  CHECK(writes.HasWritten(10) == Answer::kNo);
  writes.Begin();
  CHECK(writes.HasWritten(10) == Answer::kUnknown);
  const WrittenSteps kFirst[] = {{8, 8}, {10, 12}};
  writes.Add(20, kFirst);
  for (const int64_t own : {8, 10, 11, 12}) CHECK(writes.HasWritten(own) == Answer::kYes);
  for (const int64_t other : {7, 9, 13, 20}) CHECK(writes.HasWritten(other) == Answer::kNo);
  // What is under way still is written behind what was told.
  CHECK(writes.HasWritten(21) == Answer::kUnknown);
  writes.End();
  CHECK(writes.HasWritten(21) == Answer::kNo);
  CHECK(writes.HasWritten(11) == Answer::kYes);
}

TEST_CASE("What one owner has told says nothing of steps that the next one writes", "[tracking]") {
  PassedWrites writes;
  writes.Begin();
  const WrittenSteps kFirst[] = {{8, 8}};
  writes.Add(20, kFirst);
  writes.End();
  // The log of the first one has lost its end, and with it the times up to 20.
  writes.Begin();
  CHECK(writes.HasWritten(12) == Answer::kUnknown);
  CHECK(writes.HasWritten(8) == Answer::kYes);
  const WrittenSteps kSecond[] = {{12, 12}};
  writes.Add(13, kSecond);
  CHECK(writes.HasWritten(11) == Answer::kNo);
  CHECK(writes.HasWritten(12) == Answer::kYes);
}

TEST_CASE("Of writes that lie far back a client is told as of another's", "[tracking]") {
  PassedWrites writes;
  for (int64_t micros = 1; micros <= 10'000; ++micros) {
    const WrittenSteps kStep[] = {{2 * micros, 2 * micros}};
    writes.Add(2 * micros, kStep);
  }
  CHECK(writes.HasWritten(2) == Answer::kNo);
  CHECK(writes.HasWritten(19'999) == Answer::kNo);
  CHECK(writes.HasWritten(20'000) == Answer::kYes);
}

}  // namespace passed_writes_test
