// KeyBuffer, and copies of few bytes, against std::string, over every size around their thresholds.
#include "base/key_buffer.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/coding.h"
#include "base/copy_bytes.h"
#include "base/random.h"

namespace key_buffer_test {

using namespace cellar;

TEST_CASE("CopyBytes copies so many bytes and touches no others", "[base]") {
  std::string from;
  for (int i = 0; i < 80; ++i) from.push_back(static_cast<char>('!' + i));
  for (size_t size = 0; size <= 70; ++size) {
    std::string to(80, '.');
    CopyBytes(to.data() + 3, from.data() + 5, size);
    std::string expected(80, '.');
    expected.replace(3, size, from, 5, size);
    REQUIRE(to == expected);
  }
  CopyBytes(nullptr, nullptr, 0);
}

TEST_CASE("CopyWithoutZero copies like CopyBytes and finds a zero byte wherever it is", "[base]") {
  for (size_t size = 0; size <= 100; ++size) {
    INFO("size " << size);
    std::string from(5 + size + 5, '\0');  // zero bytes before and behind do not count
    for (size_t i = 0; i < size; ++i) from[5 + i] = static_cast<char>(1 + i * 37 % 255);
    for (size_t zero = 0; zero <= size; ++zero) {  // `size`: none
      std::string source = from;
      if (zero < size) source[5 + zero] = '\0';
      std::string to(3 + size + 4, '#');
      const bool none = CopyWithoutZero(to.data() + 3, source.data() + 5, size);
      REQUIRE(none == (zero == size));
      if (none) REQUIRE(to == "###" + source.substr(5, size) + "####");
    }
  }
}

TEST_CASE("FindZeroByte finds the first zero byte wherever it stands", "[base]") {
  for (size_t size = 0; size < 40; ++size) {
    for (size_t zero = 0; zero <= size; ++zero) {
      std::string bytes(size, '\x01');  // what a zero byte could be mistaken for behind another one
      for (size_t i = zero; i < size; i += 3) bytes[i] = '\0';
      REQUIRE(FindZeroByte(bytes.data(), size) == zero);
      for (char& c : bytes) c = c == '\0' ? '\0' : '\x80';
      REQUIRE(FindZeroByte(bytes.data(), size) == zero);
    }
  }
}

TEST_CASE("A key put together from parts is what a string would be", "[base]") {
  const uint64_t seed = 7;
  INFO("seed " << seed);
  Random random(seed);
  KeyBuffer key;
  std::string expected;
  for (int step = 0; step < 20'000; ++step) {
    const std::string part(random.Below(step % 100 == 0 ? 400 : 20),
                           static_cast<char>(random.Below(256)));
    switch (random.Below(5)) {
      case 0:
        key.Assign(part);
        expected = part;
        break;
      case 1:
        key.Append(part);
        expected += part;
        break;
      case 2:
        key.PushBack('x');
        expected.push_back('x');
        break;
      case 3: {
        const size_t size = random.Below(expected.size() + 1);
        key.Truncate(size);
        expected.resize(size);
        break;
      }
      default:
        std::memcpy(key.Reserve(4), "abcd", 4);
        key.Commit(2);
        expected += "ab";
        break;
    }
    REQUIRE(key.view() == expected);
  }
}

TEST_CASE("The successor of a key is the end of what begins with it", "[base]") {
  const auto successor = [](std::string_view bytes) {
    KeyBuffer key;
    key.Assign(bytes);
    key.ToSuccessor();
    return std::string(key.view());
  };
  CHECK(successor("ab") == "ac");
  CHECK(successor("a\xff\xff") == "b");
  CHECK(successor("\xff").empty());
  CHECK(successor("").empty());
}

TEST_CASE("FindByte finds what a search byte by byte finds", "[base]") {
  const uint64_t seed = 20261122;
  INFO("seed " << seed);
  Random random(seed);
  const std::string alphabet("\0\1:;\x7f\x80\xff", 7);
  for (int step = 0; step < 100'000; ++step) {
    std::string bytes(random.Below(30), ' ');
    for (char& byte : bytes) byte = alphabet[random.Below(alphabet.size())];
    const char wanted = alphabet[random.Below(alphabet.size())];
    const size_t found = bytes.find(wanted);
    REQUIRE(FindByte(bytes.data(), bytes.size(), wanted) ==
            (found == std::string::npos ? bytes.size() : found));
  }
}

}  // namespace key_buffer_test
