// TlsConfig: the options of TLS, towards clients and between members. A part of Config.
#pragma once

#include <cstdint>
#include <string>

namespace cellar {

enum class TlsAuthClients : int64_t { kNo, kYes, kOptional };

struct TlsConfig {
  int64_t tls_port{0};
  std::string tls_cert_file;
  std::string tls_key_file;
  std::string tls_key_file_pass;
  std::string tls_ca_cert_file;
  std::string tls_ca_cert_dir;
  int64_t tls_auth_clients{static_cast<int64_t>(TlsAuthClients::kYes)};
  std::string tls_protocols;
  std::string tls_ciphers;
  std::string tls_ciphersuites;
  bool tls_prefer_server_ciphers{false};
  bool tls_session_caching{true};
  int64_t tls_session_cache_size{20'480};
  int64_t tls_session_cache_timeout{300};
  bool tls_replication{false};
};

}  // namespace cellar
