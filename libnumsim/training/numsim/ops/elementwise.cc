#include "numsim/ops/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "numsim/base/require.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/ops/internal/ops_device.h"
#include "numsim/ops/internal/ops_simd.h"
#include "numsim/ops/internal/pieces.h"

namespace numsim {
namespace {

template <typename T>
void CopyPart(In<T> x, MatrixSpan<T> y) {
  for (size_t r = 0; r < x.rows; ++r) std::copy_n(x.Row(r), x.cols, y.Row(r));
}
template <typename T>
void FillPart(T value, MatrixSpan<T> y) {
  for (size_t r = 0; r < y.rows; ++r) std::fill_n(y.Row(r), y.cols, value);
}

// The work of one thread, in float64; elementwise_simd.cc has the float32 versions.
using Matrix = MatrixSpan<double>;
using Input = MatrixSpan<const double>;

void AddPart(Input a, Input b, Matrix y) {
  for (size_t r = 0; r < a.rows; ++r) {
    for (size_t c = 0; c < a.cols; ++c) y.Row(r)[c] = a.Row(r)[c] + b.Row(r)[c];
  }
}
void ScalePart(double factor, Matrix y) {
  for (size_t r = 0; r < y.rows; ++r) {
    for (size_t c = 0; c < y.cols; ++c) y.Row(r)[c] *= factor;
  }
}
void AddBiasPart(Input bias, Matrix y) {
  for (size_t r = 0; r < y.rows; ++r) {
    for (size_t c = 0; c < y.cols; ++c) y.Row(r)[c] += bias.data[c];
  }
}
void AddColumnsPart(Input x, double* sums) {
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t c = 0; c < x.cols; ++c) sums[c] += x.Row(r)[c];
  }
}
void AddScaledBranchPart(Input x, Input branch, Input gain, Matrix y) {
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t c = 0; c < x.cols; ++c) {
      y.Row(r)[c] = x.Row(r)[c] + gain.data[c] * branch.Row(r)[c];
    }
  }
}
void AddScaledBranchGradientPart(
    Input g, Input branch, Input gain, Matrix branch_gradient, double* gain_sums) {
  for (size_t r = 0; r < g.rows; ++r) {
    for (size_t c = 0; c < g.cols; ++c) {
      const double gradient = g.Row(r)[c];
      gain_sums[c] += branch.Row(r)[c] * gradient;
      branch_gradient.Row(r)[c] = gain.data[c] * gradient;
    }
  }
}
// Leaves the sum of the magnitudes in sums->mean.
void MeasurePart(Input x, AbsoluteStatistics* sums) {
  for (size_t r = 0; r < x.rows; ++r) {
    for (size_t c = 0; c < x.cols; ++c) {
      const double magnitude = std::abs(x.Row(r)[c]);
      if (!std::isfinite(magnitude)) {
        ++sums->nonfinite;
        continue;
      }
      sums->mean += magnitude;
      sums->square_sum += magnitude * magnitude;
      sums->max = std::max(sums->max, magnitude);
    }
  }
}

// Rounds n contiguous elements; `index` is the index of the first one in its matrix.
void RoundRow(const EncodePlan& plan, size_t index, const ArrayRandom& random, size_t n, float* x) {
  FakeQuantizeSerial(plan, x, n, x, Advance(random, index));
}
void RoundRow(
    const EncodePlan& plan, size_t index, const ArrayRandom& random, size_t n, double* x) {
  constexpr size_t kPiece = 1024;
  float rounded[kPiece];
  for (size_t i = 0; i < n; i += kPiece) {
    const size_t count = std::min(kPiece, n - i);
    RoundF64Serial(plan, x + i, count, rounded, Advance(random, index + i));
    std::copy_n(rounded, count, x + i);
  }
}

}  // namespace

template <typename T>
void Copy(In<T> x, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("copying", x, y);
  CheckShape("Copy", y, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::Copy(place, x, y);
  }
  ForElements([](In<T> a, MatrixSpan<T> b) { CopyPart(a, b); }, x, y);
}

