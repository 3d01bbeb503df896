// See feed_check.h.
#include "store/history/feed_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "base/text/quote.h"
#include "store/format/manifest.h"
#include "store/history/feed_decoder.h"
#include "store/log/log_index.h"

namespace cellar {
namespace {

class LastOfAll final : public FeedSink {
 public:
  bool OnEntry(const FeedEntry& entry) override {
    last_ = entry.id;
    return true;
  }
  const FeedId& last() const { return last_; }

 private:
  FeedId last_;
};

Status ReadFeed(LogIndex* index, const FeedSet& feeds, const Feed& feed, FeedId* last) {
  FeedDecoder decoder(feeds, feed, FeedDecoder::Fields::kYes);
  LastOfAll sink;
  const auto visit = [&](const LogRecord& record, int64_t before) -> Result<bool> {
    return decoder.Decode(record, before, FeedId::LastOf(feed.through_micros), FeedId::Max(),
                          &sink);
  };
  LogPlace place = index->Find(std::max(index->begin_micros(), feed.through_micros) + 1);
  for (;;) {
    const Result<LogIndex::Ended> ended = index->ReadPiece(&place, visit);
    *last = sink.last();
    RETURN_IF_ERROR(ended.status());
    if (*ended != LogIndex::Ended::kPiece) return Status::Ok();
  }
}

}  // namespace

Status CheckFeeds(FileSystem& files, const std::string& directory, const FeedSet& feeds, Lsn shown,
                  std::ostream& out) {
  if (feeds.empty()) return Status::Ok();
  ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, LoadManifest(files, directory));
  if (!manifest) return Status::Ok();
  LogIndex index(files, directory);
  RETURN_IF_ERROR(index.Update(*manifest, shown, true));
  if (index.first_segment() == 0) return Status::Ok();
  bool all_read = true;
  for (const Feed* feed : feeds.All()) {
    FeedId last;
    const Status status = ReadFeed(&index, feeds, *feed, &last);
    if (status.ok()) continue;
    if (status.code() != ErrorCode::kCorruption) return status;
    all_read = false;
    out << fmt::format("feed {} in keyspace {}: CANNOT BE READ behind entry {}: {}\n",
                       Quote(feed->name), Quote(feed->keyspace), last.text(), status.text());
  }
  if (all_read) return Status::Ok();
  return Status::Error(ErrorCode::kCorruption,
                       "feeds cannot be read; the data is sound. Drop them and make them anew");
}

}  // namespace cellar
