// The vector loops of moment_coat.cc, for arrays of any length on one thread. Results do not depend
// on the SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

struct MagnitudeRange {
  float most = 0, least = 0;
};
// Returns the largest and the smallest magnitude of the finite nonzero elements; both 0 if there
// are none.
MagnitudeRange FiniteMagnitudes(const float* in, size_t n);

// The function x -> factor (|x| / divisor)^(power / 2^roots), computed in float64: a division,
// `roots` square roots, then the power by repeated squaring. Requires power >= 1 and divisor > 0.
struct ScaledPower {
  double divisor = 1;
  int roots = 0;
  uint32_t power = 1;
  double factor = 1;
};
// Sets out[i] to the function of in[i], rounded to float32, with the sign of in[i]. `in` may equal
// `out`. Requires the default floating-point environment.
void Raise(const ScaledPower& to, const float* in, size_t n, float* out);

}  // namespace numsim
