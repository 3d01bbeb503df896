// See snapshot_salvage.h.
#include "store/snapshot/snapshot_salvage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/coding.h"
#include "base/hash.h"
#include "store/format/snapshot_format.h"

namespace cellar {
namespace {

constexpr size_t kSalvageReadBytes = 1 << 20;

// Bytes of a file at any offset, through a window that moves.
class FileWindow {
 public:
  explicit FileWindow(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  Status Measure() {
    ASSIGN_OR_RETURN(bytes_, file_->Size());
    return Status::Ok();
  }
  uint64_t bytes() const { return bytes_; }

  // REQUIRES: offset + size <= bytes(). Valid until the next call.
  Result<std::string_view> Read(uint64_t offset, uint64_t size) {
    if (offset < offset_ || offset + size > offset_ + buffer_.size()) {
      buffer_.resize(std::max<uint64_t>(size, kSalvageReadBytes));
      offset_ = offset;
      ASSIGN_OR_RETURN(const size_t n, file_->ReadAt(offset, buffer_.size(), buffer_.data()));
      buffer_.resize(n);
      if (n < size) return Status::Error(ErrorCode::kIo, "the file became shorter");
    }
    return std::string_view(buffer_).substr(offset - offset_, size);
  }

 private:
  std::unique_ptr<ReadableFile> file_;
  uint64_t bytes_{0};
  std::string buffer_;
  uint64_t offset_{0};
};

class Salvager {
 public:
  Salvager(std::unique_ptr<ReadableFile> file, const std::optional<SnapshotEntry>& entry,
           StateMachine& state)
      : window_(std::move(file)), entry_(entry), state_(state) {}

  Result<Salvage> Run();

 private:
  // A tree while it is loaded.
  struct Load {
    uint64_t tree_id{0};
    BTree* tree{nullptr};
    std::unique_ptr<BTreeBulkLoader> loader{};
    bool any{false};
    bool in_gap{false};
    std::vector<LoadGap> gaps{};
  };

  Status ReadHeader();
  Status ReadCatalog();
  Status ReadFooter();
  Status LoadTree(const SnapshotTree& tree);
  Status LoadWithoutFooter();
  // The sound block at `offset`, whole, or nothing.
  Result<std::optional<std::string_view>> BlockAt(uint64_t offset, uint64_t end);
  // Where the next sound block of one of these trees begins; `end` if none does.
  Result<uint64_t> FindBlock(uint64_t from, uint64_t end, const std::vector<uint64_t>& tree_ids);
  Result<uint64_t> PassBadBlock(uint64_t offset, uint64_t end,
                                const std::vector<uint64_t>& tree_ids);
  void AddBlock(std::string_view block, Load* load);
  void NoteGap(Load* load);
  Load* Begin(uint64_t tree_id);
  Status End(Load* load);

