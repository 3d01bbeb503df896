// As sentinel_node.js, with what hiredis gives an application, which asks the Sentinels itself:
// sentinel_hiredis hiredis SENTINEL_PORT,... NAME TABLE.
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct ContextDeleter {
  void operator()(redisContext* context) const { redisFree(context); }
};
using Context = std::unique_ptr<redisContext, ContextDeleter>;

struct ReplyDeleter {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, ReplyDeleter>;

Context Connect(const char* host, int port) {
  constexpr timeval kPatience{.tv_sec = 1, .tv_usec = 0};
  Context context(redisConnectWithTimeout(host, port, kPatience));
  if (context == nullptr || context->err != 0) return nullptr;
  (void)redisSetTimeout(context.get(), kPatience);
  return context;
}

// The leader, as the first Sentinel that knows one names it.
Context Leader(const std::vector<int>& ports, const char* name) {
  for (const int port : ports) {
    const Context sentinel = Connect("127.0.0.1", port);
    if (sentinel == nullptr) continue;
    const Reply address(static_cast<redisReply*>(
        redisCommand(sentinel.get(), "SENTINEL get-master-addr-by-name %s", name)));
    if (address == nullptr || address->type != REDIS_REPLY_ARRAY || address->elements != 2)
      continue;
    Context leader = Connect(address->element[0]->str, std::atoi(address->element[1]->str));
    if (leader == nullptr) continue;
    const Reply role(static_cast<redisReply*>(redisCommand(leader.get(), "ROLE")));
    if (role != nullptr && role->elements > 0 &&
        std::string_view(role->element[0]->str) == "master")
      return leader;
  }
  return nullptr;
}

bool InputEnds() {
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&input, 1, 5) > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string library = argv[1];
  std::vector<int> ports;
  for (const char* at = argv[2]; *at != '\0'; at += *at == ',' ? 1 : 0)
    ports.push_back(static_cast<int>(std::strtol(at, const_cast<char**>(&at), 10)));
  (void)std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Context leader;
  for (int number = 0; !InputEnds();) {
    if (leader == nullptr) leader = Leader(ports, argv[3]);
    if (leader == nullptr) {
      std::puts("error no leader");
      continue;
    }
    const std::string row = library + "-" + std::to_string(number);
    const Reply reply(static_cast<redisReply*>(
        redisCommand(leader.get(), "CPUT %s %s f:a %d", argv[4], row.c_str(), number)));
    if (reply == nullptr || reply->type == REDIS_REPLY_ERROR) {
      std::printf("error %s\n", reply == nullptr ? leader->errstr : reply->str);
      leader = nullptr;
      continue;
    }
    std::printf("acknowledged %d\n", number++);
  }
  return 0;
}
