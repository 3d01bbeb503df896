// TlsContext: what all TLS connections share: certificate and key, whom to trust, protocols,
// ciphers.
//
//   TlsOptions (texts of the configuration) -> TlsContext::Make -> TlsStream, one a connection
//
// Make checks everything that can be wrong with the files and names it; the server replaces its
// context only by one that was made, so a bad certificate changes nothing. Connections keep the
// context that they began with for as long as they live.
//
// This file and tls_stream.* are all that knows OpenSSL. Neither knows libuv.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cellar/status.h"

struct ssl_ctx_st;

namespace cellar {

enum class TlsClientCertificates : uint8_t { kNone, kRequired, kOptional };

// Which side of the handshake.
enum class TlsRole : uint8_t { kServer, kClient };

struct TlsOptions {
  TlsRole role{TlsRole::kServer};
  std::string certificate_file;  // PEM, the chain after it
  std::string key_file;          // PEM
  std::string key_password;
  std::string ca_file;
  std::string ca_directory;
  TlsClientCertificates client_certificates{TlsClientCertificates::kRequired};
  bool tls_1_2{true};
  bool tls_1_3{true};
  std::string ciphers;        // of TLS 1.2; empty: OpenSSL's
  std::string cipher_suites;  // of TLS 1.3; empty: OpenSSL's
  bool prefer_server_ciphers{false};
  bool session_caching{true};
  int64_t session_cache_size{20'480};  // sessions; 0: no limit
  int64_t session_cache_timeout_s{300};
};

class TlsContext {
 public:
  // Reads the files. kErr with file and reason if anything in `options` cannot be used.
  static Result<std::unique_ptr<TlsContext>> Make(const TlsOptions& options);
  // Make, without what is empty in `options`: the error of anything that is named and cannot be
  // used.
  static Status Check(const TlsOptions& options);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  ssl_ctx_st* handle() const { return handle_; }
  TlsRole role() const { return role_; }
  // One line for the log: whose certificate it is and when it ends.
  std::string Describe() const;

 private:
  TlsContext(ssl_ctx_st* handle, TlsRole role) : handle_(handle), role_(role) {}

  Status Configure(const TlsOptions& options);
  Status LoadCertificate(const TlsOptions& options);
  // Either file, if it is named.
  Status LoadFiles(const TlsOptions& options);
  Status TrustAuthorities(const TlsOptions& options);

  ssl_ctx_st* handle_;
  const TlsRole role_;
  std::string key_password_;  // OpenSSL's callback reads it while the key is loaded
};

}  // namespace cellar
