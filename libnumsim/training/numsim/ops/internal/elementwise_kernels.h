// The operations of elementwise.h by kernels. row_kernels.h says what `launch` and `block_sums` are.
#pragma once

#include "numsim/ops/internal/row_kernels.h"

namespace numsim {

// Writes rows: each is copied from where source.At(row) says, or filled with Source::kFill if that is
// nullptr.
template <class Source>
struct CopyRowsRule {
  Source source;
  RowView<float> y;

  template <class L>
  NUMSIM_INLINE void operator()(const L& l, size_t row, size_t begin, size_t n) const {
    const float* const from = source.At(row);
    float* const to = y.Row(row) + begin;
    l.ForRow(n, [&](size_t i, size_t count) {
      const float x = from == nullptr ? Source::kFill : l.Load(from + begin + i, count);
      l.Store(x, to + i, count);
    });
  }
};
template <class Launch, class Source>
void CopyRowsBy(const Launch& launch, const Source& source, MatrixSpan<float> y) {
  LaunchPieces(launch, y.rows, y.cols, CopyRowsRule<Source>{source, y});
}

struct SameRow {
  static constexpr float kFill = 0;
  RowView<const float> x;
  NUMSIM_INLINE const float* At(size_t row) const { return x.Row(row); }
};
template <class Launch>
void CopyBy(const Launch& launch, In<float> x, MatrixSpan<float> y) {
  CopyRowsBy(launch, SameRow{x}, y);
}

struct FillRule {
  float value;
  RowView<float> y;

  template <class L>
  NUMSIM_INLINE void operator()(const L& l, size_t row, size_t begin, size_t n) const {
    float* const to = y.Row(row) + begin;
    l.ForRow(n, [&](size_t i, size_t count) { l.Store(value, to + i, count); });
  }
};
template <class Launch>
void FillBy(const Launch& launch, float value, MatrixSpan<float> y) {
  LaunchPieces(launch, y.rows, y.cols, FillRule{value, y});
}

// A block of threads turns a tile.
struct TransposeKernel {
  static constexpr unsigned kThreads = 256, kTile = 32, kRowsAtOnce = kThreads / kTile;
  struct Shared {
    float tile[kTile][kTile + 1];  // the elements of a column are in different banks
  };
  RowView<const float> x;
  RowView<float> y;
  size_t rows, cols;  // of x

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(Env& env, Shared& shared) const {
    const size_t tiles = BlocksOf(cols, kTile);
    const size_t row = env.Block() / tiles * kTile, col = env.Block() % tiles * kTile;
    const size_t across = env.Thread() % kTile;
    for (size_t r = env.Thread() / kTile; r < kTile; r += kRowsAtOnce) {
      if (row + r < rows && col + across < cols) {
        shared.tile[r][across] = x.Row(row + r)[col + across];
      }
    }
    env.Sync();
    for (size_t c = env.Thread() / kTile; c < kTile; c += kRowsAtOnce) {
      if (col + c < cols && row + across < rows) {
        y.Row(col + c)[row + across] = shared.tile[across][c];
      }
    }
  }
};
template <class Launch>
void CopyTransposedBy(const Launch& launch, In<float> x, MatrixSpan<float> y) {
  constexpr size_t kTile = TransposeKernel::kTile;
  launch(TransposeKernel{x, y, x.rows, x.cols}, BlocksOf(x.rows, kTile) * BlocksOf(x.cols, kTile));
}

template <class Launch>
void AddBy(const Launch& launch, In<float> a, In<float> b, MatrixSpan<float> y) {
  LaunchPieces(launch, y.rows, y.cols, AddRule{a, b, y});
}
template <class Launch>
void ScaleElementsBy(const Launch& launch, float factor, MatrixSpan<float> y) {
  LaunchPieces(launch, y.rows, y.cols, ScaleRule{factor, y});
}
template <class Launch>
void AddBiasBy(const Launch& launch, In<float> bias, MatrixSpan<float> y) {
  LaunchPieces(launch, y.rows, y.cols, AddBiasRule{bias.data, y});
}
template <class Launch>
void ColumnSumsBy(const Launch& launch, In<float> x, float* block_sums, MatrixSpan<float> sums) {
  LaunchColumnSums(launch, x.rows, ColumnRule{x}, block_sums, std::array{sums});
}

template <class Launch>
void AddScaledBranchBy(
    const Launch& launch, In<float> x, In<float> branch, In<float> gain, MatrixSpan<float> y) {
  LaunchPieces(launch, y.rows, y.cols, ScaledBranchRule{x, branch, gain.data, y});
}
template <class Launch>
void AddScaledBranchGradientBy(const Launch& launch,
                               In<float> g,
                               In<float> branch,
                               In<float> gain,
                               float* block_sums,
                               MatrixSpan<float> branch_gradient,
                               MatrixSpan<float> gain_gradient) {
  const ScaledBranchGradientRule rule{g, branch, gain.data, branch_gradient};
  LaunchColumnSums(launch, g.rows, rule, block_sums, std::array{gain_gradient});
}

}  // namespace numsim