template <typename T>
void CopyTransposed(In<T> x, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("transposing", x, y);
  CheckShape("CopyTransposed", y, x.cols, x.rows);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::CopyTransposed(place, x, y);
  }
  // A part of x that stays in the cache while it is read down its columns.
  constexpr size_t kRows = 64;
  ForRowRanges(y.rows, y.cols, [&](size_t begin, size_t end) {
    for (size_t first = 0; first < x.rows; first += kRows) {
      const size_t last = std::min(first + kRows, x.rows);
      for (size_t r = begin; r < end; ++r) {
        T* const to = y.Row(r);
        for (size_t c = first; c < last; ++c) to[c] = x.Row(c)[r];
      }
    }
  });
}

template <typename T>
void Upload(std::span<const float> values, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("uploading", y);
  RequireSize(values.size(), MatrixShape{y.rows, y.cols}, "Upload", "values");
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return CopyMatrix<float>({values.data(), y.rows, y.cols}, y);
  }
  ForRowRanges(y.rows, y.cols, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) {
      std::copy_n(values.data() + r * y.cols, y.cols, y.Row(r));
    }
  });
}

template <typename T>
void Fill(std::type_identity_t<T> value, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("filling", y);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::Fill(place, value, y);
  }
  ForElements([value](MatrixSpan<T> a) { FillPart(value, a); }, y);
}

template <typename T>
void Add(In<T> a, In<T> b, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("adding", a, b, y);
  CheckShape("Add", b, a.rows, a.cols);
  CheckShape("Add", y, a.rows, a.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::Add(place, a, b, y);
  }
  ForElements([](In<T> p, In<T> q, MatrixSpan<T> r) { AddPart(p, q, r); }, a, b, y);
}

template <typename T>
void ScaleBy(std::type_identity_t<T> factor, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("scaling", y);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::ScaleBy(place, factor, y);
  }
  ForElements([factor](MatrixSpan<T> a) { ScalePart(factor, a); }, y);
}

template <typename T>
void AddBias(In<T> bias, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("adding a bias", bias, y);
  CheckShape("AddBias", bias, 1, y.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::AddBias(place, bias, y);
  }
  ForRowRanges(y.rows, y.cols, [&](size_t begin, size_t end) {
    AddBiasPart(bias, y.Rows(begin, end - begin));
  });
}

template <typename T>
void ColumnSums(In<T> x, MatrixSpan<T> sums) {
  const Place place = PlaceOf<T>("adding rows", x, sums);
  CheckShape("ColumnSums", sums, 1, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::ColumnSums(place, x, sums);
  }
  SumRowBlocks<T, 1>(x.rows, x.cols, {sums}, [&](size_t begin, size_t end, T* block_sums) {
    AddColumnsPart(x.Rows(begin, end - begin), block_sums);
  });
}

template <typename T>
void AddScaledBranch(In<T> x, In<T> branch, In<T> gain, MatrixSpan<T> y) {
  const Place place = PlaceOf<T>("layer-scale", x, branch, gain, y);
  CheckShape("AddScaledBranch", branch, x.rows, x.cols);
  CheckShape("AddScaledBranch", gain, 1, x.cols);
  CheckShape("AddScaledBranch", y, x.rows, x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::AddScaledBranch(place, x, branch, gain, y);
  }
  ForRowRanges(x.rows, x.cols, [&](size_t begin, size_t end) {
    const size_t n = end - begin;
    AddScaledBranchPart(x.Rows(begin, n), branch.Rows(begin, n), gain, y.Rows(begin, n));
  });
}

