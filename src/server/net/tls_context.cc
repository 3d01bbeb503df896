// See tls_context.h.
#include "server/net/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include "base/assert.h"

namespace cellar {
namespace {

constexpr unsigned char kSessionContext[] = "cellar";

// OpenSSL's reason for what failed first on this thread (what failed by it came after), forgotten
// then.
std::string TakeReason() {
  const unsigned long error = ERR_peek_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  std::string text{reason == nullptr ? "unknown reason" : reason};
  // A failed system call: OpenSSL keeps its errno.
  if (error != 0 && ERR_SYSTEM_ERROR(error)) text = std::strerror(ERR_GET_REASON(error));
  ERR_clear_error();
  return text;
}

Status Failed(const std::string& what) {
  return Status::Error(ErrorCode::kErr, what + ": " + TakeReason());
}

// Without a password there is none: OpenSSL must not ask on the terminal.
int GivePassword(char* buffer, int size, int /*for_writing*/, void* user) noexcept {
  const auto* password = static_cast<const std::string*>(user);
  if (password->empty() || size < 0 || password->size() > static_cast<size_t>(size)) return -1;
  std::copy(password->begin(), password->end(), buffer);
  return static_cast<int>(password->size());
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::Make(const TlsOptions& options) {
  ERR_clear_error();
  const bool serves = options.role == TlsRole::kServer;
  SSL_CTX* handle = SSL_CTX_new(serves ? TLS_server_method() : TLS_client_method());
  CELLAR_ASSERT(handle != nullptr);
  std::unique_ptr<TlsContext> context(new TlsContext(handle, options.role));
  RETURN_IF_ERROR(context->Configure(options));
  RETURN_IF_ERROR(context->LoadCertificate(options));
  RETURN_IF_ERROR(context->TrustAuthorities(options));
  return context;
}

Status TlsContext::Check(const TlsOptions& options) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()), options.role);
  RETURN_IF_ERROR(context.Configure(options));
  RETURN_IF_ERROR(context.LoadFiles(options));
  if (options.ca_file.empty() && options.ca_directory.empty()) return Status::Ok();
  return context.TrustAuthorities(options);
}

TlsContext::~TlsContext() { SSL_CTX_free(handle_); }

Status TlsContext::Configure(const TlsOptions& options) {
  CELLAR_ASSERT(options.tls_1_2 || options.tls_1_3);
  (void)SSL_CTX_set_min_proto_version(handle_, options.tls_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION);
  (void)SSL_CTX_set_max_proto_version(handle_, options.tls_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION);
  (void)SSL_CTX_set_dh_auto(handle_, 1);
  SSL_CTX_set_options(handle_, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  if (options.prefer_server_ciphers) {
    SSL_CTX_set_options(handle_, SSL_OP_CIPHER_SERVER_PREFERENCE);
  }
  // An idle connection keeps neither of its 16 KiB record buffers.
  (void)SSL_CTX_set_mode(handle_, SSL_MODE_RELEASE_BUFFERS);
  if (!options.ciphers.empty() && SSL_CTX_set_cipher_list(handle_, options.ciphers.c_str()) != 1) {
    return Failed("tls-ciphers cannot be used");
  }
  if (!options.cipher_suites.empty() &&
      SSL_CTX_set_ciphersuites(handle_, options.cipher_suites.c_str()) != 1) {
    return Failed("tls-ciphersuites cannot be used");
  }
  if (options.session_caching) {
    (void)SSL_CTX_set_session_cache_mode(handle_, SSL_SESS_CACHE_SERVER);
    (void)SSL_CTX_sess_set_cache_size(handle_, static_cast<long>(options.session_cache_size));
    (void)SSL_CTX_set_timeout(handle_, static_cast<long>(options.session_cache_timeout_s));
    (void)SSL_CTX_set_session_id_context(handle_, kSessionContext, sizeof(kSessionContext) - 1);
  } else {
    (void)SSL_CTX_set_session_cache_mode(handle_, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(handle_, SSL_OP_NO_TICKET);
    (void)SSL_CTX_set_num_tickets(handle_, 0);
  }
  return Status::Ok();
}

Status TlsContext::LoadCertificate(const TlsOptions& options) {
  if (options.certificate_file.empty()) {
    return Status::Error(ErrorCode::kErr, "TLS needs a certificate: tls-cert-file is empty");
  }
  if (options.key_file.empty()) {
    return Status::Error(ErrorCode::kErr, "TLS needs a private key: tls-key-file is empty");
  }
  return LoadFiles(options);
}

Status TlsContext::LoadFiles(const TlsOptions& options) {
  const bool certificate = !options.certificate_file.empty();
  const bool key = !options.key_file.empty();
  key_password_ = options.key_password;
  SSL_CTX_set_default_passwd_cb(handle_, GivePassword);
  SSL_CTX_set_default_passwd_cb_userdata(handle_, &key_password_);
  if (certificate &&
      SSL_CTX_use_certificate_chain_file(handle_, options.certificate_file.c_str()) != 1) {
    return Failed("cannot load the certificate " + options.certificate_file);
  }
  if (key &&
      SSL_CTX_use_PrivateKey_file(handle_, options.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Failed("cannot load the private key " + options.key_file);
  }
  if (certificate && key && SSL_CTX_check_private_key(handle_) != 1) {
    return Failed("the private key " + options.key_file + " does not match the certificate");
  }
  return Status::Ok();
}

Status TlsContext::TrustAuthorities(const TlsOptions& options) {
  const bool none = options.ca_file.empty() && options.ca_directory.empty();
  if (options.client_certificates == TlsClientCertificates::kNone) {
    SSL_CTX_set_verify(handle_, SSL_VERIFY_NONE, nullptr);
    if (none) return Status::Ok();
  } else {
    if (none) {
      return Status::Error(ErrorCode::kErr,
                           "client certificates need an authority to verify them: set "
                           "tls-ca-cert-file or tls-ca-cert-dir, or tls-auth-clients no");
    }
    const bool required = options.client_certificates == TlsClientCertificates::kRequired;
    SSL_CTX_set_verify(handle_, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
                       nullptr);
  }
  const char* file = options.ca_file.empty() ? nullptr : options.ca_file.c_str();
  const char* directory = options.ca_directory.empty() ? nullptr : options.ca_directory.c_str();
  if (SSL_CTX_load_verify_locations(handle_, file, directory) != 1) {
    return Failed("cannot load the authorities " + options.ca_file +
                  (options.ca_file.empty() ? options.ca_directory : ""));
  }
  // Told to clients, so that one with several certificates knows which to send.
  if (file != nullptr) SSL_CTX_set_client_CA_list(handle_, SSL_load_client_CA_file(file));
  ERR_clear_error();
  return Status::Ok();
}

std::string TlsContext::Describe() const {
  const X509* certificate = SSL_CTX_get0_certificate(handle_);
  char name[256] = "";
  (void)X509_NAME_oneline(X509_get_subject_name(certificate), name, sizeof(name));
  tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1) return name;
  char date[64] = "";
  (void)std::strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &end);
  const bool ended = X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0;
  return std::string(name) + (ended ? ", which HAS ENDED at " : ", valid until ") + date;
}

}  // namespace cellar
