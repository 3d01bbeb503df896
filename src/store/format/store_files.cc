// See store_files.h.
#include "store/format/store_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "store/format/snapshot_format.h"

namespace cellar {
namespace {

class Search {
 public:
  Search(FileSystem& files, StoreFiles* found) : files_(files), found_(*found) {}
  Status Folder(const std::string& directory);

 private:
  Status Named(const std::string& directory, const Manifest& manifest);
  Status Unnamed(const std::string& directory);
  Status Snapshot(const std::string& directory, uint64_t number,
                  const std::optional<SnapshotEntry>& entry);
  Status Segment(const std::string& directory, uint64_t number,
                 const std::optional<SegmentEntry>& entry, bool is_last);
  // The first `bytes` of the file, or fewer if it has not more; nothing if it is not there.
  Result<std::optional<std::string>> ReadFront(const std::string& path, size_t bytes);
  void Lose(const std::string& path, StoreFileName name, std::string fault) {
    found_.lost.push_back({path, name, std::move(fault)});
  }

  FileSystem& files_;
  StoreFiles& found_;
  size_t seen_{0};
};

Result<std::optional<std::string>> Search::ReadFront(const std::string& path, size_t bytes) {
  ASSIGN_OR_RETURN(const bool exists, files_.Exists(path));
  if (!exists) return std::optional<std::string>{};
  ASSIGN_OR_RETURN(auto file, files_.OpenForReading(path));
  std::string front(bytes, '\0');
  ASSIGN_OR_RETURN(const size_t n, file->ReadAt(0, bytes, front.data()));
  front.resize(n);
  return std::optional(std::move(front));
}

Status Search::Snapshot(const std::string& directory, uint64_t number,
                        const std::optional<SnapshotEntry>& entry) {
  const StoreFileName name{StoreFileKind::kSnapshot, number};
  const std::string path = JoinPath(directory, FormatFileName(name.kind, number));
  ASSIGN_OR_RETURN(const auto front, ReadFront(path, kSnapshotHeaderBytes));
  ++seen_;
  if (!front) {
    Lose(path, name, "the manifest names it, but it is missing");
    return Status::Ok();
  }
  const Result<SnapshotHeader> header = DecodeSnapshotHeader(*front);
  if (!header.ok()) {
    Lose(path, name, "offset 0: " + header.status().text());
    return Status::Ok();
  }
  const auto same =
      std::find_if(found_.snapshots.begin(), found_.snapshots.end(),
                   [&](const FoundSnapshot& other) { return other.number == number; });
  if (same == found_.snapshots.end()) {
    found_.snapshots.push_back({path, entry, number, header->lsn, header->commit_micros});
  } else if (same->lsn != header->lsn || same->commit_micros != header->commit_micros) {
    return Status::Error(ErrorCode::kCorruption,
                         same->path + " and " + path + " are not of the same store");
  }
  return Status::Ok();
}

// Reads nothing but the header. A file that is missing, or not what its name says, is noted as lost
// and the search goes on; two headers that contradict each other end it, as they are of two stores.
Status Search::Segment(const std::string& directory, uint64_t number,
                       const std::optional<SegmentEntry>& entry, bool is_last) {
  const StoreFileName name{StoreFileKind::kSegment, number};
  const std::string path = JoinPath(directory, FormatFileName(name.kind, number));
  ASSIGN_OR_RETURN(const auto front, ReadFront(path, kSegmentHeaderBytes));
  ++seen_;
  const bool is_open = entry && !entry->end && is_last;
  // Cut inside the header by a crash: nothing was in it.
  if (is_open && front && front->size() < kSegmentHeaderBytes) return Status::Ok();
  std::string fault;
  Result<SegmentHeader> header = DecodeSegmentHeader(front.value_or(std::string()));
  if (!front) {
    fault = "the manifest names it, but it is missing";
  } else if (!header.ok()) {
    fault = "offset 0: " + header.status().text();
  } else if (header->number != number || (entry && header->after != entry->after)) {
    fault = "offset 0: this is not the segment that " +
            std::string(entry ? "the manifest names" : "its name says");
  }
  if (!fault.empty()) {
    Lose(path, name, std::move(fault));
    return Status::Ok();
  }
  std::vector<FoundSegment>& copies = found_.segments[number];
  if (!copies.empty() &&
      (copies[0].header.after != header->after || copies[0].header.chain != header->chain ||
       copies[0].header.created_micros != header->created_micros)) {
    return Status::Error(ErrorCode::kCorruption,
                         copies[0].path + " and " + path + " are not of the same store");
  }
  FoundSegment segment{.path = path, .header = *header};
  if (entry) {
    segment.ends = entry->end ? SegmentEnds::kByManifest : SegmentEnds::kOpen;
    segment.end = entry->end;
  }
  copies.push_back(std::move(segment));
  return Status::Ok();
}

Status Search::Named(const std::string& directory, const Manifest& manifest) {
  for (const SnapshotEntry& entry : manifest.earlier)
    RETURN_IF_ERROR(Snapshot(directory, entry.number, entry));
  if (manifest.snapshot)
    RETURN_IF_ERROR(Snapshot(directory, manifest.snapshot->number, manifest.snapshot));
  for (size_t i = 0; i < manifest.segments.size(); ++i) {
    const SegmentEntry& entry = manifest.segments[i];
    RETURN_IF_ERROR(Segment(directory, entry.number, entry, i + 1 == manifest.segments.size()));
  }
  return Status::Ok();
}

Status Search::Unnamed(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files_.List(directory));
  for (const std::string& name : names) {
    const std::optional<StoreFileName> parsed = ParseFileName(name);
    if (!parsed) continue;
    if (parsed->kind == StoreFileKind::kSnapshot)
      RETURN_IF_ERROR(Snapshot(directory, parsed->number, std::nullopt));
    if (parsed->kind == StoreFileKind::kSegment)
      RETURN_IF_ERROR(Segment(directory, parsed->number, std::nullopt, false));
  }
  return Status::Ok();
}

Status Search::Folder(const std::string& directory) {
  ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, LoadManifest(files_, directory));
  // Its snapshots are of nothing: what is made from one would be empty.
  if (manifest && manifest->holds_log_only)
    return Status::Error(
        ErrorCode::kCorruption,
        directory + " belongs to a witness, which holds no data: take another node");
  const size_t before = seen_;
  RETURN_IF_ERROR(manifest ? Named(directory, *manifest) : Unnamed(directory));
  if (seen_ > before || manifest) return Status::Ok();
  return Status::Error(ErrorCode::kCorruption,
                       directory + " holds neither a snapshot nor a log of a store");
}

}  // namespace

