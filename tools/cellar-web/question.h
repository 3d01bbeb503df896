// Question: what the page may ask of the server. Each is a command that reads; the page cannot send
// others.
//
//   path            parameters                             command
//   keyspaces                                              KEYSPACE LIST
//   tables, feeds, snapshots    keyspace                   TABLE, FEED, SNAPSHOT LIST, of that one
//   feed, groups    keyspace feed                          FEED INFO, XINFO GROUPS
//   snapshot        keyspace snapshot                      SNAPSHOT INFO
//   table           table                                  TABLE INFO
//   definition      table                                  TABLE SHOW
//   family          table family                           FAMILY INFO
//   indexes         table                                  INDEX LIST
//   index           table index                            INDEX INFO
//   info            [sections]                             INFO everything, or of these
//   backup                                                 BACKUP STATUS
//   users, config                                          ACL USERS, CONFIG GET *
//   user            user                                   ACL GETUSER
//   slowlog                                                SLOWLOG GET 50
//   heat            table [ranges from to minutes]         HEAT
//   hotkeys                                                HOTKEYS GET
//   role, members                                          ROLE, REPLICA LIST
//   past            [hours]                                none: past.h, for who may ask INFO
//   commands                                               COMMAND DOCS
//   typed           words                                  those, if they only read: console.h
//
// and those of row_questions.h. How parameters are written: parameters.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cellar-web/parameters.h"
#include "cellar/status.h"

namespace cellar::web {

struct Question {
  std::vector<std::string> words;
  std::string keyspace{"0"};  // to be selected before
  // The reply is a value with its timestamp, and the piece of it from here is told.
  std::optional<uint64_t> piece_offset;
  uint64_t past_hours{0};  // the answer is Past's, if the server lets the words be asked
  bool is_typed{false};    // by somebody, so that it may do anything to the connection
};

// ERR: there is no such question, or a parameter is missing or no number.
Result<Question> QuestionOf(std::string_view path, const Parameters& parameters);

}  // namespace cellar::web
