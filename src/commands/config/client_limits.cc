// See client_limits.h.
#include "commands/config/client_limits.h"

#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "base/text/number.h"
#include "commands/arguments/arguments.h"
#include "commands/config/config.h"
#include "commands/config/config_words.h"
#include "commands/config/invalid.h"
#include "resp/decimal.h"

namespace cellar {
namespace {

constexpr std::string_view kClassNames[] = {"normal", "slave", "pubsub"};

Status ParseOutputLimits(std::string_view text, OutputLimit limits[3]) {
  const auto words = Words(text);
  if (words.size() % 4 != 0) {
    return Invalid("Wrong number of arguments in buffer limit configuration.");
  }
  for (size_t i = 0; i < words.size(); i += 4) {
    size_t index = 3;
    for (size_t k = 0; k < 3; ++k) {
      if (EqualsIgnoreCase(words[i], kClassNames[k])) index = k;
    }
    if (EqualsIgnoreCase(words[i], "replica")) index = 1;
    if (index == 3) return Invalid("Invalid client class specified in buffer limit configuration.");
    const auto hard = MemoryArgument(words[i + 1]);
    const auto soft = MemoryArgument(words[i + 2]);
    int64_t seconds = 0;
    if (!hard.ok() || !soft.ok() || !ParseStrictInt64(words[i + 3], &seconds) || seconds < 0) {
      return Invalid("Error in hard, soft or soft_seconds setting in buffer limit configuration.");
    }
    limits[index] = {*hard, *soft, seconds};
  }
  return Status::Ok();
}
// Bytes, or percents of maxmemory.
Status ParseMaxmemoryClients(std::string_view text, int64_t* bytes, int64_t* percent) {
  *bytes = 0;
  *percent = 0;
  if (!text.ends_with('%')) {
    ASSIGN_OR_RETURN(*bytes, MemoryArgument(text));
    return Status::Ok();
  }
  text.remove_suffix(1);
  if (ParseInt64(text, percent) == NumberError::kNone && *percent >= 0 && *percent <= 100)
    return Status::Ok();
  return Invalid("argument must be a memory or percent value");
}

}  // namespace

Status CheckOutputLimits(std::string* text) {
  OutputLimit limits[3];
  return ParseOutputLimits(*text, limits);
}
// Classes that a text does not name stay as they are; the text then names all three.
void DeriveOutputLimits(Config* config) {
  const Status parsed =
      ParseOutputLimits(config->client_output_buffer_limit, config->output_limits);
  CELLAR_ASSERT(parsed.ok());
  std::string text;
  for (size_t i = 0; i < 3; ++i) {
    const OutputLimit& limit = config->output_limits[i];
    text.append(text.empty() ? "" : " ").append(kClassNames[i]);
    text.append(" ").append(std::to_string(limit.hard_bytes));
    text.append(" ").append(std::to_string(limit.soft_bytes));
    text.append(" ").append(std::to_string(limit.soft_seconds));
  }
  config->client_output_buffer_limit = text;
}

Status CheckMaxmemoryClients(std::string* text) {
  int64_t bytes = 0;
  int64_t percent = 0;
  return ParseMaxmemoryClients(*text, &bytes, &percent);
}
void DeriveMaxmemoryClients(Config* config) {
  const Status parsed =
      ParseMaxmemoryClients(config->maxmemory_clients, &config->maxmemory_clients_bytes,
                            &config->maxmemory_clients_percent);
  CELLAR_ASSERT(parsed.ok());
  if (config->maxmemory_clients.ends_with('%')) return;
  config->maxmemory_clients = std::to_string(config->maxmemory_clients_bytes);
}

}  // namespace cellar
