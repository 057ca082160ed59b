#include "numsim/ops/shared/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "numsim/base/elementary.h"
#include "numsim/base/parallel.h"
#include "numsim/formats/named_formats.h"
#include "numsim/ops/internal/attention_gemms.h"
#include "numsim/ops/internal/ops_simd.h"

namespace numsim {
namespace {

template <typename T>
void CheckLogSums(const AttentionShape& shape, const MatrixSpan<T>& x) {
  NUMSIM_CHECK(x.rows == shape.batch * shape.length && x.cols == shape.heads,
               "log_sums: {} x {}",
               x.rows,
               x.cols);
}

template <typename T>
void CheckRows(const char* name, const AttentionShape& shape, const MatrixSpan<T>& x) {
  NUMSIM_CHECK(x.rows == shape.batch * shape.length && x.cols == shape.heads * shape.head_dim,
               "{}: {} x {}",
               name,
               x.rows,
               x.cols);
}

// Returns at least n elements of per-thread memory, which is reused from call to call.
template <typename T>
T* Scratch(size_t n) {
  thread_local std::vector<T> memory;
  if (memory.size() < n) memory.resize(n);
  return memory.data();
}

// Returns the rows and columns of one head of one sequence.
template <typename T>
MatrixSpan<T> HeadOf(const AttentionShape& shape, const MatrixSpan<T>& x, size_t task) {
  const size_t sequence = task / shape.heads, head = task % shape.heads;
  const size_t head_dim = x.cols / shape.heads;
  return x.Rows(sequence * shape.length, shape.length).Columns(head * head_dim, head_dim);
}

HeadRows InRows(const MatrixSpan<const float>& x) { return {x.data, x.stride}; }
HeadRowsOut OutRows(const MatrixSpan<float>& x) { return {x.data, x.stride}; }

HeadShape OneHead(const AttentionShape& shape, const AttentionRecipe& recipe) {
  constexpr double kLog2E = 1.4426950408889634;
  const double scale = 1 / std::sqrt(static_cast<double>(shape.head_dim));
  return {shape.length,
          shape.head_dim,
          shape.causal,
          static_cast<float>(scale),
          static_cast<float>(scale * kLog2E),
          !recipe.IsUnfused()};
}

// Returns true if a recipe has a kernel of its own.
bool HasKernel(const AttentionRecipe& recipe) {
  const AccumulationMode& mode = recipe.accumulation;
  const bool fused = mode.kind == AccumulationKind::kFormat && mode.format == kFp32;
  return recipe.IsOfFloat32() && (fused || recipe.IsUnfused());
}

// One head in float64, written for readability.
class PlainHead {
 public:
  PlainHead(const AttentionShape& shape,
            const MatrixSpan<const double>& q,
            const MatrixSpan<const double>& k)
      : shape_(shape), q_(q), k_(k), scale_(1 / std::sqrt(static_cast<double>(shape.head_dim))) {}

  size_t Seen(size_t t) const { return shape_.causal ? t + 1 : shape_.length; }
  double Score(size_t t, size_t j) const { return Dot(q_, t, k_, j) * scale_; }
  double scale() const { return scale_; }

  static double Dot(const MatrixSpan<const double>& x,
                    size_t row_x,
                    const MatrixSpan<const double>& y,
                    size_t row_y) {
    double sum = 0;
    for (size_t d = 0; d < x.cols; ++d) sum += x.Row(row_x)[d] * y.Row(row_y)[d];
    return sum;
  }

