// Writes rows through one connection with many commands under way, and tells in input order what
// became of each.
//
//   Add(row) -> unit: the bytes of one row (or, with rows_per_batch > 1, of MULTI, some rows, EXEC)
//            -> sent, kept in `in_flight_` until its last reply is there
//            -> Listener::OnRow for each row of the unit, in the order of the input
//
// Because replies come in order, whatever OnRow has been told of is done, and nothing before it is
// open: that is the offset from which an import can be resumed. When the connection is lost and
// `reconnect_seconds` allows it, all units still in flight are sent again; a row whose reply was
// lost is then written twice, with the same cells. An error that would meet every row (a missing
// table, no permission, no memory) ends the pipeline instead of being counted a million times.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cellar-import/command.h"
#include "client/connection.h"

namespace cellar::importer {

struct RowRef {
  uint64_t line{0};        // its first
  uint64_t next_line{0};   // the one after its last
  uint64_t end_offset{0};  // the byte after it
  uint64_t cells{0};
};

struct PipelineOptions {
  CommandOptions command;
  size_t units_max{1024};  // a system call for half of them
  size_t bytes_max{4 * 1024 * 1024};
  size_t rows_per_batch{1};
  bool create_families{false};
  // By name: what stands behind it in FAMILY ADD.
  std::map<std::string, std::vector<std::string>, std::less<>> family_options{};
  uint32_t reconnect_seconds{0};
};

class Pipeline {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // The row is written, or `error` says why it is not.
    virtual void OnRow(const RowRef& ref, std::string_view error) = 0;
  };

  // `connection` and `listener` must outlive the pipeline.
  Pipeline(PipelineOptions options, client::ConnectionOptions connection_options,
           client::Connection* connection, Listener* listener);

  // Families that need not be created.
  void SetKnownFamilies(std::set<std::string, std::less<>> names) {
    known_families_ = std::move(names);
  }

  // A returned error is fatal: nothing more can be written.
  Status Add(const Row& row, const RowRef& ref);
  // A record that gave no row: its error is told in its turn.
  Status AddRefused(const RowRef& ref, std::string error);
  // Sends what is there and waits for all replies.
  Status Flush();

 private:
  struct UnitRow {
    RowRef ref;
    uint32_t commands{0};
    std::string error;
  };
  struct Unit {
    std::string bytes;
    uint32_t replies_expected{0};
    uint32_t replies_seen{0};
    bool is_batch{false};
    bool is_family{false};
    std::vector<UnitRow> rows;
  };

  // An empty one, with memory of before if there is some.
  Unit NewUnit();
  Status CloseBatch();
  Status Push(Unit unit);
  // The next reply, once all that is there has been sent.
  Result<client::Reply> Read();
  // Reads replies until at most `units` are in flight.
  Status DrainTo(size_t units, size_t bytes);
  Status Take(const redisReply& reply);
  Status TakeExec(const redisReply& reply, Unit* unit);
  void Finish();
  Status Reconnect(const Status& cause);

  PipelineOptions options_;
  client::ConnectionOptions connection_options_;
  client::Connection* connection_;
  Listener* listener_;
  std::set<std::string, std::less<>> known_families_;
  Unit batch_;  // being filled
  std::deque<Unit> in_flight_;
  std::vector<Unit> spare_;  // of small ones that are done, for their memory; units_max at most
  size_t in_flight_bytes_{0};
  std::string unsent_;  // of what is in flight; it leaves with the next Read()
};

}  // namespace cellar::importer
