// See connection.h.
#include "client/connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "client/command_words.h"

namespace cellar::client {
namespace {

// Those of a reader that nobody has changed.
const redisReplyObjectFunctions& DefaultFunctions() {
  static const redisReplyObjectFunctions kFunctions = [] {
    redisReader* const reader = redisReaderCreate();
    CELLAR_ASSERT(reader != nullptr);
    const redisReplyObjectFunctions copy = *reader->fn;
    redisReaderFree(reader);
    return copy;
  }();
  return kFunctions;
}

Status Refused(const std::string& what, std::string_view text) {
  return Status::Error(ErrorCode::kErr, what + ": " + std::string(text));
}

// hiredis' own way to make an array, once there is room for it in what the reply may have.
void* CreateBoundedArray(const redisReadTask* task, int elements) {
  auto* const left = static_cast<size_t*>(task->privdata);
  if (elements < 0 || static_cast<size_t>(elements) > *left) return nullptr;
  *left -= static_cast<size_t>(elements);
  return DefaultFunctions().createArray(task, elements);
}

}  // namespace

std::string_view ErrorText(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ERROR) return {};
  return {reply.str, reply.len};
}

Connection::Connection(redisContext* context)
    : elements_left_(std::make_unique<size_t>(0)), context_(context) {
  static redisReplyObjectFunctions bounded = [] {
    redisReplyObjectFunctions functions = DefaultFunctions();
    functions.createArray = CreateBoundedArray;
    return functions;
  }();
  if (context == nullptr || context->reader == nullptr) return;
  context->reader->fn = &bounded;
  context->reader->privdata = elements_left_.get();
}

Result<Connection> Connection::Open(const ConnectionOptions& options) {
  const std::string where{options.socket.empty() ? options.host + ":" + std::to_string(options.port)
                                                 : options.socket};
  const timeval patience{options.connect_seconds, 0};
  Connection connection{options.socket.empty()
                            ? redisConnectWithTimeout(options.host.c_str(), options.port, patience)
                            : redisConnectUnixWithTimeout(options.socket.c_str(), patience)};
  if (connection.context_ == nullptr) return Status::Error(ErrorCode::kIo, where + ": no memory");
  if (connection.context_->err != 0) {
    return Status::Error(ErrorCode::kIo, where + ": " + connection.context_->errstr);
  }
  if (options.socket.empty()) redisEnableKeepAlive(connection.context_.get());
  if (options.reply_seconds > 0)
    (void)redisSetTimeout(connection.context_.get(), timeval{options.reply_seconds, 0});
  if (!options.password.empty()) {
    ASSIGN_OR_RETURN(const Reply reply,
                     options.user.empty()
                         ? connection.Call({"AUTH", options.password})
                         : connection.Call({"AUTH", options.user, options.password}));
    if (!ErrorText(*reply).empty()) return Refused(where, ErrorText(*reply));
  }
  if (!options.keyspace.empty()) {
    ASSIGN_OR_RETURN(const Reply reply, connection.Call({"SELECT", options.keyspace}));
    if (!ErrorText(*reply).empty()) return Refused(where, ErrorText(*reply));
  }
  ASSIGN_OR_RETURN(const Reply reply, connection.Call({"PING"}));
  if (!ErrorText(*reply).empty()) return Refused(where, ErrorText(*reply));
  return connection;
}

Result<Reply> Connection::Call(std::initializer_list<std::string_view> words) {
  std::string bytes;
  AppendCommand(words, &bytes);
  RETURN_IF_ERROR(Append(bytes));
  return Read();
}

Status Connection::Append(std::string_view bytes) {
  if (redisAppendFormattedCommand(context_.get(), bytes.data(), bytes.size()) != REDIS_OK) {
    return Status::Error(ErrorCode::kIo, context_->errstr);
  }
  return Status::Ok();
}

Status Connection::Flush() {
  int done{0};
  while (done == 0) {
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) {
      return Status::Error(ErrorCode::kIo, std::string("connection lost: ") + context_->errstr);
    }
  }
  return Status::Ok();
}

Status Connection::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      return Status::Error(ErrorCode::kIo, std::string("connection lost: ") + std::strerror(errno));
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return Status::Ok();
}

Result<Reply> Connection::Read() {
  const auto lost = [](const std::string& why) {
    return Status::Error(ErrorCode::kIo, "connection lost: " + why);
  };
  RETURN_IF_ERROR(Flush());
  *elements_left_ = kReplyElementsMax;
  // What came with earlier replies is there already.
  size_t bytes{context_->reader->len - context_->reader->pos};
  void* reply{nullptr};
  while (true) {
    if (redisGetReplyFromReader(context_.get(), &reply) != REDIS_OK) {
      const bool is_too_large = context_->err == REDIS_ERR_OOM;
      return lost(is_too_large ? "a reply of more elements than can be" : context_->errstr);
    }
    if (reply != nullptr) return Reply(static_cast<redisReply*>(reply));
    if (bytes > kReplyBytesMax) return lost("a reply of more than 1 GiB");
    const size_t before{context_->reader->len - context_->reader->pos};
    if (redisBufferRead(context_.get()) != REDIS_OK) {
      const bool is_late = context_->err == REDIS_ERR_IO && errno == EAGAIN;
      return lost(is_late ? "no answer in time" : context_->errstr);
    }
    bytes += context_->reader->len - context_->reader->pos - before;
  }
}

}  // namespace cellar::client
