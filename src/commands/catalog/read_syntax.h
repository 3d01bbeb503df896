// The syntax of the options that commands which read rows have in common (command_syntax.h).
#pragma once

#define CELLAR_CELL_OPTIONS                                                           \
  "[COLUMNS count (column|family)...]... [COLPREFIX family prefix]... "               \
  "[COLRANGE family min max]... [TIME min max] [VERSIONS count|ALL] [PERROW count] "  \
  "[SKIP count] [GROUPS count] [COLREVERSE] [FILTER expression] [WITHTS] [WITHTYPE] " \
  "[WITHTTL] [WITHLABELS] [STATE]"
#define CELLAR_ROW_OPTIONS                                                                         \
  "[PREFIX prefix]... [RANGE min max]... [ROWS count row...]... "                                  \
  "[INDEX index [EQ count value...] [BETWEEN min max] [FROM count value...]] [NOINDEX] [REVERSE] " \
  "[EACH components count] [WHERE predicate]... [COUNT count] [CELLS count] "                      \
  "[SAMPLE probability] [KEYSONLY] [STATS] [SNAPSHOT]"
