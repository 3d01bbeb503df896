// See options.h.
#include "cellar-cluster/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/near_word.h"
#include "client/program.h"
#include "command_line.h"

namespace cellar::cluster_tool {
namespace {

constexpr char kDescription[] =
    "Plans, starts and looks after a cluster of several sets: cellar-cluster(7).\n"
    "  plan MACHINE ...  which node where, with its configuration, and what is unwise about it\n"
    "  start             a cluster on this machine; what stands already is joined\n"
    "  stop              all nodes that start has started\n"
    "  status            sets, nodes, who leads, tablets, and what is wrong, in words\n"
    "  map [TABLE]       the tablets, and which set has them\n"
    "  events            what has been done to the cluster, newest first\n"
    "  backup            a backup of all sets, of one moment, where `backupdirname` says\n"
    "  recover FROM      the folders of all sets, out of a backup or archives: --sets DIR DIR ...\n"
    "Exit status: 0 done, or all is well; 1 something is wrong, and it is named; 2 the command "
    "line "
    "makes no sense.";

struct ActionRow {
  std::string_view name;
  Action action;
  size_t words_min;
  size_t words_max;
  std::string_view
      options;  // that it takes beside --auth and --auth-file, each with a space behind
};

constexpr std::array<ActionRow, 8> kActions{{
    {"plan", Action::kPlan, 1, 4096, "--sets --voters --port --option --write --systemd --json "},
    {"start", Action::kStart, 0, 0,
     "--sets --voters --port --host --option --dir --systemd --server --wait --quiet --json "},
    {"stop", Action::kStop, 0, 0, "--dir --wait --quiet "},
    {"status", Action::kStatus, 0, 0, "--host --port --socket --user --dir --json "},
    {"map", Action::kMap, 0, 1, "--host --port --socket --keyspace --user --dir --json --count "},
    {"events", Action::kEvents, 0, 0, "--host --port --socket --user --dir --json --count "},
    {"backup", Action::kBackup, 0, 0, "--host --port --socket --user --dir --quiet "},
    {"recover", Action::kRecover, 1, 1,
     "--sets --until --server --quiet --s3-endpoint --s3-region --s3-credentials-file "},
}};

std::string Unknown(const std::string& word) {
  const auto* const near =
      FindNearWord(kActions, word, [](const ActionRow& row) { return row.name; });
  return "there is no '" + word + "'" +
         (near == kActions.end() ? ": plan, start, stop, status, map, events, backup or recover"
                                 : ", did you mean '" + std::string(near->name) + "'?");
}

// An option that `row` has no use for; empty: there is none.
std::string UselessOption(const CLI::App& app, const ActionRow& row) {
  constexpr std::string_view kOfAll{"--auth --auth-file --help --version "};
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    std::string name = "--" + option->get_lnames().front();
    const bool is_known = row.options.find(name + " ") != std::string_view::npos ||
                          kOfAll.find(name + " ") != std::string_view::npos;
    if (!is_known) return name;
  }
  return {};
}

std::string MistakeIn(const CLI::App& app, const ActionRow& row, const Options& options) {
  const std::string name(row.name);
  if (const std::string option = UselessOption(app, row); !option.empty())
    return name + " takes no " + option;
  const bool recovers = row.action == Action::kRecover;
  if (options.words.size() < row.words_min) {
    return recovers ? "recover: from where? cellar-cluster recover FROM --sets DIR DIR ..."
                    : name + ": which machines? cellar-cluster plan 192.0.2.1 192.0.2.2 192.0.2.3";
  }
  if (recovers && options.directories.empty())
    return "recover: into which folders? cellar-cluster recover FROM --sets DIR DIR ...";
  if (options.words.size() > row.words_max) {
    return "what is '" + options.words[row.words_max] + "'? " + name + " takes " +
           (row.words_max == 0 ? "no word behind it"
            : recovers         ? "one place, that of the backup"
                               : "one word, a table");
  }
  if (options.is_directory_given && (app.count("--port") + app.count("--socket") > 0) &&
      row.action != Action::kStart) {
    return "either --dir or a node's address";
  }
  return {};
}

void Declare(CLI::App* app, std::string* word, Options* options, bool recovers) {
  AddCommonFlags(app);
  app->add_option("action", *word, "plan, start, stop, status, map, events, backup or recover")
      ->required();
  app->add_option("words", options->words,
                  "plan: machines, each HOST or HOST@ZONE; map: a table; recover: a backup, or a "
                  "folder with an archive set-N of each set");
  const std::string made{"Planning and starting"};
  const std::string sets_text{
      "so many sets (start: 3; plan: one for each machine); recover: their new folders"};
  if (recovers) {
    app->add_option("--sets", options->directories, sets_text)
        ->expected(1, static_cast<int>(kSetsMax))
        ->group(made);
  } else {
    app->add_option("--sets", options->sets, sets_text)
        ->check(CLI::Range(uint64_t{1}, kSetsMax))
        ->group(made);
  }
  app->add_option("--until", options->until, "recover: a TIME, or CUT:n, a number of CLUSTER CUTS")
      ->group(made);
  app->add_option("--s3-endpoint", options->s3.endpoint,
                  "recover: the server of s3://BUCKET/PREFIX (else the environment tells)")
      ->group(made);
  app->add_option("--s3-region", options->s3.region, "recover: its region")->group(made);
  app->add_option("--s3-credentials-file", options->s3.credentials_file,
                  "recover: a file with the keys for it")
      ->group(made);
  app->add_option("--voters", options->voters, "nodes of a set (start: 1; plan: 3)")
      ->check(CLI::Range(uint64_t{1}, kVotersMax))
      ->group(made);
  app->add_option("-d,--dir", options->directory,
                  "the cluster's folder, with a folder for each node (cluster)")
      ->group(made);
  app->add_option("--option", options->lines, "a line for each node's configuration: \"save ''\"")
      ->group(made)
      ->allow_extra_args(false);
  app->add_option("--server", options->program, "the program cellar (the one beside this one)")
      ->group(made);
  app->add_flag("--systemd", options->systemd, "nodes are units cellar@NAME; DIR is /etc/cellar")
      ->group(made);
  app->add_option("--write", options->write_to, "plan: write the configuration files below it")
      ->group(made);
  app->add_option("--wait", options->wait_s, "seconds for each step before it has failed (60)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{86'400}))
      ->group(made);
  const std::string shown{"Showing"};
  app->add_flag("--json", options->json, "JSON, for programs")->group(shown);
  app->add_flag("-q,--quiet", options->quiet, "print nothing but errors")->group(shown);
  app->add_option("--count", options->count, "so many tablets (1000), or events (20)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{100'000}))
      ->group(shown);
  client::AddServerOptions(app, &options->connection);
}

}  // namespace

std::optional<Options> ParseOptions(int argc, char** argv, int* status) {
  Options options;
  std::string word;
  CLI::App app{kDescription, "cellar-cluster"};
  Declare(&app, &word, &options, argc > 1 && std::string_view(argv[1]) == "recover");
  if (!ReadCommandLine(&app, argc, argv, status)) return std::nullopt;
  const auto* const row = std::find_if(kActions.begin(), kActions.end(),
                                       [&](const ActionRow& each) { return each.name == word; });
  if (row == kActions.end()) {
    (void)MakesSense(app, Unknown(word), status);
    return std::nullopt;
  }
  options.action = row->action;
  options.is_directory_given = app.count("--dir") > 0;
  if (app.count("--port") > 0) options.port = options.connection.port;
  if (app.count("--host") > 0) options.host = options.connection.host;
  if (options.systemd && !options.is_directory_given) options.directory = "/etc/cellar";
  if (!MakesSense(app, MistakeIn(app, *row, options), status)) return std::nullopt;
  return options;
}

}  // namespace cellar::cluster_tool
