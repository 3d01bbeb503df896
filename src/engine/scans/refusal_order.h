// Which of two refusals a client is told, where a request has two parts that are checked apart: the
// scan of its rows, and what is done with these (the groups of a CAGG, the ops of a CUPDATE).
//
//   rows, columns (scan)  <  the other part  <  filters (scan)  <  an index that is not ready (scan)
//
// So what is wrong with the words themselves comes before what depends on the data, by which the
// same words may be good an hour later (cellar-commands(7), ERROR REPLIES).
#pragma once

#include <functional>

#include "cellar/status.h"
#include "engine/request/read_options.h"
#include "engine/table/read_view.h"

namespace cellar {

// `view` and `rows` are those of the scan. `scan` may have been opened with columns of the other
// part, which is behind it; `open` opens it without. OK if both are.
Status FirstRefusal(const ReadView& view, const RowOptions& rows, const Status& scan,
                    const Status& other, const std::function<Status()>& open);

}  // namespace cellar
