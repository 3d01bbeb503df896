// Questions for rows, and for the parts of one: pages that are small whatever stands in the cells.
//
//   path      parameters                                              command
//   rows      table [cursor count cells perrow versions prefix min    CSCAN
//             max reverse where columns filter]
//   row       table row [cursor cells versions columns filter]        CSCAN of that row
//   columns   table row                                               CCOUNT BY COLUMNS
//   value     table row column ts [offset]                            CGET, of which a piece is told
//   explain   those of rows, [analyze]                                CEXPLAIN CSCAN
//
// A value of more than kShortBytes comes as nothing, with the label `cut`: a filter on the server
// sees to that, so that a page of values of 16 MB is some kilobytes also on its way from there, and
// a long value is taken from its tree only when somebody opens it.
#pragma once

#include <string_view>

#include "cellar-web/parameters.h"
#include "cellar-web/question.h"

namespace cellar::web {

inline constexpr size_t kShortBytes{1000};  // what RE2 repeats at most

bool IsRowQuestion(std::string_view path);
// REQUIRES: IsRowQuestion(path).
Result<Question> RowQuestion(std::string_view path, ParameterReader* reader);

}  // namespace cellar::web
