#include "numsim/ops/shared/sequence.h"

#include <algorithm>
#include <cmath>

#include "numsim/base/elementary.h"
#include "numsim/base/require.h"
#include "numsim/ops/internal/ops_device.h"
#include "numsim/ops/internal/ops_simd.h"
#include "numsim/ops/internal/row_loops.h"

namespace numsim {
namespace {

template <typename T>
void CopyRow(const T* x, size_t n, T* y) {
  std::copy_n(x, n, y);
}

template <typename T>
void AddToRow(const T* x, size_t n, T* y) {
  for (size_t i = 0; i < n; ++i) y[i] += x[i];
}

// Rotates the heads of row `position` of a sequence.
void RotateRow(In<double> cosines,
               In<double> sines,
               size_t position,
               size_t head_dim,
               double sign,
               MatrixSpan<double> row) {
  const double *const cosine = cosines.Row(position), *const sine = sines.Row(position);
  const size_t half = head_dim / 2;
  for (double *first = row.data, *const end = first + row.cols; first < end; first += head_dim) {
    for (size_t j = 0; j < half; ++j) {
      const double a = first[j], b = first[half + j], s = sign * sine[j];
      first[j] = a * cosine[j] - b * s;
      first[half + j] = a * s + b * cosine[j];
    }
  }
}

void CheckIndices(IndexRef ids, size_t count) {
  CheckShape("indices", ids, count, 1);
  NUMSIM_CHECK(ids.Contiguous(), "indices with stride {}", ids.stride);
}

void CheckBelow(IndexRef ids, size_t limit) {
  for (size_t i = 0; i < ids.rows; ++i) {
    const int32_t id = ids.data[i];
    NUMSIM_REQUIRE(id >= 0 && static_cast<size_t>(id) < limit,
                   "index {} is {}, expected at least 0 and less than {}",
                   i,
                   id,
                   limit);
  }
}

// Returns the row of sequence b that TakeRows selects.
size_t TakenRow(IndexRef at, size_t length, size_t b) {
  return b * length + (at.data == nullptr ? 0 : static_cast<size_t>(at.data[b]));
}

void CheckTaken(IndexRef at, size_t count, size_t length) {
  if (at.data == nullptr) return;
  CheckIndices(at, count);
  if (at.place.IsHost()) CheckBelow(at, length);
}

}  // namespace

template <typename T>
void GatherRows(In<T> table, IndexRef ids, MatrixSpan<T> y) {
  constexpr const char* kName = "gathering of rows";
  const Place place = PlaceOf<T>(kName, table, ids, y);
  CheckShape(kName, y, ids.rows, table.cols);
  CheckIndices(ids, y.rows);
  if (place.IsHost()) CheckBelow(ids, table.rows);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::GatherRows(place, table, ids, y);
  }
  ForRows(y.rows, y.cols, [&](size_t i) {
    CopyRow(table.Row(static_cast<size_t>(ids.data[i])), y.cols, y.Row(i));
  });
}

template <typename T>
void GatherRowsGradient(In<T> g, IndexRef ids, MatrixSpan<T> table_gradient) {
  constexpr const char* kName = "the gradient of a table";
  const Place place = PlaceOf<T>(kName, g, ids, table_gradient);
  CheckShape(kName, g, ids.rows, table_gradient.cols);
  CheckIndices(ids, g.rows);
  if (place.IsHost()) CheckBelow(ids, table_gradient.rows);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::GatherRowsGradient(place, g, ids, table_gradient);
  }
  ForColumns(g.cols, g.rows + table_gradient.rows, [&](size_t begin, size_t count) {
    for (size_t r = 0; r < table_gradient.rows; ++r) {
      std::fill_n(table_gradient.Row(r) + begin, count, T{});
    }
    for (size_t i = 0; i < g.rows; ++i) {
      const size_t r = static_cast<size_t>(ids.data[i]);
      AddToRow(g.Row(i) + begin, count, table_gradient.Row(r) + begin);
    }
  });
}

template <typename T>
void AddPositions(In<T> table, MatrixSpan<T> y) {
  constexpr const char* kName = "positions";
  const Place place = PlaceOf<T>(kName, table, y);
  CheckShape(kName, y, y.rows, table.cols);
  NUMSIM_CHECK(table.rows != 0 && y.rows % table.rows == 0, "{} of {}", y.rows, table.rows);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::AddPositions(place, table, y);
  }
  ForRows(y.rows, y.cols, [&](size_t i) { AddToRow(table.Row(i % table.rows), y.cols, y.Row(i)); });
}

