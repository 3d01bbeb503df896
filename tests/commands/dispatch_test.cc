// Dispatch: what is refused and in which words, MULTI, reply modes, tasks in slices, reply gates.
#include "commands/dispatch/dispatch.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "commands/all_commands.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/transaction.h"
#include "tests/commands/fake_host.h"

namespace cellar {
namespace dispatch_test {

using fake_host::FakeHost;

// Replies the numbers 1 to 3, one a step.
class CountingTask final : public Task {
 public:
  TaskProgress Step(TaskContext& context) override {
    if (next_ == 1) mark_ = context.reply.BeginArray(0);
    do {
      context.reply.Integer(next_);
    } while (++next_ <= 3 && context.budget.unlimited());
    context.depends_on = Lsn{1, 5};
    if (next_ <= 3) return TaskProgress::kMore;
    context.reply.EndArray(mark_, 3);
    return TaskProgress::kDone;
  }

 private:
  ReplyWriter::Mark mark_{};
  int64_t next_{1};
};

// Works for kSliceMillis in each of kSlices steps, and gives way to others between them.
class WorkingTask final : public Task {
 public:
  static constexpr int64_t kSliceMillis{2};
  static constexpr int64_t kSlices{10};

  TaskProgress Step(TaskContext& context) override {
    const int64_t end = Clock::System().MonotonicMicros() + kSliceMillis * 1000 + 500;
    while (Clock::System().MonotonicMicros() < end) {
    }
    if (++slices_ < kSlices) return TaskProgress::kMore;
    context.reply.Ok();
    return TaskProgress::kDone;
  }

 private:
  int64_t slices_{0};
};

// Fails in its second step.
class FailingTask final : public Task {
 public:
  TaskProgress Step(TaskContext& context) override {
    if (++steps_ < 2) return TaskProgress::kMore;
    context.Fail(Status::Error(ErrorCode::kTooLarge, "it is"));
    return TaskProgress::kDone;
  }

