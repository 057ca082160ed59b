// Linear layers written down from their published algorithms with plain loops: what numsim/nn must
// equal bit for bit.
//
// Nothing here is shared with the layers or the kernels below them: a scale comes from an absolute
// maximum that a loop finds, a code from one scalar call an element, a sum from a loop over the
// inner dimension. Only an accumulator that is neither exact nor fp32 is asked of its own
// definition, Accumulate().
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/formats/format_spec.h"
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
  FormatSpec format;
  Group group;
  ScaleRule rule = ScaleRule::kAbsmax;
  Rounding rounding = {};
  RandomStream stream = {};         // element r * cols + c of it; read in a stochastic mode
  std::optional<Scale> given = {};  // instead of rule
};

// One side of a product: value times scale is what an element is worth.
struct Operand {
  FormatSpec format;
  Matrix values, scales;
};
// Scales from the finite elements alone; saturating.
Operand Quantised(const Matrix& in, const Quantiser& quantiser);
// Rounded to the format without a scale, infinities kept; fp32 is left as it is.
Operand Cast(const Matrix& in, const FormatSpec& format);
Operand Transposed(const Operand& in);
// value * scale in float32.
Matrix Dequantised(const Operand& in);

// A B^T. Within each `segment` elements of the inner dimension (0: all of it) values are added
// under `rule`, the sum is scaled in float64 and rounded to float32; segments are added in float32.
// Rule exact requires sums that float64 holds.
Matrix Product(const Operand& a,
               const Operand& b,
               const AccumulationMode& rule,
               size_t segment = 0);

// Y, dX and dW of one step.
struct Results {
  Matrix y, dx, dw;
};

// What the algorithms below leave open.
struct Setup {
  FormatSpec format, gradient_format, high_precision;
  Rounding gradient_rounding;
  uint64_t seed = 0, dx_stream = 0, dw_stream = 0;  // of the draws for G
  ScaleRule rule = ScaleRule::kAbsmax, gradient_rule = ScaleRule::kAbsmax;
  std::optional<AccumulationMode> accumulation;  // empty: exact for two int8, else fp32
  AccumulationMode high_precision_accumulation;
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
