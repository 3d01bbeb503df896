// How the programs in tools/ read their command line, and answer one that makes no sense: one line
// that names the word at fault, and where to read on. CLI11 looks for what is missing before it
// looks at what it does not know, so that a mistyped option was told as a missing table.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/near_word.h"
#include "cellar/version.h"

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

// The exit status of a program whose command line makes no sense.
inline constexpr int kStatusUsage{2};

// Declares --help and --version. -h is left to the host, as it is for redis-cli.
inline void AddCommonFlags(CLI::App* app) {
  app->set_help_flag("--help", "print this help");
  app->set_version_flag("--version", "Cellar " + std::string(kVersion), "print the version");
}

// Reads the words into what `app`, which bears the program's name, has declared. False: the program
// ends with *status. It has answered: --help and --version on the standard output, with 0; a
// mistake on the standard error, with kStatusUsage.
inline bool ReadCommandLine(CLI::App* app, int argc, char** argv, int* status) {
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    *status = error.get_exit_code() == 0 ? app->exit(error) : kStatusUsage;
    if (*status != 0) {
      const std::string program = app->get_name();
      (void)std::fprintf(stderr, "%s: %s (see %s --help)\n", program.c_str(),
                         CommandLineFault(*app, error).c_str(), program.c_str());
    }
    return false;
  }
  return true;
}

// Whether the words that could be read make sense together: `mistake` is empty. Tells it otherwise;
// the program ends with *status.
inline bool MakesSense(const CLI::App& app, const std::string& mistake, int* status) {
  if (mistake.empty()) return true;
  (void)std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), mistake.c_str());
  *status = kStatusUsage;
  return false;
}

}  // namespace cellar
