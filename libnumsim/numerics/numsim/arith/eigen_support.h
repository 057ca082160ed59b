// Eigen::NumTraits of SoftFloat. With it, Eigen::Matrix<SoftFloat<kE4M3fn>, Dynamic, Dynamic> and
// the rest of Eigen's dense algebra work as for float, with each operation rounded to the format.
//
// Eigen chooses the order of a sum, and neither Eigen nor numsim guarantees it. It depends on the
// sizes, on whether they are known at compile time, on the storage order and on Eigen's version. In
// a format of few bits, another order gives another result. Two cases of Eigen 3.4 are plain loops:
//   a.lazyProduct(b) with an inner size of Eigen::Dynamic   a(i, 0) b(0, j) + a(i, 1) b(1, j) + ...
//   v.sum() and v.dot(w) of Eigen::Dynamic vectors          v(0) + v(1) + ...
// Both run from left to right and round every product and every sum. If the bits matter, write the
// loop.
//
// norm() and other functions that call sqrt or abs work. Functions that SoftFloat lacks (exp, sin,
// ...) do not compile.
#pragma once

#include <Eigen/Core>
#include <limits>

#include "numsim/arith/soft_float.h"

template <numsim::FormatSpec kSpec>
struct Eigen::NumTraits<numsim::SoftFloat<kSpec>>
    : Eigen::GenericNumTraits<numsim::SoftFloat<kSpec>> {
  using Value = numsim::SoftFloat<kSpec>;
  using Real = Value;
  using NonInteger = Value;
  using Literal = Value;
  using Nested = Value;
  enum {
    IsComplex = 0,
    IsInteger = 0,
    IsSigned = kSpec.IsSigned(),
    RequireInitialization = 1,  // new elements are code 0
    ReadCost = 1,
    AddCost = 30,
    MulCost = 30,
  };

  // The default tolerance of isApprox and similar functions: four units in the last place of
  // numbers near 1.
  static Value dummy_precision() {
    return Value(4 * static_cast<float>(std::numeric_limits<Value>::epsilon()));
  }
};
