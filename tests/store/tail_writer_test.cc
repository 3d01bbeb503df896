// The loop's own writes to the log: in order, to both segments of a rotation, and when not.
#include "store/journal/tail_writer.h"

#include <catch2/catch.hpp>

#include "store/journal/journal.h"
#include "tests/manual_clock.h"
#include "tests/store/faulty_file_system.h"

namespace cellar::tail_writer_test {

// A file whose writes take their time.
class SlowFile final : public WritableFile {
 public:
  SlowFile(ManualClock* clock, int64_t micros) : clock_(clock), micros_(micros) {}
  Status WriteAt(uint64_t offset, std::string_view bytes) override {
    clock_->now_micros += micros_;
    content.resize(std::max(content.size(), offset + bytes.size()));
    content.replace(offset, bytes.size(), bytes);
    return Status::Ok();
  }
  Status Allocate(uint64_t, uint64_t) override { return Status::Ok(); }
  Status Truncate(uint64_t) override { return Status::Ok(); }
  Status Sync() override { return Status::Ok(); }
  Status Close() override { return Status::Ok(); }
  void BeginWriteback(uint64_t, uint64_t) override {}
  void DropCache(uint64_t, uint64_t) override {}

  std::string content;

 private:
  ManualClock* const clock_;
  const int64_t micros_;
};

TEST_CASE("During a rotation the loop writes to both segments, afterwards to the new one",
          "[tail]") {
  ManualClock clock;
  SlowFile old(&clock, 1);
  SlowFile fresh(&clock, 1);
  TailWriter tail(clock, kSlowWriteMicros);
  CHECK_FALSE(tail.Write("nowhere"));
  tail.Open(&old, 2);
  CHECK(tail.Write("ab"));
  tail.OpenMirror(&fresh, 1);
  CHECK(tail.Write("cd"));
  SECTION("that came to its end") {
    tail.MoveToMirror();
    CHECK(tail.Write("ef"));
    CHECK(old.content == std::string(2, '\0') + "abcd");
    CHECK(fresh.content == std::string(1, '\0') + "cdef");
  }
  SECTION("that failed") {
    tail.CloseMirror();
    CHECK(tail.Write("ef"));
    CHECK(old.content == std::string(2, '\0') + "abcdef");
    CHECK(fresh.content == std::string(1, '\0') + "cd");
  }
  SECTION("that found the tail closed when it ended") {
    tail.Close();
    tail.MoveToMirror();
    CHECK_FALSE(tail.is_open());
    CHECK_FALSE(tail.Write("ef"));
  }
}

TEST_CASE("The loop leaves large, slow and failing writes to the thread", "[tail]") {
  ManualClock clock;
  TailWriter tail(clock, kSlowWriteMicros);
  SECTION("large") {
    SlowFile file(&clock, 1);
    tail.Open(&file, 0);
    CHECK(tail.Write(std::string(kTailWriteBytesMax, 'a')));
    CHECK_FALSE(tail.Write(std::string(kTailWriteBytesMax + 1, 'b')));
    CHECK_FALSE(tail.is_open());  // what follows is behind it
    CHECK(tail.MayOpen());
    CHECK(file.content.size() == kTailWriteBytesMax);
  }
  SECTION("slow") {
    SlowFile file(&clock, kSlowWriteMicros);
    tail.Open(&file, 0);
    CHECK(tail.Write("a"));  // it is written all the same
    CHECK_FALSE(tail.is_open());
    CHECK_FALSE(tail.MayOpen());
    clock.now_micros += kSlowPauseMicros;
    CHECK(tail.MayOpen());
  }
  SECTION("failing") {
    FaultyFileSystem disk;
    auto file = disk.Create("log");
    REQUIRE(file.ok());
    tail.Open(file->get(), 0);
    disk.FailCall(1);
    CHECK_FALSE(tail.Write("ab"));
    CHECK_FALSE(tail.is_open());
    CHECK(tail.has_error());
    CHECK(tail.TakeError().code() == ErrorCode::kIo);
    CHECK_FALSE(tail.has_error());
  }
}

}  // namespace cellar::tail_writer_test
