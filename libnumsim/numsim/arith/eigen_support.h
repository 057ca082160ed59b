// Eigen::NumTraits of SoftFloat: Eigen::Matrix<SoftFloat<kE4M3fn>, Dynamic, Dynamic> and the rest
// of Eigen's dense algebra then work as for float, each operation rounded to the format.
//
// The order of a sum is Eigen's and is not promised, here or by Eigen: it depends on the sizes, on
// whether they are known when compiling, on the storage order and on Eigen's version; and in a
// format of few bits another order is another result. Two cases of Eigen 3.4 are plain loops:
//   a.lazyProduct(b) with an inner size of Eigen::Dynamic   a(i, 0) b(0, j) + a(i, 1) b(1, j) + ...
//   v.sum() and v.dot(w) of Eigen::Dynamic vectors          v(0) + v(1) + ...
// both from left to right, every product and every sum rounded. Where bits matter, write the loop.
//
// norm() and what else calls sqrt or abs work. Functions that SoftFloat lacks (exp, sin, ...) do
// not compile.
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

  // The default tolerance of isApprox and its like: four units in the last place, of numbers
  // near 1.
  static Value dummy_precision() {
    return Value(4 * static_cast<float>(std::numeric_limits<Value>::epsilon()));
  }
};
