// See scan.h.
#include "scan.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "process_time.h"
#include "reply_skipper.h"
#include "socket.h"
#include "worker.h"

namespace cellar::benchmark {
namespace {

constexpr size_t kReadBytes{512 * 1024};
constexpr size_t kHeadBytes{256};  // of a reply: a cursor lies in it

std::string Render(const std::vector<std::string>& words) {
  std::string request = "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    request += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
  return request;
}

class Scanner {
 public:
  Scanner(const ScanOptions& scan, Socket socket)
      : scan_(scan), socket_(std::move(socket)), buffer_(kReadBytes) {}

  // One scan from end to end, its figures added to *result.
  Status Once(ScanResult* result) {
    return scan_.dialect == Dialect::kCellar ? OnceCellar(result) : OnceRedis(result);
  }
  const ReplySkipper& skipper() const { return skipper_; }

 private:
  Status OnceCellar(ScanResult* result) {
    ASSIGN_OR_RETURN(const std::vector<std::string> options, SplitWords(scan_.cell_options));
    std::string cursor = "0";
    do {
      std::vector<std::string> words = {"CSCAN", scan_.table, cursor, "COUNT",
                                        std::to_string(scan_.page_rows)};
      words.insert(words.end(), options.begin(), options.end());
      RETURN_IF_ERROR(Page(Render(words), 1, result));
      if (!skipper_.first_error().empty()) break;
      ASSIGN_OR_RETURN(cursor, CursorOfHead());
    } while (cursor != "0");
    return Status::Ok();
  }

  Status OnceRedis(ScanResult* result) {
    const std::string count = std::to_string(scan_.page_rows);
    for (uint64_t row = 0; row < scan_.rows; row += scan_.page_rows) {
      const std::string begin = row == 0 ? "-" : "(" + Key(row - 1);
      RETURN_IF_ERROR(
          Page(Render({"ZRANGEBYLEX", scan_.table, begin, "+", "LIMIT", "0", count}), 1, result));
      std::string request;
      const uint64_t end = std::min(scan_.rows, row + scan_.page_rows);
      for (uint64_t i = row; i < end; ++i) request += Render({"HGETALL", Key(i)});
      RETURN_IF_ERROR(Page(request, end - row, result));
      if (!skipper_.first_error().empty()) break;
    }
    return Status::Ok();
  }

  std::string Key(uint64_t number) const {
    std::string digits = std::to_string(number);
    digits.insert(0, scan_.key_digits - std::min<size_t>(scan_.key_digits, digits.size()), '0');
    return scan_.key_prefix + digits;
  }

  Status Page(const std::string& request, uint64_t replies, ScanResult* result) {
    const int64_t begin_ns = NowNanos();
    RETURN_IF_ERROR(socket_.SendAll(request));
    head_.clear();
    while (replies > 0) {
      const ssize_t got = recv(socket_.fd(), buffer_.data(), buffer_.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Status::Error(ErrorCode::kIo, "the connection was lost during a scan");
      const auto bytes = static_cast<size_t>(got);
      if (head_.size() < kHeadBytes) {
        head_.append(buffer_.data(), std::min(bytes, kHeadBytes - head_.size()));
      }
      replies -= std::min(replies, skipper_.Skip(buffer_.data(), bytes));
    }
    ++result->pages;
    result->page_latency.Record(static_cast<uint64_t>(NowNanos() - begin_ns));
    return Status::Ok();
  }

  // The cursor from the beginning of a reply: *2 CRLF $n CRLF cursor.
  Result<std::string> CursorOfHead() const {
    const size_t header = head_.find("\r\n$");
    const size_t begin = header == head_.npos ? head_.npos : head_.find("\r\n", header + 2);
    const size_t end = begin == head_.npos ? head_.npos : head_.find("\r\n", begin + 2);
    if (end == head_.npos) return Status::Error(ErrorCode::kIo, "no cursor in: " + head_);
    return head_.substr(begin + 2, end - begin - 2);
  }

  const ScanOptions& scan_;
  Socket socket_;
  std::vector<char> buffer_;
  std::string head_;
  ReplySkipper skipper_;
};

}  // namespace

Result<ScanResult> RunScan(const ScanOptions& scan, const PhaseOptions& options) {
  ASSIGN_OR_RETURN(Socket socket, Socket::Connect(options.host, options.port));
  Scanner scanner(scan, std::move(socket));
  ScanResult result;
  const double cpu_before = ProcessCpuSeconds(options.server_pid);
  const int64_t begin_ns = NowNanos();
  do {
    RETURN_IF_ERROR(scanner.Once(&result));
    ++result.scans;
    result.seconds = static_cast<double>(NowNanos() - begin_ns) * 1e-9;
  } while (result.seconds < options.seconds && scanner.skipper().first_error().empty());
  if (cpu_before >= 0) {
    result.server_cpu_seconds = ProcessCpuSeconds(options.server_pid) - cpu_before;
  }
  result.values = scanner.skipper().values();
  result.first_error = scanner.skipper().first_error();
  return result;
}

}  // namespace cellar::benchmark
