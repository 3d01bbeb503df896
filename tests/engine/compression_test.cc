// Packed values: what comes back, what is left plain, and what damage does.
#include "engine/keys/compression.h"

#include <catch2/catch.hpp>
#include <string>

#include "base/coding.h"
#include "base/random.h"
#include "engine/keys/cell.h"
#include "engine/schema/schema.h"
#include "engine/state/mutation_check.h"

namespace cellar::compression_test {
namespace {

constexpr Compression kCodecs[] = {Compression::kLz4, Compression::kZstd};

// Words, as many as it takes; or noise.
std::string Text(Random* random, size_t bytes, bool noise) {
  static constexpr std::string_view kWords[] = {"<td class=\"x\">", "</td>", "row ", "value", "\n"};
  std::string text;
  while (text.size() < bytes) {
    if (noise)
      text.push_back(static_cast<char>(random->Below(256)));
    else
      text += kWords[random->Below(std::size(kWords))];
  }
  text.resize(bytes);
  return text;
}

std::string CellOf(std::string_view packed, int64_t expiry_micros = kNoExpiry) {
  std::string bytes;
  PutCellValue(&bytes, {.type = ValueType::kBytes,
                        .packed = kCellCompressed,
                        .expiry_micros = expiry_micros,
                        .stored = packed});
  return bytes;
}

TEST_CASE("A value that is packed comes back, and is an eighth smaller", "[compression]") {
  Random random(1);
  ValuePacker packer;
  PlainValue plain;
  for (const Compression codec : kCodecs) {
    for (size_t step = 0; step < 600; ++step) {
      const size_t bytes = step < 300 ? step : random.Below(step % 10 == 0 ? 3 << 20 : 40'000);
      const std::string text = Text(&random, bytes, step % 4 == 0);
      INFO("codec " << CompressionName(codec) << ", step " << step << ", bytes " << bytes);
      const auto packed = packer.Pack(codec, text);
      if (bytes < kPackedBytesMin) CHECK_FALSE(packed.has_value());
      if (step % 4 == 0) CHECK_FALSE(packed.has_value());
      if (step % 4 != 0 && bytes > 600) CHECK(packed.has_value());
      if (!packed) continue;
      CHECK(packed->size() <= bytes - (bytes + 7) / 8);
      CHECK(PlainBytesOf(*packed) == bytes);
      std::string_view read;
      REQUIRE(plain.Unpack(*packed, &read));
      CHECK(read == text);
    }
  }
}

TEST_CASE("The cell says that it is packed, beside its expiry", "[compression]") {
  Random random(2);
  ValuePacker packer;
  PlainValue plain;
  const std::string text = Text(&random, 5000, false);
  for (const int64_t expiry : {kNoExpiry, int64_t{77}}) {
    const std::string bytes = CellOf(*packer.Pack(Compression::kLz4, text), expiry);
    CellValue cell;
    REQUIRE(DecodeCellValue(bytes, &plain, &cell));
    CHECK(cell.stored == text);
    CHECK(cell.expiry_micros == expiry);
    REQUIRE(DecodeCellHead(bytes, &cell));
    CHECK(cell.expiry_micros == expiry);
    CHECK(cell.stored.size() < text.size() / 2);
    CHECK(IsCellValue(bytes));
    plain.SetWanted(false);
    REQUIRE(DecodeCellValue(bytes, &plain, &cell));
    CHECK(cell.stored.empty());
    plain.SetWanted(true);
  }
}

TEST_CASE("What is damaged, cut or made up is refused, or is another value", "[compression]") {
  Random random(3);
  ValuePacker packer;
  PlainValue plain;
  std::string_view read;
  for (const Compression codec : kCodecs) {
    const std::string text = Text(&random, 3000, false);
    const std::string packed(*packer.Pack(codec, text));
    for (size_t size = 0; size < packed.size(); ++size)
      CHECK_FALSE(plain.Unpack(std::string_view(packed).substr(0, size), &read));
    for (size_t at = 0; at < packed.size(); ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string changed = packed;
        changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
        if (plain.Unpack(changed, &read)) CHECK(read.size() == PlainBytesOf(changed));
      }
    }
    CHECK_FALSE(plain.Unpack(packed + "x", &read));
    // A length that no such bytes can stand for costs nothing.
    for (const uint64_t bytes : {uint64_t{127}, uint64_t{3001}, kPlainBytesMax + 1, UINT64_MAX >> 1,
                                 uint64_t{kPlainBytesMax}}) {
      std::string claimed;
      PutVarint64(&claimed, bytes << 1 | (codec == Compression::kZstd ? 1 : 0));
      claimed += "some";
      CHECK_FALSE(plain.Unpack(claimed, &read));
    }
  }
  for (int i = 0; i < 20'000; ++i) {
    const std::string noise = Text(&random, random.Below(60), true);
    if (plain.Unpack(noise, &read)) CHECK(read.size() == PlainBytesOf(noise));
  }
}

TEST_CASE("Only text is packed, and only where the family may hold it", "[compression]") {
  ValuePacker packer;
  std::string bytes = CellOf(*packer.Pack(Compression::kZstd, std::string(500, 'x')));
  FamilySchema family;
  CHECK(IsCellValue(bytes));
  CHECK_FALSE(IsValueOf(family, bytes));
  for (const Compression codec : {Compression::kNone, Compression::kLz4, Compression::kZstd}) {
    family.compression = codec;
    CHECK(IsValueOf(family, bytes));
  }
  bytes[0] = static_cast<char>(kCellCompressed | static_cast<uint8_t>(ValueType::kString));
  CHECK(IsCellValue(bytes));
  for (const ValueType type : {ValueType::kU8, ValueType::kUuid, ValueType::kHll}) {
    bytes[0] = static_cast<char>(kCellCompressed | static_cast<uint8_t>(type));
    CHECK_FALSE(IsCellValue(bytes));
  }
  bytes = CellOf(*packer.Pack(Compression::kLz4, std::string(500, '\xff')));
  CHECK(IsCellValue(bytes));
  bytes[0] = static_cast<char>(kCellCompressed | static_cast<uint8_t>(ValueType::kString));
  CHECK_FALSE(IsCellValue(bytes));  // no UTF-8
}

TEST_CASE("A schema keeps COMPRESS, and that there was one", "[compression]") {
  CHECK(AlterCompression(Compression::kNever, Compression::kNever) == Compression::kNever);
  CHECK(AlterCompression(Compression::kNever, Compression::kLz4) == Compression::kLz4);
  CHECK(AlterCompression(Compression::kLz4, Compression::kNever) == Compression::kNone);
  CHECK(AlterCompression(Compression::kNone, Compression::kNever) == Compression::kNone);
  CHECK(AlterCompression(Compression::kNone, Compression::kZstd) == Compression::kZstd);
  CHECK(*ParseCompression("LZ4") == Compression::kLz4);
  CHECK(ParseCompression("gzip").status().ToString() ==
        "ERR unknown compression 'gzip', there are lz4, zstd and none");
  TableSchema schema;
  schema.groups.push_back({"default", 1});
  schema.family_id_next = 2;
  for (const Compression codec :
       {Compression::kNever, Compression::kNone, Compression::kLz4, Compression::kZstd}) {
    FamilySchema family;
    family.name = "f";
    family.id = 1;
    family.compression = codec;
    schema.families = {family};
    CHECK(IsPlainSchema(schema) == (codec == Compression::kNever));
    std::string bytes;
    EncodeTableSchema(schema, &bytes);
    std::string_view rest = bytes;
    TableSchema read;
    REQUIRE(DecodeTableSchema(&rest, &read).ok());
    CHECK(read.families[0].compression == codec);
    const std::string text = FamilyOptionsText(schema, family);
    CHECK(text == (Packs(codec) ? " COMPRESS " + std::string(CompressionName(codec)) : ""));
  }
}

TEST_CASE("What packing and unpacking hold is counted, and a large buffer is given back",
          "[compression]") {
  const size_t before = PackBuffer::held_bytes();
  const std::string large(8 << 20, 'x');
  const std::string small(4096, 'y');
  {
    ValuePacker packer;
    const std::string packed_large(*packer.Pack(Compression::kZstd, large));
    const std::string packed_small(*packer.Pack(Compression::kZstd, small));
    CHECK(PackBuffer::held_bytes() - before < kPackBufferKeptBytes);  // the large one has gone
    PlainValue plain;
    std::string_view text;
    REQUIRE(plain.Unpack(packed_large, &text));
    CHECK(text == large);
    CHECK(PackBuffer::held_bytes() - before >= large.size());
    plain.Trim();
    CHECK(PackBuffer::held_bytes() - before < kPackBufferKeptBytes);
    REQUIRE(plain.Unpack(packed_small, &text));
    const size_t held = PackBuffer::held_bytes();
    plain.Trim();  // a small one stays
    CHECK(PackBuffer::held_bytes() == held);
    CHECK(text == small);
  }
  CHECK(PackBuffer::held_bytes() == before);
}

}  // namespace
}  // namespace cellar::compression_test
