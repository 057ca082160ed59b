// Elementary functions whose result bits depend only on the argument.
//
// A C library picks different code for different processors (with and without fused multiply-add).
// Its log or sin may therefore differ in the last bit from machine to machine, and so would a CSV
// computed from it. The functions below use only IEEE 754 additions, multiplications and divisions
// in a fixed order. Their error is below 4 ulp.
#pragma once

namespace numsim {

// Returns the natural logarithm of x. Requires x > 0, finite and normal.
double Log(double x) noexcept;

// Returns e^x, and NaN for NaN. Requires |x| < 700 unless x is NaN.
double Exp(double x) noexcept;

// The sine and cosine that SinCos2Pi(u) returns: those of 2 pi u. Requires 0 <= u <= 1.
struct SinCos {
  double sin, cos;
};
SinCos SinCos2Pi(double u) noexcept;

}  // namespace numsim