template <typename T>
void AddPositionsGradient(In<T> g, MatrixSpan<T> table_gradient) {
  constexpr const char* kName = "the gradient of positions";
  const Place place = PlaceOf<T>(kName, g, table_gradient);
  const size_t length = table_gradient.rows;
  CheckShape(kName, g, g.rows, table_gradient.cols);
  NUMSIM_CHECK(length != 0 && g.rows % length == 0, "{} of {}", g.rows, length);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::AddPositionsGradient(place, g, table_gradient);
  }
  ForRows(length, g.rows / length * g.cols, [&](size_t t) {
    T* const sum = table_gradient.Row(t);
    std::fill_n(sum, g.cols, T{});
    for (size_t i = t; i < g.rows; i += length) AddToRow(g.Row(i), g.cols, sum);
  });
}

template <typename T>
void RotatePositions(In<T> cosines, In<T> sines, size_t head_dim, bool inverse, MatrixSpan<T> x) {
  constexpr const char* kName = "rotary positions";
  const Place place = PlaceOf<T>(kName, cosines, sines, x);
  const size_t length = cosines.rows, half = head_dim / 2;
  NUMSIM_CHECK(half != 0 && head_dim % 2 == 0 && x.cols % head_dim == 0,
               "{} columns in heads of {}",
               x.cols,
               head_dim);
  CheckShape(kName, cosines, length, half);
  CheckShape(kName, sines, length, half);
  NUMSIM_CHECK(length != 0 && x.rows % length == 0, "{} of {}", x.rows, length);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::RotatePositions(place, cosines, sines, head_dim, inverse, x);
  }
  const T sign = inverse ? T{-1} : T{1};
  ForRowRanges(x.rows, 2 * x.cols, [&](size_t begin, size_t end) {
    if constexpr (std::is_same_v<T, float>) {
      RotatePart({cosines, sines, head_dim, sign, x}, begin, end);
    } else {
      for (size_t i = begin; i < end; ++i) {
        RotateRow(cosines, sines, i % length, head_dim, sign, x.Rows(i, 1));
      }
    }
  });
}

template <typename T>
void RotaryTables(double base, size_t head_dim, MatrixSpan<T> cosines, MatrixSpan<T> sines) {
  constexpr const char* kName = "tables of rotary positions";
  CheckPlaces(kName, cosines, sines);
  const size_t half = head_dim / 2;
  NUMSIM_CHECK(base > 0 && head_dim % 2 == 0, "base {}, head_dim {}", base, head_dim);
  CheckShape(kName, cosines, cosines.rows, half);
  CheckShape(kName, sines, cosines.rows, half);
  constexpr double kTwoPi = 0x1.921fb54442d18p+2;
  const double log_base = Log(base);
  ForRows(cosines.rows, 16 * half, [&](size_t position) {
    for (size_t j = 0; j < half; ++j) {
      const double exponent = -2 * static_cast<double>(j) / static_cast<double>(head_dim);
      const double turns = static_cast<double>(position) * Exp(exponent * log_base) / kTwoPi;
      const SinCos angle = SinCos2Pi(turns - std::floor(turns));
      cosines.Row(position)[j] = static_cast<T>(angle.cos);
      sines.Row(position)[j] = static_cast<T>(angle.sin);
    }
  });
}

template <typename T>
void CutPatches(In<T> images,
                size_t height,
                size_t width,
                size_t channels,
                size_t patch,
                MatrixSpan<T> patches) {
  constexpr const char* kName = "patches";
  const Place place = PlaceOf<T>(kName, images, patches);
  NUMSIM_CHECK(patch != 0 && height % patch == 0 && width % patch == 0,
               "patches of {} of images of {} x {}",
               patch,
               height,
               width);
  const size_t across = width / patch, per_image = height / patch * across;
  const size_t line = patch * channels;
  CheckShape(kName, images, images.rows, height * width * channels);
  CheckShape(kName, patches, images.rows * per_image, patch * line);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) {
      return cuda::CutPatches(place, images, height, width, channels, patch, patches);
    }
  }
  ForRows(patches.rows, patches.cols, [&](size_t row) {
    const size_t p = row % per_image;
    const T* const corner =
        images.Row(row / per_image) + (p / across * patch * width + p % across * patch) * channels;
    for (size_t y = 0; y < patch; ++y) {
      CopyRow(corner + y * width * channels, line, patches.Row(row) + y * line);
    }
  });
}

