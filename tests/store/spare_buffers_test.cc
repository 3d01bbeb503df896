// Which buffers come back.
#include "store/journal/spare_buffers.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

namespace spare_buffers_test {

using cellar::ByteBuffer;
using cellar::SpareBuffers;

TEST_CASE("Of buffers that are given back those of a record's usual size are kept", "[log]") {
  SpareBuffers spares(1000);
  ByteBuffer usual;
  usual.Append("a record");
  spares.Retire(std::move(usual));
  const std::string bytes(400, 'x');
  ByteBuffer tight = ByteBuffer::CopyOf(bytes);
  CHECK(tight.view() == bytes);
  CHECK(tight.capacity() == bytes.size());
  tight.Append("more");  // it grows like any other
  CHECK(tight.view() == bytes + "more");
  spares.Retire(ByteBuffer::CopyOf(bytes));
  CHECK(ByteBuffer::CopyOf("").empty());
  spares.Keep(0, false);
  CHECK(spares.Take().capacity() > bytes.size());
  CHECK(spares.Take().capacity() == 0);
  CHECK(spares.bytes() == 0);
}

}  // namespace spare_buffers_test
