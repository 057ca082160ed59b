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
  size_t size = 0;  // elements per vector; the width of x is a multiple of it
  double epsilon = 1e-5;
};

template <typename T>
class NormLayer {
 public:
  // Adds NAME.gain of ones and, for kLayer, NAME.bias of zeros, each 1 x size. Several vectors in
  // one row, such as the heads of queries, share them.
  NormLayer(ParameterList<T>& parameters, std::string name, const NormOptions& options);

  // Returns the normalised x, with the shape of x and contiguous. The result lies in memory of this
  // layer, is valid until the next Forward, and is observed as tensor NAME. The caller must leave x
  // unchanged until Backward.
  MatrixSpan<T> Forward(const Pass<T>& pass, In<T> x);
  // Observes g as tensor NAME, then writes dx and the gradients of the parameters. dx must not
  // overlap g. Requires g and dx to have the shape of x.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g, MatrixSpan<T> dx);

 private:
  std::string name_;
  NormOptions options_;
  Parameter<T>* gain_;
  Parameter<T>* bias_;  // nullptr for kRms
  In<T> x_;
  Buffer<T> y_, inverse_, mean_;
};

}  // namespace numsim
