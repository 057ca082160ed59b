// Rows of tables by the values of their columns, and the evidence of claims on them.
#pragma once

#include <string>

#include "experiments/study/claim_row.h"

namespace numsim::experiments::study {

// Returns the rows that meet all conditions. A value that ends in '*' is met by every text that begins
// with what is before it.
Frame RowsWhere(const Results& results, const Frame& frame, const Picks& where);

// Returns the evidence of a claim about rows (ClaimRow::on), with its control.
Evidence EvidenceOfRows(const Results& results, const ClaimRow& claim);

}  // namespace numsim::experiments::study
