// Checks that functions of a study return the cells that its file says.
#pragma once

#include <string>
#include <vector>

#include "experiments/study/probe.h"

namespace numsim::experiments::study {

// Throws Error naming table and column if a row has another number of cells, or a cell of another kind, than
// the columns say. NaN is a number of both kinds. Nothing is checked where no column says its kind.
void CheckCells(const std::string& table,
                const std::vector<Column>& columns,
                const std::vector<Row>& rows);
// Does that for all of these tables.
void CheckCells(const std::vector<MeasuredTable>& tables, const Rows& rows);

}  // namespace numsim::experiments::study
