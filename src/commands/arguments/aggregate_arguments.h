// BY, REDUCE, HAVING, FILL, SORT and LIMIT of CAGG as plain data (aggregate_request.h). Pure
// functions; read_arguments.h takes the options that CAGG has in common with CSCAN.
//
//   BY      KEY [k] | PART i|name [STEP s] | BYTES k | FAMILY | COLUMN | QUALIFIER k |
//           TIME duration [TZ zone] | VALUE column [STEP s]
//   REDUCE  ROWS|COUNT|SUM|AVG|MIN|MAX|FIRST|LAST|STDDEV|VARIANCE|DELTA|RATE|DISTINCT target,
//           QUANTILE target n q ..., HISTOGRAM target n bound ...; [AS name]
//   HAVING  name EQ|NE|LT|LE|GT|GE value
//   FILL    NULL | PREVIOUS | value
//   target  column | family | *
#pragma once

#include "cellar/status.h"
#include "commands/arguments/arguments.h"
#include "engine/request/aggregate_request.h"

namespace cellar {

// What has been said already, of the options that stand once.
struct AggregateSeen {
  bool sort{false};
  bool limit{false};
  bool fill{false};
};

// Whether it is what REDUCE takes: SUM, AVG ...
bool IsReduceFunction(std::string_view word);

// Takes what belongs to `word`, which has been taken itself. False if it is none of CAGG's own.
Result<bool> TakeAggregateOption(std::string_view word, ArgumentCursor* at, AggregateSeen* seen,
                                 AggregateRequest* request);
// What is missing when all has been taken.
Status CheckAggregate(const AggregateRequest& request);

}  // namespace cellar
