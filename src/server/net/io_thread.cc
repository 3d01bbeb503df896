// See io_thread.h.
#include "server/net/io_thread.h"

#include <pthread.h>

#include <csignal>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/copy_bytes.h"
#include "server/net/client_socket.h"
#include "server/net/io_socket.h"

namespace cellar {
namespace {

IoThread* ThreadOf(const uv_loop_t* loop) { return static_cast<IoThread*>(loop->data); }

IoSocket& SocketOf(uv_handle_t* handle) {
  return static_cast<IoSocket&>(ClientSocket::Of(handle)->owner());
}

void CloseHandle(auto* handle) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): libuv's way of inheritance.
  uv_close(reinterpret_cast<uv_handle_t*>(handle), nullptr);
}

}  // namespace

IoThread::IoThread(unsigned number, Doorbell& server_bell, BufferPool& server_buffers)
    : number_(number), server_buffers_(server_buffers), server_bell_(server_bell) {
  const int failure = uv_loop_init(&loop_);
  CELLAR_ASSERT(failure == 0);
  loop_.data = this;
  (void)uv_prepare_init(&loop_, &prepare_);
  (void)uv_check_init(&loop_, &check_);
  (void)uv_idle_init(&loop_, &idle_);
  bell_.Open(&loop_);
  (void)uv_prepare_start(&prepare_,
                         [](uv_prepare_t* h) noexcept { ThreadOf(h->loop)->BeforePoll(); });
  (void)uv_check_start(&check_, [](uv_check_t* h) noexcept { ThreadOf(h->loop)->AfterPoll(); });
  // Signals are the server's thread's.
  sigset_t all;
  sigset_t before;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { Run(); });
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  (void)pthread_setname_np(thread_.native_handle(),
                           ("cellar-io-" + std::to_string(number)).c_str());
}

IoThread::~IoThread() {
  CELLAR_ASSERT(!thread_.joinable());
  for (const InputBlock* block = input_.Pop(); block != nullptr; block = input_.Pop()) delete block;
  for (const InputBlock* block = free_input_.Pop(); block != nullptr; block = free_input_.Pop()) {
    delete block;
  }
  for (const OutputBlock* block = output_.Pop(); block != nullptr; block = output_.Pop()) {
    delete block;
  }
  for (const OutputBlock* block = free_output_.Pop(); block != nullptr;
       block = free_output_.Pop()) {
    delete block;
  }
}

// --- the server's thread

void IoThread::Add(IoSocket* socket, OutputBlock::Kind kind) {
  if (open_output_ == nullptr) {
    open_output_.reset(free_output_.Pop());
    if (open_output_ == nullptr) open_output_ = std::make_unique<OutputBlock>();
    // The memory of long replies serves for the next ones where they are made.
    for (OutputBuffer& large : open_output_->large) server_buffers_.Recycle(&large);
    open_output_->large.clear();
  }
  open_output_->entries.push_back({socket, kind});
  if (kind == OutputBlock::Kind::kAdopt) ++sockets_given_;
  if (kind == OutputBlock::Kind::kClose) --sockets_given_;
}

void IoThread::AddSend(IoSocket* socket, OutputBuffer* output, size_t bytes) {
  Add(socket, OutputBlock::Kind::kSend);
  OutputBlock& block = *open_output_;
  OutputBlock::Entry& entry = block.entries.back();
  entry.size = bytes;
  if (bytes < kLargeBytes) {
    entry.begin = block.bytes.size();
    block.bytes.Append(output->view().substr(0, bytes));
    output->Replace(0, bytes, {});
    return;
  }
  entry.kind = OutputBlock::Kind::kSendLarge;
  entry.begin = block.large.size();
  OutputBuffer rest;
  if (bytes < output->size()) rest.Append(output->view().substr(bytes));
  output->Truncate(bytes);
  block.large.emplace_back().Swap(*output);
  output->Swap(rest);
}

void IoThread::Post() {
  if (open_output_ == nullptr) return;
  // Full: the thread is behind by many turns. What comes next joins this block, and goes later.
  if (!output_.Push(open_output_.get())) return;
  (void)open_output_.release();
  bell_.Ring();
}

void IoThread::GiveBack(InputBlock* block) {
  block->entries.clear();
  block->used = 0;
  const bool pushed = free_input_.Push(block);
  CELLAR_ASSERT(pushed);
  (void)given_back_.fetch_add(1, std::memory_order_release);
  given_back_.notify_one();
}

void IoThread::End(std::vector<Connection*>* closed) {
  ending_.store(true, std::memory_order_seq_cst);
  (void)given_back_.fetch_add(1, std::memory_order_release);
  given_back_.notify_one();
  while (open_output_ != nullptr) {
    Post();
    std::this_thread::yield();
  }
  bell_.Ring();
  thread_.join();
  // Not before nobody rings any more.
  CloseHandle(&prepare_);
  CloseHandle(&check_);
  CloseHandle(&idle_);
  bell_.Close();
  (void)uv_run(&loop_, UV_RUN_DEFAULT);
  const int failure = uv_loop_close(&loop_);
  CELLAR_ASSERT(failure == 0);
  closed->insert(closed->end(), closed_at_end_.begin(), closed_at_end_.end());
}

// --- the I/O thread

void IoThread::Run() { (void)uv_run(&loop_, UV_RUN_DEFAULT); }