  FileWindow window_;
  const std::optional<SnapshotEntry>& entry_;
  StateMachine& state_;
  Salvage salvage_;
  uint32_t version_{kSnapshotVersion};
  bool has_catalog_{false};
  std::string catalog_;
  uint64_t blocks_begin_{kSnapshotHeaderBytes};
  std::optional<SnapshotFooter> footer_;
  std::map<uint64_t, Load> loads_;
};

// An image is four bytes at least: its length.
bool IsPlausible(const BlockHeader& header, uint64_t bytes_left) {
  return header.images_bytes <= bytes_left - kBlockHeaderBytes && header.images > 0 &&
         header.images <= header.images_bytes / 4;
}

Status Cannot(std::string_view why) {
  return Status::Error(ErrorCode::kCorruption, fmt::format("nothing can be salvaged: {}", why));
}

Status Salvager::ReadHeader() {
  const uint64_t size = std::min<uint64_t>(window_.bytes(), kSnapshotHeaderBytes);
  ASSIGN_OR_RETURN(const std::string_view bytes, window_.Read(0, size));
  const Result<SnapshotHeader> header = DecodeSnapshotHeader(bytes);
  if (header.ok()) {
    if (entry_ && header->lsn != entry_->lsn)
      return Cannot("this is not the snapshot that the manifest names");
    version_ = header->version;
    salvage_.lsn = header->lsn;
    salvage_.commit_micros = header->commit_micros;
    return Status::Ok();
  }
  if (!entry_) return Cannot("its header is lost, and so the record up to which it goes");
  salvage_.lsn = entry_->lsn;
  return Status::Ok();
}

// The catalog stands in the footer and, in newer files, right behind the header as well. The footer
// is better: it also says where each tree begins and ends.
Status Salvager::ReadCatalog() {
  RETURN_IF_ERROR(ReadFooter());
  if (footer_) {
    has_catalog_ = true;
    catalog_ = footer_->catalog;
    salvage_.members = footer_->members;
    return Status::Ok();
  }
  if (window_.bytes() < kSnapshotHeaderBytes + kBlockHeaderBytes) return Status::Ok();
  ASSIGN_OR_RETURN(const std::string_view start,
                   window_.Read(kSnapshotHeaderBytes, kBlockHeaderBytes));
  const uint64_t bytes = kBlockHeaderBytes + DecodeBlockHeader(start).images_bytes;
  if (bytes > window_.bytes() - kSnapshotHeaderBytes) return Status::Ok();
  ASSIGN_OR_RETURN(const std::string_view block, window_.Read(kSnapshotHeaderBytes, bytes));
  Result<SnapshotHead> head = DecodeSnapshotHead(block);
  if (!head.ok()) return Status::Ok();
  has_catalog_ = true;
  catalog_ = std::move(head->catalog);
  salvage_.members = std::move(head->members);
  blocks_begin_ = kSnapshotHeaderBytes + bytes;
  return Status::Ok();
}

// Only one that its trailer vouches for.
Status Salvager::ReadFooter() {
  if (window_.bytes() < kSnapshotHeaderBytes + kSnapshotTrailerBytes) return Status::Ok();
  const uint64_t trailer_offset = window_.bytes() - kSnapshotTrailerBytes;
  ASSIGN_OR_RETURN(const std::string_view trailer_bytes,
                   window_.Read(trailer_offset, kSnapshotTrailerBytes));
  const Result<SnapshotTrailer> trailer = DecodeSnapshotTrailer(trailer_bytes);
  if (!trailer.ok() || trailer->footer_offset < kSnapshotHeaderBytes ||
      trailer->footer_offset > trailer_offset ||
      trailer->footer_bytes != trailer_offset - trailer->footer_offset)
    return Status::Ok();
  ASSIGN_OR_RETURN(const std::string_view bytes,
                   window_.Read(trailer->footer_offset, trailer->footer_bytes));
  if (Hash64(bytes) != trailer->footer_hash) return Status::Ok();
  Result<SnapshotFooter> footer = DecodeSnapshotFooter(bytes, version_);
  // Before version 3 there were no members, and a lost header no longer says which version it is.
  if (!footer.ok()) footer = DecodeSnapshotFooter(bytes, kSnapshotVersionMin);
  if (!footer.ok()) return Status::Ok();
  for (const SnapshotTree& tree : footer->trees) {
    const bool is_placed = tree.begin_offset >= kSnapshotHeaderBytes &&
                           tree.begin_offset <= tree.end_offset &&
                           tree.end_offset <= trailer->footer_offset;
    if (!is_placed) return Status::Ok();
  }
  footer_ = *std::move(footer);
  return Status::Ok();
}

Result<std::optional<std::string_view>> Salvager::BlockAt(uint64_t offset, uint64_t end) {
  using Block = std::optional<std::string_view>;
  if (end - offset < kBlockHeaderBytes) return Block();
  ASSIGN_OR_RETURN(const std::string_view start, window_.Read(offset, kBlockHeaderBytes));
  const BlockHeader header = DecodeBlockHeader(start);
  if (!IsPlausible(header, end - offset)) return Block();
  ASSIGN_OR_RETURN(const std::string_view block,
                   window_.Read(offset, kBlockHeaderBytes + header.images_bytes));
  return VerifyBlock(block, offset) ? Block(block) : Block();
}

// Byte by byte, since behind damage nobody knows where a block begins. Chance does not make one:
// the hash covers the block and its offset.
Result<uint64_t> Salvager::FindBlock(uint64_t from, uint64_t end,
                                     const std::vector<uint64_t>& tree_ids) {
  for (uint64_t offset = from; offset + kBlockHeaderBytes <= end;) {
    // Looked through window by window; only where an id stands a block is tried.
    const uint64_t window_bytes = std::min<uint64_t>(end - offset, kSalvageReadBytes);
    ASSIGN_OR_RETURN(const std::string_view bytes, window_.Read(offset, window_bytes));
    size_t at = 0;
    for (; at + kBlockHeaderBytes <= bytes.size(); ++at) {
      const BlockHeader header = DecodeBlockHeader(bytes.substr(at));
      if (std::binary_search(tree_ids.begin(), tree_ids.end(), header.tree_id) &&
          IsPlausible(header, end - offset - at))
        break;
    }
    offset += at;
    if (at + kBlockHeaderBytes > bytes.size()) continue;
    ASSIGN_OR_RETURN(const auto block, BlockAt(offset, end));
    if (block) return offset;
    ++offset;
  }
  return end;
}

// REQUIRES: no sound block stands at `offset`.
Result<uint64_t> Salvager::PassBadBlock(uint64_t offset, uint64_t end,
                                        const std::vector<uint64_t>& tree_ids) {
  // Mostly the damage is inside the block, and its header still says where the next one begins.
  if (end - offset >= kBlockHeaderBytes) {
    ASSIGN_OR_RETURN(const std::string_view start, window_.Read(offset, kBlockHeaderBytes));
    const uint64_t size = kBlockHeaderBytes + DecodeBlockHeader(start).images_bytes;
    if (size == end - offset) return end;
    if (size < end - offset) {
      ASSIGN_OR_RETURN(const auto block, BlockAt(offset + size, end));
      if (block) {
        const uint64_t id = DecodeBlockHeader(*block).tree_id;
        if (std::binary_search(tree_ids.begin(), tree_ids.end(), id)) return offset + size;
      }
    }
  }
  return FindBlock(offset + 1, end, tree_ids);
}

Salvager::Load* Salvager::Begin(uint64_t tree_id) {
  BTree* const tree = state_.TreeForLoad(tree_id);
  if (tree == nullptr) return nullptr;
  Load& load = loads_[tree_id];
  load.tree_id = tree_id;
  load.tree = tree;
  load.loader = std::make_unique<BTreeBulkLoader>(tree);
  return &load;
}

void Salvager::NoteGap(Load* load) {
  if (load->in_gap) return;
  load->in_gap = true;
  LoadGap& gap = load->gaps.emplace_back(LoadGap{.tree_id = load->tree_id});
  if (load->any) gap.after = std::string(load->loader->last_key());
}

void Salvager::AddBlock(std::string_view block, Load* load) {
  std::string_view rest = block.substr(kBlockHeaderBytes);
  while (!rest.empty()) {
    uint32_t size = 0;
    const bool is_there = GetFixed32(&rest, &size) && size <= rest.size();
    if (!is_there || !load->loader->TryImage(rest.substr(0, size)).ok()) {
      NoteGap(load);
      if (!is_there) return;
    } else {
      load->any = true;
      load->in_gap = false;
    }
    rest.remove_prefix(size);
  }
}

Status Salvager::End(Load* load) {
  RETURN_IF_ERROR(load->loader->Finish());
  load->loader.reset();
  ++salvage_.trees;
  salvage_.entries += load->tree->entries();
  // What stands behind a gap is what now comes next.
  BTreeCursor at(*load->tree);
  for (LoadGap& gap : load->gaps) {
    if (gap.after) {
      at.Seek(*gap.after);
      at.Next();
    } else {
      at.SeekFirst();
    }
    if (at.valid()) gap.before = std::string(at.key());
  }
  return Status::Ok();
}

Status Salvager::LoadTree(const SnapshotTree& tree) {
  Load* const load = Begin(tree.tree_id);
  if (load == nullptr) return Cannot(fmt::format("its catalog knows no tree {}", tree.tree_id));
  const std::vector<uint64_t> ids{tree.tree_id};
  for (uint64_t offset = tree.begin_offset; offset < tree.end_offset;) {
    ASSIGN_OR_RETURN(const auto block, BlockAt(offset, tree.end_offset));
    if (block && DecodeBlockHeader(*block).tree_id == tree.tree_id) {
      offset += block->size();
      AddBlock(*block, load);
    } else {
      NoteGap(load);
      ASSIGN_OR_RETURN(offset, PassBadBlock(offset, tree.end_offset, ids));
    }
  }
  return End(load);
}

// The trees stand one behind the other, and each block says of which it is. A gap may have held the
// end of one tree, whole trees, and the beginning of another: who counts knows.
Status Salvager::LoadWithoutFooter() {
  const std::vector<uint64_t> ids = state_.TreesForLoad();
  Load* load = nullptr;
  bool in_gap = false;
  for (uint64_t offset = blocks_begin_; offset < window_.bytes();) {
    ASSIGN_OR_RETURN(const auto block, BlockAt(offset, window_.bytes()));
    const uint64_t id = block ? DecodeBlockHeader(*block).tree_id : 0;
    const bool is_derived = block && (id & kDerivedTree) != 0;
    const bool is_known = block && std::binary_search(ids.begin(), ids.end(), id);
    if (!is_derived && !is_known) {
      if (load != nullptr) NoteGap(load);
      in_gap = true;
      ASSIGN_OR_RETURN(offset, PassBadBlock(offset, window_.bytes(), ids));
      continue;
    }
    offset += block->size();
    if (is_derived) continue;
    if (load == nullptr || load->tree_id != id) {
      if (loads_.contains(id)) return Cannot("its trees do not follow one another");
      load = Begin(id);
      if (in_gap) NoteGap(load);
    }
    in_gap = false;
    AddBlock(*block, load);
  }
  for (auto& [id, one] : loads_) RETURN_IF_ERROR(End(&one));
  return Status::Ok();
}

Result<Salvage> Salvager::Run() {
  RETURN_IF_ERROR(window_.Measure());
  RETURN_IF_ERROR(ReadHeader());
  RETURN_IF_ERROR(ReadCatalog());
  if (!has_catalog_) return Cannot("the catalog, which says what tables there are, is lost");
  RETURN_IF_ERROR(state_.BeginLoad(catalog_));
  if (footer_) {
    for (const SnapshotTree& tree : footer_->trees) {
      if ((tree.tree_id & kDerivedTree) == 0) RETURN_IF_ERROR(LoadTree(tree));
    }
  } else {
    RETURN_IF_ERROR(LoadWithoutFooter());
  }
  std::vector<LoadGap> gaps;
  for (const auto& [id, load] : loads_) gaps.insert(gaps.end(), load.gaps.begin(), load.gaps.end());
  RETURN_IF_ERROR(state_.FinishSalvage(gaps, &salvage_.lost));
  return std::move(salvage_);
}

}  // namespace

Result<Salvage> SalvageSnapshot(FileSystem& files, const std::string& path,
                                const std::optional<SnapshotEntry>& entry, StateMachine& state) {
  ASSIGN_OR_RETURN(const bool exists, files.Exists(path));
  if (!exists) return Cannot("the file is missing");
  ASSIGN_OR_RETURN(auto file, files.OpenForReading(path));
  return Salvager(std::move(file), entry, state).Run();
}

}  // namespace cellar
