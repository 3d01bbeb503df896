// FakeHost: a process without sockets, in which commands are carried out.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "commands/dispatch/dispatch.h"
#include "commands/session/host.h"
#include "commands/session/parsed_command.h"
#include "commands/session/services.h"
#include "commands/session/session.h"
#include "replica/replication.h"

namespace fake_host {

using namespace cellar;  // NOLINT(google-build-using-namespace)

// With one client, and no data unless a store is lent to it.
class FakeHost final : public Host, private ReplicationHost {
 public:
  FakeHost() {
    services_ = &own_services;
    dispatcher_ = &own_dispatcher;
    set_loading(false);
  }
  void set_loading(bool loading) { loading_ = loading; }
  void set_store(Store* store) { store_ = store; }
  void set_clock(Clock* clock) { clock_ = clock; }
  Clock& clock() override { return *clock_; }
  int64_t now_micros() const override { return Clock::System().WallMicros(); }
  Lsn released_lsn() const override { return {}; }
  Lsn durable_lsn() const override { return {}; }
  Lsn last_lsn() const override { return {}; }
  uint64_t memory_used_bytes() const override { return 1000; }
  MemoryFigures memory() override { return {}; }
  PersistenceFigures persistence() override { return {}; }
  DataFigures data_figures() override { return {}; }
  std::vector<KeyspaceFigures> keyspaces() override { return {}; }
  Status StartSnapshot() override { return {}; }
  Status FinishSnapshot() override { return {}; }
  Status ReloadStore() override { return {}; }
  void ReleaseFreeMemory() override {}
  void ForEachSession(const std::function<void(Session&)>& visit) override { visit(session); }
  Session* FindSession(uint64_t) override { return nullptr; }
  size_t session_count() const override { return 1; }
  void KillSession(Session& killed) override { killed.End(); }
  void ScheduleFlush(Session&) override {}
  void Pushed(Session&, size_t) override {}
  void EndForOutput(Session& ended) override { ended.End(); }
  void PauseClients(int64_t, Pause pause) override { pause_ = pause; }
  void UnpauseClients() override {}
  void WakeTasks() override {}
  Status Shutdown(ShutdownMode) override { return {}; }
  Status ApplyConfig(ConfigTopic) override { return {}; }
  Replication& replication() override { return replication_; }
  Result<std::string> AcceptPeer(Session&, std::string_view, std::string_view, std::string_view,
                                 std::string_view, std::string_view) override {
    return Status::Error(ErrorCode::kErr, "no peers here");
  }
  Status FollowLeader(const std::string&, uint16_t) override { return {}; }

  void Execute(const std::vector<std::string_view>& words) {
    const ParsedCommand command{words, own_services.commands.Find(words[0]), {}};
    (void)own_dispatcher.ExecuteInOrder(session, {&command, 1});
  }

  // The reply to one command.
  std::string Say(const std::vector<std::string_view>& words) {
    Execute(words);
    std::string reply(session.output.view());
    session.output.Clear();
    return reply;
  }

  Services own_services;
  Dispatcher own_dispatcher{*this};
  Session session;

 private:
  void Dial(const std::string&, uint16_t, PeerHandler*) override {}
  void DialSocket(const std::string&, PeerHandler*) override {}
  void CancelDial(PeerHandler*) override {}
  void RunInBackground(std::function<void()>, std::function<void()>) override {}
  void WakeSoon() override {}
  void OnRoleChanged() override {}
  void DropClients() override {}
  void WakeReads() override {}
  void EndProcess(const std::string&) override {}
  void DisconnectClients() override {}
  void HoldWrites(bool) override {}
  Status ReplaceStore(const std::function<Status(Status*)>&) override { return {}; }

  Clock* clock_{&Clock::System()};
  Replication replication_{*this, FileSystem::Posix(), Clock::System()};
};

}  // namespace fake_host
