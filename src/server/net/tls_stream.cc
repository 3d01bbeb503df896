// See tls_stream.h.
#include "server/net/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "server/net/tls_context.h"

namespace cellar {
namespace {

// What a record may add to its content, with room to spare.
constexpr size_t kRecordExtraBytes{256};

// What is left of somebody else's failure would be taken for ours. The queue is mostly empty, and
// looking costs a tenth of clearing.
void ForgetErrors() {
  if (ERR_peek_error() != 0) [[unlikely]]
    ERR_clear_error();
}

}  // namespace

// One for the process, made at its first use and never freed.
const bio_method_st* TlsStream::BioMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cellar stream");
    CELLAR_ASSERT(made != nullptr);
    (void)BIO_meth_set_read_ex(made, OnBioRead);
    (void)BIO_meth_set_write_ex(made, OnBioWrite);
    (void)BIO_meth_set_ctrl(made, OnBioControl);
    return made;
  }();
  return method;
}

int TlsStream::OnBioRead(bio_st* bio, char* to, size_t bytes, size_t* got) noexcept {
  auto* self = static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self->input_.empty()) {
    BIO_set_retry_read(bio);
    *got = 0;
    return 0;
  }
  *got = std::min(bytes, self->input_.size());
  std::memcpy(to, self->input_.data(), *got);
  self->input_.remove_prefix(*got);
  return 1;
}

int TlsStream::OnBioWrite(bio_st* bio, const char* from, size_t bytes, size_t* taken) noexcept {
  static_cast<TlsStream*>(BIO_get_data(bio))->output_.Append({from, bytes});
  *taken = bytes;
  return 1;
}

long TlsStream::OnBioControl(bio_st* /*bio*/, int command, long /*number*/,
                             void* /*pointer*/) noexcept {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

TlsStream::TlsStream(const TlsContext& context) : ssl_(SSL_new(context.handle())) {
  CELLAR_ASSERT(ssl_ != nullptr);
  BIO* bio = BIO_new(BioMethod());
  CELLAR_ASSERT(bio != nullptr);
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);  // theirs now
  if (context.role() == TlsRole::kServer) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
    speaks_first_ = true;
  }
}

TlsStream::~TlsStream() { SSL_free(ssl_); }

void TlsStream::Receive(std::string_view bytes) {
  CELLAR_ASSERT(input_.empty());
  if (!ended_) input_ = bytes;
}

size_t TlsStream::Read(char* to, size_t bytes) {
  // OpenSSL takes no more than it needs for the record at hand: without input there is nothing new.
  // But a client has the first word.
  const bool speaks_first = std::exchange(speaks_first_, false);
  if (ended_ || (input_.empty() && SSL_pending(ssl_) == 0 && !speaks_first)) return 0;
  ForgetErrors();
  size_t got{0};
  const int done = SSL_read_ex(ssl_, to, bytes, &got);
  if (!open_) open_ = SSL_is_init_finished(ssl_) == 1;
  if (done == 1) return got;
  const int error = SSL_get_error(ssl_, done);
  if (error == SSL_ERROR_ZERO_RETURN) {
    ended_ = true;
  } else if (error != SSL_ERROR_WANT_READ) {
    Fail();
  }
  CELLAR_ASSERT(ended_ || input_.empty());
  if (ended_) input_ = {};
  return 0;
}

bool TlsStream::Write(std::string_view bytes) {
  CELLAR_ASSERT(open_);
  if (ended_ && !error_.empty()) return false;
  ForgetErrors();
  // Records add 22 bytes to at most 16 KiB; the buffer need not grow in steps.
  (void)output_.Reserve(bytes.size() + bytes.size() / 512 + kRecordExtraBytes);
  size_t taken{0};
  if (SSL_write_ex(ssl_, bytes.data(), bytes.size(), &taken) != 1) {
    Fail();
    return false;
  }
  CELLAR_ASSERT(taken == bytes.size());
  return true;
}

void TlsStream::Shutdown() {
  if (!open_ || !error_.empty()) return;
  ERR_clear_error();
  (void)SSL_shutdown(ssl_);
  ERR_clear_error();
}

void TlsStream::Fail() {
  ended_ = true;
  const unsigned long code = ERR_peek_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  error_ = reason == nullptr ? "the connection was lost" : reason;
  if (const long verified = SSL_get_verify_result(ssl_); verified != X509_V_OK) {
    error_.append(": ").append(X509_verify_cert_error_string(verified));
  }
  ERR_clear_error();
}

}  // namespace cellar
