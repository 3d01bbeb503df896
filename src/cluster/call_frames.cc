// See call_frames.h.
#include "cluster/call_frames.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/coding.h"
#include "base/free_string.h"

namespace cellar {
namespace {

// So much room is made at once for what there was the last time, at most.
constexpr size_t kRoomBytes{512 << 10};
// A command's words up to that are put together first and appended at once: a third of the
// instructions.
constexpr size_t kShortBytes{512};
// Of the words of a call; a client may send more.
constexpr size_t kKeptWords{4096};

Status NoCall() { return Status::Error(ErrorCode::kCorruption, "a call that is none"); }

void AppendHeader(char mark, uint64_t number, std::string* request) {
  request->push_back(mark);
  request->append(std::to_string(number));
  request->append("\r\n");
}

}  // namespace

void PutCallCount(uint64_t commands, std::string* text) { PutVarint64(text, commands); }

void PutCallWords(std::span<const std::string_view> words, std::string* text) {
  size_t bytes_max = kVarint64BytesMax;
  for (const std::string_view word : words) bytes_max += kVarint64BytesMax + word.size();
  if (bytes_max > kShortBytes) {
    PutVarint64(text, words.size());
    for (const std::string_view word : words) PutLengthPrefixed(text, word);
    return;
  }
  char short_text[kShortBytes];
  char* end = EncodeVarint64(short_text, words.size());
  for (const std::string_view word : words) end = EncodeLengthPrefixed(end, word);
  text->append(short_text, static_cast<size_t>(end - short_text));
}

std::string CallOf(std::span<const std::string_view> words) {
  std::string text;
  PutCallCount(1, &text);
  PutCallWords(words, &text);
  return text;
}

Status VisitCall(std::string_view text,
                 const std::function<void(std::span<const std::string_view>, bool last)>& visit) {
  uint64_t commands = 0;
  if (!GetVarint64(&text, &commands) || commands == 0) return NoCall();
  static thread_local std::vector<std::string_view> words;  // keeps its memory
  for (uint64_t i = 0; i < commands; ++i) {
    uint64_t count = 0;
    if (!GetVarint64(&text, &count) || count == 0 || count > text.size()) return NoCall();
    words.clear();
    for (uint64_t at = 0; at < count; ++at) {
      std::string_view word;
      if (!GetLengthPrefixed(&text, &word)) return NoCall();
      words.push_back(word);
    }
    const bool last = i + 1 == commands;
    if (last && !text.empty()) return NoCall();
    visit(words, last);
    if (words.capacity() > kKeptWords) std::vector<std::string_view>().swap(words);
  }
  return Status::Ok();
}

bool ReadOneCommand(std::string_view text, std::vector<std::string_view>* words) {
  uint64_t commands = 0;
  uint64_t count = 0;
  words->clear();
  if (!GetVarint64(&text, &commands) || commands != 1) return false;
  if (!GetVarint64(&text, &count) || count == 0 || count > kKeptWords) return false;
  for (; count > 0; --count) {
    if (!GetLengthPrefixed(&text, &words->emplace_back())) return false;
  }
  return text.empty();
}

Status CheckCall(std::string_view text) {
  uint64_t commands = 0;
  if (!GetVarint64(&text, &commands) || commands == 0) return NoCall();
  for (; commands > 0; --commands) {
    uint64_t count = 0;
    if (!GetVarint64(&text, &count) || count == 0 || count > text.size()) return NoCall();
    for (; count > 0; --count) {
      std::string_view word;
      if (!GetLengthPrefixed(&text, &word)) return NoCall();
    }
  }
  return text.empty() ? Status::Ok() : NoCall();
}

void AppendRequest(std::string_view text, std::string* request) {
  const Status read = VisitCall(text, [request](std::span<const std::string_view> words, bool) {
    AppendHeader('*', words.size(), request);
    for (const std::string_view word : words) {
      AppendHeader('$', word.size(), request);
      request->append(word).append("\r\n");
    }
  });
  CELLAR_ASSERT(read.ok());
}

// --- bodies

void PutChannel(uint64_t channel, const CallIdentityView& identity, std::string* body) {
  PutVarint64(body, channel);
  PutLengthPrefixed(body, identity.user);
  PutLengthPrefixed(body, identity.keyspace);
  PutLengthPrefixed(body, identity.address);
  body->push_back(static_cast<char>(identity.version));
}

void PutKeyspace(uint64_t channel, std::string_view keyspace, std::string* body) {
  PutVarint64(body, channel);
  PutLengthPrefixed(body, keyspace);
}

void PutCall(const Call& call, std::string* body) {
  char head[3 * kVarint64BytesMax + 1];
  char* end = EncodeVarint64(head, call.channel);
  end = EncodeVarint64(end, call.number);
  *end++ = static_cast<char>(call.flags);
  end = EncodeVarint64(end, call.text.size());
  body->append(head, static_cast<size_t>(end - head)).append(call.text);
}

void PutReply(const CallReply& reply, std::string* body) {
  PutVarint64(body, reply.channel);
  PutVarint64(body, reply.first);
  PutVarint64(body, reply.count);
  PutVarint64(body, reply.lsn.epoch);
  PutVarint64(body, reply.lsn.seq);
  PutLengthPrefixed(body, reply.bytes);
}

void PutMore(uint64_t channel, uint64_t number, std::string_view bytes, std::string* body) {
  PutVarint64(body, channel);
  PutVarint64(body, number);
  PutLengthPrefixed(body, bytes);
}

void PutMoved(uint64_t channel, uint64_t number, MovedHow how, std::string* body) {
  PutVarint64(body, channel);
  PutVarint64(body, number);
  body->push_back(static_cast<char>(how));
}

void PutCancel(uint64_t channel, std::string* body) { PutVarint64(body, channel); }

void PutCredit(uint64_t channel, uint64_t bytes, std::string* body) {
  PutVarint64(body, channel);
  PutVarint64(body, bytes);
}

void PutWrote(uint64_t channel, int64_t told_micros, std::span<const WrittenSteps> steps,
              std::string* body) {
  CELLAR_ASSERT(told_micros >= 0);
  PutVarint64(body, channel);
  PutVarint64(body, static_cast<uint64_t>(told_micros));
  PutVarint64(body, steps.size());
  for (const WrittenSteps& each : steps) {
    CELLAR_ASSERT(0 <= each.first_micros);
    CELLAR_ASSERT(each.first_micros <= each.last_micros);
    PutVarint64(body, static_cast<uint64_t>(each.first_micros));
    PutVarint64(body, static_cast<uint64_t>(each.last_micros));
  }
}

void PutUnblock(uint64_t channel, uint64_t number, UnblockHow how, std::string* body) {
  PutUnblocked(channel, number, how == UnblockHow::kError, body);
}

void PutUnblocked(uint64_t channel, uint64_t number, bool done, std::string* body) {
  PutVarint64(body, channel);
  PutVarint64(body, number);
  body->push_back(done ? '\1' : '\0');
}

void PutBegin(uint64_t channel, uint64_t number, std::string* body) {
  PutVarint64(body, channel);
  PutVarint64(body, number);
}

bool CallBodyReader::Number(uint64_t* value) { return ok_ = ok_ && GetVarint64(&rest_, value); }
bool CallBodyReader::Bytes(std::string_view* value) {
  return ok_ = ok_ && GetLengthPrefixed(&rest_, value);
}
bool CallBodyReader::Byte(uint8_t* value) {
  ok_ = ok_ && !rest_.empty();
  if (!ok_) return false;
  *value = static_cast<uint8_t>(rest_[0]);
  rest_.remove_prefix(1);
  return true;
}

bool CallBodyReader::NextKeyspace(uint64_t* channel, std::string_view* keyspace) {
  if (rest_.empty()) return false;
  return Number(channel) && Bytes(keyspace);
}

bool CallBodyReader::NextChannel(uint64_t* channel, CallIdentity* identity) {
  if (rest_.empty()) return false;
  std::string_view user;
  std::string_view keyspace;
  std::string_view address;
  if (!Number(channel) || !Bytes(&user) || !Bytes(&keyspace) || !Bytes(&address)) return false;
  if (!Byte(&identity->version)) return false;
  ok_ = identity->version == 2 || identity->version == 3;
  identity->user = user;
  identity->keyspace = keyspace;
  identity->address = address;
  return ok_;
}

bool CallBodyReader::NextCall(Call* call) {
  if (rest_.empty()) return false;
  return Number(&call->channel) && Number(&call->number) && Byte(&call->flags) &&
         Bytes(&call->text);
}

bool CallBodyReader::NextReply(CallReply* reply) {
  if (rest_.empty()) return false;
  uint64_t epoch = 0;
  if (!Number(&reply->channel) || !Number(&reply->first) || !Number(&reply->count)) return false;
  if (!Number(&epoch) || !Number(&reply->lsn.seq) || !Bytes(&reply->bytes)) return false;
  ok_ = epoch <= UINT32_MAX && reply->count > 0;
  reply->lsn.epoch = static_cast<uint32_t>(epoch);
  return ok_;
}

bool CallBodyReader::NextMore(uint64_t* channel, uint64_t* number, std::string_view* bytes) {
  if (rest_.empty()) return false;
  return Number(channel) && Number(number) && Bytes(bytes);
}

bool CallBodyReader::NextMoved(uint64_t* channel, uint64_t* number, MovedHow* how) {
  if (rest_.empty()) return false;
  uint8_t byte = 0;
  if (!Number(channel) || !Number(number) || !Byte(&byte)) return false;
  if (byte > static_cast<uint8_t>(MovedHow::kOtherSet)) return ok_ = false;
  *how = static_cast<MovedHow>(byte);
  return true;
}

bool CallBodyReader::NextCancel(uint64_t* channel) { return !rest_.empty() && Number(channel); }

bool CallBodyReader::NextCredit(uint64_t* channel, uint64_t* bytes) {
  return !rest_.empty() && Number(channel) && Number(bytes);
}

bool CallBodyReader::Micros(int64_t* micros) {
  uint64_t number = 0;
  ok_ = Number(&number) && number <= static_cast<uint64_t>(INT64_MAX);
  *micros = static_cast<int64_t>(number);
  return ok_;
}

bool CallBodyReader::NextWrote(uint64_t* channel, int64_t* told_micros,
                               std::vector<WrittenSteps>* steps) {
  steps->clear();
  if (rest_.empty()) return false;
  uint64_t count = 0;
  if (!Number(channel) || !Micros(told_micros) || !Number(&count)) return false;
  ok_ = count <= rest_.size() / 2;
  for (; ok_ && count > 0; --count) {
    WrittenSteps& each = steps->emplace_back();
    if (!Micros(&each.first_micros) || !Micros(&each.last_micros)) return false;
    ok_ = each.first_micros <= each.last_micros;
  }
  return ok_;
}

bool CallBodyReader::NextUnblock(uint64_t* channel, uint64_t* number, UnblockHow* how) {
  bool with_error = false;
  if (!NextUnblocked(channel, number, &with_error)) return false;
  *how = with_error ? UnblockHow::kError : UnblockHow::kTimeout;
  return true;
}

bool CallBodyReader::NextUnblocked(uint64_t* channel, uint64_t* number, bool* done) {
  if (rest_.empty()) return false;
  uint8_t byte = 0;
  if (!Number(channel) || !Number(number) || !Byte(&byte)) return false;
  *done = byte != 0;
  return true;
}

bool CallBodyReader::NextBegin(uint64_t* channel, uint64_t* number) {
  return !rest_.empty() && Number(channel) && Number(number);
}

// --- frames

std::string& CallFrames::Body(FrameKind kind) {
  const bool goes_on = !frames_.empty() && frames_.back().kind == kind &&
                       bytes_.size() - frames_.back().begin < kFullBytes;
  if (!goes_on) {
    if (bytes_.empty()) bytes_.reserve(std::min(taken_bytes_, kRoomBytes));
    frames_.push_back({kind, bytes_.size()});
    bytes_.append(kFrameHeadBytes, '\0');
  }
  return bytes_;
}

std::string CallFrames::Take(const FrameHead& head) {
  for (size_t i = 0; i < frames_.size(); ++i) {
    FrameHead own = head;
    own.kind = frames_[i].kind;
    char* const frame = bytes_.data() + frames_[i].begin;
    const size_t end = i + 1 < frames_.size() ? frames_[i + 1].begin : bytes_.size();
    WriteFrameHead(own, frame);
    SealFrame(frame, end - frames_[i].begin);
  }
  taken_bytes_ = bytes_.size();
  frames_.clear();
  return std::exchange(bytes_, {});
}

void CallFrames::Clear() {
  frames_.clear();
  FreeString(&bytes_);
}

size_t CallFrames::memory_bytes() const {
  return bytes_.capacity() + frames_.capacity() * sizeof(Filled);
}

}  // namespace cellar
