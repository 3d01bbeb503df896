// See authentication.h.
#include "commands/authentication.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <string>

#include "commands/host.h"
#include "commands/services.h"
#include "commands/session.h"

namespace cellar {

namespace {

// Takes the same time whatever the passwords are: both are hashed, and all of the hashes compared.
bool SamePassword(std::string_view given, std::string_view expected) {
  unsigned char digests[2][SHA256_DIGEST_LENGTH];
  const std::string_view texts[2] = {given, expected};
  for (int i = 0; i < 2; ++i) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): OpenSSL reads unsigned bytes.
    (void)SHA256(reinterpret_cast<const unsigned char*>(texts[i].data()), texts[i].size(),
                 digests[i]);
  }
  return CRYPTO_memcmp(digests[0], digests[1], SHA256_DIGEST_LENGTH) == 0;
}

}  // namespace

Status Authenticate(Host& host, Session& session, std::string_view user,
                    std::string_view password) {
  const std::string& expected = host.services().config.requirepass;
  if (user != "default" || (!expected.empty() && !SamePassword(password, expected))) {
    ++host.services().stats.auth_failures;
    return Status::Error(ErrorCode::kWrongPass,
                         "invalid username-password pair or user is disabled.");
  }
  session.user_name = user;
  session.authenticated = true;
  return Status::Ok();
}

bool IsClientWord(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace cellar
