#include "numsim/ops/internal/attention_gemms.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "numsim/backend/matrix.h"
#include "numsim/base/error.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/named_formats.h"
#include "numsim/gemm/gemm_quantized.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {
namespace {

// Which tokens the rows of a left operand stand for: with a mask, queries have products with the
// tokens up to them, keys with those from them on.
enum class Rows : uint8_t { kQueries, kKeys };

// A matrix of a head in the memory of a thread, and its operands. Each of the two products that a
// matrix enters makes the operand anew.
class HeadMatrix {
 public:
  // Gives the matrix the memory for rows x cols elements.
  MatrixSpan<float> Renew(size_t rows, size_t cols) { return values_.Renew(rows, cols); }
  // Copies rows of a tensor.
  void Take(const HeadRows& from, size_t rows, size_t cols) {
    const MatrixSpan<float> to = Renew(rows, cols);
    for (size_t t = 0; t < rows; ++t) std::copy_n(from.data + t * from.stride, cols, to.Row(t));
  }
  MatrixSpan<float> View() { return values_.View(); }

  // Returns the matrix as an operand whose vectors are its rows, or its columns if `transposed`,
  // until the next call. Rounds the elements in place where they have no scale. With `fixed`, all
  // share this scale.
  GemmOperand Operand(const AttentionOperand& recipe,
                      bool transposed,
                      const Scale* fixed = nullptr) {
    has_codes_ = !recipe.Unscaled() || (fixed != nullptr && fixed->scale != 1);
    return has_codes_ ? Codes(recipe, transposed, fixed) : Values(recipe, transposed);
  }

  // Returns the rows with an element that is not finite after Operand, in order.
  const std::vector<size_t>& NotFinite() {
    not_finite_.clear();
    const MatrixSpan<const float> values = values_.View();
    for (size_t t = 0; t < values.rows; ++t) {
      const float* const row = values.Row(t);
      if (std::any_of(row, row + values.cols, [](float x) { return !std::isfinite(x); })) {
        not_finite_.push_back(t);
      }
    }
    return not_finite_;
  }
  // Sets a row of the operand to zero.
  void Clear(size_t row) {
    const size_t cols = values_.View().cols;
    if (!has_codes_) return std::fill_n(values_.View().Row(row), cols, 0.0f), void();
    const size_t bytes = cols * static_cast<size_t>(codes_.format.StorageBytes());
    std::memset(codes_.codes.View().data + row * bytes, 0, bytes);
  }

 private:
  GemmOperand Values(const AttentionOperand& recipe, bool transposed) {
    const MatrixSpan<float> values = values_.View();
    if (recipe.format.spec != kFp32) {
      FakeQuantize(MakeEncodePlan(recipe.format.spec, {}, recipe.overflow), values, values);
    }
    GemmOperand operand = AsOperand(ConstFloatSpan(values), transposed);
    operand.format = recipe.format.spec;
    return operand;
  }

  GemmOperand Codes(const AttentionOperand& recipe, bool transposed, const Scale* fixed) {
    QuantizeOptions options;
    options.format = recipe.format.spec;
    options.overflow = recipe.overflow;
    options.layout = transposed ? Transposed(recipe.layout) : recipe.layout;
    options.scale_rule = recipe.scale_rule;
    const MatrixSpan<float> values = values_.View();
    if (fixed != nullptr) {
      QuantizeUnder(*fixed, values, options, codes_);
    } else {
      QuantizeInto(values, options, codes_);
    }
    GemmOperand operand = AsOperand(codes_, transposed);
    const auto shaped = [&](auto codes) {
      return codes.data == nullptr ? codes : codes.As(values.rows, values.cols);
    };
    operand.codes8 = shaped(operand.codes8);
    operand.codes16 = shaped(operand.codes16);
    return operand;
  }

