// SetPast: whether the directory that a member starts with is the one that it stopped with. One
// that
// comes back as an older copy has forgotten records that this node has acknowledged, and votes that
// it has cast: with it a majority could be made that knows nothing of what another majority has
// committed. So a member that holds less than it has acknowledged takes no part.
//
// How it is found out:
//
//   files     cellar.replica and cellar.member name the same start of the node, by a random number
//             that changes with each. Where they differ, one of them is older than the other
//   place     cellar.replica says up to where this node has acknowledged the log. Within one boot
//             of
//             the machine that is exact; beyond, it holds where acknowledgements wait for the disk
//   others    each member remembers what each other one has acknowledged to it, in cellar.member
//             too, and says so in its greeting (kHello, frame.h), which begins a link and so comes
//             before all else. After an end that was none in order its last moments are missing;
//             what a node says of itself behind one in order fills that in
//   mark      cellar.replica names its own inode and time of birth: another one is a copy. A copy
//             may be as new as what it is a copy of, so it is not refused at once: it waits for
//             what
//             all other voters say
//
// What one greeting says is not kept before the next one says it as well: a start that nobody has
// made, or an acknowledgement that nobody has given, would be held against that node for ever. What
// it acknowledges in between is kept with the new start, and counts for that which is said next.
//
// A start waits with votes and acknowledgements (ReplicaSet::Release) until all other voters have
// answered, or for three election timeouts, since one that is down must not hold up the others. A
// copy waits for all of them. It goes on if nobody can have more than it of what it acknowledged:
// its log is as new as the other's, or both were closed in order, and it holds all that the other
// remembers. Then it takes over the others' newest term, in which it votes for nobody: whatever it
// has promised, it has promised in a term that some of them have been told of.
//
// Acknowledgements that are not synced (appendfsync everysec or no) may be lost with the power: if
// the machine has been started since, what others remember of these counts only as far as terms go,
// which are always synced. That is the second's worth of writes that everysec may cost.
//
// What a greeting says of it, behind all else in a kHello and prefixed with its length (which may
// be
// 0), little-endian:
//
//   version u8 = 1; flags u8: 1 its acknowledgements do not wait for the disk, 2 what it remembers
//   is
//   all, 4 so is what it says of itself; its start u64; boot u64; what it had acknowledged then:
//   term
//   u32, seq u64, epoch u32; term u32; last record: epoch u32, seq u64; the start that it knows of
//   who
//   gets this u64, and what that one has acknowledged to it in those before: term u32, seq u64,
//   epoch
//   u32; led: term u32, seq u64; boot u64; lazy u8
//
// No files and no clock: the host's. See member_file.h for the formats.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/os/file_mark.h"
#include "cellar/lsn.h"
#include "replica/set/set_members.h"

namespace cellar {

// What cellar.replica says of its directory.
struct MemberTie {
  uint64_t start{0};       // 0: no version that knew of it has written
  uint64_t next_start{0};  // one that was about to begin
  FileMark mark{};
  uint64_t boot{0};
  bool lazy{false};    // acknowledgements do not wait for the disk
  bool closed{false};  // in order, with nothing left to write
  Lsn acknowledged{};  // to a leader of that term, up to that seq
  uint32_t epoch{0};   // of the record with that seq
  friend bool operator==(const MemberTie&, const MemberTie&) = default;
};

// What a member has acknowledged, as another one knows it: records up to `acknowledged.seq` to a
// leader of that term; and the term that it led last, up to which record of its own.
struct PeerPlace {
  Lsn acknowledged;
  uint32_t epoch{0};  // of that record
  Lsn led;
  uint64_t boot{0};
  bool lazy{false};
  void Merge(const PeerPlace& other);
  friend bool operator==(const PeerPlace&, const PeerPlace&) = default;
};
struct PeerPast {
  uint64_t start{0};    // of that node, as it has said last
  bool certain{false};  // nothing can be missing here
  PeerPlace now{};      // since then
  PeerPlace before{};   // in all starts before
  friend bool operator==(const PeerPast&, const PeerPast&) = default;
};

// What cellar.member holds.
struct MemberMemory {
  uint64_t cluster{0};
  uint64_t start{0};
  bool closed{false};
  bool whole{false};  // of nodes that are not there nothing is to be remembered
  std::map<uint64_t, PeerPast> peers{};
  friend bool operator==(const MemberMemory&, const MemberMemory&) = default;
};
std::string EncodeMemory(const MemberMemory& memory);
[[nodiscard]] bool DecodeMemory(std::string_view text, MemberMemory* memory);

class SetPast {
 public:
  // What the node starts with.
  struct Begin {
    uint64_t node{0};
    uint64_t cluster{0};
    uint64_t start{0};  // new and random; 0: nothing is known and nothing is kept
    uint64_t boot{0};
    bool lazy{false};
    MemberTie tie;        // as the files say
    MemberMemory memory;  // likewise
    FileMark mark;        // of cellar.replica now
    uint32_t term{0};
    Lsn last;
    // Of a record that is there, its epoch; 0: there is none, or a snapshot holds it. Asked as long
    // as the start waits.
    std::function<uint32_t(uint64_t)> epoch_of{};
  };
  enum class Verdict : uint8_t { kWait, kGo, kRefuse };

