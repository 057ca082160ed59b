// The most threads that numsim uses.
#pragma once

namespace numsim {

// More would gain nothing on any machine, and the OpenMP library crashes when it is asked for very many.
inline constexpr int kMostThreads = 4096;

}  // namespace numsim
