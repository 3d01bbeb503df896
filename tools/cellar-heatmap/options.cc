// See options.h.
#include "cellar-heatmap/options.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <string_view>

#include "client/program.h"
#include "command_line.h"

namespace cellar::heatmap {
namespace {

constexpr char kDescription[] =
    "Draws where a table was read and written, minute by minute: time goes right, keys go down.\n"
    "Without --svg and --png it draws in the terminal.\n"
    "Exit status: 0 drawn; 1 the server's answer was an error, or the file cannot be written; 2 "
    "the "
    "command line makes no sense, or there is no server.";

struct RawOptions {
  std::string colour{"auto"};
  std::string theme{"auto"};
};

std::string_view Environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

void AddOptions(CLI::App* app, Options* options, RawOptions* raw) {
  Question& question = options->question;
  app->add_option("table", question.table, "table, or keyspace/table")->required();
  const std::string what{"What"};
  app->add_option("-m,--metric", question.metric, "reads, writes (rows), or bytes (both ways)")
      ->check(CLI::IsMember({"reads", "writes", "bytes"}))
      ->group(what);
  app->add_option("--from", question.from, "microseconds since 1970; all minutes that are kept")
      ->group(what);
  app->add_option("--to", question.to, "microseconds since 1970; now")->group(what);
  app->add_option("--step", question.step, "a column's duration, as 1m, 15m, 1h (1m)")->group(what);
  app->add_option("--ranges", question.ranges, "rows of the picture (64)")
      ->check(CLI::Range(1U, 256U))
      ->group(what);
  const std::string how{"How"};
  app->add_option("--svg", options->svg_path, "file to write")->group(how);
  app->add_option("--png", options->png_path, "file to write")->group(how);
  app->add_flag("--terminal", options->terminal, "draw in the terminal, besides files")->group(how);
  app->add_option("--width", options->columns, "columns of the terminal (its own, else 80)")
      ->check(CLI::Range(size_t{26}, size_t{2000}))
      ->group(how);
  app->add_option("--height", options->lines, "lines of the terminal (its own, else 24)")
      ->check(CLI::Range(size_t{10}, size_t{1000}))
      ->group(how);
  app->add_option("--colour,--color", raw->colour, "auto, true (24 bits), 256, none")
      ->check(CLI::IsMember({"auto", "true", "256", "none"}))
      ->group(how);
  app->add_option("--theme", raw->theme, "dark, light; auto: files light, the terminal dark")
      ->check(CLI::IsMember({"auto", "dark", "light"}))
      ->group(how);
}

Colours ColoursOf(const std::string& word) {
  if (word == "true") return Colours::kTrue;
  if (word == "256") return Colours::k256;
  const bool plain = word == "none" || !Environment("NO_COLOR").empty() ||
                     isatty(STDOUT_FILENO) != 1 || Environment("TERM") == "dumb";
  if (plain) return Colours::kNone;
  const std::string_view kind = Environment("COLORTERM");
  return kind == "truecolor" || kind == "24bit" ? Colours::kTrue : Colours::k256;
}

void Complete(const RawOptions& raw, Options* options) {
  const bool files = !options->svg_path.empty() || !options->png_path.empty();
  options->terminal = options->terminal || !files;
  options->colours = ColoursOf(raw.colour);
  const bool light = raw.theme == "light" || (raw.theme == "auto" && files);
  options->theme = light ? Theme::kLight : Theme::kDark;
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  if (options->columns == 0) options->columns = known ? size.ws_col : 80;
  if (options->lines == 0) options->lines = known ? size.ws_row : 24;
}

}  // namespace

std::optional<Options> ParseOptions(int argc, char** argv, int* status) {
  Options options;
  RawOptions raw;
  CLI::App app{kDescription, "cellar-heatmap"};
  AddCommonFlags(&app);
  AddOptions(&app, &options, &raw);
  client::AddServerOptions(&app, &options.connection);
  if (!ReadCommandLine(&app, argc, argv, status)) return std::nullopt;
  Complete(raw, &options);
  return options;
}

}  // namespace cellar::heatmap
