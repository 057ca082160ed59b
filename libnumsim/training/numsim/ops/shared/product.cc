#include "numsim/ops/shared/product.h"

#include <algorithm>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm.h"

namespace numsim {
namespace {

// The number of rows of op(x), and of elements in each.
struct Extents {
  size_t rows, inner;
};
template <typename T>
Extents ExtentsOf(const MatrixSpan<const T>& x, bool transpose) {
  return transpose ? Extents{x.cols, x.rows} : Extents{x.rows, x.cols};
}

GemmOperand AsOperand(const MatrixSpan<const float>& x, bool vectors_are_columns) {
  GemmOperand operand;
  operand.format = kFp32;
  operand.values = x.Span();
  operand.rows = vectors_are_columns ? x.cols : x.rows;
  operand.inner = vectors_are_columns ? x.rows : x.cols;
  operand.transposed = vectors_are_columns;
  return operand;
}

// Returns op(x) in row-major order.
const double* Plain(const MatrixSpan<const double>& x,
                    bool transpose,
                    std::vector<double>& memory) {
  if (!transpose) return x.data;
  memory.resize(x.Elements());
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t c = 0; c < x.cols; ++c) memory[c * x.rows + r] = x.Row(r)[c];
  }
  return memory.data();
}

// Computes one row of the result at a time, with ascending k; each product and sum is rounded.
void MultiplyRows(const double* a, const double* b, size_t inner, const MatrixSpan<double>& out) {
  const size_t grain = 1 + 65536 / std::max<size_t>(1, inner * out.cols);
  ParallelFor(out.rows, grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      double* const row = out.Row(i);
      std::fill_n(row, out.cols, 0.0);
      for (size_t k = 0; k < inner; ++k) {
        const double factor = a[i * inner + k];
        const double* const from = b + k * out.cols;
        for (size_t j = 0; j < out.cols; ++j) row[j] += factor * from[j];
      }
    }
  });
}

}  // namespace

template <typename T>
void Multiply(In<T> a,
              bool transpose_a,
              In<T> b,
              bool transpose_b,
              const AccumulationMode& mode,
              MatrixSpan<T> out) {
  RequireHost("a product", {a.place, b.place, out.place});
  const Extents of_a = ExtentsOf(a, transpose_a), of_b = ExtentsOf(b, transpose_b);
  NUMSIM_CHECK(a.Contiguous() && b.Contiguous() && out.Contiguous() && of_a.inner == of_b.rows &&
                   out.rows == of_a.rows && out.cols == of_b.inner,
               "{} x {} times {} x {} into {} x {}",
               of_a.rows,
               of_a.inner,
               of_b.rows,
               of_b.inner,
               out.rows,
               out.cols);
  if constexpr (sizeof(T) == sizeof(float)) {
    Gemm(AsOperand(a, transpose_a), AsOperand(b, !transpose_b), mode, out.Span());
  } else {
    thread_local std::vector<double> plain_a, plain_b;
    const double* const rows_a = Plain(a, transpose_a, plain_a);
    MultiplyRows(rows_a, Plain(b, transpose_b, plain_b), of_a.inner, out);
  }
}

template void Multiply<float>(
    In<float>, bool, In<float>, bool, const AccumulationMode&, MatrixSpan<float>);
template void Multiply<double>(
    In<double>, bool, In<double>, bool, const AccumulationMode&, MatrixSpan<double>);

}  // namespace numsim
