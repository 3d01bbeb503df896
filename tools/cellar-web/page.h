// The files of the page, which stand in the binary.
#pragma once

#include <span>
#include <string_view>

namespace cellar::web {

struct PageFile {
  std::string_view path;
  std::string_view type;
  std::string_view content;
};

std::span<const PageFile> PageFiles();

}  // namespace cellar::web