Result<StoreFiles> StoreFiles::Find(FileSystem& files, const std::vector<std::string>& directories,
                                    std::vector<std::unique_ptr<FileLock>>* locks) {
  StoreFiles found;
  Search search(files, &found);
  for (const std::string& directory : directories) {
    ASSIGN_OR_RETURN(const bool exists, files.Exists(directory));
    if (!exists) return Status::Error(ErrorCode::kIo, directory + " does not exist");
    const std::string lock = JoinPath(directory, kLockName);
    ASSIGN_OR_RETURN(const bool has_lock, files.Exists(lock));
    if (has_lock) {
      ASSIGN_OR_RETURN(auto held, files.Lock(lock));
      locks->push_back(std::move(held));
    }
    RETURN_IF_ERROR(search.Folder(directory));
  }
  std::sort(found.snapshots.begin(), found.snapshots.end(),
            [](const FoundSnapshot& a, const FoundSnapshot& b) {
              return std::tie(a.commit_micros, a.number) < std::tie(b.commit_micros, b.number);
            });
  for (auto& [number, copies] : found.segments) {
    std::stable_sort(copies.begin(), copies.end(),
                     [](const FoundSegment& a, const FoundSegment& b) { return a.ends < b.ends; });
  }
  // Where another copy is sound, this one is not missed.
  std::erase_if(found.lost, [&found](const LostFile& file) {
    return file.name.kind == StoreFileKind::kSegment && found.segments.contains(file.name.number);
  });
  return found;
}

Result<bool> IsArchive(FileSystem& files, const std::string& directory) {
  return files.Exists(JoinPath(directory, kArchiveNoteName));
}

}  // namespace cellar
