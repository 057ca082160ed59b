// Linear layers written down from their published algorithms with plain loops: what numsim/linear
// must equal bit for bit.
//
// Nothing here is shared with the layers or the kernels below them: a scale comes from an absolute
// maximum that a loop finds, a code from the oracle of conversions, a sum from a loop over the
// inner dimension or, under modes that the processor does not have, from the oracle of
// accumulation. Formats are names in the oracle's own list. Of the library there are only the
// structs in which a layer is described, and the random words.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "numsim/linear/linear_recipe.h"
#include "numsim/quantize/scale.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/rounding.h"

namespace numsim::naive {

struct Matrix {
  size_t rows = 0, cols = 0;
  std::vector<float> data;  // row-major

  float At(size_t r, size_t c) const { return data[r * cols + c]; }
};
Matrix Transposed(const Matrix& in);

// Elements (r, c) of equal group share a scale.
using Group = std::function<std::pair<size_t, size_t>(size_t r, size_t c)>;
Group WholeTensor();
Group EachRow();
Group EachColumn();
Group Tiles(size_t rows, size_t cols);

struct Quantiser {
  std::string format;
  Group group;
  ScaleRule rule = ScaleRule::kAbsmax;
  Rounding rounding = {};
  RandomStream stream = {};         // element r * cols + c of it; read in a stochastic mode
  std::optional<Scale> given = {};  // instead of rule
};

// One side of a product: value times scale is what an element is worth.
struct Operand {
  std::string format;
  Matrix values, scales;
  float tensor = 1;  // under nvfp4 the scale of the tensor, a factor of every scale
};
// Scales from the finite elements alone; saturating.
Operand Quantised(const Matrix& in, const Quantiser& quantiser);
// Rounded to the format without a scale, infinities kept; fp32 is left as it is.
Operand Cast(const Matrix& in, const std::string& format);
Operand Transposed(const Operand& in);
// value * scale in float32.
Matrix Dequantised(const Operand& in);

// A B^T. Within each `segment` elements of the inner dimension (0: all of it) values are added
// under `mode`, the sum is scaled in float64 and rounded to float32; segments are added in float32.
// Modes: exact, fp64, fp32, fp16, bf16, fp32-chunked:N, hopper-fp8, hopper-bf16 and trunc:25,16,N,
// as in numsim/arith/accumulation_mode.h; exact requires sums that float64 holds. Under mxf8f6f4, mxf4
// and mxf4nvf4 the scales enter the sum over the whole inner dimension, and those of the tensors scale
// it. Throws std::invalid_argument for any other.
Matrix Product(const Operand& a, const Operand& b, const std::string& mode, size_t segment = 0);

// Y, dX and dW of one step.
struct Results {
  Matrix y, dx, dw;
};

// The parameters of the algorithms below.
struct Setup {
  std::string format, gradient_format, high_precision;
  Rounding gradient_rounding;
  uint64_t seed = 0, dx_stream = 0, dw_stream = 0;  // of the draws for G
  ScaleRule rule = ScaleRule::kAbsmax, gradient_rule = ScaleRule::kAbsmax;
  std::string accumulation;  // empty: exact for two int8, else fp32
  std::string high_precision_accumulation;
  std::string container;  // of the operands of GEMMs with quantised operands; empty: none
  size_t block = 0;
  bool keeps_quantized = false;  // tensor-wise: X^T has the codes of X and not new ones
};

// The layer of that kind for X, W and G. te-hybrid with current scaling.
Results Layer(const LinearOptions& options,
              const Setup& setup,
              const Matrix& x,
              const Matrix& w,
              const Matrix& g);
// The setup of options: every default of numsim/linear/linear_recipe.h.
Setup SetupOf(const LinearOptions& options);

}  // namespace numsim::naive
