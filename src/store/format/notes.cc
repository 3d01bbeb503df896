// See notes.h.
#include "store/format/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/sealed_text.h"
#include "store/format/manifest.h"
#include "store/format/store_files.h"

namespace cellar {
namespace {

constexpr std::string_view kBackupHead{"cellar-backup "};
constexpr std::string_view kArchiveHead{"cellar-archive "};
constexpr std::string_view kStoreHead{"cellar-store "};
constexpr size_t kStoreIdDigits{32};

Status Damaged(std::string why) { return Status::Error(ErrorCode::kCorruption, std::move(why)); }

// The lines of a note in turn, its first one and the checksum taken off.
class Lines {
 public:
  // kCorruption unless it is a sound note of version 2, or one of version 1.
  static Result<Lines> Of(std::string_view text, std::string_view head);

  // What stands behind `word` and a blank in the next line, if that begins so, and is taken then.
  std::optional<std::string_view> Take(std::string_view word) {
    const size_t end = rest_.find('\n');
    const std::string_view line = rest_.substr(0, end);
    if (line.size() <= word.size() || !line.starts_with(word) || line[word.size()] != ' ')
      return std::nullopt;
    rest_.remove_prefix(end + 1);
    return line.substr(word.size() + 1);
  }
  bool at_end() const { return rest_.empty(); }
  bool is_old() const { return is_old_; }

