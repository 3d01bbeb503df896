// The cells of a table as the server gives them: pages of CSCAN, one of which is always under way
// while the one before is written.
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

namespace cellar::exporter {

// Views of the page.
struct Cell {
  std::string_view column;
  int64_t timestamp_micros{0};
  std::string_view type;
  std::string_view value;  // its text
  std::optional<int64_t> expires_micros;
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
      : options_(std::move(options)), cursor_(std::move(cursor)), connection_(connection) {}

  // Tells `listener` of a page. False when there is none: the table is at its end.
  Result<bool> ReadPage(Listener* listener);
  // Goes on behind the last page, if that did not end inside a row.
  const std::string& cursor() const { return cursor_; }

 private:
  Status Ask();
  void Adapt(size_t bytes, size_t cells);

  SourceOptions options_;
  std::string cursor_;        // behind the page read last
  std::string asked_cursor_;  // behind the page under way
  client::Connection* connection_;
  bool is_asked_{false};
  bool at_end_{false};
  uint64_t cells_{1000};  // of a page
};

}  // namespace cellar::exporter
