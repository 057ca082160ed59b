// How many of a set's examples are for training.
#pragma once

#include <cstddef>

namespace numsim {

// The whole part of (1 - valid_share) * size, at least 1 and at most size - 1: both parts have
// something. Requires size >= 2.
size_t TrainShare(size_t size, double valid_share);

}  // namespace numsim
