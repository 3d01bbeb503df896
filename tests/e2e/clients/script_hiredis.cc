// The script of test_clients.py for hiredis: script_hiredis HOST PORT TABLE. See test_clients.py
// for the steps. Prints "ok STEP" for each; leaves with 1 at the first that does not hold.
#include <hiredis/hiredis.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct ReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyDeleter>;

redisContext* Connect(const char* host, int port) {
  redisContext* context = redisConnect(host, port);
  if (context == nullptr || context->err != 0) {
    std::printf("not ok: connect\n");
    std::exit(1);
  }
  return context;
}

Reply Take(redisContext* context) {
  void* reply{nullptr};
  if (redisGetReply(context, &reply) != REDIS_OK) return nullptr;
  return Reply(static_cast<redisReply*>(reply));
}

void Send(redisContext* context, const std::vector<std::string>& words) {
  std::vector<const char*> pointers;
  std::vector<size_t> lengths;
  for (const std::string& word : words) {
    pointers.push_back(word.data());
    lengths.push_back(word.size());
  }
  redisAppendCommandArgv(context, static_cast<int>(words.size()), pointers.data(), lengths.data());
}

Reply Call(redisContext* context, const std::vector<std::string>& words) {
  Send(context, words);
  return Take(context);
}

std::string Text(const Reply& reply) {
  if (reply == nullptr) return "(lost)";
  if (reply->type == REDIS_REPLY_NIL) return "(nil)";
  if (reply->type == REDIS_REPLY_INTEGER) return std::to_string(reply->integer);
  return reply->str == nullptr ? "(array)" : std::string(reply->str, reply->len);
}

void Expect(const char* step, bool holds, const std::string& seen) {
  if (!holds) {
    std::printf("not ok: %s: %s\n", step, seen.substr(0, 200).c_str());
    std::exit(1);
  }
}

