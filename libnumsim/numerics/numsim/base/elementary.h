// Elementary functions whose result bits depend only on the argument.
//
// A C library picks different code for different processors (with and without fused multiply-add).
// Its log or sin may therefore differ in the last bit from machine to machine, and so would a CSV
// computed from it. The functions below use only IEEE 754 additions, multiplications and divisions
// in a fixed order. Their error is below 4 ulp.
#pragma once

namespace numsim {

// Returns the natural logarithm of x: -infinity for a zero of either sign, infinity for infinity,
// NaN for a negative number and for NaN.
double Log(double x) noexcept;

// Returns e^x: infinity above the logarithm of the largest double, 0 below that of half the
// smallest, NaN for NaN.
double Exp(double x) noexcept;

// The sine and cosine that SinCos2Pi(u) returns: those of 2 pi u for 0 <= u <= 1, and NaN for any
// other u.
struct SinCos {
  double sin, cos;
};
// Returns the sine and the cosine of 2 pi u.
SinCos SinCos2Pi(double u) noexcept;

}  // namespace numsim