 private:
  int64_t steps_{0};
};

void CmdFailing(CommandContext& ctx) { ctx.Fail("NOLUCK none\r\nleft"); }
void CmdFailingLater(CommandContext& ctx) { ctx.Continue(std::make_unique<FailingTask>()); }
void CmdWorking(CommandContext& ctx) { ctx.Continue(std::make_unique<WorkingTask>()); }
void CmdCounting(CommandContext& ctx) { ctx.Continue(std::make_unique<CountingTask>()); }
void CmdLogged(CommandContext& ctx) {
  ctx.DependsOn(Lsn{1, 7});
  ctx.reply.Ok();
}

constexpr Command kTestRows[] = {
    {.name = "counting", .arity = 1, .handler = CmdCounting},
    {.name = "failing", .arity = 1, .handler = CmdFailing},
    {.name = "failing-later", .arity = 1, .handler = CmdFailingLater},
    {.name = "working", .arity = 1, .handler = CmdWorking},
    {.name = "logged", .arity = 1, .flags = kWrite | kDenyOom, .handler = CmdLogged},
};

std::unique_ptr<FakeHost> NewHost() {
  auto host = std::make_unique<FakeHost>();
  AddAllCommands(&host->own_services.commands);
  host->own_services.commands.Add(kTestRows);
  return host;
}

TEST_CASE("A command is refused in the words of Redis", "[commands]") {
  const auto host = NewHost();
  REQUIRE(host->Say({"PING"}) == "+PONG\r\n");
  REQUIRE(host->Say({"foo", "a", "b"}) ==
          "-ERR unknown command 'foo', with args beginning with: 'a' 'b' \r\n");
  REQUIRE(host->Say({"ECHO"}) == "-ERR wrong number of arguments for 'echo' command\r\n");
  REQUIRE(host->Say({"CLIENT", "nonsense"}) ==
          "-ERR unknown subcommand 'nonsense'. Try CLIENT HELP.\r\n");
  REQUIRE(host->Say({"CLIENT"}) == "-ERR wrong number of arguments for 'client' command\r\n");
  host->own_services.config.maxmemory = 999;
  REQUIRE(host->Say({"LOGGED"}) == "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
  host->set_loading(true);
  REQUIRE(host->Say({"COUNTING"}) == "-LOADING Cellar is loading the dataset in memory\r\n");
  host->session.authenticated = false;
  REQUIRE(host->Say({"PING"}) == "-NOAUTH Authentication required.\r\n");
  REQUIRE(host->Say({"foo"}) == "-NOAUTH Authentication required.\r\n");
  REQUIRE(host->own_services.stats.errors.at("NOAUTH") == 2);
  REQUIRE(host->own_services.commands.Find("echo")->stats.rejected_calls == 1);
}

TEST_CASE("A web browser is shown the door", "[commands]") {
  const auto host = NewHost();
  REQUIRE(host->Say({"POST", "/", "HTTP/1.1"}).empty());
  REQUIRE(host->session.ending());
}

TEST_CASE("MULTI queues, a refusal aborts, DISCARD forgets", "[commands]") {
  const auto host = NewHost();
  REQUIRE(host->Say({"EXEC"}) == "-ERR EXEC without MULTI\r\n");
  REQUIRE(host->Say({"MULTI"}) == "+OK\r\n");
  REQUIRE(host->Say({"MULTI"}) == "-ERR MULTI calls can not be nested\r\n");
  REQUIRE(host->Say({"ECHO", "a"}) == "+QUEUED\r\n");
  REQUIRE(host->Say({"ECHO"}).starts_with("-ERR wrong number"));
  REQUIRE(host->Say({"EXEC"}) ==
          "-EXECABORT Transaction discarded because of previous errors.\r\n");
  REQUIRE_FALSE(host->session.in_multi());
  REQUIRE(host->Say({"MULTI"}) == "+OK\r\n");
  REQUIRE(host->Say({"DISCARD"}) == "+OK\r\n");
  REQUIRE(host->Say({"DISCARD"}) == "-ERR DISCARD without MULTI\r\n");
}

TEST_CASE("CLIENT REPLY silences one command or all", "[commands]") {
  const auto host = NewHost();
  REQUIRE(host->Say({"CLIENT", "REPLY", "SKIP"}).empty());
  REQUIRE(host->Say({"PING"}).empty());
  REQUIRE(host->Say({"PING"}) == "+PONG\r\n");
  REQUIRE(host->Say({"CLIENT", "REPLY", "OFF"}).empty());
  REQUIRE(host->Say({"foo"}).empty());
  REQUIRE(host->Say({"CLIENT", "REPLY", "ON"}) == "+OK\r\n");
}

TEST_CASE("A task writes its reply over several steps, behind its log record", "[commands]") {
  const auto host = NewHost();
  Session& session = host->session;
  REQUIRE(host->Say({"COUNTING"}).empty());
  REQUIRE(session.task != nullptr);
  const TaskBudget budget(Clock::System(), 0);
  REQUIRE_FALSE(host->own_dispatcher.StepTask(session, budget));
  REQUIRE_FALSE(host->own_dispatcher.StepTask(session, budget));
  REQUIRE(session.output.empty());
  REQUIRE(host->own_dispatcher.StepTask(session, budget));
  REQUIRE(session.output.view() == "*3\r\n:1\r\n:2\r\n:3\r\n");
  REQUIRE(session.task == nullptr);
  REQUIRE(session.gates.size() == 1);
  REQUIRE(session.gates[0].position == 0);
  REQUIRE(session.gates[0].lsn == Lsn{1, 5});
}

TEST_CASE("A failure is counted by its word, whether or not the client hears of it", "[commands]") {
  const auto host = NewHost();
  const auto failed_calls = [&](std::string_view name) {
    return host->own_services.commands.Find(name)->stats.failed_calls;
  };
  REQUIRE(host->Say({"FAILING"}) == "-NOLUCK none  left\r\n");
  REQUIRE(host->Say({"CLIENT", "REPLY", "SKIP"}).empty());
  REQUIRE(host->Say({"FAILING"}).empty());
  REQUIRE(failed_calls("failing") == 2);
  REQUIRE(host->Say({"FAILING-LATER"}).empty());
  const TaskBudget budget(Clock::System(), 0);
  REQUIRE_FALSE(host->own_dispatcher.StepTask(host->session, budget));
  REQUIRE(failed_calls("failing-later") == 0);
  REQUIRE(host->own_dispatcher.StepTask(host->session, budget));
  REQUIRE(host->session.output.view() == "-TOOLARGE it is\r\n");
  REQUIRE(failed_calls("failing-later") == 1);
  const auto& errors = host->own_services.stats.errors;
  REQUIRE(errors.size() == 2);
  REQUIRE(errors.find("NOLUCK")->second == 2);
  REQUIRE(errors.find("TOOLARGE")->second == 1);
}

TEST_CASE("Commands are executed in order as long as the session proceeds", "[commands]") {
  const auto host = NewHost();
  Session& session = host->session;
  const auto parsed = [&](std::string_view name) {
    return ParsedCommand{{name}, host->own_services.commands.Find(name), {}};
  };
  const auto run = [&](const std::vector<ParsedCommand>& commands) {
    return host->own_dispatcher.ExecuteInOrder(session, commands);
  };
  const ParsedCommand nothing{};
  REQUIRE(run({parsed("PING"), nothing, parsed("LOGGED"), parsed("nonsense")}) == 4);
  REQUIRE(session.output.view().starts_with("+PONG\r\n+OK\r\n-ERR unknown command 'nonsense'"));
  REQUIRE(session.gates.size() == 1);
  REQUIRE(session.gates[0].position == 7);
  REQUIRE(run({parsed("PING"), parsed("COUNTING"), parsed("PING")}) == 2);
  REQUIRE(session.task != nullptr);
  session.task.reset();
  session.authenticated = false;
  REQUIRE(run({parsed("PING"), parsed("PING")}) == 1);
  session.authenticated = true;
  REQUIRE(run({parsed("QUIT"), parsed("PING")}) == 1);
  REQUIRE_FALSE(session.Proceeds());
}

TEST_CASE("A reply that depends on a log record is gated where it begins", "[commands]") {
  const auto host = NewHost();
  Session& session = host->session;
  host->Execute({"PING"});
  host->Execute({"LOGGED"});
  host->Execute({"LOGGED"});
  REQUIRE(session.gates.size() == 1);
  REQUIRE(session.gates[0].position == 7);
}

TEST_CASE("Replies of one turn share a gate, those of the next have their own", "[commands]") {
  Session session;
  session.AddGate(0, Lsn{});
  REQUIRE(session.gates.empty());
  session.AddGate(5, Lsn{1, 7});
  session.AddGate(10, Lsn{1, 8});
  session.AddGate(15, Lsn{1, 3});
  REQUIRE(session.gates.size() == 1);
  REQUIRE(session.gates[0].position == 5);
  REQUIRE(session.gates[0].lsn == Lsn{1, 8});
  session.gate_grows = false;  // the turn has ended
  session.AddGate(20, Lsn{1, 8});
  REQUIRE(session.gates.size() == 1);
  session.AddGate(25, Lsn{1, 9});
  session.AddGate(30, Lsn{1, 10});
  REQUIRE(session.gates.size() == 2);
  REQUIRE(session.gates[0].lsn == Lsn{1, 8});
  REQUIRE(session.gates[1].position == 25);
  REQUIRE(session.gates[1].lsn == Lsn{1, 10});
}

TEST_CASE("A paused command is put back, unanswered", "[commands]") {
  const auto host = NewHost();
  host->PauseClients(1, Host::Pause::kAll);
  REQUIRE(host->Say({"PING"}).empty());
  REQUIRE(host->session.postponed);
}

TEST_CASE("The slow log adds up the slices of a task, the latency monitor sees each of them",
          "[commands]") {
  const auto host = NewHost();
  host->own_services.config.slowlog_log_slower_than = 0;
  host->own_services.config.latency_monitor_threshold = WorkingTask::kSliceMillis;
  host->own_dispatcher.UpdateSlowBound();
  const auto& events = host->own_services.latency.events();
  const auto& entries = host->own_services.slow_log.entries();
  const TaskBudget budget(Clock::System(), 0);
  REQUIRE(host->Say({"WORKING"}).empty());
  REQUIRE(events.empty());
  REQUIRE_FALSE(host->own_dispatcher.StepTask(host->session, budget));
  // Others have waited for a slice, whatever becomes of the rest.
  REQUIRE(events.at("command").worst_millis >= WorkingTask::kSliceMillis);
  REQUIRE(entries.empty());
  for (int i = 2; i < WorkingTask::kSlices; ++i) {
    REQUIRE_FALSE(host->own_dispatcher.StepTask(host->session, budget));
  }
  REQUIRE(host->own_dispatcher.StepTask(host->session, budget));
  REQUIRE(entries.size() == 1);
  const int64_t others_millis = (WorkingTask::kSlices - 1) * WorkingTask::kSliceMillis;
  REQUIRE(entries[0].micros / 1000 >= events.at("command").worst_millis + others_millis);
}

TEST_CASE("Passwords do not reach the slow log", "[commands]") {
  const auto host = NewHost();
  host->own_services.config.slowlog_log_slower_than = 0;
  host->own_dispatcher.UpdateSlowBound();
  (void)host->Say({"AUTH", "default", "secret"});
  (void)host->Say({"HELLO", "3", "AUTH", "default", "secret"});
  for (const SlowLogEntry& entry : host->own_services.slow_log.entries()) {
    for (const std::string& word : entry.words) REQUIRE(word != "secret");
  }
  REQUIRE(host->own_services.slow_log.entries().size() == 2);
}

}  // namespace dispatch_test
}  // namespace cellar
