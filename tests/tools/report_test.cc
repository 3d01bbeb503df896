// cellar-import's state file, refused lines and progress.
#include "cellar-import/report.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace report_test {
namespace {

using namespace cellar::importer;  // NOLINT(google-build-using-namespace)

// A path that nobody else has; the file is removed with it.
class TemporaryPath {
 public:
  TemporaryPath() {
    const int descriptor{mkstemp(path_.data())};
    REQUIRE(descriptor >= 0);
    fclose(fdopen(descriptor, "r"));
  }
  ~TemporaryPath() { remove(path_.c_str()); }
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_{"/tmp/cellar-report-test-XXXXXX"};
};

TEST_CASE("a state comes back as it was saved", "[import]") {
  const TemporaryPath file;
  ImportState state;
  state.table = "k/t";
  state.fingerprint = Fingerprint("abc");
  state.offset = 1ULL << 40;
  state.line = 7;
  state.rows = 5;
  state.cells = 9;
  state.errors = 2;
  REQUIRE(SaveState(file.path(), state).ok());
  const auto loaded = LoadState(file.path());
  REQUIRE(loaded.ok());
  CHECK(loaded->table == "k/t");
  CHECK(loaded->fingerprint == state.fingerprint);
  CHECK(loaded->offset == state.offset);
  CHECK(loaded->line == 7);
  CHECK(loaded->rows == 5);
  CHECK(loaded->cells == 9);
  CHECK(loaded->errors == 2);
}

TEST_CASE("no state file is a fresh start, a spoiled one is refused", "[import]") {
  CHECK(LoadState("/nonexistent/state")->offset == 0);
  const TemporaryPath file;
  CHECK(!LoadState(file.path()).ok());
}

TEST_CASE("the summary names the first refused lines and counts the rest", "[import]") {
  auto report = ErrorReport::Open("", false);
  REQUIRE(report.ok());
  CHECK(report->Summary().empty());
  for (uint64_t line{1}; line <= 1234; ++line) report->Add(line, "bad\nthing");
  CHECK(report->count() == 1234);
  CHECK(report->Summary().starts_with("line 1: bad thing\nline 2:"));
  CHECK(report->Summary().ends_with("and 1,224 more (--errors FILE has all)\n"));
}

TEST_CASE("progress shows share, rate and time left, cut to the terminal", "[import]") {
  ImportState begin;
  const Progress progress(Progress::Style::kBar, stderr, 1000, begin, 0);
  ImportState state;
  state.offset = 250;
  state.rows = 1'000'000;
  state.errors = 3;
  CHECK(progress.Bar(state, 10'000'000, 200) ==
        "[######..................] 25%  1,000,000 rows  100,000 rows/s  0:30 left  3 refused");
  CHECK(progress.Bar(state, 10'000'000, 20).size() == 19);
  const Progress of_a_pipe(Progress::Style::kBar, stderr, 0, begin, 0);
  CHECK(of_a_pipe.Bar(state, 10'000'000, 200) == "1,000,000 rows  100,000 rows/s  3 refused");
}

TEST_CASE("digits are grouped by threes", "[import]") {
  CHECK(GroupDigits(0) == "0");
  CHECK(GroupDigits(999) == "999");
  CHECK(GroupDigits(1000) == "1,000");
  CHECK(GroupDigits(1234567) == "1,234,567");
}

}  // namespace
}  // namespace report_test
