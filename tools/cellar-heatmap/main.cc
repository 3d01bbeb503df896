// cellar-heatmap: draws what HEAT answers (picture.h), as SVG, PNG, or in the terminal.
#include <cstdio>
#include <optional>
#include <string>

#include "cellar-heatmap/heat.h"
#include "cellar-heatmap/options.h"
#include "cellar-heatmap/picture.h"
#include "client/connection.h"

namespace {

using cellar::heatmap::Options;

constexpr int kStatusFailed{1};
constexpr int kStatusNoServer{2};

int Fail(int status, const std::string& text) {
  (void)std::fprintf(stderr, "cellar-heatmap: %s\n", text.c_str());
  return status;
}

// "-" is the standard output.
bool Write(const std::string& path, const std::string& bytes) {
  const bool standard = path == "-";
  std::FILE* const file = standard ? stdout : std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  written = std::fflush(file) == 0 && written;
  if (!standard) written = std::fclose(file) == 0 && written;
  return written;
}

int Draw(const Options& options, const cellar::heatmap::Grid& grid) {
  using namespace cellar::heatmap;  // NOLINT(google-build-using-namespace): the program's own names
  if (!options.svg_path.empty() && !Write(options.svg_path, Svg(grid, options.theme))) {
    return Fail(kStatusFailed, options.svg_path + " cannot be written");
  }
  if (!options.png_path.empty()) {
    const cellar::Result<std::string> png = Png(grid, options.theme);
    if (!png.ok()) return Fail(kStatusFailed, png.status().text());
    if (!Write(options.png_path, *png)) {
      return Fail(kStatusFailed, options.png_path + " cannot be written");
    }
  }
  if (!options.terminal) return 0;
  const std::string text =
      TerminalText(grid, options.columns, options.lines, options.colours, options.theme);
  return Write("-", text) ? 0 : kStatusFailed;
}

}  // namespace

int main(int argc, char** argv) {
  int status{0};
  const std::optional<Options> options = cellar::heatmap::ParseOptions(argc, argv, &status);
  if (!options) return status;
  cellar::Result<cellar::client::Connection> connection =
      cellar::client::Connection::Open(options->connection);
  if (!connection.ok()) return Fail(kStatusNoServer, connection.status().text());
  const cellar::Result<cellar::heatmap::Grid> grid =
      cellar::heatmap::Ask(&*connection, options->question);
  if (!grid.ok()) return Fail(kStatusFailed, grid.status().text());
  return Draw(*options, *grid);
}
