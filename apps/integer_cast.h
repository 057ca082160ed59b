// Codes of integers, for `numsim cast`.
#pragma once

#include "numsim/cast/cast.h"
#include "numsim/io/array.h"

namespace numsim::apps {

// Writes the codes of integers, each rounded once from its exact value. Element i uses the random
// bits of index random.first_index + i. Requires IsInteger(in.type), and codes of the plan's
// format as many as `in` has elements.
void EncodeIntegers(const EncodePlan& plan,
                    const Array& in,
                    const ArrayRandom& random,
                    Array& codes);

}  // namespace numsim::apps
