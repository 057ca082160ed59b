// Casts of arrays to formats that are a table of values (formats/value_table.h). Same results as
// the scalar rule (rounding/shared/table_rule.h) for each element.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/cast/cast.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

// Write codes[i] = the code of in[i], as Encode of cast.h does on one thread. Require
// plan.format.IsTable().
void EncodeInTable(const EncodePlan& plan,
                   const float* in,
                   size_t n,
                   uint8_t* codes,
                   const ArrayRandom& random) noexcept;
void EncodeInTable(const EncodePlan& plan,
                   const double* in,
                   size_t n,
                   uint8_t* codes,
                   const ArrayRandom& random) noexcept;

}  // namespace numsim