void IoThread::BeforePoll() {
  TakeOutput();
  PostInput();
  // Armed before the queue is looked at for the last time (doorbell.h): nothing is left beside a
  // sleeping loop.
  bell_.Arm();
  const bool ends = ending_.load(std::memory_order_seq_cst);
  if (ends && sockets_ == 0 && output_.empty()) return uv_stop(&loop_);
  const bool busy = ends || !output_.empty();
  if (busy == idle_running_) return;
  idle_running_ = busy;
  if (busy) {
    (void)uv_idle_start(&idle_, [](uv_idle_t*) noexcept {});
  } else {
    (void)uv_idle_stop(&idle_);
  }
}

void IoThread::AfterPoll() {
  bell_.Disarm();
  ++turn_;
  PostInput();
  TakeOutput();
}

void IoThread::TakeOutput() {
  for (OutputBlock* block = output_.Pop(); block != nullptr; block = output_.Pop()) {
    for (const OutputBlock::Entry& entry : block->entries) Carry(*block, entry);
    block->entries.clear();
    block->bytes.Clear();
    if (block->bytes.capacity() > kKeptOutputBytes) block->bytes.Free();
    for (OutputBuffer& large : block->large) large.Clear();
    if (!free_output_.Push(block)) delete block;
  }
}

void IoThread::Carry(OutputBlock& block, const OutputBlock::Entry& entry) {
  IoSocket& socket = *entry.socket;
  switch (entry.kind) {
    case OutputBlock::Kind::kAdopt:
      ++sockets_;
      return socket.Adopt(&loop_);
    case OutputBlock::Kind::kSend:
      return socket.Send(block.bytes.view().substr(entry.begin, entry.size));
    case OutputBlock::Kind::kSendLarge:
      return socket.SendLarge(&block.large[entry.begin]);
    case OutputBlock::Kind::kRead:
      return socket.StartReading();
    case OutputBlock::Kind::kStopReading:
      return socket.StopReading();
    case OutputBlock::Kind::kClose:
      return socket.Close();
  }
}

void IoThread::StartReading(ClientSocket* socket) {
  const auto allocate = [](uv_handle_t* handle, size_t, uv_buf_t* buffer) noexcept {
    // One read a turn: what more a connection has sent waits until the others have been read.
    IoThread* const self = ThreadOf(handle->loop);
    if (SocketOf(handle).was_read_in(self->turn_)) return;
    if (ClientSocket::Of(handle)->tls() == nullptr) {
      const std::span<char> room = self->ReadRoom();
      *buffer = uv_buf_init(room.data(), static_cast<unsigned>(room.size()));
      return;
    }
    const std::span<char> room = self->EncryptedRoom();
    *buffer = uv_buf_init(room.data(), static_cast<unsigned>(room.size()));
  };
  const auto read = [](uv_stream_t* stream, ssize_t bytes, const uv_buf_t* buffer) noexcept {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): libuv's way of inheritance.
    SocketOf(reinterpret_cast<uv_handle_t*>(stream)).OnRead(bytes, buffer->base);
  };
  (void)uv_read_start(socket->stream(), allocate, read);
}

InputBlock* IoThread::FreeInput() {
  for (;;) {
    // Read before the look: a block that is given back in between changes it, and wait() returns at
    // once.
    const uint32_t seen = given_back_.load(std::memory_order_acquire);
    if (InputBlock* const block = free_input_.Pop(); block != nullptr) return block;
    // At the end there is no limit, since the server gives nothing back any more.
    if (input_blocks_ < kInputBlocks || ending_.load(std::memory_order_seq_cst)) {
      ++input_blocks_;
      return new InputBlock;
    }
    // The server is behind: its clients wait in their sockets meanwhile.
    given_back_.wait(seen, std::memory_order_acquire);
  }
}

InputBlock& IoThread::Input() {
  if (open_input_ == nullptr) open_input_.reset(FreeInput());
  return *open_input_;
}

std::span<char> IoThread::ReadRoom() {
  if (Input().room() < InputBlock::kReadBytes) PostInput();
  InputBlock& block = Input();
  return {block.bytes.get() + block.used, InputBlock::kReadBytes};
}

std::span<char> IoThread::EncryptedRoom() {
  if (encrypted_ == nullptr) encrypted_ = std::make_unique<char[]>(InputBlock::kReadBytes);
  return {encrypted_.get(), InputBlock::kReadBytes};
}

void IoThread::Received(Connection* connection, size_t bytes) {
  InputBlock& block = Input();
  block.entries.push_back(
      {connection, InputBlock::Kind::kBytes, {block.bytes.get() + block.used, bytes}});
  block.used += bytes;
}

void IoThread::Tell(Connection* connection, InputBlock::Kind kind, std::string_view text) {
  if (text.size() > Input().room()) PostInput();
  InputBlock& block = Input();
  char* const to = block.bytes.get() + block.used;
  CopyBytes(to, text.data(), text.size());
  block.used += text.size();
  block.entries.push_back({connection, kind, {to, text.size()}});
}

void IoThread::Forget(Connection* connection) {
  --sockets_;
  if (ending_.load(std::memory_order_seq_cst)) {
    closed_at_end_.push_back(connection);
  } else {
    Tell(connection, InputBlock::Kind::kClosed, {});
  }
}

void IoThread::PostInput() {
  if (open_input_ == nullptr || open_input_->entries.empty()) return;
  if (ending_.load(std::memory_order_seq_cst)) {  // nobody takes it any more
    for (const InputBlock::Entry& entry : open_input_->entries) {
      if (entry.kind == InputBlock::Kind::kClosed) closed_at_end_.push_back(entry.connection);
    }
    open_input_->entries.clear();
    open_input_->used = 0;
    return;
  }
  const bool pushed = input_.Push(open_input_.get());
  CELLAR_ASSERT(pushed);
  (void)open_input_.release();
  server_bell_.Ring();
}

}  // namespace cellar