template <typename T>
void AddScaledBranchGradient(
    In<T> g, In<T> branch, In<T> gain, MatrixSpan<T> branch_gradient, MatrixSpan<T> gain_gradient) {
  const Place place =
      PlaceOf<T>("the gradient of layer-scale", g, branch, gain, branch_gradient, gain_gradient);
  CheckShape("AddScaledBranchGradient", branch, g.rows, g.cols);
  CheckShape("AddScaledBranchGradient", gain, 1, g.cols);
  CheckShape("AddScaledBranchGradient", branch_gradient, g.rows, g.cols);
  CheckShape("AddScaledBranchGradient", gain_gradient, 1, g.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) {
      return cuda::AddScaledBranchGradient(place, g, branch, gain, branch_gradient, gain_gradient);
    }
  }
  SumRowBlocks<T, 1>(g.rows, g.cols, {gain_gradient}, [&](size_t begin, size_t end, T* sums) {
    const size_t n = end - begin;
    AddScaledBranchGradientPart(
        g.Rows(begin, n), branch.Rows(begin, n), gain, branch_gradient.Rows(begin, n), sums);
  });
}

template <typename T>
void RoundTo(const EncodePlan& plan, MatrixSpan<T> x, const ArrayRandom& random) {
  const Place place = PlaceOf<T>("rounding", x);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return FakeQuantize(plan, x, x, random);
  }
  if (x.Contiguous()) {
    ForRowRanges(x.Elements(), 1, [&](size_t begin, size_t end) {
      RoundRow(plan, begin, random, end - begin, x.data + begin);
    });
    return;
  }
  ForRowRanges(x.rows, x.cols, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r) RoundRow(plan, r * x.cols, random, x.cols, x.Row(r));
  });
}

template <typename T>
AbsoluteStatistics MeasureAbsolute(MatrixSpan<T> x) {
  CheckPlaces("measuring", x);
  const size_t blocks = (x.rows + kSumRows - 1) / kSumRows;
  thread_local std::vector<AbsoluteStatistics> scratch;
  scratch.assign(blocks, {});
  AbsoluteStatistics* const block_sums = scratch.data();
  ForRowRanges(blocks, kSumRows * x.cols, [&](size_t first, size_t last) {
    for (size_t b = first; b < last; ++b) {
      const size_t begin = b * kSumRows;
      MeasurePart(In<T>(x.Rows(begin, std::min(kSumRows, x.rows - begin))), block_sums + b);
    }
  });
  AbsoluteStatistics all;
  for (size_t b = 0; b < blocks; ++b) {
    all.mean += block_sums[b].mean;
    all.square_sum += block_sums[b].square_sum;
    all.max = std::max(all.max, block_sums[b].max);
    all.nonfinite += block_sums[b].nonfinite;
  }
  const size_t finite = x.Elements() - all.nonfinite;
  all.mean = finite == 0 ? 0 : all.mean / static_cast<double>(finite);
  return all;
}

#define NUMSIM_INSTANTIATE(T)                                                               \
  template void Copy(In<T>, MatrixSpan<T>);                                                 \
  template void CopyTransposed(In<T>, MatrixSpan<T>);                                       \
  template void Upload(std::span<const float>, MatrixSpan<T>);                              \
  template void Fill(T, MatrixSpan<T>);                                                     \
  template void Add(In<T>, In<T>, MatrixSpan<T>);                                           \
  template void ScaleBy(T, MatrixSpan<T>);                                                  \
  template void AddBias(In<T>, MatrixSpan<T>);                                              \
  template void ColumnSums(In<T>, MatrixSpan<T>);                                           \
  template void AddScaledBranch(In<T>, In<T>, In<T>, MatrixSpan<T>);                        \
  template void AddScaledBranchGradient(In<T>, In<T>, In<T>, MatrixSpan<T>, MatrixSpan<T>); \
  template void RoundTo(const EncodePlan&, MatrixSpan<T>, const ArrayRandom&);              \
  template AbsoluteStatistics MeasureAbsolute(MatrixSpan<T>);
NUMSIM_INSTANTIATE(float)
NUMSIM_INSTANTIATE(double)
#undef NUMSIM_INSTANTIATE

}  // namespace numsim