 private:
  const AttentionShape& shape_;
  MatrixSpan<const double> q_, k_;
  double scale_;
};

// Returns e^x, or 0 below the range of Exp.
double ExpOrZero(double x) { return x < -690 ? 0.0 : Exp(x); }

void AddRow(double factor, const double* from, size_t n, double* to) {
  for (size_t d = 0; d < n; ++d) to[d] += factor * from[d];
}

void AttendPlain(const AttentionShape& shape,
                 const MatrixSpan<const double>& q,
                 const MatrixSpan<const double>& k,
                 const MatrixSpan<const double>& v,
                 const MatrixSpan<double>& log_sums,
                 const MatrixSpan<double>& out) {
  const PlainHead head(shape, q, k);
  double* const p = Scratch<double>(shape.length);
  for (size_t t = 0; t < shape.length; ++t) {
    const size_t seen = head.Seen(t);
    for (size_t j = 0; j < seen; ++j) p[j] = head.Score(t, j);
    const double largest = *std::max_element(p, p + seen);
    double sum = 0;
    for (size_t j = 0; j < seen; ++j) sum += p[j] = ExpOrZero(p[j] - largest);
    log_sums.Row(t)[0] = largest + Log(sum);
    std::fill_n(out.Row(t), shape.head_dim, 0.0);
    for (size_t j = 0; j < seen; ++j) AddRow(p[j] / sum, v.Row(j), shape.head_dim, out.Row(t));
  }
}

struct PlainGradientInputs {
  MatrixSpan<const double> g, q, k, v, log_sums, out;
};

void AttendGradientPlain(const AttentionShape& shape,
                         const PlainGradientInputs& in,
                         const MatrixSpan<double>& dq,
                         const MatrixSpan<double>& dk,
                         const MatrixSpan<double>& dv) {
  const PlainHead head(shape, in.q, in.k);
  const size_t n = shape.head_dim;
  for (const MatrixSpan<double>& x : {dq, dk, dv}) {
    for (size_t t = 0; t < shape.length; ++t) std::fill_n(x.Row(t), n, 0.0);
  }
  for (size_t t = 0; t < shape.length; ++t) {
    const double center = PlainHead::Dot(in.g, t, in.out, t);
    for (size_t j = 0; j < head.Seen(t); ++j) {
      const double p = ExpOrZero(head.Score(t, j) - in.log_sums.Row(t)[0]);
      const double ds = p * (PlainHead::Dot(in.g, t, in.v, j) - center) * head.scale();
      AddRow(ds, in.k.Row(j), n, dq.Row(t));
      AddRow(ds, in.q.Row(t), n, dk.Row(j));
      AddRow(p, in.g.Row(t), n, dv.Row(j));
    }
  }
}

}  // namespace

template <typename T>
void Attention(const AttentionShape& shape,
               In<T> q,
               In<T> k,
               In<T> v,
               MatrixSpan<T> log_sums,
               MatrixSpan<T> out,
               const AttentionRecipe& recipe) {
  RequireHost("attention", {q.place, k.place, v.place, log_sums.place, out.place});
  CheckRows("q", shape, q);
  CheckRows("k", shape, k);
  CheckRows("v", shape, v);
  CheckRows("out", shape, out);
  CheckLogSums(shape, log_sums);
  ParallelTasks(shape.batch * shape.heads, [&](size_t task) {
    const auto of_q = HeadOf(shape, q, task), of_k = HeadOf(shape, k, task);
    const auto of_v = HeadOf(shape, v, task);
    const auto of_sums = HeadOf(shape, log_sums, task), of_out = HeadOf(shape, out, task);
    if constexpr (sizeof(T) == sizeof(float)) {
      const HeadShape one = OneHead(shape, recipe);
      const HeadRows rows_q = InRows(of_q), rows_k = InRows(of_k), rows_v = InRows(of_v);
      const HeadRowsOut to = OutRows(of_out);
      if (HasKernel(recipe)) {
        float* const scratch = Scratch<float>(AttendScratch(one));
        Attend(one, rows_q, rows_k, rows_v, of_sums.data, of_sums.stride, to, scratch);
      } else {
        AttendByGemms(recipe, one, rows_q, rows_k, rows_v, of_sums.data, of_sums.stride, to);
      }
    } else {
      AttendPlain(shape, of_q, of_k, of_v, of_sums, of_out);
    }
  });
}

template <typename T>
void AttentionGradient(const AttentionShape& shape,
                       In<T> g,
                       In<T> q,
                       In<T> k,
                       In<T> v,
                       In<T> log_sums,
                       In<T> out,
                       MatrixSpan<T> dq,
                       MatrixSpan<T> dk,
                       MatrixSpan<T> dv,
                       const AttentionRecipe& recipe) {
  RequireHost("attention", {g.place, q.place, k.place, v.place, log_sums.place, out.place});
  RequireHost("attention", {dq.place, dk.place, dv.place});
  CheckRows("g", shape, g);
  CheckRows("q", shape, q);
  CheckRows("k", shape, k);
  CheckRows("v", shape, v);
  CheckLogSums(shape, log_sums);
  CheckRows("out", shape, out);
  CheckRows("dq", shape, dq);
  CheckRows("dk", shape, dk);
  CheckRows("dv", shape, dv);
  ParallelTasks(shape.batch * shape.heads, [&](size_t task) {
    const auto of_sums = HeadOf(shape, log_sums, task);
    const auto to_q = HeadOf(shape, dq, task), to_k = HeadOf(shape, dk, task);
    const auto to_v = HeadOf(shape, dv, task);
    if constexpr (sizeof(T) == sizeof(float)) {
      const HeadShape one = OneHead(shape, recipe);
      const HeadGradientInputs in{InRows(HeadOf(shape, g, task)),
                                  InRows(HeadOf(shape, q, task)),
                                  InRows(HeadOf(shape, k, task)),
                                  InRows(HeadOf(shape, v, task)),
                                  InRows(HeadOf(shape, out, task)),
                                  of_sums.data,
                                  of_sums.stride};
      if (HasKernel(recipe)) {
        float* const scratch = Scratch<float>(AttendGradientScratch(one));
        AttendGradient(one, in, OutRows(to_q), OutRows(to_k), OutRows(to_v), scratch);
      } else {
        AttendGradientByGemms(recipe, one, in, OutRows(to_q), OutRows(to_k), OutRows(to_v));
      }
    } else {
      const PlainGradientInputs in{HeadOf(shape, g, task),
                                   HeadOf(shape, q, task),
                                   HeadOf(shape, k, task),
                                   HeadOf(shape, v, task),
                                   of_sums,
                                   HeadOf(shape, out, task)};
      AttendGradientPlain(shape, in, to_q, to_k, to_v);
    }
  });
}

template void Attention<float>(const AttentionShape&,
                               In<float>,
                               In<float>,
                               In<float>,
                               MatrixSpan<float>,
                               MatrixSpan<float>,
                               const AttentionRecipe&);
template void Attention<double>(const AttentionShape&,
                                In<double>,
                                In<double>,
                                In<double>,
                                MatrixSpan<double>,
                                MatrixSpan<double>,
                                const AttentionRecipe&);
template void AttentionGradient<float>(const AttentionShape&,
                                       In<float>,
                                       In<float>,
                                       In<float>,
                                       In<float>,
                                       In<float>,
                                       In<float>,
                                       MatrixSpan<float>,
                                       MatrixSpan<float>,
                                       MatrixSpan<float>,
                                       const AttentionRecipe&);
template void AttentionGradient<double>(const AttentionShape&,
                                        In<double>,
                                        In<double>,
                                        In<double>,
                                        In<double>,
                                        In<double>,
                                        In<double>,
                                        MatrixSpan<double>,
                                        MatrixSpan<double>,
                                        MatrixSpan<double>,
                                        const AttentionRecipe&);

}  // namespace numsim
