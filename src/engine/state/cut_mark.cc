// See cut_mark.h.
#include "engine/state/cut_mark.h"

#include "base/coding.h"

namespace cellar {

std::string_view CutPurposeName(CutPurpose purpose) {
  switch (purpose) {
    case CutPurpose::kNone:
      return "none";
    case CutPurpose::kRestorePoint:
      return "restore point";
    case CutPurpose::kSnapshot:
      return "snapshot";
    case CutPurpose::kCursor:
      return "cursor";
    case CutPurpose::kDigest:
      return "digest";
    case CutPurpose::kBackup:
      return "backup";
    case CutPurpose::kCopy:
      return "copy";
  }
  return "none";
}

void EncodeCutMark(const CutMark& mark, std::string* to) {
  PutVarint64(to, static_cast<uint64_t>(mark.purpose));
  PutVarint64(to, static_cast<uint64_t>(mark.time_micros));
  PutLengthPrefixed(to, mark.argument);
}

bool DecodeCutMark(std::string_view* from, CutMark* mark) {
  uint64_t purpose = 0;
  uint64_t time = 0;
  std::string_view argument;
  if (!GetVarint64(from, &purpose) || !GetVarint64(from, &time) ||
      !GetLengthPrefixed(from, &argument) || purpose == 0 ||
      purpose > static_cast<uint64_t>(kCutPurposeLast) || time > static_cast<uint64_t>(INT64_MAX))
    return false;
  mark->purpose = static_cast<CutPurpose>(purpose);
  mark->time_micros = static_cast<int64_t>(time);
  mark->argument = argument;
  return true;
}

}  // namespace cellar
