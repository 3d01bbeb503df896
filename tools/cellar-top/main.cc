// cellar-top: looks at a server now and then and shows what it does (screen.h), in the terminal or,
// with --once, as lines for scripts.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "cellar-top/options.h"
#include "cellar-top/sample.h"
#include "cellar-top/screen.h"
#include "cellar-top/terminal.h"
#include "client/connection.h"
#include "client/program.h"

namespace cellar::top {
namespace {

constexpr int kStatusFailed{2};

int Fail(const std::string& text) {
  (void)std::fprintf(stderr, "cellar-top: %s\n", text.c_str());
  return kStatusFailed;
}

int PrintOnce(const Options& options, client::Connection* connection, const Sample& before) {
  std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
  const Result<Sample> now = Take(connection);
  if (!now.ok()) return Fail(now.status().text());
  for (const Line& line : Lines(before, *now, options.view)) {
    std::string text = line.text;
    while (text.ends_with(' ')) text.pop_back();
    (void)std::printf("%s\n", text.c_str());
  }
  return std::fflush(stdout) == 0 ? 0 : kStatusFailed;
}

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A server that has gone is tried again at each look.
class Watch {
 public:
  Watch(Options options, client::Connection connection, Sample first)
      : options_(std::move(options)),
        connection_(std::move(connection)),
        before_(first),
        now_(std::move(first)) {}

  int Run(const volatile bool* stopped) {
    Terminal terminal;
    double next = SecondsNow() + 0.5;  // the first rates soon
    for (;;) {
      options_.view.columns = terminal.columns();
      terminal.Show(Lines(before_, now_, options_.view), message_);
      const int key = terminal.WaitKey(next - SecondsNow());
      if (*stopped || key == 'q' || key == 'Q') return 0;
      if (key == 's') options_.view.shows_cluster = !options_.view.shows_cluster;
      if (key == ' ') held_ = !held_;
      if (key == 't') options_.view.order = Order::kTime;
      if (key == 'c') options_.view.order = Order::kCalls;
      if (key == 'n') options_.view.order = Order::kName;
      if (held_) message_ = "held; space goes on";
      if (!held_ && message_.starts_with("held")) message_.clear();
      if (SecondsNow() < next) continue;
      next = SecondsNow() + options_.interval_s;
      if (!held_) Look();
    }
  }

 private:
  void Look() {
    if (!connection_) {
      Result<client::Connection> again = client::Connection::Open(options_.connection);
      if (!again.ok()) {
        message_ = again.status().text();
        return;
      }
      connection_ = *std::move(again);
    }
    Result<Sample> taken = Take(&*connection_);
    if (!taken.ok()) {
      message_ = "no answer: " + taken.status().text();
      connection_.reset();
      return;
    }
    message_.clear();
    before_ = std::move(now_);
    now_ = *std::move(taken);
  }

  Options options_;
  std::optional<client::Connection> connection_;
  Sample before_;
  Sample now_;
  std::string message_;
  bool held_{false};
};

int Main(int argc, char** argv) {
  int status{0};
  std::optional<Options> options = ParseOptions(argc, argv, &status);
  if (!options) return status;
  const volatile bool* const stopped = client::CatchStopSignals();
  Result<client::Connection> connection = client::Connection::Open(options->connection);
  if (!connection.ok()) return Fail(connection.status().text());
  Result<Sample> first = Take(&*connection);
  if (!first.ok()) return Fail(first.status().text());
  if (options->once) return PrintOnce(*options, &*connection, *first);
  if (isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1) {
    return Fail("this is no terminal; --once prints to a file");
  }
  return Watch(*std::move(options), *std::move(connection), *std::move(first)).Run(stopped);
}

}  // namespace
}  // namespace cellar::top

int main(int argc, char** argv) { return cellar::top::Main(argc, argv); }
