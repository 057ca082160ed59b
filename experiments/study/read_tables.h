// Reads what a study measures: probes, and tables with their columns.
#pragma once

#include "experiments/study/read_claims.h"
#include "experiments/study/read_parts.h"

namespace numsim::experiments::study {

// Reads a table of trials that train nothing. `study` has the tables that are known so far.
MeasuredTable ReadTable(Node& node, const Study& study);
ProbeSpec ReadProbe(Node& node, const Study& study, const Functions& functions);
DerivedTable ReadDerived(Node& node,
                         const Study& study,
                         const Functions& functions,
                         const NamedOutcomes& outcomes);

}  // namespace numsim::experiments::study
