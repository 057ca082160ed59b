// Elementary functions whose bits depend on nothing but their argument.
//
// A C library picks other code for other processors (with and without fused multiply-add), so its
// log or sin may differ in the last bit from machine to machine, and a CSV with it. These use only
// IEEE 754 additions, multiplications and divisions, in one order. Error below 4 ulp.
#pragma once

namespace numsim {

// Natural logarithm. Requires x > 0, finite and normal.
double Log(double x) noexcept;

// e^x; NaN for NaN. Requires |x| < 700 otherwise.
double Exp(double x) noexcept;

// sin and cos of 2 pi u. Requires 0 <= u <= 1.
struct SinCos {
  double sin, cos;
};
SinCos SinCos2Pi(double u) noexcept;

}  // namespace numsim
