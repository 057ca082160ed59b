// The operations of sequence.h by kernels. row_kernels.h says what `launch` is. Nobody looks at indices
// before kernels use them: the rows of an index that is out of range become NaN.
#pragma once

#include "numsim/ops/internal/elementwise_kernels.h"
#include "numsim/ops/internal/gather_gradient_kernel.h"

namespace numsim {

NUMSIM_INLINE bool IsBelow(int32_t index, size_t limit) {
  return index >= 0 && static_cast<size_t>(index) < limit;
}

struct GatheredRow {
  static constexpr float kFill = std::numeric_limits<float>::quiet_NaN();
  RowView<const float> table;
  size_t rows;
  const int32_t* ids;

  NUMSIM_INLINE const float* At(size_t row) const {
    const int32_t id = ids[row];
    return IsBelow(id, rows) ? table.Row(static_cast<size_t>(id)) : nullptr;
  }
};
template <class Launch>
void GatherRowsBy(const Launch& launch, In<float> table, IndexRef ids, MatrixSpan<float> y) {
  CopyRowsBy(launch, GatheredRow{table, table.rows, ids.data}, y);
}

template <class Launch>
void GatherRowsGradientBy(const Launch& launch,
                          In<float> g,
                          IndexRef ids,
                          MatrixSpan<float> table_gradient) {
  using Kernel = GatherGradientKernel;
  // Small tables have long lists, so more blocks share them; large ones make many blocks anyway.
  constexpr size_t kManyRows = 4096;
  const size_t columns = table_gradient.rows < kManyRows ? 1 : Kernel::kMostColumns;
  const Kernel kernel{g, ids.data, g.rows, table_gradient, g.cols, columns};
  launch(kernel, table_gradient.rows * BlocksOf(g.cols, columns * Kernel::kThreads));
}

struct AddPositionsRule {
  RowView<const float> table;
  size_t length;
  RowView<float> y;

  template <class L>
  NUMSIM_INLINE void operator()(const L& l, size_t row, size_t begin, size_t n) const {
    AddBiasRule{table.Row(row % length), y}(l, row, begin, n);
  }
};
template <class Launch>
void AddPositionsBy(const Launch& launch, In<float> table, MatrixSpan<float> y) {
  LaunchPieces(launch, y.rows, y.cols, AddPositionsRule{table, table.rows, y});
}

// Row t of y = the sum of rows t, t + step, t + 2 step, ... of g.
struct StridedSumRule {
  RowView<const float> g;
  size_t rows, step;
  RowView<float> y;

  template <class L>
  NUMSIM_INLINE void operator()(const L& l, size_t row, size_t begin, size_t n) const {
    float* const to = y.Row(row) + begin;
    l.ForRow(n, [&](size_t i, size_t count) {
      float sum = 0;
      for (size_t r = row; r < rows; r += step) sum += l.Load(g.Row(r) + begin + i, count);
      l.Store(sum, to + i, count);
    });
  }
};
template <class Launch>
void AddPositionsGradientBy(const Launch& launch, In<float> g, MatrixSpan<float> table_gradient) {
  const StridedSumRule rule{g, g.rows, table_gradient.rows, table_gradient};
  LaunchPieces(launch, table_gradient.rows, g.cols, rule);
}

template <class Launch>
void RotatePositionsBy(const Launch& launch,
                       In<float> cosines,
                       In<float> sines,
                       size_t head_dim,
                       bool inverse,
                       MatrixSpan<float> x) {
  const RotateRule rule{cosines, sines, cosines.rows, head_dim, inverse ? -1.0f : 1.0f, x};
  LaunchVectors(launch, x.rows, x.cols / head_dim, rule);
}

struct PatchRule {
  RowView<const float> images;
  size_t per_image, across;        // patches of an image, and of a row of it
  size_t patch, line, image_line;  // rows of a patch; elements of a row of a patch and of an image
  RowView<float> patches;

  template <class L>
  NUMSIM_INLINE void operator()(const L& l, size_t row, size_t v) const {
    const size_t p = row % per_image;
    const float* const from =
        images.Row(row / per_image) + (p / across * patch + v) * image_line + p % across * line;
    float* const to = patches.Row(row) + v * line;
    l.ForRow(line,
             [&](size_t i, size_t count) { l.Store(l.Load(from + i, count), to + i, count); });
  }
};
template <class Launch>
void CutPatchesBy(const Launch& launch,
                  In<float> images,
                  size_t height,
                  size_t width,
                  size_t channels,
                  size_t patch,
                  MatrixSpan<float> patches) {
  const size_t across = width / patch;
  const PatchRule rule{
      images, height / patch * across, across, patch, patch * channels, width * channels, patches};
  LaunchVectors(launch, patches.rows, patch, rule);
}

struct PrependedRow {
  static constexpr float kFill = 0;
  RowView<const float> x;
  size_t length;
  const float* token;

  NUMSIM_INLINE const float* At(size_t row) const {
    const size_t b = row / (length + 1), t = row % (length + 1);
    return t == 0 ? token : x.Row(b * length + t - 1);
  }
};
template <class Launch>
void PrependTokenBy(
    const Launch& launch, In<float> x, size_t length, In<float> token, MatrixSpan<float> y) {
  CopyRowsBy(launch, PrependedRow{x, length, token.data}, y);
}

struct RowBehindToken {
  static constexpr float kFill = 0;
  RowView<const float> g;
  size_t length;

  NUMSIM_INLINE const float* At(size_t row) const {
    return g.Row(row / length * (length + 1) + row % length + 1);
  }
};
template <class Launch>
void PrependTokenGradientBy(const Launch& launch,
                            In<float> g,
                            size_t length,
                            MatrixSpan<float> token_gradient,
                            MatrixSpan<float> dx) {
  const StridedSumRule rule{g, g.rows, length + 1, token_gradient};
  LaunchPieces(launch, 1, g.cols, rule);
  CopyRowsBy(launch, RowBehindToken{g, length}, dx);
}

struct TakenRows {
  static constexpr float kFill = std::numeric_limits<float>::quiet_NaN();
  RowView<const float> x;
  size_t length;
  const int32_t* at;  // nullptr: 0 of each sequence

  NUMSIM_INLINE const float* At(size_t b) const {
    const int32_t t = at == nullptr ? 0 : at[b];
    return IsBelow(t, length) ? x.Row(b * length + static_cast<size_t>(t)) : nullptr;
  }
};
template <class Launch>
void TakeRowsBy(
    const Launch& launch, In<float> x, size_t length, IndexRef at, MatrixSpan<float> y) {
  CopyRowsBy(launch, TakenRows{x, length, at.data}, y);
}

struct TakenGradient {
  static constexpr float kFill = 0;
  RowView<const float> g;
  size_t length;
  const int32_t* at;

  NUMSIM_INLINE const float* At(size_t row) const {
    const size_t b = row / length;
    const int32_t t = at == nullptr ? 0 : at[b];
    return t >= 0 && row % length == static_cast<size_t>(t) ? g.Row(b) : nullptr;
  }
};
template <class Launch>
void TakeRowsGradientBy(
    const Launch& launch, In<float> g, size_t length, IndexRef at, MatrixSpan<float> dx) {
  CopyRowsBy(launch, TakenGradient{g, length, at.data}, dx);
}

}  // namespace numsim
