// --dump: see check.h. Reads on behind damage, since what is readable there is what is wanted then.
#include <fmt/format.h>

#include <optional>
#include <ostream>

#include "store/format/log_format.h"
#include "store/format/manifest.h"
#include "store/offline/check.h"
#include "store/snapshot/snapshot_reader.h"

namespace cellar {
namespace {

class Dump {
 public:
  Dump(FileSystem& files, const DescribeMutation& describe, std::ostream& out)
      : files_(files), describe_(describe), out_(out) {}

  Status Folder(const std::string& directory);
  Status File(const std::string& path);
  bool found_damage() const { return found_damage_; }

 private:
  Status Segment(const std::string& path, const SegmentEntry* entry);
  Status Snapshot(const std::string& path);
  void Records(std::string_view segment, LogPosition position);
  void Record(const LogRecord& record);
  void Damage(std::string_view text) {
    found_damage_ = true;
    out_ << "# DAMAGED: " << text << '\n';
  }

  FileSystem& files_;
  const DescribeMutation& describe_;
  std::ostream& out_;
  bool found_damage_{false};
};

// Each line of the text with the record's number before it, so that a line says where it is from.
void Dump::Record(const LogRecord& record) {
  const std::string number = FormatLsn(record.lsn);
  CommitMark mark;
  switch (record.kind) {
    case RecordKind::kClaim:
      return;
    case RecordKind::kBarrier:
      out_ << number << " BARRIER\n";
      return;
    case RecordKind::kMembers:
      out_ << number << " MEMBERS\n";
      return;
    case RecordKind::kCommit:
      if (!DecodeCommitMark(record.payload, &mark)) return Damage("the commit mark cannot be read");
      out_ << "# committed up to " << FormatLsn(mark.lsn) << '\n';
      return;
    case RecordKind::kCommand:
      break;
  }
  const std::string text = describe_(record.payload);
  std::string_view rest = text;
  do {
    const size_t end = std::min(rest.find('\n'), rest.size());
    out_ << number << ' ' << rest.substr(0, end) << '\n';
    rest.remove_prefix(std::min(end + 1, rest.size()));
  } while (!rest.empty());
}

// Goes on behind damage: the next record that verifies by itself is taken as sound, and the chain
// begins anew with it.
void Dump::Records(std::string_view segment, LogPosition position) {
  LogRecord record;
  std::string fault;
  for (;;) {
    const Lsn before = position.last;
    const LogStep step = ReadRecord(segment, &position, &record, &fault);
    if (step == LogStep::kRecord) {
      if (record.is_entry() && record.lsn.seq <= before.seq)
        out_ << "# what follows voids all records from " << record.lsn.seq << " on\n";
      Record(record);
      continue;
    }
    const LogTail tail = JudgeTail(segment, position);
    if (tail.bytes == 0) return;
    if (step == LogStep::kEnd) fault = "no record, but the file is not empty after it";
    const std::string text = fmt::format("offset {}: {} ({} bytes, {} whole records in them)",
                                         position.offset, fault, tail.bytes, tail.records);
    if (tail.is_damage) {
      Damage(text);
    } else {
      out_ << "# torn tail: " << text << '\n';
    }
    uint64_t offset = position.offset;
    while (offset < segment.size() && !ReadRecordAlone(segment, offset, position, &record))
      ++offset;
    if (offset == segment.size()) return;
    Record(record);
    position = {.offset = record.end_offset,
                .last = record.lsn,
                .chain = record.hash,
                .commit_micros = record.commit_micros,
                .version = position.version};
  }
}

Status Dump::Segment(const std::string& path, const SegmentEntry* entry) {
  out_ << "# " << path << '\n';
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(files_, path));
  const Result<SegmentHeader> header = DecodeSegmentHeader(bytes);
  LogPosition position;
  if (header.ok()) {
    position = LogPosition::BehindHeader(*header);
    out_ << fmt::format("# segment {}, after record {}\n", header->number,
                        FormatLsn(header->after));
  } else {
    Damage(header.status().text());
    if (bytes.size() < kSegmentHeaderBytes) return Status::Ok();
  }
  std::string_view segment = bytes;
  if (entry != nullptr && entry->end) segment = segment.substr(0, entry->end->offset);
  Records(segment, position);
  return Status::Ok();
}

Status Dump::Snapshot(const std::string& path) {
  out_ << "# " << path << '\n';
  const Result<std::unique_ptr<SnapshotReader>> opened = SnapshotReader::Open(files_, path);
  if (!opened.ok()) {
    if (opened.status().code() != ErrorCode::kCorruption) return opened.status();
    Damage(opened.status().text());
    return Status::Ok();
  }
  SnapshotReader& reader = **opened;
  out_ << fmt::format("# snapshot up to record {}, {} bytes, catalog {} bytes, {} trees\n",
                      FormatLsn(reader.header().lsn), reader.file_bytes(),
                      reader.footer().catalog.size(), reader.footer().trees.size());
  for (const SnapshotTree& tree : reader.footer().trees) {
    out_ << fmt::format(
        "# tree {}: {} entries, {} bytes of keys and values, {} bytes in {} blocks\n", tree.tree_id,
        tree.entries, tree.payload_bytes, tree.end_offset - tree.begin_offset, tree.blocks);
    SnapshotReader::Block block;
    for (uint64_t offset = tree.begin_offset; offset < tree.end_offset; offset = block.end_offset) {
      Status status = reader.ReadBlock(tree, offset, &block);
      if (status.ok()) continue;
      if (status.code() != ErrorCode::kCorruption) return status;
      Damage(status.text());
      break;
    }
  }
  return Status::Ok();
}

Status Dump::Folder(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, LoadManifest(files_, directory));
  if (!manifest)
    return Status::Error(ErrorCode::kCorruption,
                         JoinPath(directory, kManifestName) + " is missing: no store here");
  for (const SnapshotEntry& entry : manifest->earlier)
    RETURN_IF_ERROR(
        Snapshot(JoinPath(directory, FormatFileName(StoreFileKind::kSnapshot, entry.number))));
  if (manifest->snapshot)
    RETURN_IF_ERROR(Snapshot(
        JoinPath(directory, FormatFileName(StoreFileKind::kSnapshot, manifest->snapshot->number))));
  for (const SegmentEntry& entry : manifest->segments)
    RETURN_IF_ERROR(Segment(
        JoinPath(directory, FormatFileName(StoreFileKind::kSegment, entry.number)), &entry));
  return Status::Ok();
}

Status Dump::File(const std::string& path) {
  char magic[8] = {};
  {
    ASSIGN_OR_RETURN(auto file, files_.OpenForReading(path));
    ASSIGN_OR_RETURN([[maybe_unused]] const size_t n, file->ReadAt(0, sizeof magic, magic));
  }
  const std::string_view start(magic, sizeof magic);
  if (start == "CELLRSNP") return Snapshot(path);
  if (start == "cellar-m") {
    ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files_, path));
    out_ << text;
    const Result<Manifest> manifest = ParseManifest(text);
    if (!manifest.ok()) Damage(manifest.status().text());
    return Status::Ok();
  }
  return Segment(path, nullptr);
}

}  // namespace

Status DumpStore(FileSystem& files, const std::string& path, const DescribeMutation& describe,
                 std::ostream& out) {
  Dump dump(files, describe, out);
  const bool is_folder = files.List(path).ok();
  RETURN_IF_ERROR(is_folder ? dump.Folder(path) : dump.File(path));
  if (!dump.found_damage()) return Status::Ok();
  return Status::Error(ErrorCode::kCorruption, path + " is damaged, see above");
}

}  // namespace cellar