 private:
  Lines(std::string_view rest, bool is_old) : rest_(rest), is_old_(is_old) {}
  std::string_view rest_;  // empty, or ends in a newline
  bool is_old_;            // of version 1
};

Result<Lines> Lines::Of(std::string_view text, std::string_view head) {
  if (text.empty()) return Damaged("it is empty");
  const SealedText sealed = UnsealText(text);
  if (sealed.seal == Seal::kWrong) return Damaged("its checksum is wrong");
  std::string_view body = sealed.body;
  if (body.empty() || body.back() != '\n') return Damaged("its end is missing");
  const bool has_head = body.starts_with(head);
  const bool is_old_id = head == kStoreHead && body.starts_with("store ");
  if (!has_head && !is_old_id) return Damaged("its first line cannot be read");
  std::string_view version = "1";
  if (has_head) {
    const size_t end = body.find('\n');
    version = body.substr(head.size(), end - head.size());
    body.remove_prefix(end + 1);
  }
  const bool is_old = sealed.seal == Seal::kNone;
  if (version == (is_old ? "1" : "2")) return Lines(body, is_old);
  return Damaged(version == "2" ? "its checksum is missing" : "it is of an unknown version");
}

bool IsStoreId(std::string_view text) {
  return text.size() == kStoreIdDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool TakeNumber(std::optional<std::string_view> text, int64_t* number) {
  return text && ParseInt64(*text, number) == NumberError::kNone;
}

// "1-1000", of two numbers.
bool IsPair(std::string_view text) {
  const size_t dash = text.find('-');
  uint64_t number = 0;
  return dash != std::string_view::npos &&
         ParseUint64(text.substr(0, dash), &number) == NumberError::kNone &&
         ParseUint64(text.substr(dash + 1), &number) == NumberError::kNone;
}

// "1-7 to 1-90".
bool IsGap(std::string_view text) {
  constexpr std::string_view kTo{" to "};
  const size_t at = text.find(kTo);
  return at != std::string_view::npos && IsPair(text.substr(0, at)) &&
         IsPair(text.substr(at + kTo.size()));
}

template <typename Note>
Result<Note> Load(FileSystem& files, const std::string& path,
                  Result<Note> (*parse)(std::string_view), bool* exists) {
  ASSIGN_OR_RETURN(*exists, files.Exists(path));
  if (!*exists) return Note{};
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(files, path));
  Result<Note> note = parse(text);
  if (note.ok()) return note;
  return Damaged(fmt::format("{} is damaged: {}", path, note.status().text()));
}

}  // namespace

std::string FormatBackupNote(const BackupNote& note) {
  std::string text = fmt::format("{}2\nstart {}\n", kBackupHead, note.start_unix_s);
  if (!note.id.empty()) text += fmt::format("end {}\nid {}\n", note.end_unix_s, note.id);
  if (note.cut != 0) text += fmt::format("cut {}\n", note.cut);
  return SealText(std::move(text));
}

std::string FormatArchiveNote(const ArchiveNote& note) {
  CELLAR_ASSERT(IsStoreId(note.store));
  std::string text = fmt::format("{}2\nstore {}\n", kArchiveHead, note.store);
  for (const std::string& gap : note.gaps) text += gap + '\n';
  return SealText(std::move(text));
}

std::string FormatStoreIdNote(const StoreIdNote& note) {
  CELLAR_ASSERT(IsStoreId(note.store));
  std::string text = fmt::format("{}2\nstore {}\n", kStoreHead, note.store);
  // One that no line holds is not remembered.
  const bool is_one_line = note.archive.find('\n') == std::string::npos;
  if (!note.archive.empty() && is_one_line) text += fmt::format("archive {}\n", note.archive);
  return SealText(std::move(text));
}

Result<BackupNote> ParseBackupNote(std::string_view text) {
  ASSIGN_OR_RETURN(Lines lines, Lines::Of(text, kBackupHead));
  BackupNote note;
  if (!TakeNumber(lines.Take("start"), &note.start_unix_s))
    return Damaged("when it was begun cannot be read");
  note.is_old = lines.is_old();
  if (lines.at_end()) return note;
  if (!TakeNumber(lines.Take("end"), &note.end_unix_s) || note.end_unix_s < note.start_unix_s)
    return Damaged("when it was sealed cannot be right");
  note.id = lines.Take("id").value_or("");
  if (!IsPair(note.id)) return Damaged("the id of its last step cannot be read");
  if (lines.at_end()) return note;
  int64_t cut = 0;
  if (!TakeNumber(lines.Take("cut"), &cut) || cut <= 0 || !lines.at_end())
    return Damaged("the cut that it is of cannot be read");
  note.cut = static_cast<uint64_t>(cut);
  return note;
}

Result<ArchiveNote> ParseArchiveNote(std::string_view text) {
  ASSIGN_OR_RETURN(Lines lines, Lines::Of(text, kArchiveHead));
  ArchiveNote note;
  note.store = lines.Take("store").value_or("");
  if (!IsStoreId(note.store)) return Damaged("whose archive it is cannot be read");
  note.is_old = lines.is_old();
  while (!lines.at_end()) {
    const std::string_view gap = lines.Take("gap after").value_or("");
    if (!IsGap(gap)) return Damaged("a gap in it cannot be read");
    note.gaps.push_back(fmt::format("gap after {}", gap));
  }
  return note;
}

Result<StoreIdNote> ParseStoreIdNote(std::string_view text) {
  ASSIGN_OR_RETURN(Lines lines, Lines::Of(text, kStoreHead));
  StoreIdNote note;
  note.store = lines.Take("store").value_or("");
  if (!IsStoreId(note.store)) return Damaged("the id of the store cannot be read");
  note.is_old = lines.is_old();
  if (!lines.at_end()) note.archive = lines.Take("archive").value_or("");
  if (!lines.at_end()) return Damaged("what is behind the id cannot be read");
  return note;
}

Result<BackupNote> LoadBackupNote(FileSystem& files, const std::string& directory, bool* exists) {
  return Load(files, JoinPath(directory, kBackupNoteName), ParseBackupNote, exists);
}
Result<ArchiveNote> LoadArchiveNote(FileSystem& files, const std::string& directory, bool* exists) {
  return Load(files, JoinPath(directory, kArchiveNoteName), ParseArchiveNote, exists);
}
Result<StoreIdNote> LoadStoreIdNote(FileSystem& files, const std::string& directory, bool* exists) {
  return Load(files, JoinPath(directory, kStoreIdName), ParseStoreIdNote, exists);
}

}  // namespace cellar
