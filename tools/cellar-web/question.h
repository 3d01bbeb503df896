// Question: what the page may ask of the server. Each is a command that reads; the page cannot send
// others.
//
//   path            parameters                             command
//   keyspaces                                              KEYSPACE LIST
//   tables          keyspace                               TABLE LIST, of that keyspace
//   table           table                                  TABLE INFO
//   definition      table                                  TABLE SHOW
//   family          table family                           FAMILY INFO
//   indexes         table                                  INDEX LIST
//   rows            table [cursor prefix count]            CSCAN, newest versions, 20 columns a row
//   row             table row [versions columns]           CROW with timestamps
//   info                                                   INFO everything
//   slowlog                                                SLOWLOG GET 50
//   heat            table [ranges]                         HEAT
//   role                                                   ROLE
//
// A parameter whose name ends in 64 is in base64: names and keys are any bytes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"

namespace cellar::web {

// The value of a parameter; nothing if it was not given.
using Parameters = std::function<std::optional<std::string>(std::string_view name)>;

struct Question {
  std::vector<std::string> words;
  std::string keyspace{"0"};  // to be selected before
};

// ERR: there is no such question, or a parameter is missing or no number.
Result<Question> QuestionOf(std::string_view path, const Parameters& parameters);

// Nothing if it is none. Takes both alphabets, with padding or without.
std::optional<std::string> DecodeBase64(std::string_view text);

}  // namespace cellar::web
