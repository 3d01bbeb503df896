// See slot_seal.h.
#include "replica/links/slot_seal.h"

#include "base/coding.h"
#include "base/hash.h"

namespace cellar {
namespace {

constexpr std::string_view kSealMagic = "CELLSEAL";
constexpr size_t kSealHashOffset{24};

}  // namespace

std::string EncodeSeal(const SlotSeal& seal) {
  std::string bytes(kSealMagic);
  PutFixed64(&bytes, seal.generation);
  PutFixed64(&bytes, seal.boot);
  PutFixed64(&bytes, Hash64(bytes));
  return bytes;
}

std::optional<SlotSeal> DecodeSeal(std::string_view bytes) {
  if (bytes.size() < kSealBytes || !bytes.starts_with(kSealMagic)) return std::nullopt;
  if (DecodeFixed64(&bytes[kSealHashOffset]) != Hash64(bytes.substr(0, kSealHashOffset)))
    return std::nullopt;
  return SlotSeal{.generation = DecodeFixed64(&bytes[8]), .boot = DecodeFixed64(&bytes[16])};
}

std::string_view PartOf(std::string_view bytes, size_t offset, size_t length) {
  return offset < bytes.size() ? bytes.substr(offset, length) : std::string_view();
}

bool IsBlank(std::string_view bytes) {
  return bytes.find_first_not_of('\0') == std::string_view::npos;
}

Status CheckNewest(const std::string& path, std::string_view bytes, size_t offset, uint64_t newest,
                   uint64_t boot) {
  const auto seal = DecodeSeal(PartOf(bytes, offset, kSealBytes));
  if (!seal || seal->generation <= newest) return Status::Ok();
  if (seal->boot != 0 && seal->boot != boot) return Status::Ok();
  return Status::Error(ErrorCode::kCorruption,
                       path +
                           ": the newest of its two slots is damaged: what the other one says "
                           "is what was so before the last change");
}

}  // namespace cellar
