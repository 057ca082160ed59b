// How often the test program took memory of the size of a tensor. Linking allocation_count.cc
// replaces operator new.
#pragma once

#include <cstddef>

namespace numsim {

// Calls of operator new so far, of all threads, for kLargeAllocation bytes and more. Smaller ones
// are closures of parallel loops and the like.
inline constexpr size_t kLargeAllocation = 4096;
size_t LargeAllocations();

}  // namespace numsim
