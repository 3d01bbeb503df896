// Timestamps that are most likely seconds or milliseconds, where microseconds count. They are taken
// as they are: ArrivalWatch counts them, and the notes of a read tell of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

// Whether `timestamp`, taken for thousandths of what it says or for millionths, is a moment of the
// last twenty years, or of the next one.
bool LooksLikeLargerUnit(int64_t timestamp, int64_t now_micros);
// "TS 1700000000 looks like seconds, ..."; empty if it does not.
std::string LargerUnitNote(std::string_view option, int64_t timestamp, int64_t now_micros);

}  // namespace cellar
