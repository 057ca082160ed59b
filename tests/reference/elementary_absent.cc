// The functions of elementary.h in a build without MPFR.
#include <cstdlib>

#include "tests/reference/elementary.h"

namespace oracle {

bool HasMpfr() { return false; }

ExactNumber ExactFunction(Function, const Grid&, uint32_t) { std::abort(); }

ExactNumber ExactFunction(Function, const ExactNumber&) { std::abort(); }

ExactNumber ExactFunction(Function2, const ExactNumber&, const ExactNumber&) { std::abort(); }

void LeadingWords(Constant, uint64_t[8]) { std::abort(); }

}  // namespace oracle
