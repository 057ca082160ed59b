// Division of a set into training and validation.
#pragma once

#include <cstddef>

namespace numsim {

// Returns the number of training examples: the integer part of (1 - valid_share) * size, but at
// least 1 and at most size - 1, so that neither part is empty. Requires size >= 2.
size_t TrainShare(size_t size, double valid_share);

}  // namespace numsim
