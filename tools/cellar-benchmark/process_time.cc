// See process_time.h.
#include "process_time.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace cellar::benchmark {

double ProcessCpuSeconds(int32_t pid) {
  if (pid <= 0) return -1.0;
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::stringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  const size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return -1.0;
  std::istringstream fields(text.substr(name_end + 2));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  uint64_t user = 0;
  uint64_t system = 0;
  fields >> user >> system;
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace cellar::benchmark
