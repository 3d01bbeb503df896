// The server's own log: one line for people per event, on standard output (as Redis) or in a file.
//
//   4711:M 21 Nov 2026 17:40:02.123 * Ready to accept connections
//
// The format is Redis', so that log readers understand it (levels . - * #). Any thread may log: a
// line is one write. Nothing here is the write-ahead log: that is store/journal/journal.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cellar {

enum class LogSeverity : uint8_t { kDebug, kVerbose, kNotice, kWarning };

// Where lines go and from which severity on. An empty path is standard output. False if the file
// cannot be opened. To be called before threads start, and again to reopen a rotated file.
bool SetLogFile(const std::string& path);
void SetLogSeverity(LogSeverity lowest);
// No lines at all (tests, `loglevel nothing`).
void SilenceLog(bool silent);

void Log(LogSeverity severity, std::string_view text);

}  // namespace cellar