void ExpectText(const char* step, const Reply& reply, const std::string& wanted) {
  Expect(step, Text(reply) == wanted, Text(reply));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const char* host = argv[1];
  const int port = std::atoi(argv[2]);
  const std::string table{argv[3]};
  redisContext* one = Connect(host, port);
  redisContext* other = Connect(host, port);
  ExpectText("ping", Call(one, {"PING"}), "PONG");
  ExpectText("name", Call(one, {"CLIENT", "SETNAME", "script"}), "OK");
  std::puts("ok connect");

  ExpectText("create",
             Call(one, {"TABLE", "CREATE", table, "FAMILY", "f", "FAMILY", "n", "TYPE", "i64"}),
             "OK");
  ExpectText("exists", Call(one, {"EXISTS", table}), "1");
  ExpectText("type", Call(one, {"TYPE", table}), "table");
  ExpectText("rename", Call(one, {"RENAME", table, table + "2"}), "OK");
  ExpectText("rename back", Call(one, {"RENAME", table + "2", table}), "OK");
  std::puts("ok generic");

  ExpectText("cput", Call(one, {"CPUT", table, "r", "f:a", "1", "n:x", "42"}), "OK");
  ExpectText("cget", Call(one, {"CGET", table, "r", "f:a"}), "1");
  ExpectText("cget number", Call(one, {"CGET", table, "r", "n:x"}), "42");
  ExpectText("cget nothing", Call(one, {"CGET", table, "r", "f:none"}), "(nil)");
  ExpectText("cincrby", Call(one, {"CINCRBY", table, "r", "n:x", "1"}), "43");
  const Reply row = Call(one, {"CROW", table, "r"});
  Expect("crow", row->elements == 4 && std::string_view(row->element[0]->str) == "f:a", Text(row));
  const Reply scan = Call(one, {"CSCAN", table, "0"});
  Expect("cscan", scan->elements == 2 && scan->element[1]->elements == 1, Text(scan));
  ExpectText("cdel", Call(one, {"CDEL", table, "r"}), "3");
  std::puts("ok cells");

  const Reply error = Call(one, {"CGET", "nosuchtable", "r", "f:a"});
  Expect("error", error->type == REDIS_REPLY_ERROR && Text(error).starts_with("NOTABLE "),
         Text(error));
  std::puts("ok errors");

  for (int i = 0; i < 10'000; ++i) {
    Send(one, {"CPUT", table, "p" + std::to_string(i), "f:a", std::to_string(i)});
  }
  for (int i = 0; i < 10'000; ++i) ExpectText("pipeline", Take(one), "OK");
  ExpectText("ccount", Call(one, {"CCOUNT", table, "PREFIX", "p"}), "10000");
  std::puts("ok pipeline");

  ExpectText("multi", Call(one, {"MULTI"}), "OK");
  ExpectText("queue", Call(one, {"CPUT", table, "m", "f:a", "1"}), "QUEUED");
  ExpectText("queue", Call(one, {"CINCRBY", table, "m", "n:x", "5"}), "QUEUED");
  const Reply done = Call(one, {"EXEC"});
  Expect("exec", done->elements == 2 && done->element[1]->integer == 5, Text(done));
  ExpectText("watch", Call(one, {"WATCH", table}), "OK");
  ExpectText("conflict", Call(other, {"CPUT", table, "m", "f:a", "2"}), "OK");
  ExpectText("multi", Call(one, {"MULTI"}), "OK");
  ExpectText("queue", Call(one, {"CPUT", table, "m", "f:a", "3"}), "QUEUED");
  ExpectText("exec in conflict", Call(one, {"EXEC"}), "(nil)");
  ExpectText("untouched", Call(one, {"CGET", table, "m", "f:a"}), "2");
  std::puts("ok transactions");

  const std::string large(10'000'000, 'x');
  ExpectText("large", Call(one, {"CPUT", table, "l", "f:a", large}), "OK");
  Expect("large back", Text(Call(one, {"CGET", table, "l", "f:a"})) == large, "differs");
  std::puts("ok large");

  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  ExpectText("binary", Call(one, {"CPUT", table, bytes, "f:" + bytes, bytes}), "OK");
  Expect("binary back", Text(Call(one, {"CGET", table, bytes, "f:" + bytes})) == bytes, "differs");
  std::puts("ok binary");

  const std::string id{Text(Call(one, {"CLIENT", "ID"}))};
  ExpectText("kill", Call(other, {"CLIENT", "KILL", "ID", id}), "1");
  Expect("killed", Call(one, {"PING"}) == nullptr, "still there");
  Expect("reconnect", redisReconnect(one) == REDIS_OK, "refused");
  ExpectText("after reconnect", Call(one, {"CGET", table, "m", "f:a"}), "2");
  std::puts("ok reconnect");

  const std::string number{Text(Call(one, {"CLIENT", "ID"}))};
  Send(one, {"WAIT", "1", "0"});
  int done_writing{0};
  while (done_writing == 0) Expect("write", redisBufferWrite(one, &done_writing) == REDIS_OK, "");
  while (Text(Call(other, {"CLIENT", "UNBLOCK", number})) != "1") continue;
  ExpectText("unblock", Take(one), "0");
  std::puts("ok blocking");

  if (const char* auth = std::getenv("CELLAR_AUTH_PORT")) {
    redisContext* guarded = Connect(host, std::atoi(auth));
    Expect("no password", Text(Call(guarded, {"PING"})).starts_with("NOAUTH "), "let in");
    Expect("wrong", Text(Call(guarded, {"AUTH", "wrong"})).starts_with("WRONGPASS "), "let in");
    ExpectText("auth", Call(guarded, {"AUTH", "default", "secret"}), "OK");
    ExpectText("in", Call(guarded, {"PING"}), "PONG");
    redisFree(guarded);
    std::puts("ok auth");
  }

  const Reply subscribed = Call(one, {"SUBSCRIBE", table + "-news"});
  Expect("subscribe", subscribed->elements == 3 && subscribed->element[2]->integer == 1, "no");
  ExpectText("publish", Call(other, {"PUBLISH", table + "-news", "hello"}), "1");
  const Reply message = Take(one);
  Expect("message", message->elements == 3 && std::string_view(message->element[2]->str) == "hello",
         "no");
  std::puts("ok pubsub");
  redisFree(one);
  redisFree(other);
  return 0;
}