  // Looks at what the files say. kRefuse is final; `why()`.
  Verdict Start(Begin begin);
  // Who has never been a member before begins without a past.
  void StartAfresh(Begin begin);

  // The part of a greeting to `node`; and what one from there says.
  std::string Hello(uint64_t node, uint32_t term, Lsn last) const;
  // True if the other one does not know of this start yet, or is a new start itself: it is greeted
  // at once.
  bool OnHello(uint64_t node, std::string_view text);
  // What all that has come means for a start that waits. `patient`: who is down may still come.
  Verdict Judge(const SetMembers& members, bool patient);
  const std::string& why() const { return why_; }
  // For the log: whom it waits for.
  std::string WaitsFor(const SetMembers& members) const;
  bool is_copy() const { return copy_; }
  // Of a copy that goes on: at least the others' terms.
  uint32_t newest_term() const { return newest_term_; }

  // Of this node, and of another one that is led by it, or leads it.
  void NoteOwn(Lsn place, uint32_t epoch);
  // From now on, as long as this process lives.
  void SetLazy() { tie_.lazy = true; }
  void NoteAcknowledged(uint64_t node, Lsn place, uint32_t epoch);
  void NoteLed(uint64_t node, Lsn place);
  // Those that are members no more are forgotten when there are many.
  void Forget(const SetMembers& members);

  // A fault, for the simulation: what a greeting says is kept at once.
  void BelieveAtOnce() { one_greeting_ = true; }

  // To be written. A copy keeps the mark of what it is a copy of until it goes on.
  bool keeps() const { return begin_.start != 0; }
  MemberTie Tie(bool closed) const;
  MemberMemory Memory(bool closed) const;

 private:
  struct Answer {
    bool sound{false};
    uint32_t term{0};
    Lsn last;
    PeerPlace remembered;
  };

  // A start that has been said once, and what has been acknowledged since.
  struct Newcomer {
    uint64_t start{0};
    bool exact{false};
    PeerPlace told;
    PeerPlace now;
  };
  bool BelieveStart(uint64_t node, PeerPast* past, const Newcomer& said);

  struct Claim {
    std::string text;
    int times{0};
  };
  static constexpr int kClaimTimes{3};

  PeerPlace* NowOf(uint64_t node);
  void NoteClaim(uint64_t node, std::string loss, const Answer& answer);
  bool Holds(Lsn place, uint32_t epoch) const;
  std::string LossBy(const PeerPlace& remembered) const;
  bool MayGoOn(const Answer& answer) const;
  Verdict Refuse(std::string why);

  Begin begin_;
  MemberTie tie_;
  std::map<uint64_t, PeerPast> peers_;
  std::map<uint64_t, Newcomer> newcomers_;
  bool one_greeting_{false};
  bool copy_{false};
  bool was_closed_{false};  // both files
  bool whole_{false};
  bool goes_{false};
  bool fresh_{false};
  uint32_t newest_term_{0};
  std::map<uint64_t, Answer> answers_;
  std::map<uint64_t, Claim> claims_;  // by whom this node holds less than it acknowledged
  std::map<uint64_t, bool> silent_;   // that know nothing of this: an older version
  std::string why_;
};

}  // namespace cellar
