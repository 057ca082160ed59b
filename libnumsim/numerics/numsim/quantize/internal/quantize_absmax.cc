#include <algorithm>
#include <cmath>
#include <vector>

#include "numsim/backend/backend.h"
#include "numsim/backend/shared/offload.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/quantize/internal/joined_rows.h"
#include "numsim/quantize/internal/quantize_device.h"
#include "numsim/quantize/quantize.h"
#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/quantize/shared/require_scales.h"
#include "numsim/quantize/shared/scale_grid.h"

namespace numsim {
namespace {

// The largest number of rows in a band, whose maxima one thread takes, if more rows share a scale.
constexpr size_t kMaxBand = 64;

// Returns the largest magnitude of each piece of an array, as computed by `largest`.
template <typename Largest>
std::vector<float> PiecewiseMaxima(std::span<const float> in, const Largest& largest) {
  std::vector<float> maxima(CeilDiv(in.size(), kGrain));
  ParallelFor(maxima.size(), 1, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const auto piece = in.subspan(i * kGrain, std::min(kGrain, in.size() - i * kGrain));
      maxima[i] = largest(piece.data(), piece.size());
    }
  });
  return maxima;
}

// Computes the maxima of tiles. Tiles of many rows are split into bands, so that more threads can
// work; the maxima of the bands are then combined.
void AbsmaxTiles(std::span<const float> in,
                 MatrixShape shape,
                 const ScaleGrid& grid,
                 std::span<float> absmax) {
  const size_t band = std::min(grid.tile_rows, kMaxBand);
  const size_t bands_per_tile = CeilDiv(grid.tile_rows, band);
  const size_t bands = CeilDiv(shape.rows, grid.tile_rows) * bands_per_tile;
  const size_t width = std::max<size_t>(kPiece / grid.tile_cols, 1) * grid.tile_cols;
  const size_t per_band = CeilDiv(shape.cols, width);
  std::vector<float> joined;
  if (bands_per_tile > 1) joined.resize(bands * grid.across);
  float* maxima = bands_per_tile > 1 ? joined.data() : absmax.data();
  ParallelFor(bands * per_band, CeilDiv(kGrain, band * width), [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const size_t b = i / per_band, c = i % per_band * width;
      const size_t tile_end = std::min((b / bands_per_tile + 1) * grid.tile_rows, shape.rows);
      const size_t r0 = b / bands_per_tile * grid.tile_rows + b % bands_per_tile * band;
      for (size_t r = r0; r < std::min(r0 + band, tile_end); ++r) {
        AccumulateAbsmax(in.data() + r * shape.cols + c,
                         std::min(width, shape.cols - c),
                         grid.tile_cols,
                         maxima + b * grid.across + c / grid.tile_cols);
      }
    }
  });
  for (size_t b = 0; b < joined.size() / grid.across; ++b) {
    const float* of_band = joined.data() + b * grid.across;
    AccumulateAbsmax(of_band, grid.across, 1, absmax.data() + b / bands_per_tile * grid.across);
  }
}

// Computes the maxima of columns, for matrices with short rows.
void AbsmaxColumns(std::span<const float> in,
                   MatrixShape shape,
                   const ScaleLayout& layout,
                   std::span<float> absmax) {
  const JoinedColumns joined(shape);
  const size_t n = joined.whole.Elements();
  float maxima[kPiece] = {};
  AbsmaxTiles(in.first(n),
              joined.whole,
              ScaleGrid(joined.whole, layout),
              std::span(maxima).first(joined.whole.cols));
  for (size_t i = 0; i < joined.count; ++i) {
    AccumulateAbsmax(maxima + i * shape.cols, shape.cols, 1, absmax.data());
  }
  for (size_t r = 0; r < joined.rest.rows; ++r) {
    AccumulateAbsmax(in.data() + n + r * shape.cols, shape.cols, 1, absmax.data());
  }
}

void AbsmaxOnHost(std::span<const float> in,
                  MatrixShape shape,
                  const ScaleLayout& layout,
                  std::span<float> absmax) {
  std::fill(absmax.begin(), absmax.end(), 0.0f);
  if (in.empty()) return;
  if (JoinedColumns::Serves(shape, layout)) return AbsmaxColumns(in, shape, layout, absmax);
  ScaleLayout joined = layout;
  JoinRows(shape, joined);
  const ScaleGrid grid(shape, joined);
  if (grid.tile_rows < shape.rows || grid.tile_cols < shape.cols) {
    return AbsmaxTiles(in, shape, grid, absmax);
  }
  for (const float max : PiecewiseMaxima(in, FiniteAbsmax)) absmax[0] = std::max(absmax[0], max);
}

}  // namespace

void Absmax(ConstFloatSpan in, const ScaleLayout& layout, MatrixSpan<float> absmax) {
  RequireContiguous(in, "Absmax");
  RequireScales(absmax.Elements(), layout, in.Shape(), "Absmax", "absmax");
  const Place place = OnePlace("Absmax", {in.place, absmax.place});
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) return cuda::Absmax(in, layout, absmax);
    if (UsesDevice() && in.Elements() != 0) {
      OffloadedCall call;
      const MatrixSpan<float> there = call.Room<float>(absmax.Shape());
      cuda::Absmax(call.In(in.Float32()), layout, there);
      return call.Out(there, absmax);
    }
  }
  AbsmaxOnHost(in.Float32().Span(), in.Shape(), layout, absmax.Span());
}

void AbsmaxOfAll(ConstFloatSpan in, MatrixSpan<float> absmax) {
  RequireContiguous(in, "AbsmaxOfAll");
  RequireSize(absmax.Elements(), 1, "AbsmaxOfAll", "absmax");
  const Place place = OnePlace("AbsmaxOfAll", {in.place, absmax.place});
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!place.IsHost()) return cuda::AbsmaxOfAll(in, absmax);
  }
  absmax.data[0] = AbsmaxOfAll(in.Float32().Span());
}

float AbsmaxOfAll(std::span<const float> in) {
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (UsesDevice() && !in.empty()) {
      OffloadedCall call;
      const MatrixSpan<float> there = call.Room<float>({1, 1});
      cuda::AbsmaxOfAll(call.In(MatrixSpan<const float>(in)), there);
      return ToVector(there)[0];
    }
  }
  const auto largest = [](const float* piece, size_t n) { return AbsmaxOfAll(piece, n); };
  float result = 0;
  for (const float max : PiecewiseMaxima(in, largest)) {
    if (std::isnan(max)) return max;
    result = std::max(result, max);
  }
  return result;
}

}  // namespace numsim
