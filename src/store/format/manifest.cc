// Reading and replacing the manifest: see manifest.h.
#include "store/format/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/assert.h"
#include "base/os/object_store.h"
#include "base/text/sealed_text.h"

namespace cellar {
namespace {

constexpr std::string_view kFirstLine = "cellar-manifest 1\n";
constexpr std::string_view kFirstLineEarlier = "cellar-manifest 2\n";  // of the same size
constexpr std::string_view kFirstLineLogOnly = "cellar-manifest 3\n";  // likewise

std::optional<uint64_t> ParseNumber(std::string_view text, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Reads a line's words in turn; any surprise makes it fail for good.
class LineParser {
 public:
  explicit LineParser(std::string_view line) : rest_(line) {}

  std::string_view Word() {
    const size_t end = rest_.find(' ');
    const std::string_view word = rest_.substr(0, end);
    if (word.empty()) ok_ = false;
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    return word;
  }
  void Expect(std::string_view word) {
    if (Word() != word) ok_ = false;
  }
  uint64_t Number(int base) {
    const auto value = ParseNumber(Word(), base);
    if (!value) ok_ = false;
    return value.value_or(0);
  }
  Lsn ReadLsn() {
    const std::string_view word = Word();
    const size_t dash = std::min(word.find('-'), word.size());
    const auto epoch = ParseNumber(word.substr(0, dash), 10);
    const auto seq = ParseNumber(word.substr(std::min(dash + 1, word.size())), 10);
    if (!epoch || !seq || *epoch > UINT32_MAX) ok_ = false;
    return {static_cast<uint32_t>(epoch.value_or(0)), seq.value_or(0)};
  }
  uint64_t FileNumber(StoreFileKind kind) {
    const auto name = ParseFileName(Word());
    if (!name || name->kind != kind) ok_ = false;
    return name ? name->number : 0;
  }
  bool at_end() const { return rest_.empty(); }
  bool ok() const { return ok_; }

 private:
  std::string_view rest_;
  bool ok_{true};
};

// An unknown word refuses the whole manifest, so that an older version does not start on what it
// does not understand. Earlier snapshots stand before the newest, and only the last segment may be
// open.
bool ParseLine(std::string_view line, Manifest* manifest) {
  LineParser parser(line);
  const std::string_view word = parser.Word();
  if (word == "next") {
    manifest->next = parser.Number(10);
  } else if (word == "holds") {
    parser.Expect("log");
    manifest->holds_log_only = true;
  } else if (word == "snapshot" || word == "earlier-snapshot") {
    SnapshotEntry entry;
    entry.number = parser.FileNumber(StoreFileKind::kSnapshot);
    parser.Expect("lsn");
    entry.lsn = parser.ReadLsn();
    parser.Expect("bytes");
    entry.bytes = parser.Number(10);
    parser.Expect("hash");
    entry.hash = parser.Number(16);
    if (manifest->snapshot) return false;
    if (word == "snapshot") {
      manifest->snapshot = entry;
    } else {
      manifest->earlier.push_back(entry);
    }
  } else if (word == "log") {
    SegmentEntry entry;
    entry.number = parser.FileNumber(StoreFileKind::kSegment);
    parser.Expect("after");
    entry.after = parser.ReadLsn();
    if (!parser.at_end()) {
      parser.Expect("end");
      const uint64_t offset = parser.Number(10);
      parser.Expect("last");
      entry.end = SegmentEntry::End{offset, parser.ReadLsn()};
    }
    if (!manifest->segments.empty() && !manifest->segments.back().end) return false;
    manifest->segments.push_back(entry);
  } else {
    return false;
  }
  return parser.ok() && parser.at_end();
}

}  // namespace

std::string FormatFileName(StoreFileKind kind, uint64_t number) {
  switch (kind) {
    case StoreFileKind::kSegment:
      return fmt::format("cellar-{:06}.log", number);
    case StoreFileKind::kSnapshot:
      return fmt::format("cellar-{:06}.snapshot", number);
    case StoreFileKind::kTemporarySnapshot:
      return fmt::format("cellar-{:06}.snapshot.tmp", number);
  }
  CELLAR_ASSERT(false);
}

std::optional<StoreFileName> ParseFileName(std::string_view name) {
  constexpr std::string_view kPrefix = "cellar-";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto number = ParseNumber(name.substr(kPrefix.size(), dot - kPrefix.size()), 10);
  if (!number) return std::nullopt;
  for (const auto kind :
       {StoreFileKind::kSegment, StoreFileKind::kSnapshot, StoreFileKind::kTemporarySnapshot}) {
    if (name == FormatFileName(kind, *number)) return StoreFileName{kind, *number};
  }
  return std::nullopt;
}

bool Manifest::Names(const StoreFileName& file) const {
  const auto has_number = [&file](const auto& entry) { return entry.number == file.number; };
  switch (file.kind) {
    case StoreFileKind::kSegment:
      return std::any_of(segments.begin(), segments.end(), has_number);
    case StoreFileKind::kSnapshot:
      return (snapshot && has_number(*snapshot)) ||
             std::any_of(earlier.begin(), earlier.end(), has_number);
    case StoreFileKind::kTemporarySnapshot:
      return false;
  }
  CELLAR_ASSERT(false);
}

bool IsRedisFileName(std::string_view name) {
  return name.ends_with(".rdb") || name.ends_with(".aof") || name == "appendonlydir";
}

std::string FormatLsn(Lsn lsn) { return fmt::format("{}-{}", lsn.epoch, lsn.seq); }

namespace {

std::string_view FirstLineOf(const Manifest& manifest) {
  if (manifest.holds_log_only) return kFirstLineLogOnly;
  return manifest.earlier.empty() ? kFirstLine : kFirstLineEarlier;
}

}  // namespace

std::string FormatManifest(const Manifest& manifest) {
  CELLAR_ASSERT(manifest.snapshot || manifest.earlier.empty());
  std::string text(FirstLineOf(manifest));
  text += fmt::format("next {}\n", manifest.next);
  if (manifest.holds_log_only) text += "holds log\n";
  const auto add = [&text](std::string_view word, const SnapshotEntry& entry) {
    text += fmt::format("{} {} lsn {} bytes {} hash {:016x}\n", word,
                        FormatFileName(StoreFileKind::kSnapshot, entry.number),
                        FormatLsn(entry.lsn), entry.bytes, entry.hash);
  };
  for (const SnapshotEntry& entry : manifest.earlier) add("earlier-snapshot", entry);
  if (manifest.snapshot) add("snapshot", *manifest.snapshot);
  for (const SegmentEntry& entry : manifest.segments) {
    text += fmt::format("log {} after {}", FormatFileName(StoreFileKind::kSegment, entry.number),
                        FormatLsn(entry.after));
    if (entry.end)
      text += fmt::format(" end {} last {}", entry.end->offset, FormatLsn(entry.end->last));
    text += '\n';
  }
  return SealText(std::move(text));
}

Result<Manifest> ParseManifest(std::string_view text) {
  const auto bad = [](std::string why) {
    return Status::Error(ErrorCode::kCorruption, std::move(why));
  };
  const auto [seal, body] = UnsealText(text);
  if (seal == Seal::kNone || body.size() < kFirstLine.size())
    return bad("the manifest is cut short, or its checksum is missing");
  if (seal == Seal::kWrong) return bad("the checksum of the manifest is wrong");
  const std::string_view first = body.substr(0, kFirstLine.size());
  if (first != kFirstLine && first != kFirstLineEarlier && first != kFirstLineLogOnly)
    return bad("unknown version of the manifest");
  Manifest manifest;
  std::string_view rest = body.substr(kFirstLine.size());
  for (int line = 2; !rest.empty(); ++line) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos || !ParseLine(rest.substr(0, end), &manifest))
      return bad(fmt::format("line {} of the manifest cannot be read", line));
    rest.remove_prefix(end + 1);
  }
  if (first != FirstLineOf(manifest) || (!manifest.snapshot && !manifest.earlier.empty()))
    return bad("the manifest names what its version does not, or lacks what it does");
  return manifest;
}

