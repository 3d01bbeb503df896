// The cellar server: reads the options, wires store, server and loop, serves.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "cellar/clock.h"
#include "server/server.h"
#include "store/store.h"

int main(int argc, char** argv) {
  cellar::ServerOptions options;
  cellar::StoreOptions store_options;
  cellar::JournalOptions& journal = store_options.journal;
  journal.directory = ".";
  for (int i = 1; i + 1 < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view value = argv[i + 1];
    if (word == "--port") options.port = std::atoi(argv[i + 1]);
    if (word == "--bind") options.bind = value;
    if (word == "--unixsocket") options.unix_socket = value;
    if (word == "--dir") journal.directory = value;
    if (word == "--appendonly") journal.log_enabled = value == "yes";
    if (word == "--appendfsync") {
      journal.sync_policy = value == "always" ? cellar::SyncPolicy::kAlways
                            : value == "no"   ? cellar::SyncPolicy::kNo
                                              : cellar::SyncPolicy::kEverySecond;
    }
  }
  cellar::Server server(cellar::Clock::System());
  journal.wake = [&server] { server.Wake(); };
  cellar::Result<std::unique_ptr<cellar::Store>> store = cellar::Store::Open(
      std::move(store_options), cellar::FileSystem::Posix(), cellar::Clock::System(), {});
  if (!store.ok()) {
    (void)std::fprintf(stderr, "cellar: %s\n", store.status().ToString().c_str());
    return 1;
  }
  server.Attach(store->get());
  if (const cellar::Status status = server.Listen(options); !status.ok()) {
    (void)std::fprintf(stderr, "cellar: %s\n", status.ToString().c_str());
    return 1;
  }
  const int exit_status = server.Run();
  const cellar::Status closed = (*store)->journal().Close();
  if (!closed.ok()) (void)std::fprintf(stderr, "cellar: %s\n", closed.ToString().c_str());
  return closed.ok() ? exit_status : 1;
}
