// The server's certificate: from the configuration to the context that new TLS connections get.
#include <fmt/format.h>

#include <utility>

#include "base/os/log.h"
#include "server/net/tls_context.h"
#include "server/server.h"

namespace cellar {
namespace {

TlsClientCertificates ClientCertificatesOf(const Config& config) {
  switch (static_cast<TlsAuthClients>(config.tls_auth_clients)) {
    case TlsAuthClients::kNo:
      return TlsClientCertificates::kNone;
    case TlsAuthClients::kOptional:
      return TlsClientCertificates::kOptional;
    case TlsAuthClients::kYes:
      break;
  }
  return TlsClientCertificates::kRequired;
}

TlsOptions TlsOptionsOf(const Config& config) {
  TlsOptions options;
  options.certificate_file = config.tls_cert_file;
  options.key_file = config.tls_key_file;
  options.key_password = config.tls_key_file_pass;
  options.ca_file = config.tls_ca_cert_file;
  options.ca_directory = config.tls_ca_cert_dir;
  options.client_certificates = ClientCertificatesOf(config);
  if (!config.tls_protocols.empty()) {
    options.tls_1_2 = config.tls_protocols.find("TLSv1.2") != std::string::npos;
    options.tls_1_3 = config.tls_protocols.find("TLSv1.3") != std::string::npos;
  }
  options.ciphers = config.tls_ciphers;
  options.cipher_suites = config.tls_ciphersuites;
  options.prefer_server_ciphers = config.tls_prefer_server_ciphers;
  options.session_caching = config.tls_session_caching;
  options.session_cache_size = config.tls_session_cache_size;
  options.session_cache_timeout_s = config.tls_session_cache_timeout;
  return options;
}

}  // namespace

Result<std::unique_ptr<TlsContext>> Server::MakeTls() const {
  return TlsContext::Make(TlsOptionsOf(services_own_.config));
}

void Server::ProvidePlaintext() {
  if (tls_plaintext_ != nullptr) return;
  tls_plaintext_.reset(new char[TurnInput::kReadBytes]);
  connection_services_.tls_plaintext = {tls_plaintext_.get(), TurnInput::kReadBytes};
}

void Server::UseTls(std::unique_ptr<TlsContext> context) {
  tls_context_ = std::move(context);
  ProvidePlaintext();
  Log(LogSeverity::kNotice, "TLS: the certificate is that of " + tls_context_->Describe());
}

Status Server::LoadTlsClient() {
  TlsOptions options = TlsOptionsOf(services_own_.config);
  options.role = TlsRole::kClient;
  // The other end shows a certificate that the same authorities have signed, whatever clients must.
  options.client_certificates = TlsClientCertificates::kRequired;
  ASSIGN_OR_RETURN(tls_client_context_, TlsContext::Make(options));
  ProvidePlaintext();
  return Status::Ok();
}

// While nobody speaks TLS a file that cannot be read is found now rather than when somebody shall.
// Files come one after the other, so what is not named yet is not missed.
Status Server::CheckTls() const { return TlsContext::Check(TlsOptionsOf(services_own_.config)); }

Status Server::LoadTls() {
  ASSIGN_OR_RETURN(std::unique_ptr<TlsContext> context, MakeTls());
  UseTls(std::move(context));
  return Status::Ok();
}

}  // namespace cellar
