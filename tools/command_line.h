// How the programs in tools/ answer a command line that makes no sense: one line that names the
// word at fault, and where to read on. CLI11 looks for what is missing before it looks at what it
// does not know, so that a mistyped option was told as a missing table.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/near_word.h"

namespace cellar {

// What is wrong with the words that `app` has refused with `error`.
inline std::string CommandLineFault(const CLI::App& app, const CLI::ParseError& error) {
  constexpr std::string_view kUnreadable = "Could not convert: ";
  for (const std::string& word : app.remaining()) {
    if (!word.starts_with('-') || word.size() < 2) continue;
    const std::string option = word.substr(0, word.find('='));
    std::vector<std::string> names;
    for (const CLI::Option* known : app.get_options()) {
      for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
    }
    const auto near =
        FindNearWord(names, option, [](const std::string& name) { return std::string_view(name); });
    return "there is no option '" + option + "'" +
           (near == names.end() ? "" : ", did you mean '" + *near + "'?");
  }
  std::string text = error.what();
  // All that is converted is a number.
  if (text.starts_with(kUnreadable)) {
    return text.substr(kUnreadable.size()) + " is not a number";
  }
  if (text.starts_with("The following argument")) {
    return "too many words: " + text.substr(text.find(": ") + 2);
  }
  return text;
}

// Answers the words that `app` has refused: --help and --version on the standard output, with true;
// a mistake on the standard error, with false.
inline bool EndsWell(const CLI::App& app, const CLI::ParseError& error, const char* program) {
  if (error.get_exit_code() == 0) return app.exit(error) == 0;
  (void)std::fprintf(stderr, "%s: %s\nRun %s --help for more information.\n", program,
                     CommandLineFault(app, error).c_str(), program);
  return false;
}

}  // namespace cellar
