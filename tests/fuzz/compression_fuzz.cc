// Fuzzer of packed values: the input is offered as one, and is packed itself and must come back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/keys/cell.h"
#include "engine/keys/compression.h"
#include "engine/state/mutation_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using cellar::Compression;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  static cellar::PlainValue plain;
  static cellar::ValuePacker packer;
  std::string_view read;
  if (plain.Unpack(input, &read) && read.size() != cellar::PlainBytesOf(input)) std::abort();
  cellar::CellValue cell;
  (void)cellar::DecodeCellValue(input, &plain, &cell);
  (void)cellar::IsCellValue(input);
  for (const Compression codec : {Compression::kLz4, Compression::kZstd}) {
    const auto packed = packer.Pack(codec, input);
    if (packed && (!plain.Unpack(*packed, &read) || read != input)) std::abort();
  }
  return 0;
}
