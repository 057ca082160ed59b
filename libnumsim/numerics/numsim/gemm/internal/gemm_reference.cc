#include <bit>
#include <cmath>
#include <limits>

#include "numsim/base/parallel.h"
#include "numsim/gemm/internal/gemm_parts.h"

namespace numsim {
namespace {

double ToFloat64RoundedToOdd(const Unrounded& x) {
  if (x.kind == NumberKind::kNan) return std::numeric_limits<double>::quiet_NaN();
  double magnitude = std::numeric_limits<double>::infinity();
  if (x.kind == NumberKind::kFinite) {
    const int cut = std::bit_width(x.significand) - std::numeric_limits<double>::digits;
    uint64_t significand = x.significand;
    if (cut > 0) {
      const bool inexact = (significand & ((uint64_t{1} << cut) - 1)) != 0;
      significand = significand >> cut | (inexact ? 1 : 0);
    }
    magnitude = std::ldexp(static_cast<double>(significand), x.exponent + (cut > 0 ? cut : 0));
  }
  return x.negative ? -magnitude : magnitude;
}

// Returns the vectors of an operand over the segment, one after another.
std::vector<float> Vectors(const GemmOperand& x, InnerRange segment) {
  const size_t depth = segment.Size();
  std::vector<float> values(x.rows * depth);
  ParallelFor(x.rows, 1, [&](size_t begin, size_t end) {
    PackFloatPanels(x, 1, begin, end - begin, segment, values.data() + begin * depth, depth);
  });
  return values;
}

}  // namespace

void ReferenceSums(const GemmOperand& a,
                   const GemmOperand& b,
                   const AccumulationMode& mode,
                   InnerRange segment,
                   std::vector<double>& sums) {
  const std::vector<float> va = Vectors(a, segment), vb = Vectors(b, segment);
  const size_t depth = segment.Size();
  sums.resize(a.rows * b.rows);
  ParallelFor(sums.size(), 1, [&](size_t begin, size_t end) {
    for (size_t t = begin; t < end; ++t) {
      const size_t i = t / b.rows, j = t % b.rows;
      const DotOperand x{a.format, std::span(va).subspan(i * depth, depth)};
      const DotOperand y{b.format, std::span(vb).subspan(j * depth, depth)};
      sums[t] = ToFloat64RoundedToOdd(Accumulate(mode, x, y));
    }
  });
}

double ReferenceSum(const GemmOperand& a,
                    const GemmOperand& b,
                    const AccumulationMode& mode,
                    InnerRange segment,
                    size_t i,
                    size_t j) {
  std::vector<float> x(segment.Size()), y(segment.Size());
  PackFloatPanels(a, 1, i, 1, segment, x.data(), x.size());
  PackFloatPanels(b, 1, j, 1, segment, y.data(), y.size());
  return ToFloat64RoundedToOdd(Accumulate(mode, {a.format, x}, {b.format, y}));
}

}  // namespace numsim