  Buffer<float> values_;
  QuantizedMatrix codes_;
  bool has_codes_ = false;
  std::vector<size_t> not_finite_;
};

struct HeadMemory {
  HeadMatrix q, k, v, g, p, ds;
  Buffer<float> product;
  std::vector<float> sums;
};

HeadMemory& MemoryOfThread() {
  thread_local HeadMemory memory;
  return memory;
}

// Returns vectors [begin, begin + count) of an operand.
GemmOperand VectorsOf(GemmOperand operand, size_t begin, size_t count) {
  const auto part = [&](auto matrix) {
    if (matrix.data == nullptr) return matrix;
    return operand.transposed ? matrix.Columns(begin, count) : matrix.Rows(begin, count);
  };
  operand.values = part(operand.values);
  operand.codes8 = part(operand.codes8);
  operand.codes16 = part(operand.codes16);
  operand.rows = count;
  GemmScales& scales = operand.scales;
  if (!scales.data.Empty() && scales.row_stride != 0) {
    NUMSIM_CHECK(scales.row_group == 1, "{} rows share a scale", scales.row_group);
    const size_t first = begin * scales.row_stride;
    scales.data = scales.data.Columns(first, scales.data.cols - first);
  }
  return operand;
}

// Computes out = a b, where the inner dimension is the tokens, the rows of b. Rows of `out` that see
// all tokens are computed first. Before the others are, tokens that they do not see become zero, if
// an element of these is not finite.
void MultiplyTokens(const AttentionRecipe& recipe,
                    const HeadShape& shape,
                    Rows rows,
                    const GemmOperand& a,
                    HeadMatrix& b,
                    const AttentionOperand& recipe_of_b,
                    MatrixSpan<float> out) {
  const GemmOperand right = b.Operand(recipe_of_b, /*transposed=*/true);
  const auto multiply = [&](size_t begin, size_t end) {
    if (begin == end) return;
    Gemm(
        VectorsOf(a, begin, end - begin), right, recipe.accumulation, out.Rows(begin, end - begin));
  };
  size_t begin = 0, end = shape.length;
  if (shape.causal) {
    const std::vector<size_t>& hidden = b.NotFinite();
    if (rows == Rows::kQueries) {
      for (size_t i = hidden.size(); i-- > 0; end = hidden[i]) {
        multiply(hidden[i], end);
        b.Clear(hidden[i]);
      }
    } else {
      for (size_t i = 0; i < hidden.size(); begin = hidden[i++] + 1) {
        multiply(begin, hidden[i] + 1);
        b.Clear(hidden[i]);
      }
    }
  }
  multiply(begin, end);
}

// Writes the product, with each row multiplied by its factor, and every zero as +0.
template <typename FactorOf>
void Store(MatrixSpan<const float> product, const FactorOf& factor_of, const HeadRowsOut& out) {
  for (size_t t = 0; t < product.rows; ++t) {
    const float* const row = product.Row(t);
    const float factor = factor_of(t);
    float* const to = out.data + t * out.stride;
    for (size_t c = 0; c < product.cols; ++c) to[c] = (row[c] + 0.0f) * factor;
  }
}

float One(size_t /*row*/) { return 1; }

}  // namespace

void AttendByGemms(const AttentionRecipe& recipe,
                   const HeadShape& shape,
                   const HeadRows& q,
                   const HeadRows& k,
                   const HeadRows& v,
                   float* log_sums,
                   size_t log_stride,
                   const HeadRowsOut& out) {
  HeadMemory& memory = MemoryOfThread();
  const size_t length = shape.length, cols = shape.head_dim;
  memory.q.Take(q, length, cols);
  memory.k.Take(k, length, cols);
  memory.v.Take(v, length, cols);
  memory.sums.resize(length);
  const MatrixSpan<float> scores = memory.p.Renew(length, length);
  Gemm(memory.q.Operand(recipe.forward, false),
       memory.k.Operand(recipe.forward, false),
       recipe.accumulation,
       scores);
  SoftmaxOfScores(shape, scores.data, log_sums, log_stride, memory.sums.data());
  const MatrixSpan<float> product = memory.product.Renew(length, cols);
  MultiplyTokens(recipe,
                 shape,
                 Rows::kQueries,
                 memory.p.Operand(recipe.p, false, &recipe.p_scale),
                 memory.v,
                 recipe.forward,
                 product);
  Store(
      product, [&](size_t t) { return 1 / memory.sums[t]; }, out);
}

void AttendGradientByGemms(const AttentionRecipe& recipe,
                           const HeadShape& shape,
                           const HeadGradientInputs& in,
                           const HeadRowsOut& dq,
                           const HeadRowsOut& dk,
                           const HeadRowsOut& dv) {
  HeadMemory& memory = MemoryOfThread();
  const size_t length = shape.length, cols = shape.head_dim;
  memory.q.Take(in.q, length, cols);
  memory.k.Take(in.k, length, cols);
  memory.v.Take(in.v, length, cols);
  memory.g.Take(in.g, length, cols);
  const MatrixSpan<float> p = memory.p.Renew(length, length);
  const MatrixSpan<float> ds = memory.ds.Renew(length, length);
  Gemm(memory.q.Operand(recipe.forward, false),
       memory.k.Operand(recipe.forward, false),
       recipe.accumulation,
       p);
  Gemm(memory.g.Operand(recipe.gradient, false),
       memory.v.Operand(recipe.forward, false),
       recipe.accumulation,
       ds);
  GradientsOfScores(shape, in, p.data, ds.data);
  const MatrixSpan<float> product = memory.product.Renew(length, cols);
  const auto multiply = [&](Rows rows,
                            const GemmOperand& a,
                            HeadMatrix& b,
                            const AttentionOperand& recipe_of_b,
                            const HeadRowsOut& out) {
    MultiplyTokens(recipe, shape, rows, a, b, recipe_of_b, product);
    Store(product, One, out);
  };
  const GemmOperand p_transposed = memory.p.Operand(recipe.p, true, &recipe.p_scale);
  multiply(Rows::kKeys, p_transposed, memory.g, recipe.gradient, dv);
  multiply(Rows::kQueries, memory.ds.Operand(recipe.gradient, false), memory.k, recipe.forward, dq);
  multiply(Rows::kKeys, memory.ds.Operand(recipe.gradient, true), memory.q, recipe.forward, dk);
}

}  // namespace numsim
