// The vector loops of moment_coat.cc. One thread, any length; bits do not
// depend on the target.
#pragma once

#include <cstddef>
#include <cstdint>

namespace numsim {

struct MagnitudeRange {
  float most = 0, least = 0;
};
// The largest and the least magnitude of the finite elements that are not zero;
// both 0 if there is none.
MagnitudeRange FiniteMagnitudes(const float* in, size_t n);

// factor (|x| / divisor)^(power / 2^roots): in float64 a quotient, `roots`
// square roots, the power by repeated squaring. Requires power >= 1, divisor >
// 0.
struct ScaledPower {
  double divisor = 1;
  int roots = 0;
  uint32_t power = 1;
  double factor = 1;
};
// out[i] = that of in[i], rounded to float32, with the sign of in[i]. in may
// equal out. In the default floating-point environment.
void Raise(const ScaledPower& to, const float* in, size_t n, float* out);

}  // namespace numsim