template <typename T>
void PrependToken(In<T> x, size_t length, In<T> token, MatrixSpan<T> y) {
  constexpr const char* kName = "a token of classes";
  const Place place = PlaceOf<T>(kName, x, token, y);
  NUMSIM_CHECK(length != 0 && x.rows % length == 0, "{} of {}", x.rows, length);
  CheckShape(kName, token, 1, x.cols);
  CheckShape(kName, y, x.rows / length * (length + 1), x.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::PrependToken(place, x, length, token, y);
  }
  ForRows(y.rows, y.cols, [&](size_t row) {
    const size_t b = row / (length + 1), t = row % (length + 1);
    CopyRow(t == 0 ? token.data : x.Row(b * length + t - 1), y.cols, y.Row(row));
  });
}

template <typename T>
void PrependTokenGradient(In<T> g, size_t length, MatrixSpan<T> token_gradient, MatrixSpan<T> dx) {
  constexpr const char* kName = "the gradient of a token of classes";
  const Place place = PlaceOf<T>(kName, g, token_gradient, dx);
  CheckShape(kName, dx, g.rows / (length + 1) * length, g.cols);
  CheckShape(kName, g, dx.rows / length * (length + 1), dx.cols);
  CheckShape(kName, token_gradient, 1, g.cols);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::PrependTokenGradient(place, g, length, token_gradient, dx);
  }
  ForColumns(g.cols, g.rows / (length + 1), [&](size_t begin, size_t count) {
    T* const sum = token_gradient.data + begin;
    std::fill_n(sum, count, T{});
    for (size_t i = 0; i < g.rows; i += length + 1) AddToRow(g.Row(i) + begin, count, sum);
  });
  ForRows(dx.rows, dx.cols, [&](size_t row) {
    CopyRow(g.Row(row / length * (length + 1) + row % length + 1), dx.cols, dx.Row(row));
  });
}

template <typename T>
void TakeRows(In<T> x, size_t length, IndexRef at, MatrixSpan<T> y) {
  constexpr const char* kName = "taking of rows";
  const Place place = PlaceOf<T>(kName, x, at, y);
  CheckShape(kName, x, y.rows * length, y.cols);
  CheckTaken(at, y.rows, length);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::TakeRows(place, x, length, at, y);
  }
  ForRows(
      y.rows, y.cols, [&](size_t b) { CopyRow(x.Row(TakenRow(at, length, b)), y.cols, y.Row(b)); });
}

template <typename T>
void TakeRowsGradient(In<T> g, size_t length, IndexRef at, MatrixSpan<T> dx) {
  constexpr const char* kName = "the gradient of taken rows";
  const Place place = PlaceOf<T>(kName, g, at, dx);
  CheckShape(kName, dx, g.rows * length, g.cols);
  CheckTaken(at, g.rows, length);
  if constexpr (kHasKernels<T>) {
    if (!place.IsHost()) return cuda::TakeRowsGradient(place, g, length, at, dx);
  }
  ForRows(dx.rows, dx.cols, [&](size_t row) {
    const size_t b = row / length;
    if (row == TakenRow(at, length, b)) {
      CopyRow(g.Row(b), dx.cols, dx.Row(row));
    } else {
      std::fill_n(dx.Row(row), dx.cols, T{});
    }
  });
}

#define NUMSIM_INSTANTIATE(T)                                                         \
  template void GatherRows<T>(In<T>, IndexRef, MatrixSpan<T>);                        \
  template void GatherRowsGradient<T>(In<T>, IndexRef, MatrixSpan<T>);                \
  template void AddPositions<T>(In<T>, MatrixSpan<T>);                                \
  template void AddPositionsGradient<T>(In<T>, MatrixSpan<T>);                        \
  template void RotatePositions<T>(In<T>, In<T>, size_t, bool, MatrixSpan<T>);        \
  template void RotaryTables<T>(double, size_t, MatrixSpan<T>, MatrixSpan<T>);        \
  template void CutPatches<T>(In<T>, size_t, size_t, size_t, size_t, MatrixSpan<T>);  \
  template void PrependToken<T>(In<T>, size_t, In<T>, MatrixSpan<T>);                 \
  template void PrependTokenGradient<T>(In<T>, size_t, MatrixSpan<T>, MatrixSpan<T>); \
  template void TakeRows<T>(In<T>, size_t, IndexRef, MatrixSpan<T>);                  \
  template void TakeRowsGradient<T>(In<T>, size_t, IndexRef, MatrixSpan<T>);
NUMSIM_INSTANTIATE(float)
NUMSIM_INSTANTIATE(double)
#undef NUMSIM_INSTANTIATE

}  // namespace numsim
