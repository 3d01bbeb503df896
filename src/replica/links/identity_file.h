// IdentityFile: who this node is and what it has promised: `cellar.replica` in the data folder.
//
// All integers are little-endian. Two slots of 64 bytes, written in turn, so that a torn write
// leaves the one before; a seal (slot_seal.h) tells that from a slot that was damaged, which no
// start passes over:
//
//   offset size
//        0    8  magic "CELLRREP"
//        8    4  version u32 = 1
//       12    4  term u32: the highest epoch that this node knows of
//       16    8  generation u64: of two sound slots the higher one counts
//       24    8  cluster u64: nodes that share a history share it
//       32    8  node u64: this node's id, never 0
//       40    8  vote u64: the node that it voted for in `term`, 0 if none (replica sets)
//       48    8  diverged u64: records that were dropped here since they were in no leader's log
//       56    8  XXH3 of bytes 0..56
//
//      128  256  what ties the folder to its last start (replica/set/member_file.h)
//      384   32  seal of the two slots of who the node is
//      416   32  seal of the two others
//
// A single server has none: it is made when the first other node comes, or is followed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/os/file.h"
#include "store/format/manifest.h"

namespace cellar {

struct Identity {
  uint32_t term{0};
  uint64_t cluster{0};
  uint64_t node{0};
  uint64_t vote{0};
  uint64_t diverged{0};
  friend bool operator==(const Identity&, const Identity&) = default;
};

inline constexpr uint64_t kIdentitySealOffset{384};
inline constexpr uint64_t kTieSealOffset{416};
inline constexpr uint64_t kIdentityFileBytes{448};

class IdentityFile {
 public:
  // Opens the folder's file, or makes one with `fresh` in it, durable when this returns.
  // kCorruption naming the file if its newest slot is damaged, or neither is sound.
  static Result<std::unique_ptr<IdentityFile>> Open(FileSystem& files, const std::string& directory,
                                                    const Identity& fresh);
  // The same where what was promised does not count any more: an older slot will do.
  static Result<std::unique_ptr<IdentityFile>> OpenAnew(FileSystem& files,
                                                        const std::string& directory,
                                                        const Identity& fresh);

  // What the folder's file says, without opening it for more; nothing if there is none.
  static Result<std::optional<Identity>> Read(FileSystem& files, const std::string& directory);

  const Identity& identity() const { return identity_; }
  // Durable when it returns OK. After an error what is on disk is the old or the new one.
  Status Write(const Identity& identity);

 private:
  explicit IdentityFile(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  enum class Older : uint8_t { kRefused, kTaken };
  static Result<std::unique_ptr<IdentityFile>> OpenAs(FileSystem& files,
                                                      const std::string& directory,
                                                      const Identity& fresh, Older older);

  std::unique_ptr<WritableFile> file_;
  Identity identity_;
  uint64_t generation_{0};
};

}  // namespace cellar
