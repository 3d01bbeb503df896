// WorkMemory: one bound for what all long reads and changes hold while they work.
//
//   work-max-memory   |<------------------- 256 MiB ------------------->|
//   parts             | CAGG 64 | CAGG 64 | CUPDATE 9 |       free      |   CAGG 64, CAGG 64 wait
//   pages, besides    | CSCAN 16 | CSCAN 16 | ... | CSCAN 8 | CSCAN 4 | ...      as much again
//
// Parts: who begins takes beforehand as much as it may come to need, and gives it back when it
// ends. So nobody stops half-way for others, and who waits holds nothing yet. They come in turn:
// the first one that waits has its part before those behind it, however little these want. Whoever
// gives back wakes them.
//
// Pages: a CSCAN that finds little room makes a shorter page, which its cursor goes on from, and
// waits for nobody. It has its page until the client has taken it, and a client may be slow; so
// parts do not wait for pages.
//
// What cannot wait, inside EXEC, has its part at once (TakeAtOnce). There is one such at a time.
//
// Others hold too little to have a place here: EACH one key, CCOUNT and CNEAR nothing, CDELRANGE
// the keys of one slice, the building of an index one row of it at a time (the index itself is
// data). FAMILY ALTER holds what one slice rewrites, a mebibyte and a value (type_walk.h), and keys
// of rows that change while it looks, tens of mebibytes at most (type_look.h).
//
// It belongs to the loop's thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <utility>

namespace cellar {

enum class WorkKind : uint8_t { kAggregate, kUpdate, kPage };
inline constexpr size_t kWorkKinds{3};

class WorkMemory {
  struct Part {
    WorkKind kind;
    size_t bytes;
    bool granted;
  };

 public:
  // A page has this much at least, whatever others hold.
  static constexpr size_t kPageBytesMin{256 * 1024};

  // A part of it, taken or waited for, until this ends. A moved one is empty.
  class Lease {
   public:
    Lease() = default;
    Lease(WorkMemory* of, std::unique_ptr<Part> part) : of_(of), part_(std::move(part)) {}
    Lease(Lease&& other) noexcept = default;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();
    // An empty one is: it wants nothing.
    bool granted() const { return part_ == nullptr || part_->granted; }
    size_t bytes() const { return part_ == nullptr ? 0 : part_->bytes; }
    // Gives back what is beyond `bytes`. REQUIRES: granted().
    void ShrinkTo(size_t bytes);

   private:
    WorkMemory* of_{nullptr};
    std::unique_ptr<Part> part_;
  };

  WorkMemory() = default;
  ~WorkMemory();
  WorkMemory(const WorkMemory&) = delete;
  WorkMemory& operator=(const WorkMemory&) = delete;

  // Called when somebody who waited has its part.
  void SetWake(std::function<void()> wake) { wake_ = std::move(wake); }
  // `work_max` and `maxmemory` (0: none) as configured. Parts never have more than a quarter of
  // that, for which writes would be refused. What is taken stays taken.
  void Configure(int64_t work_max, int64_t maxmemory);
  size_t bound() const { return bound_; }
  // Would Take be granted at once?
  bool HasRoom(size_t bytes) const;
  // More than the bound waits until all is free.
  Lease Take(WorkKind kind, size_t bytes);
  // Take, or nothing if that had to wait.
  Lease TakeIfRoom(WorkKind kind, size_t bytes);
  // Beyond the bound if need be.
  Lease TakeAtOnce(WorkKind kind, size_t bytes);
  // Of a page that wants `bytes`: a half of what is left for pages at most, at least kPageBytesMin.
  Lease TakePage(size_t bytes);

  size_t taken_bytes(WorkKind kind) const { return taken_[static_cast<size_t>(kind)]; }
  size_t taken_bytes() const { return parts_bytes() + taken_bytes(WorkKind::kPage); }
  size_t waiting() const { return waiting_.size(); }

 private:
  size_t& TakenBy(const Part& part) { return taken_[static_cast<size_t>(part.kind)]; }
  size_t parts_bytes() const {
    return taken_bytes(WorkKind::kAggregate) + taken_bytes(WorkKind::kUpdate);
  }
  Lease Grant(WorkKind kind, size_t bytes);
  void GiveBack(Part* part);
  void GrantWaiting();
  void WakeGranted();
  // Parts are at most the bound; when that has been lowered, one may have to be alone.
  bool Fits(size_t bytes) const { return parts_bytes() == 0 || parts_bytes() + bytes <= bound_; }

  std::function<void()> wake_;
  size_t bound_{256 << 20};
  std::array<size_t, kWorkKinds> taken_{};
  std::list<Part*> waiting_;
};

}  // namespace cellar
