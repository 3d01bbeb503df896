// Notes: the small text files that say what a folder is, beside the files of a store themselves.
//
//   kBackupNoteName     cellar-backup 2          in the folder of a backup (store/history/backup.h)
//                       start 1795720514         when it was begun, in Unix seconds
//                       end 1795720601           of a sealed one alone, as the next line
//                       id 1795720600000123-0    of its last step
//                       cut 17                   of a part of a cluster's: which one it is of
//                       xxh3 0123456789abcdef    the checksum (base/text/sealed_text.h)
//
//   kArchiveNoteName    cellar-archive 2         in an archive (store/history/archive.h)
//                       store 0123...cdef        whose it is: 32 hex digits
//                       gap after 1-7 to 1-90    one for each place where log is missing
//                       xxh3 ...
//
//   kStoreIdName        cellar-store 2           in the data directory of that store
//                       store 0123...cdef
//                       archive /backup/archive  the folder that the id was given out for
//                       xxh3 ...
//
// Version 1 lacks the checksum, and kStoreIdName the first line too; they are read, but not written
// any more. Whatever is not just so is damage, which the reader tells apart from a note that is not
// there: what a note spoke for is kept until somebody has looked at it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file.h"
#include "cellar/status.h"

namespace cellar {

struct BackupNote {
  int64_t start_unix_s{0};
  int64_t end_unix_s{0};  // these two only of a sealed one
  std::string id{};       // empty: it is not sealed
  uint64_t cut{0};        // of a sealed part of a cluster's; 0: it is none
  bool is_old{false};     // of version 1
  friend bool operator==(const BackupNote&, const BackupNote&) = default;
};
std::string FormatBackupNote(const BackupNote& note);

struct ArchiveNote {
  std::string store{};
  std::vector<std::string> gaps{};  // lines
  bool is_old{false};
  friend bool operator==(const ArchiveNote&, const ArchiveNote&) = default;
};
std::string FormatArchiveNote(const ArchiveNote& note);

struct StoreIdNote {
  std::string store{};
  std::string archive{};  // empty: it is not known
  bool is_old{false};
  friend bool operator==(const StoreIdNote&, const StoreIdNote&) = default;
};
std::string FormatStoreIdNote(const StoreIdNote& note);

// kCorruption with what is wrong; any changed byte is noticed, but for those of version 1 that
// leave a note of the right form.
Result<BackupNote> ParseBackupNote(std::string_view text);
Result<ArchiveNote> ParseArchiveNote(std::string_view text);
Result<StoreIdNote> ParseStoreIdNote(std::string_view text);

// Of the folder's file; *exists: whether it is there, else the note is an empty one. An error names
// the file: kCorruption if it is damaged, another code if it cannot be read now.
Result<BackupNote> LoadBackupNote(FileSystem& files, const std::string& directory, bool* exists);
Result<ArchiveNote> LoadArchiveNote(FileSystem& files, const std::string& directory, bool* exists);
Result<StoreIdNote> LoadStoreIdNote(FileSystem& files, const std::string& directory, bool* exists);

}  // namespace cellar
