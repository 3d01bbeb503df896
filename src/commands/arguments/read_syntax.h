// The syntax of the commands that read rows, or select some to be changed: what COMMAND DOCS shows
// (catalog/command_syntax.h), and what read_arguments.cc makes its options from. A command takes
// the options that stand here, and no other.
#pragma once

#include <string_view>

#define CELLAR_CELLS_CHOSEN                                                          \
  "[COLUMNS count (column|family)...]... [COLPREFIX family prefix]... "              \
  "[COLRANGE family min max]... [TIME min max] [VERSIONS count|ALL] [PERROW count] " \
  "[SKIP count] [GROUPS count] [COLREVERSE] [FILTER expression]"
#define CELLAR_CELL_OPTIONS \
  CELLAR_CELLS_CHOSEN " [WITHTS] [WITHTYPE] [WITHTTL] [WITHLABELS] [STATE]"
#define CELLAR_ROWS_CHOSEN                                                                         \
  "[PREFIX prefix]... [RANGE min max]... [ROWS count row...]... "                                  \
  "[INDEX index [EQ count value...] [BETWEEN min max] [FROM count value...]] [NOINDEX] [REVERSE] " \
  "[EACH components count] [WHERE predicate]..."

namespace cellar {

inline constexpr std::string_view kRowSyntax = "table row " CELLAR_CELL_OPTIONS;
inline constexpr std::string_view kRowsSyntax = "table count row... " CELLAR_CELL_OPTIONS;
inline constexpr std::string_view kScanSyntax =
    "table cursor " CELLAR_ROWS_CHOSEN
    " [COUNT count] [CELLS count] [SAMPLE probability] [KEYSONLY] [STATS] "
    "[SNAPSHOT] " CELLAR_CELL_OPTIONS;
inline constexpr std::string_view kCountSyntax =
    "table " CELLAR_ROWS_CHOSEN " [SAMPLE probability] " CELLAR_CELLS_CHOSEN
    " [BY (ROWS|GROUPS|COLUMNS|CELLS)]";
// Up to CAGG's own options, which aggregate_arguments.cc reads.
#define CELLAR_AGGREGATED \
  "table " CELLAR_ROWS_CHOSEN " [SAMPLE probability] [STATS] " CELLAR_CELLS_CHOSEN
inline constexpr std::string_view kAggregatedSyntax = CELLAR_AGGREGATED;
inline constexpr std::string_view kAggregateSyntax = CELLAR_AGGREGATED
    " [BY (KEY [components] | PART component [STEP step] | BYTES bytes | FAMILY | "
    "COLUMN | QUALIFIER components | TIME duration [TZ zone] | VALUE column [STEP step])]... "
    "(REDUCE (ROWS|COUNT|SUM|AVG|MIN|MAX|FIRST|LAST|STDDEV|VARIANCE|DELTA|RATE|"
    "DISTINCT|QUANTILE|HISTOGRAM) "
    "(column|family|*) [count number...] [AS name])... "
    "[HAVING name (EQ|NE|LT|LE|GT|GE) value]... [FILL (NULL|PREVIOUS|value)] "
    "[SORT name [ASC|DESC]] [LIMIT offset count]";
// Up to the ops, which write_arguments.cc reads.
#define CELLAR_UPDATED                                                              \
  "table (PREFIX prefix | RANGE min max | ROWS count row... | "                     \
  "INDEX index [EQ count value...] [BETWEEN min max] [FROM count value...] | ALL) " \
  "[NOINDEX] [WHERE predicate]... [LIMIT count]"
inline constexpr std::string_view kUpdatedSyntax = CELLAR_UPDATED;
inline constexpr std::string_view kUpdateSyntax = CELLAR_UPDATED
    " (PUT column value [AS type] [TS time] [TTL duration | EXPIREAT time] | "
    "ADD column input [TS time] | MERGE column state [TS time] | "
    "DEL (column|family|COLPREFIX family prefix|COLRANGE family min max) "
    "[TIME min max] | DELROW | INCR column delta | APPEND column bytes)...";

}  // namespace cellar

#undef CELLAR_CELLS_CHOSEN
#undef CELLAR_CELL_OPTIONS
#undef CELLAR_ROWS_CHOSEN
#undef CELLAR_AGGREGATED
#undef CELLAR_UPDATED
