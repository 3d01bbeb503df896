// The cells of a table as the server gives them: pages of CSCAN. Where a page ends its reply says
// first, so the next one is under way while this one is read and written.
//
// The size of a page follows its bytes, so that rows of any width take about a MiB at a time. A
// page may end inside a row; the next one then begins with the rest of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "client/connection.h"
#include "client/reply_stream.h"

namespace cellar::exporter {

// Views of the page, until the next cell.
struct Cell {
  std::string_view column;
  int64_t timestamp_micros{0};
  std::string_view timestamp;  // its digits
  std::string_view type;
  std::string_view value;  // its text
  std::optional<int64_t> expires_micros;
  std::string_view expires;  // its digits
};

// Which pages.
struct SourceOptions {
  std::string table;
  std::vector<std::string> words;  // of rows and cells
  // All pages show one moment. Else each shows its own, but cursors outlive connection and server.
  bool one_moment{true};
  bool states{false};  // of an hll its state, not the estimate
};

class Source {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // A row, or more of the row before if that was the last of its page. Its cells follow.
    virtual Status OnRow(std::string_view row) = 0;
    virtual Status OnCell(const Cell& cell) = 0;
  };

  // `connection` must outlive the source. `cursor` is "0", or that of an earlier source.
  Source(SourceOptions options, std::string cursor, client::Connection* connection)
      : options_(std::move(options)),
        cursor_(std::move(cursor)),
        connection_(connection),
        replies_(*connection) {}

  // Tells `listener` of a page. False when there is none: the table is at its end.
  Result<bool> ReadPage(Listener* listener);
  // Goes on behind the last page, if that did not end inside a row.
  const std::string& cursor() const { return cursor_; }

 private:
  using Item = client::ReplyStream::Item;
  using Kind = client::ReplyStream::Kind;

  Status Ask();
  // The next item, which must be of `kind`. False: Failure() says why.
  bool Expect(Kind kind, Item* item) {
    return replies_.Next(item) && (item->kind == kind || Refuse(*item));
  }
  // Notes that it is not what was expected. Always false.
  bool Refuse(const Item& item);
  Status Failure() const { return failure_.ok() ? replies_.failure() : failure_; }
  Status ReadRow(Listener* listener);
  Status ReadVersions(Listener* listener);
  // Of [timestamp, value, type, expiry or nil] what stands behind the timestamp.
  Status ReadCell(const Item& timestamp, Listener* listener);
  void Adapt();

  SourceOptions options_;
  std::string cursor_;  // behind the page read last
  client::Connection* connection_;
  client::ReplyStream replies_;
  std::string row_;
  std::string column_;
  uint64_t page_bytes_{0};
  uint64_t page_cells_{0};
  Status failure_;
  bool is_asked_{false};
  bool at_end_{false};
  uint64_t cells_{1000};  // of a page
};

}  // namespace cellar::exporter