Result<std::optional<Manifest>> LoadManifest(FileSystem& files, const std::string& directory) {
  const std::string path = JoinPath(directory, kManifestName);
  ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (!exists) return std::optional<Manifest>();
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path));
  Result<Manifest> manifest = ParseManifest(text);
  if (!manifest.ok())
    return Status::Error(ErrorCode::kCorruption, path + ": " + manifest.status().text());
  return std::optional<Manifest>(*std::move(manifest));
}

Status CheckNoOrphans(const std::string& directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto parsed = ParseFileName(name);
    if (!parsed || parsed->kind == StoreFileKind::kTemporarySnapshot) continue;
    return Status::Error(ErrorCode::kCorruption,
                         JoinPath(directory, kManifestName) + " is missing, but " + name +
                             " is there: this was a store. `cellar --check " + directory +
                             " --repair` makes the manifest anew from the files");
  }
  return Status::Ok();
}

// Before the rename nothing has changed. If the rename or what follows fails, nobody knows which of
// the two a crash would leave: kUnknown, and the caller must live with either.
InstallResult InstallManifest(FileSystem& files, const std::string& directory,
                              const Manifest& manifest) {
  const std::string temporary = JoinPath(directory, kManifestTemporaryName);
  if (IsObjectPath(directory)) {
    Status status =
        WriteFreshFile(files, JoinPath(directory, kManifestName), FormatManifest(manifest));
    const bool is_there = status.ok();
    return {is_there ? InstallOutcome::kInstalled : InstallOutcome::kUnknown, std::move(status)};
  }
  Status status = WriteFreshFile(files, temporary, FormatManifest(manifest));
  if (!status.ok()) return {InstallOutcome::kUnchanged, std::move(status)};
  status = files.Rename(temporary, JoinPath(directory, kManifestName));
  if (status.ok()) status = files.SyncDirectory(directory);
  if (!status.ok()) return {InstallOutcome::kUnknown, std::move(status)};
  return {InstallOutcome::kInstalled, Status::Ok()};
}

}  // namespace cellar
