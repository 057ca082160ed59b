// RMSNorm or LayerNorm with its parameters.
#pragma once

#include <cstdint>
#include <string>

#include "numsim/models/parameter.h"
#include "numsim/models/pass.h"

namespace numsim {

enum class NormKind : uint8_t {
  kRms,    // a gain [RMSNorm]
  kLayer,  // a gain and a bias [LayerNorm]
};

struct NormOptions {
  NormKind kind = NormKind::kRms;
  size_t size = 0;  // elements of a vector; the width of x is a multiple of it
  double epsilon = 1e-5;
};

template <typename T>
class NormLayer {
 public:
  // Adds NAME.gain of ones and, kLayer, NAME.bias of zeros, 1 x size each: vectors that lie in one
  // row, as the heads of queries do, share them.
  NormLayer(ParameterList<T>& parameters, std::string name, const NormOptions& options);

  // Returns the normalised x, of x's shape and contiguous, in memory of this layer that stays until
  // the next Forward, and shows it at point NAME. The caller keeps x as it is until Backward.
  MatrixSpan<T> Forward(const Pass<T>& pass, In<T> x);
  // Shows g at point NAME, then writes the gradients of the parameters and dx, which does not
  // overlap g. Requires g and dx of x's shape.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g, MatrixSpan<T> dx);

 private:
  std::string name_;
  NormOptions options_;
  Parameter<T>* gain_;
  Parameter<T>* bias_;  // nullptr: none
  In<T> x_;
  Buffer<T> y_, inverse_, mean_;
};

}  // namespace numsim
